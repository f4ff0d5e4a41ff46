// sf_layout.h -- arithmetic of the 128x4 scale-factor layout, of which dualgemm.h has the formula. The
// checks (sizes), the tensor maps (atoms and row blocks) and the quantiser (offsets) use it. It is constexpr
// and without CUDA.
#pragma once

#include <cstdint>

#include "kernel/plan.h"

namespace dualgemm {

constexpr int64_t ceil_div(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

constexpr int64_t sf_row_blocks(int32_t rows) { return ceil_div(rows, kSfAtomRows); }
constexpr int64_t sf_atoms(int32_t k) { return ceil_div(k, kSfAtomElems); }

constexpr int64_t sf_bytes(int32_t rows, int32_t k) {
  return sf_row_blocks(rows) * sf_atoms(k) * kSfAtomBytes;
}

constexpr int64_t sf_offset(int32_t k, int32_t row, int32_t block) {
  const int64_t atom = row / kSfAtomRows * sf_atoms(k) + block / kSfAtomBlocks;
  return atom * kSfAtomBytes + sf_offset_in_atom(row, block);
}

}  // namespace dualgemm
