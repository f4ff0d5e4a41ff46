// rows.h -- which rows of a matrix each problem of a batch, or each group, has in use, for functions that
// compute on the host. kernel/common/groups.cuh does the same on the device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/common/sf_layout.h"
#include "host/include/dualgemm.h"

namespace dualgemm {

// These are the rows of one or several problems.
struct Rows {
  int32_t m;         // of a problem, with groups at most
  int32_t problems;  // of a batch, or groups
  int32_t group_mode;
  const int32_t* group_rows;

  bool grouped() const { return group_mode != DUALGEMM_GROUP_NONE; }
  bool offsets() const { return group_mode == DUALGEMM_GROUP_OFFSETS; }
  // Counts the matrices that the rows lie in: with OFFSETS the groups share one.
  int32_t matrices() const { return offsets() ? 1 : problems; }
  // Count the blocks of 128 rows of one matrix: at least this many, and at most this many. With OFFSETS only
  // the device knows how many there are.
  int64_t known_blocks() const { return offsets() ? 1 : sf_row_blocks(m); }
  int64_t most_blocks() const {
    if (!offsets()) return sf_row_blocks(m);
    return (m + int64_t{kSfAtomRows - 1} * std::min(m, problems)) / kSfAtomRows;
  }
};

// The rows in use of one problem.
struct RowsInUse {
  int32_t problem;
  int32_t matrix;  // that they lie in
  int32_t first, count;
  int64_t first_block;  // of 128 rows of factors
};

// Calls body for each problem, in order. `group_rows` points to host memory.
template <class Body>
void for_each_problem(const Rows& rows, const Body& body) {
  int64_t block = 0;
  const auto clamped = [&rows](int32_t value) { return std::clamp(value, 0, rows.m); };
  int32_t first = rows.offsets() ? clamped(rows.group_rows[0]) : 0;
  for (int32_t p = 0; p < rows.problems; ++p) {
    if (!rows.offsets()) {
      body(RowsInUse{p, p, 0, rows.grouped() ? clamped(rows.group_rows[p]) : rows.m, 0});
      continue;
    }
    const int32_t end = std::max(first, clamped(rows.group_rows[p + 1]));
    body(RowsInUse{p, 0, first, end - first, block});
    block += sf_row_blocks(end - first);
    first = end;
  }
}

}  // namespace dualgemm
