// grouped.h -- what the tests of grouped launches share: a set of groups against the reference and against
// dense launches of its groups.
#pragma once

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/expected.h"

namespace dualgemm_test {

inline std::string text(const std::vector<int32_t>& rows) {
  std::string out;
  for (int32_t m : rows) out += (out.empty() ? "" : " ") + std::to_string(m);
  return out;
}

inline const char* text(dualgemm_group_mode_t mode) {
  if (mode == DUALGEMM_GROUP_NONE) return "no groups";
  return mode == DUALGEMM_GROUP_OFFSETS ? "offsets" : "masked";
}

// Checks that every group is within the derived bound of the reference.
inline void check_values(const ProblemSet& set, const std::vector<Output>& out) {
  REQUIRE(out.size() == set.problems.size());
  for (size_t g = 0; g < out.size(); ++g) {
    if (set.problems[g].m == 0) continue;
    const Comparison result = compare(out[g], expected(set.problems[g], {}, out[g].split_k)->c);
    INFO("group " << g << ", " << set.problems[g].m << " rows: " << result.first);
    CHECK(result.mismatches == 0);
  }
}

// Checks that every group has the bits of a dense launch of it alone, by an instance that adds K up in the
// same order.
inline void check_bits(const ProblemSet& set, const std::vector<Output>& out) {
  for (const NamedInstance& dense : dense_instances()) {
    if (dense.dtype != out.at(0).dtype || dense.info.tile_m != 128 || dense.info.split_k != 1) continue;
    for (size_t g = 0; g < out.size(); ++g) {
      INFO("group " << g << ", " << set.problems[g].m << " rows");
      CHECK((out[g].bits == run(set.problems[g], use(dense)).bits));
    }
    return;
  }
  FAIL("no dense instance to compare with");
}

inline ProblemSet make_groups(dualgemm_group_mode_t mode, Data data, const std::vector<int32_t>& rows,
                              int32_t n, int32_t k, uint64_t seed, int32_t spare = 0) {
  return mode == DUALGEMM_GROUP_OFFSETS ? make_offsets(data, rows, n, k, seed, spare)
                                        : make_masked(data, rows, n, k, seed, spare);
}

inline constexpr dualgemm_group_mode_t kGroupModes[] = {DUALGEMM_GROUP_OFFSETS, DUALGEMM_GROUP_MASKED};

}  // namespace dualgemm_test
