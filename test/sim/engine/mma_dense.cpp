// mma_dense.cpp -- the dot product of the dense kinds (tf32, 16-bit and 8-bit operands):
//
//   D = RZ( sum_k trunc(a_k * b_k) + trunc(C) ),
//
// where trunc cuts each term toward zero to a multiple of 2^(E-25) and E is the largest of the exponents of
// the products and of C. A product's exponent is the sum of its factors' exponents. A factor's exponent is
// what its exponent field says: a subnormal factor has that of the smallest normal number of its format
// (-14 in f16 and e5m2, -6 in e4m3, -126 in bf16 and tf32), however many zeros lead its significand. So the
// top bit of a product may lie far below 2^E, and that many more bits of the smaller terms are cut. A product
// with a factor of zero is no term at all, whatever its other factor is. A C of zero is no term, either. A
// subnormal C has the exponent -126. RZ rounds toward zero to f32.
//
// For operands of 8 bits trunc cuts to multiples of 2^(E-13), and RZ leaves 13 fractional bits of the f32, a
// subnormal one included. So a C that has more loses them, even if all products are zero.
//
// The scheme is the published one of mma_numerics.cpp with other numbers. conformance/tensor_core.cu compares
// it with wgmma on Hopper GPUs bit for bit: one sum covers all products of an instruction, 16 of f16 and bf16
// or 32 of e4m3 and e5m2. For tcgen05 all of this is assumed. For tf32 we also assume that one sum covers the
// 8 products of an instruction.
//
// The tile version works on 16 columns at a time. A product is below 2^(E+2), so in units of 2^(E-25) it has
// at most 27 bits: truncation is the conversion to int32, and 16 terms of 27 bits add up in one. In units of
// 2^(E-13) it has 15, and so do 32 terms. Where the exponents of a row, of a block of columns and of C show
// that nothing is cut, double adds the terms exactly.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "sim/engine/numerics.h"
#include "sim/engine/vectors.h"

