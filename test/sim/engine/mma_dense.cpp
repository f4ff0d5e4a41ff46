// mma_dense.cpp -- the dot product of the dense kinds (16-bit and tf32 operands):
//
//   D = sum_k trunc(a_k * b_k) + trunc(C),
//
// where trunc cuts each term toward zero to a multiple of 2^(E-25) and E is the largest of the exponents of
// the products and of C. A product's exponent is the sum of its factors' exponents. A factor's exponent is
// what its exponent field says: a subnormal factor has that of the smallest normal number of its format
// (-14 in f16, -126 in bf16 and tf32), however many zeros lead its significand. So the top bit of a product
// may lie far below 2^E, and that many more bits of the smaller terms are cut. A product with a factor of
// zero is no term at all, and its other factor does not count; nor is a C of zero. A subnormal C has the
// exponent -126.
//
// The scheme is the published one of mma_numerics.cpp with other numbers. conformance/tensor_core.cu compares
// it with wgmma of f16 and bf16 on Hopper GPUs bit for bit: one sum covers the 16 products of an instruction.
// For tcgen05 all of this is assumed, and for tf32 that one sum covers the 8 products of an instruction.
//
// The tile version works on 16 columns at a time. A product is below 2^(E+2), so in units of 2^(E-25) it has
// at most 27 bits: truncation is the conversion to int32, and 16 terms of 27 bits add up in one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "sim/engine/numerics.h"

