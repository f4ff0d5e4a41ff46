// problem_set.cpp -- see problem_set.h.
#include "support/problem_set.h"

#include <algorithm>
#include <numeric>

namespace dualgemm_test {

static ProblemSet make_set(dualgemm_group_mode_t mode, Data data, const std::vector<int32_t>& rows, int32_t n,
                           int32_t k, uint64_t seed, Alphas alphas, int64_t pitch_padding) {
  ProblemSet set;
  set.mode = mode;
  set.n = n;
  set.k = k;
  for (size_t i = 0; i < rows.size(); ++i) {
    set.problems.push_back(make_problem(data, rows[i], n, k, seed * 1000 + i, pitch_padding));
    Problem& p = set.problems.back();
    if (alphas == Alphas::kOwn) {
      // The alphas are far enough apart that a neighbour's is outside every bound, near enough that all
      // results stay finite, and in steps of 1/8, which a float takes exactly.
      p.alpha1 *= 1 + static_cast<float>(i % 7) / 8;
      p.alpha2 *= 2 - static_cast<float>(i % 5) / 8;
    }
  }
  return set;
}

static int32_t total(const std::vector<int32_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), 0);
}

ProblemSet set_of(const Problem& p) {
  ProblemSet set;
  set.m = p.m;
  set.n = p.n;
  set.k = p.k;
  set.problems = {p};
  return set;
}

std::vector<int32_t> ProblemSet::group_rows() const {
  std::vector<int32_t> out;
  int32_t row = first_row;
  if (mode == DUALGEMM_GROUP_OFFSETS) out.push_back(row);
  for (const Problem& p : problems) out.push_back(mode == DUALGEMM_GROUP_OFFSETS ? row += p.m : p.m);
  return out;
}

std::vector<int64_t> ProblemSet::row_blocks() const {
  std::vector<int64_t> out = {0};
  for (const Problem& p : problems) out.push_back(out.back() + (p.m + 127) / 128);
  return out;
}

ProblemSet make_batch(Data data, int32_t batch, int32_t m, int32_t n, int32_t k, uint64_t seed, Alphas alphas,
                      int64_t pitch_padding) {
  ProblemSet set =
      make_set(DUALGEMM_GROUP_NONE, data, std::vector<int32_t>(batch, m), n, k, seed, alphas, pitch_padding);
  set.m = m;
  return set;
}

ProblemSet make_offsets(Data data, const std::vector<int32_t>& rows, int32_t n, int32_t k, uint64_t seed,
                        int32_t spare, int32_t first_row, Alphas alphas) {
  ProblemSet set = make_set(DUALGEMM_GROUP_OFFSETS, data, rows, n, k, seed, alphas, 0);
  set.first_row = first_row;
  set.m = first_row + total(rows) + spare;
  return set;
}

ProblemSet make_masked(Data data, const std::vector<int32_t>& rows, int32_t n, int32_t k, uint64_t seed,
                       int32_t spare, Alphas alphas) {
  ProblemSet set = make_set(DUALGEMM_GROUP_MASKED, data, rows, n, k, seed, alphas, 0);
  set.m = *std::max_element(rows.begin(), rows.end()) + spare;
  return set;
}

}  // namespace dualgemm_test
