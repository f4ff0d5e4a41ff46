// extras.h -- launches of general instances with everything that they were asked to write, against the
// reference.
#pragma once

#include <memory>
#include <vector>

#include "kernel/grouped.h"
#include "support/expected.h"
#include "support/extras.h"

namespace dualgemm_test {

// Checks an output against its problem. Of an NVFP4 block few codes are not those of the exact values. Sums
// of an A in FP8 are further from exact ones: on an H200 up to one code in 300 was another.
inline void check(const Output& out, const Expected& expected, const LaunchOptions& options) {
  const Comparison result = compare(out, expected.c);
  INFO("activation " << options.activation << ", type " << options.dtype << ": " << result.first);
  CHECK(result.mismatches == 0);
  const int64_t one_in = options.a_dtype == DUALGEMM_DTYPE_FP8_E4M3 ? 100 : 1000;
  CHECK(result.exceptions <= 2 + out.m * out.n / one_in);
}
inline void check(const Output& out, const Problem& p, const LaunchOptions& options) {
  check(out, *expected(p, options, out.split_k), options);
}

// Launches a set and checks everything that it was asked to write: C, and where they were asked for gate and
// up, and the largest magnitude. With PDL the preceding kernel is the same launch, which writes the same.
// Returns C.
inline std::vector<Output> check_launch(const ProblemSet& set, const SetOptions& options) {
  const DeviceSet device(set, options);
  if (options.flags & DUALGEMM_FLAG_PDL) device.launch(nullptr);
  device.launch(nullptr);
  const std::vector<Output> out = device.download();
  REQUIRE(out.size() == set.problems.size());
  std::vector<std::shared_ptr<const Expected>> all;  // of problems with rows
  std::vector<const ref::Matrix*> c;
  for (size_t i = 0; i < out.size(); ++i) {
    INFO("problem " << i << ", " << set.problems[i].m << " rows");
    all.push_back(set.problems[i].m == 0 ? nullptr : expected(set.problems[i], options, out[i].split_k));
    if (!all[i]) continue;
    check(out[i], *all[i], options);
    c.push_back(&all[i]->c);
  }
  if (options.amax) CHECK(may_be_amax(device.amax(), c, out.at(0).split_k, options.amax_before));
  if (!options.d) return out;
  for (int side = 0; side < set.problems[0].products; ++side) {
    const std::vector<Output> d = device.download_d(side);
    for (size_t i = 0; i < d.size(); ++i) {
      if (!all[i]) continue;
      const Comparison result = compare(d[i], all[i]->d[side]);
      INFO("D" << side + 1 << " of problem " << i << ": " << result.first);
      CHECK(result.mismatches == 0);
    }
  }
  return out;
}

}  // namespace dualgemm_test
