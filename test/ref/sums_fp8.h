// sums_fp8.h -- the sums over K of an A in FP8 times weights in MXFP4, and how far those of wgmma may be from
// them: dual_gemm.cpp has the derivation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ref/sums.h"

namespace ref {

// This is an A or some rows of B as e4m3: numbers, and the powers of two by which a tensor core aligns their
// products, 0 for a zero. Rows of A stand one after the other, [row][k]; of B there are kTileCols,
// interleaved, [k][row].
struct UnpackedFp8 {
  std::vector<float> values, powers;
};

// Computes the rows of 16 outputs of one product after the other.
class Fp8Rows {
 public:
  Fp8Rows(const Operand& a, std::span<const Operand> sides, int64_t k, const Wanted& wanted);

  // Calls each for all rows of the columns from `column` on.
  void of_columns(int64_t column, const EachRow& each) const;

 private:
  const Operand& a_;
  std::span<const Operand> sides_;
  int64_t k_;
  const Wanted& wanted_;
  UnpackedFp8 left_;
};

}  // namespace ref
