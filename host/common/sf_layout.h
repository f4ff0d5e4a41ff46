// sf_layout.h -- arithmetic of the 128x4 scale-factor layout, of which host/FORMATS.md has the formula. The
// checks (sizes), the tensor maps (atoms and row blocks) and the quantiser (offsets) use it. It is constexpr
// and without CUDA. `shared` is how many elements share a factor: kSfBlock in NVFP4, kMxBlock in MXFP4.
#pragma once

#include <cstdint>

#include "kernel/plan.h"

namespace dualgemm {

constexpr int64_t ceil_div(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

constexpr int64_t sf_row_blocks(int32_t rows) { return ceil_div(rows, kSfAtomRows); }
constexpr int64_t sf_atoms(int32_t k, int32_t shared = kSfBlock) {
  return ceil_div(k, int64_t{shared} * kSfAtomBlocks);
}

constexpr int64_t sf_bytes(int32_t rows, int32_t k, int32_t shared = kSfBlock) {
  return sf_row_blocks(rows) * sf_atoms(k, shared) * kSfAtomBytes;
}

constexpr int64_t sf_offset(int32_t k, int32_t row, int32_t block, int32_t shared = kSfBlock) {
  const int64_t atom = row / kSfAtomRows * sf_atoms(k, shared) + block / kSfAtomBlocks;
  return atom * kSfAtomBytes + sf_offset_in_atom(row, block);
}

}  // namespace dualgemm
