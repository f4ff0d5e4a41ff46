// shapes.h -- what the benchmark runs: single problems, batches and groups, and the suites it knows by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dualgemm.h"

namespace bench {

struct Shape {
  int32_t m, n, k;  // m: rows of A of one problem; OFFSETS: of all groups together; MASKED: room of a group
  std::string label;
  int32_t batch = 1;
  dualgemm_group_mode_t mode = DUALGEMM_GROUP_NONE;
  std::vector<int32_t> group_rows = {};  // with a mode: how many rows each group has

  int32_t problems() const { return grouped() ? static_cast<int32_t>(group_rows.size()) : batch; }
  int32_t rows(int32_t problem) const { return grouped() ? group_rows[problem] : m; }
  int64_t rows() const;  // of all problems
  bool grouped() const { return mode != DUALGEMM_GROUP_NONE; }
  bool offsets() const { return mode == DUALGEMM_GROUP_OFFSETS; }
};

// Returns groups of these rows; MASKED has room for the largest of them, rounded up to 128 rows.
Shape groups(dualgemm_group_mode_t mode, std::vector<int32_t> rows, int32_t n, int32_t k, std::string label);

// Returns `groups` numbers that spread tokens over experts and add up to exactly `total`, in even steps
// through an exponential distribution and a scrambled order that never changes. The largest is about
// ln(groups) + 1 times the mean; where the mean is small, some are zero.
std::vector<int32_t> skewed_rows(int32_t groups, int64_t total);

// Parses the arguments of --shape (README.md); throws std::runtime_error.
Shape parse_shape(const std::string& text);

// Returns "256 x 4096 x 7168", "8 of 16 x 720 x 2880", or "offsets 8, 1024 x 4096 x 7168" for groups with all
// their rows.
std::string shape_text(const Shape& shape);

struct Suite {
  std::string name, what;
  std::vector<Shape> shapes;
};
const std::vector<Suite>& suites();

}  // namespace bench
