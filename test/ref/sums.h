// sums.h -- the sums over K of A times one or two B, and how far those of a kernel may be from them:
// dual_gemm.cpp has the derivation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ref/dual_gemm.h"
#include "ref/unpack.h"

namespace ref {

// This is a row of up to 16 outputs of one GEMM, as Sum has each.
struct RowOfSums {
  double exact[kTileCols], tensor_core[kTileCols];
  double lost[std::size(kSplits)][kTileCols];

  Sum at(int64_t i) const {
    Sum out{exact[i], tensor_core[i], {}};
    for (size_t split = 0; split < std::size(kSplits); ++split) out.lost[split] = lost[split][i];
    return out;
  }
};

// Gets the sums of each B, for `width` columns from `column` on.
using EachRow =
    std::function<void(int64_t row, int64_t column, int64_t width, std::span<const RowOfSums> sums)>;

// Calls each for every row of 16 outputs of A times each of `sides`, one or two of equally many rows; of
// large problems on several threads. What `wanted` leaves out is not set. Throws std::invalid_argument
// when k is not a multiple of 16.
void for_each_row(const Operand& a, std::span<const Operand> sides, int64_t k, TensorCore core,
                  const Wanted& wanted, const EachRow& each);

}  // namespace ref
