// dual_gemm.h -- the reference result: C = f(alpha1 * A * B1^T) * h(alpha2 * A * B2^T) of quantised operands
// in double precision, and for every output how far the kernel's arithmetic may be from it. It is written
// from the formats and knows neither the library nor the simulator. It is fast enough for full-size problems
// on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "ref/activation.h"

namespace ref {

// An operand has `rows` rows of k e2m1 codes, `pitch` bytes from row to row, and their scale factors in the
// layout of formats.h; or k elements of 16 bits or of FP8, and no scale factors. B is MXFP4 where A is FP8,
// and only there. Its rows may have exponents of two, which the sums are multiplied by.
enum class Elements { kNvfp4, kFp16, kBf16, kE4m3, kMxfp4 };
struct Operand {
  const uint8_t* codes;
  int64_t pitch;
  const uint8_t* scales;
  int64_t rows;
  Elements elements = Elements::kNvfp4;
  const int16_t* exponents = nullptr;  // of MXFP4, one for each row; nullptr: 0 each
};

// A sum may be taken in any of these numbers of slices of K: each slice is a chain of its own, and their sums
// are added up in float. kAnyParts stands for any division of the k-tiles, of which wgmma alone has a bound.
inline constexpr int kAnyParts = 0;
inline constexpr int kSplits[] = {1, 2, 3, 4, kAnyParts};

// The instructions of a tensor core: each has an order and a rounding of its own.
enum class TensorCore { kTcgen05, kWgmma };

// This is one output of one GEMM, without its alpha: the sum over K, and how far the kernel's may be from it.
struct Sum {
  double exact;                     // up to double rounding
  double tensor_core;               // of one chain, rounded as tcgen05.mma rounds it
  double lost[std::size(kSplits)];  // bound of |kernel - exact|
};

struct Product {
  int64_t m = 0, n = 0;
  std::vector<Sum> sums;  // [m, n]
};

struct Matrix {
  int64_t m = 0, n = 0;
  std::vector<double> c;  // [m, n], exact up to double rounding
  // This [m, n] bounds |kernel - c| before the conversion to the output type, by the slices of K. It is empty
  // for slices that were not asked for.
  std::vector<float> error[std::size(kSplits)];
};

struct DualGemm : Matrix {
  // This is C [m, n], with the sums rounded as tcgen05.mma rounds those of one chain, the rest in double.
  // It is empty if it was not asked for.
  std::vector<float> tensor_core;
};

// What a caller asks for beside the exact numbers: the less, the sooner they are there.
struct Wanted {
  std::span<const int> splits = kSplits;  // bounds for these numbers of slices
  bool tensor_core = true;                // what tcgen05.mma gives
  Matrix *gate = nullptr, *up = nullptr;  // as the activation takes them, unless null
};

// Returns the place of a number of slices in kSplits. Throws std::invalid_argument when it is not there.
size_t split_index(int split_k);

// What the epilogue takes beside alphas: a factor for each row of both sums, an addend for each column of
// one, a factor for each row of C. Empty: none.
struct RowsAndColumns {
  std::span<const float> row_scale, bias1, bias2, c_row_scale;
};

// k is a multiple of 16, with MXFP4 of 32. A NaN scale factor makes every output that uses it NaN.
Product product(const Operand& a, const Operand& b, int64_t k, TensorCore core = TensorCore::kTcgen05);
DualGemm dual_gemm(const Operand& a, const Operand& b1, const Operand& b2, int64_t k, float alpha1,
                   float alpha2, const Activation& activation, const RowsAndColumns& terms = {},
                   TensorCore core = TensorCore::kTcgen05, const Wanted& wanted = {});

// Returns C of one product, f(alpha * A * B^T) and what `terms` and c_add [m, n] say; bias2 is not taken, and
// there is no up.
DualGemm one_product(const Operand& a, const Operand& b, int64_t k, float alpha, const Activation& activation,
                     const RowsAndColumns& terms = {}, std::span<const float> c_add = {},
                     TensorCore core = TensorCore::kTcgen05, const Wanted& wanted = {});

// Bounds |kernel - f(g) h(up)| for a gate and an up that are off by dg and du before they meet their alphas.
double error_bound(const Activation& activation, double g, double up, double dg, double du);

}  // namespace ref
