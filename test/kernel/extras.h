// extras.h -- launches of general instances with everything that they were asked to write, against the
// reference.
#pragma once

#include <vector>

#include "kernel/grouped.h"
#include "support/extras.h"

namespace dualgemm_test {

// Checks an output against its problem. Of an NVFP4 block few codes are not those of the exact values.
inline void check(const Output& out, const Problem& p, const LaunchOptions& options) {
  const Comparison result = compare(out, reference(p, options));
  INFO("activation " << options.activation << ", type " << options.dtype << ": " << result.first);
  CHECK(result.mismatches == 0);
  CHECK(result.exceptions <= 2 + out.m * out.n / 1000);
}

// Launches a set and checks everything that it was asked to write: C, and where they were asked for gate and
// up, and the largest magnitude. With PDL the preceding kernel is the same launch, which writes the same.
inline void check_launch(const ProblemSet& set, const SetOptions& options) {
  const DeviceSet device(set, options);
  if (options.flags & DUALGEMM_FLAG_PDL) device.launch(nullptr);
  device.launch(nullptr);
  const std::vector<Output> out = device.download();
  REQUIRE(out.size() == set.problems.size());
  std::vector<ref::DualGemm> expected;
  for (size_t i = 0; i < out.size(); ++i) {
    INFO("problem " << i << ", " << set.problems[i].m << " rows");
    if (set.problems[i].m == 0) continue;
    check(out[i], set.problems[i], options);
    expected.push_back(reference(set.problems[i], options));
  }
  const int32_t split_k = out.at(0).split_k;
  if (options.amax) CHECK(may_be_amax(device.amax(), expected, split_k, options.amax_before));
  if (!options.d) return;
  for (int side = 0; side < set.problems[0].products; ++side) {
    const std::vector<Output> d = device.download_d(side);
    for (size_t i = 0; i < d.size(); ++i) {
      if (set.problems[i].m == 0) continue;
      const Comparison result = compare(d[i], set.problems[i].reference_d(side));
      INFO("D" << side + 1 << " of problem " << i << ": " << result.first);
      CHECK(result.mismatches == 0);
    }
  }
}

}  // namespace dualgemm_test
