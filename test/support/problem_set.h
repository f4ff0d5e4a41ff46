// problem_set.h -- the problems of one launch: a batch of one shape, or groups of rows with weights of their
// own. Each is a Problem by itself; how they lie in the buffers of one launch is device_set.h's business.
#pragma once

#include <cstdint>
#include <vector>

#include "support/problem.h"

namespace dualgemm_test {

struct ProblemSet {
  dualgemm_group_mode_t mode = DUALGEMM_GROUP_NONE;
  // A and C have room for this many rows: of one problem, with OFFSETS of all of them together.
  int32_t m = 0;
  int32_t n = 0, k = 0;
  std::vector<Problem> problems;  // their m: rows in use
  int32_t first_row = 0;          // OFFSETS: rows that stand in front of the first group and belong to nobody

  // Returns the contents of group_rows for these problems: with OFFSETS one entry more than there are
  // problems, with MASKED one each.
  std::vector<int32_t> group_rows() const;
  // Returns, for OFFSETS, the blocks of 128 rows that the scale factors of A have before each group, and in
  // all.
  std::vector<int64_t> row_blocks() const;
};

// The problems share the alphas alpha1 and alpha2, or have their own.
enum class Alphas {
  kShared,  // every problem has those of the first
  kOwn,     // every problem has its own
};

// Returns a set of one problem.
ProblemSet set_of(const Problem& p);

// Makes `batch` problems of m rows.
ProblemSet make_batch(Data data, int32_t batch, int32_t m, int32_t n, int32_t k, uint64_t seed,
                      Alphas alphas = Alphas::kShared, int64_t pitch_padding = 0);

// Makes groups of `rows` rows each. With OFFSETS `spare` rows follow those of the last group, and `first_row`
// precede the first. With MASKED every group has room for `spare` rows more than the largest one uses.
ProblemSet make_offsets(Data data, const std::vector<int32_t>& rows, int32_t n, int32_t k, uint64_t seed,
                        int32_t spare = 0, int32_t first_row = 0, Alphas alphas = Alphas::kOwn);
ProblemSet make_masked(Data data, const std::vector<int32_t>& rows, int32_t n, int32_t k, uint64_t seed,
                       int32_t spare = 0, Alphas alphas = Alphas::kOwn);

}  // namespace dualgemm_test