namespace sim {
namespace {

constexpr int kFraction = 25;
constexpr int kNoTerm = -260;  // the exponent of zero: below that of every product, which is -252 at least
constexpr int kMostDepth = 64;

inline int operand_exponent(float x, int least) { return std::max(f32_exponent(x), least); }

}  // namespace

double mma_dense_sum(const float* a, const float* b, int least, int k, float c) {
  int exponent[kMostDepth];
  int top = c == 0 ? kNoTerm : f32_exponent(c);
  double special = 0;  // becomes NaN or infinity when a product or c is
  for (int i = 0; i < k; ++i) {
    exponent[i] = operand_exponent(a[i], least) + operand_exponent(b[i], least);
    if (a[i] == 0 || b[i] == 0) exponent[i] = kNoTerm;
    top = std::max(top, exponent[i]);
    special += double{a[i]} * double{b[i]};
  }
  special += c;
  if (!std::isfinite(special)) return special;

  const int unit = top - kFraction;
  // Each product is below 2^(top+2): at most 27 bits in units, exact as double and as integer.
  const auto units = [unit](double x) { return std::trunc(std::ldexp(x, -unit)); };
  double sum = units(c);
  for (int i = 0; i < k; ++i) sum += units(double{a[i]} * double{b[i]});
  return std::ldexp(sum, unit);
}

namespace {

#define SIM_INLINE inline __attribute__((always_inline))

constexpr int kBlock = 16;
constexpr int kDepth = kDenseTileDepth;
constexpr int kNever = -10000;  // the exponent of a product that is zero, far below every other

struct alignas(64) ColumnBlock {
  double b[kDepth][kBlock];
  int32_t exponent[kDepth][kBlock];
};

constexpr int kLanes = 4;
typedef float F __attribute__((vector_size(4 * kLanes)));
typedef int32_t I __attribute__((vector_size(4 * kLanes)));
typedef int64_t L __attribute__((vector_size(8 * kLanes)));
typedef double D __attribute__((vector_size(8 * kLanes)));

template <class T>
SIM_INLINE void load(T& vector, const void* from) {
  std::memcpy(&vector, from, sizeof vector);
}

SIM_INLINE void power_of_two(D& out, const I& exponent) {
  out = (D)(__builtin_convertvector(exponent + 1023, L) << 52);
}

// Computes one row of 16 finite outputs. A result outside the normal range of float is left to the caller,
// who is told by the return value.
SIM_INLINE bool row_of_block(const double* a, const int32_t* exponent_a, const ColumnBlock& block,
                             const float* c, double* sums, float* out) {
  L abnormal = {};
  for (int n = 0; n < kBlock; n += kLanes) {
    I top, c_bits, terms = {};
    F c32;
    load(c_bits, c + n);
    load(c32, c + n);
    top = c_bits >> 23 & 0xFF;
    top = (top > 1 ? top : I{} + 1) - 127;
    top = (c_bits & 0x7FFFFFFF) == 0 ? I{} + kNoTerm : top;
    for (int k = 0; k < kDepth; ++k) {
      I exponent;
      load(exponent, &block.exponent[k][n]);
      exponent += exponent_a[k];
      top = top > exponent ? top : exponent;
    }
    D scale, unit;
    power_of_two(scale, kFraction - top);
    power_of_two(unit, top - kFraction);
    for (int k = 0; k < kDepth; ++k) {
      D column;
      load(column, &block.b[k][n]);
      terms += __builtin_convertvector(a[k] * column * scale, I);
    }
    const I c_units = __builtin_convertvector(__builtin_convertvector(c32, D) * scale, I);
    const D sum = (__builtin_convertvector(terms, D) + __builtin_convertvector(c_units, D)) * unit;
    const L magnitude = (L)sum & std::numeric_limits<int64_t>::max();
    abnormal |= ((magnitude < std::bit_cast<int64_t>(0x1p-126)) & (magnitude != 0)) |
                (magnitude >= std::bit_cast<int64_t>(0x1p128));
    // Clearing the bits that float has no room for rounds toward zero.
    const D cut = (D)((L)sum & ~((int64_t{1} << 29) - 1));
    const F result = __builtin_convertvector(cut, F);
    std::memcpy(sums + n, &sum, sizeof sum);
    std::memcpy(out + n, &result, sizeof result);
  }
  int64_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= abnormal[i];
  return any == 0;
}

// The kinds of elements that are not finite, of a row of A or a column of B.
constexpr uint8_t kSomeInfinite = 1, kSomeNan = 2;

uint8_t special_kind(float x) {
  return uint8_t(std::isnan(x) ? kSomeNan : std::isinf(x) ? kSomeInfinite : 0);
}

// Elements that are not finite count as zero here. `row_special` and `column_special` say where they are.
struct Prepared {
  std::vector<double> a;
  std::vector<int32_t> exponent_a;
  std::vector<uint8_t> row_special, column_special;
  std::vector<uint8_t> row_counts;  // an element of the row is not zero
};

SIM_INLINE void dense_tile(const float* a, const float* b, int least, int rows, int cols, bool accumulate,
                           float* d) {
  static thread_local Prepared p;
  const size_t depth = kDepth;
  p.a.resize(static_cast<size_t>(rows) * depth);
  p.exponent_a.resize(p.a.size());
  p.row_special.assign(static_cast<size_t>(rows), 0);
  p.column_special.assign(static_cast<size_t>(cols), 0);
  p.row_counts.assign(static_cast<size_t>(rows), 0);
  for (size_t i = 0; i < p.a.size(); ++i) {
    const bool finite = std::isfinite(a[i]);
    p.row_special[i / depth] |= special_kind(a[i]);
    p.row_counts[i / depth] |= uint8_t(a[i] != 0);
    p.a[i] = finite ? a[i] : 0.0f;
    p.exponent_a[i] = p.a[i] == 0 ? kNever : operand_exponent(a[i], least);
  }
  ColumnBlock block;
  for (int n0 = 0; n0 < cols; n0 += kBlock) {
    const int columns = std::min(kBlock, cols - n0);
    bool block_counts = false;  // an element of the block is not zero
    for (int k = 0; k < kDepth; ++k)
      for (int n = 0; n < kBlock; ++n) {
        const float value = n < columns ? b[(n0 + n) * kDepth + k] : 0.0f;
        const bool finite = std::isfinite(value);
        if (!finite) p.column_special[static_cast<size_t>(n0 + n)] |= special_kind(value);
        block_counts |= value != 0;
        block.b[k][n] = finite ? value : 0.0f;
        block.exponent[k][n] = block.b[k][n] == 0 ? kNever : operand_exponent(value, least);
      }
    for (int m = 0; m < rows; ++m) {
      const size_t row = static_cast<size_t>(m);
      float* out = d + row * static_cast<size_t>(cols) + n0;
      alignas(64) float c[kBlock] = {}, finite_c[kBlock] = {}, result[kBlock];
      alignas(64) double sums[kBlock];
      if (accumulate) std::memcpy(c, out, sizeof(float) * static_cast<size_t>(columns));
      bool special = p.row_special[row] != 0;
      for (int n = 0; n < kBlock; ++n) {
        finite_c[n] = std::isfinite(c[n]) ? c[n] : 0.0f;
        special |= !std::isfinite(c[n]);
      }
      for (int n = 0; n < columns; ++n) special |= p.column_special[static_cast<size_t>(n0 + n)] != 0;
      // Tiles that reach beyond the matrices have many rows and columns of zeros, which leave C as it is.
      if (!special && !(block_counts && p.row_counts[row] != 0)) {
        for (int n = 0; n < columns; ++n) out[n] = c[n] + 0.0f;  // but for -0
        continue;
      }
      const bool normal =
          row_of_block(&p.a[row * depth], &p.exponent_a[row * depth], block, finite_c, sums, result);
      if (!normal || special) {
        for (int n = 0; n < columns; ++n) {
          const uint8_t kinds =
              p.row_special[row] | p.column_special[static_cast<size_t>(n0 + n)] | special_kind(c[n]);
          double sum = sums[n];
          if ((kinds & kSomeNan) != 0) sum = std::numeric_limits<double>::quiet_NaN();
          else if (kinds != 0)
            sum = mma_dense_sum(a + row * depth, b + (n0 + n) * kDepth, least, kDepth, c[n]);
          result[n] = f64_to_f32_toward_zero(sum);
        }
      }
      std::memcpy(out, result, sizeof(float) * static_cast<size_t>(columns));
    }
  }
}

#define SIM_TILE_ARGUMENTS \
  const float *a, const float *b, int least, int rows, int cols, bool accumulate, float *d

void tile_portable(SIM_TILE_ARGUMENTS) { dense_tile(a, b, least, rows, cols, accumulate, d); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void tile_avx2(SIM_TILE_ARGUMENTS) {
  dense_tile(a, b, least, rows, cols, accumulate, d);
}
#endif

}  // namespace

std::vector<DenseTileVariant> dense_tile_variants() {
  std::vector<DenseTileVariant> variants;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) variants.push_back({"avx2", tile_avx2});
#endif
  variants.push_back({"portable", tile_portable});
  return variants;
}

void mma_dense_tile(const float* a, const float* b, int least, int rows, int cols, bool accumulate,
                    float* d) {
  static const DenseTileVariant fastest = dense_tile_variants().front();
  fastest.run(a, b, least, rows, cols, accumulate, d);
}

}  // namespace sim