namespace sim {
namespace {

struct Scheme {
  int depth;   // products of a row of 32 bytes
  int kept;    // places of a term below 2^E
  int result;  // fractional bits of the result
};
constexpr Scheme kWords{16, 25, 23}, kBytes{32, 13, 13};

// Of tf32 the depth means nothing.
constexpr const Scheme& scheme_of(DenseFormats formats) {
  return element_bytes(formats.a) == 1 ? kBytes : kWords;
}

// The exponent of the smallest normal number.
constexpr int least_exponent(DenseFormat format) {
  switch (format) {
    case DenseFormat::kF16:
    case DenseFormat::kE5m2: return -14;
    case DenseFormat::kE4m3: return -6;
    default: return -126;
  }
}

constexpr int kNoTerm = -260;  // the exponent of zero: below that of every product, which is -252 at least
constexpr int kMostDepth = 64;

inline int operand_exponent(float x, int least) { return std::max(f32_exponent(x), least); }

}  // namespace

double mma_dense_sum(const float* a, const float* b, DenseFormats formats, int k, float c) {
  const int least_a = least_exponent(formats.a), least_b = least_exponent(formats.b);
  int exponent[kMostDepth];
  int top = c == 0 ? kNoTerm : f32_exponent(c);
  double special = 0;  // becomes NaN or infinity when a product or c is
  for (int i = 0; i < k; ++i) {
    exponent[i] = operand_exponent(a[i], least_a) + operand_exponent(b[i], least_b);
    if (a[i] == 0 || b[i] == 0) exponent[i] = kNoTerm;
    top = std::max(top, exponent[i]);
    special += double{a[i]} * double{b[i]};
  }
  special += c;
  if (!std::isfinite(special)) return special;

  const int unit = top - scheme_of(formats).kept;
  // Each product is below 2^(top+2): at most 27 bits in units, exact as double and as integer.
  const auto units = [unit](double x) { return std::trunc(std::ldexp(x, -unit)); };
  double sum = units(c);
  for (int i = 0; i < k; ++i) sum += units(double{a[i]} * double{b[i]});
  return std::ldexp(sum, unit);
}

float round_dense(double sum, DenseFormats formats) {
  return f64_to_f32_toward_zero(sum, scheme_of(formats).result);
}

namespace {

constexpr int kBlock = 16;
constexpr double kFloatLimit = 0x1p128;  // float has no number from here on
constexpr int kNever = -10000;           // the exponent of a product that is zero, far below every other

// Summarises a row of A or a block of columns of B.
struct ExponentRange {
  int high = kNever;  // largest exponent of an element that is not zero
  int low = -kNever;  // smallest exponent of a bit that is set in an element
};

// A row of A, or a column of B, taken apart. Elements that are not finite count as zero here.
template <int kDepth>
struct Elements {
  float value[kDepth];
  int32_t exponent[kDepth];  // kNever where the element is zero
  ExponentRange range;
  bool finite;
};

// The loop has no branches, so that it is compiled for all elements at once.
template <int kDepth>
SIM_INLINE void take_apart(const float* from, int least, Elements<kDepth>& out) {
  int32_t last[kDepth], infinite[kDepth];
  for (int i = 0; i < kDepth; ++i) {
    const int bits = std::bit_cast<int>(from[i]), biased = bits >> 23 & 0xFF;
    const int exponent = std::max(biased, 1) - 127;
    const int significand = (bits & 0x7FFFFF) | (biased != 0 ? 0x800000 : 0);
    infinite[i] = biased == 0xFF;
    const bool zero = (significand == 0) | (biased == 0xFF);
    // The exponent of the lowest bit, as a float, is its place.
    const int place = (std::bit_cast<int>(static_cast<float>(significand & -significand)) >> 23) - 127;
    last[i] = zero ? -kNever : exponent - 23 + place;
    out.value[i] = std::bit_cast<float>(biased == 0xFF ? 0 : bits);
    out.exponent[i] = zero ? kNever : std::max(exponent, least);
  }
  int high = kNever, low = -kNever, finite = 1;
  for (int i = 0; i < kDepth; ++i) {
    high = std::max(high, out.exponent[i]);
    low = std::min(low, last[i]);
    finite &= 1 - infinite[i];
  }
  out.range = {high, low};
  out.finite = finite != 0;
}

template <int kDepth>
struct alignas(64) ColumnBlock {
  double b[kDepth][kBlock];
  int32_t exponent[kDepth][kBlock];
  ExponentRange range;
};

template <int kLanes>
struct Vec {
  typedef float F __attribute__((vector_size(4 * kLanes)));
  typedef int32_t I __attribute__((vector_size(4 * kLanes)));
  typedef int64_t L __attribute__((vector_size(8 * kLanes)));
  typedef double D __attribute__((vector_size(8 * kLanes)));
};

template <class D, class L, class I>
SIM_INLINE void power_of_two(D& out, const I& exponent) {
  out = (D)(__builtin_convertvector(exponent + 1023, L) << 52);
}

struct RowOfA {
  const double* a;
  const int32_t* exponent;
  ExponentRange range;
};

// Computes one row of 16 finite outputs. A result outside the normal range of float is left to the caller,
// who is told by the return value.
template <int kLanes, Scheme kScheme>
SIM_INLINE bool row_of_block(const RowOfA& row, const ColumnBlock<kScheme.depth>& block, const float* c,
                             double* sums, float* out) {
  using V = Vec<kLanes>;
  using D = typename V::D;
  using I = typename V::I;
  typename V::L abnormal = {};
  for (int n = 0; n < kBlock; n += kLanes) {
    I top, c_bits, terms = {};
    typename V::F c32;
    load(c_bits, c + n);
    load(c32, c + n);
    top = c_bits >> 23 & 0xFF;
    top = (top > 1 ? top : I{} + 1) - 127;
    top = (c_bits & 0x7FFFFFFF) == 0 ? I{} + kNoTerm : top;
    for (int k = 0; k < kScheme.depth; ++k) {
      I exponent;
      load(exponent, &block.exponent[k][n]);
      exponent += row.exponent[k];
      top = top > exponent ? top : exponent;
    }
    D scale, unit;
    power_of_two<D, typename V::L>(scale, kScheme.kept - top);
    power_of_two<D, typename V::L>(unit, top - kScheme.kept);
    for (int k = 0; k < kScheme.depth; ++k) {
      D column;
      load(column, &block.b[k][n]);
      terms += __builtin_convertvector(row.a[k] * column * scale, I);
    }
    const I c_units = __builtin_convertvector(__builtin_convertvector(c32, D) * scale, I);
    const D sum = (__builtin_convertvector(terms, D) + __builtin_convertvector(c_units, D)) * unit;
    round_sums<typename V::F, kScheme.result>(sum, kFloatLimit, sums + n, out + n, abnormal);
  }
  return all_bits<int64_t>(abnormal) >= 0;
}

// Computes the same row if nothing is cut, and returns false if that is not certain. E is at most the larger
// of `high` and the exponent of C, so no product is cut when `low` is no more than the kept places below
// both. C has 24 bits. Some of them may be cut if `high` is large, and some are if fewer are kept.
template <int kLanes, Scheme kScheme>
SIM_INLINE bool exact_row_of_block(const RowOfA& row, const ColumnBlock<kScheme.depth>& block, const float* c,
                                   double* sums, float* out) {
  using V = Vec<kLanes>;
  using D = typename V::D;
  const int high = row.range.high + block.range.high, low = row.range.low + block.range.low;
  if (high < kNoTerm || low < high - kScheme.kept) return false;
  const double limit = std::ldexp(1.0, low + kScheme.kept), scale = std::ldexp(1.0, kScheme.kept - high);
  constexpr double kWhole = 0x1.8p52;  // added to a number below 2^51, leaves no fraction
  using L = typename V::L;
  constexpr int32_t kCut = (1 << std::max(23 - kScheme.kept, 0)) - 1;  // bits of C below those that are kept
  L negative = {}, fractions = {};
  typename V::I cut = {};
  for (int n = 0; n < kBlock; n += kLanes) {
    typename V::F c32;
    typename V::I c_bits;
    load(c32, c + n);
    load(c_bits, c + n);
    cut |= c_bits & kCut;
    const D c64 = __builtin_convertvector(c32, D), units = c64 * scale;
    D sum = {};
    for (int k = 0; k < kScheme.depth; ++k) {
      D column;
      load(column, &block.b[k][n]);
      sum += row.a[k] * column;
    }
    sum += c64;
    const D size = (D)((L)c64 & std::numeric_limits<int64_t>::max());
    negative |= (L)(limit - size);
    fractions |= (L)((units + kWhole) - kWhole - units);
    round_sums<typename V::F, kScheme.result>(sum, kFloatLimit, sums + n, out + n, negative);
  }
  return all_bits<int64_t>(negative) >= 0 && all_bits<int64_t>(fractions) == 0 && all_bits<int32_t>(cut) == 0;
}

// The kinds of elements that are not finite, of a row of A or a column of B.
constexpr uint8_t kSomeInfinite = 1, kSomeNan = 2;

uint8_t special_kind(float x) {
  return uint8_t(std::isnan(x) ? kSomeNan : std::isinf(x) ? kSomeInfinite : 0);
}
uint8_t special_kinds(const float* elements, int depth) {
  uint8_t kinds = 0;
  for (int k = 0; k < depth; ++k) kinds |= special_kind(elements[k]);
  return kinds;
}

// Copies 16 numbers with zeros for those that are not finite, and returns whether all are.
SIM_INLINE bool keep_finite(const float* from, float* to) {
  int32_t special[kBlock], any = 0;
  for (int i = 0; i < kBlock; ++i) {
    const int bits = std::bit_cast<int>(from[i]);
    special[i] = (bits & 0x7F800000) == 0x7F800000;
    to[i] = std::bit_cast<float>(special[i] != 0 ? 0 : bits);
  }
  for (int i = 0; i < kBlock; ++i) any |= special[i];
  return any == 0;
}

// A whole block is one fixed-size copy.
SIM_INLINE void copy_columns(float* to, const float* from, int columns) {
  if (columns == kBlock) std::memcpy(to, from, sizeof(float) * kBlock);
  else std::memcpy(to, from, sizeof(float) * static_cast<size_t>(columns));
}

// `row_special` and `column_special` say where elements are not finite.
struct Prepared {
  std::vector<double> a;
  std::vector<int32_t> exponent_a;
  std::vector<ExponentRange> row_range;
  std::vector<uint8_t> row_special, column_special;
};

template <int kLanes, Scheme kScheme>
SIM_INLINE void scheme_tile(const float* a, const float* b, DenseFormats formats, int rows, int cols,
                            bool accumulate, float* d) {
  static thread_local Prepared p;
  constexpr int kDepth = kScheme.depth;
  constexpr size_t depth = kDepth;
  const int least_a = least_exponent(formats.a), least_b = least_exponent(formats.b);
  p.a.resize(static_cast<size_t>(rows) * depth);
  p.exponent_a.resize(p.a.size());
  p.row_special.assign(static_cast<size_t>(rows), 0);
  p.column_special.assign(static_cast<size_t>(cols), 0);
  p.row_range.resize(static_cast<size_t>(rows));
  Elements<kDepth> elements;
  for (size_t row = 0; row < p.row_range.size(); ++row) {
    take_apart(a + row * depth, least_a, elements);
    for (size_t k = 0; k < depth; ++k) p.a[row * depth + k] = elements.value[k];
    std::memcpy(&p.exponent_a[row * depth], elements.exponent, sizeof elements.exponent);
    p.row_range[row] = elements.range;
    if (!elements.finite) p.row_special[row] = special_kinds(a + row * depth, kDepth);
  }
  ColumnBlock<kDepth> block;
  for (int n0 = 0; n0 < cols; n0 += kBlock) {
    const int columns = std::min(kBlock, cols - n0);
    block.range = {};
    bool special_columns = false;
    for (int n = 0; n < kBlock; ++n) {
      static constexpr float kZeros[kDepth] = {};
      const float* column = n < columns ? b + (n0 + n) * kDepth : kZeros;
      take_apart(column, least_b, elements);
      for (int k = 0; k < kDepth; ++k) {
        block.b[k][n] = elements.value[k];
        block.exponent[k][n] = elements.exponent[k];
      }
      block.range.high = std::max(block.range.high, elements.range.high);
      block.range.low = std::min(block.range.low, elements.range.low);
      if (!elements.finite) p.column_special[static_cast<size_t>(n0 + n)] = special_kinds(column, kDepth);
      special_columns |= !elements.finite;
    }
    for (int m = 0; m < rows; ++m) {
      const size_t row = static_cast<size_t>(m);
      float* out = d + row * static_cast<size_t>(cols) + n0;
      alignas(64) float c[kBlock] = {}, finite_c[kBlock] = {}, result[kBlock];
      alignas(64) double sums[kBlock];
      if (accumulate) copy_columns(c, out, columns);
      const bool special = !keep_finite(c, finite_c) || p.row_special[row] != 0 || special_columns;
      // Tiles that reach beyond the matrices have many rows and columns of zeros, which leave C as it is, but
      // for -0 and for bits that are not kept.
      if (!special && (block.range.high == kNever || p.row_range[row].high == kNever)) {
        for (int n = 0; n < columns; ++n)
          out[n] = kScheme.result == 23 ? c[n] + 0.0f : f64_to_f32_toward_zero(c[n], kScheme.result);
        continue;
      }
      const RowOfA row_of_a{&p.a[row * depth], &p.exponent_a[row * depth], p.row_range[row]};
      const bool normal = exact_row_of_block<kLanes, kScheme>(row_of_a, block, finite_c, sums, result) ||
                          row_of_block<kLanes, kScheme>(row_of_a, block, finite_c, sums, result);
      if (!normal || special) {
        for (int n = 0; n < columns; ++n) {
          const uint8_t kinds =
              p.row_special[row] | p.column_special[static_cast<size_t>(n0 + n)] | special_kind(c[n]);
          double sum = sums[n];
          if ((kinds & kSomeNan) != 0) sum = std::numeric_limits<double>::quiet_NaN();
          else if (kinds != 0)
            sum = mma_dense_sum(a + row * depth, b + (n0 + n) * kDepth, formats, kDepth, c[n]);
          result[n] = f64_to_f32_toward_zero(sum, kScheme.result);
        }
      }
      copy_columns(out, result, columns);
    }
  }
}

#define SIM_TILE_ARGUMENTS \
  const float *a, const float *b, DenseFormats formats, int rows, int cols, bool accumulate, float *d

template <int kLanes>
SIM_INLINE void dense_tile(SIM_TILE_ARGUMENTS) {
  if (element_bytes(formats.a) == 1) scheme_tile<kLanes, kBytes>(a, b, formats, rows, cols, accumulate, d);
  else scheme_tile<kLanes, kWords>(a, b, formats, rows, cols, accumulate, d);
}

void tile_portable(SIM_TILE_ARGUMENTS) { dense_tile<4>(a, b, formats, rows, cols, accumulate, d); }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void tile_avx2(SIM_TILE_ARGUMENTS) {
  dense_tile<4>(a, b, formats, rows, cols, accumulate, d);
}
__attribute__((target("avx512f,avx512dq,avx512vl,fma"))) void tile_avx512(SIM_TILE_ARGUMENTS) {
  dense_tile<8>(a, b, formats, rows, cols, accumulate, d);
}
#endif

}  // namespace

std::vector<DenseTileVariant> dense_tile_variants() {
  std::vector<DenseTileVariant> variants;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
    variants.push_back({"avx512", tile_avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    variants.push_back({"avx2", tile_avx2});
#endif
  variants.push_back({"portable", tile_portable});
  return variants;
}

void mma_dense_tile(const float* a, const float* b, DenseFormats formats, int rows, int cols, bool accumulate,
                    float* d) {
  static const DenseTileVariant fastest = dense_tile_variants().front();
  fastest.run(a, b, formats, rows, cols, accumulate, d);
}

}  // namespace sim
