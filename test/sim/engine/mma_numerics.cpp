// mma_numerics.cpp -- the dot product of the tensor core in its block-scaled kinds.
//
// Block-scaled 4-bit kinds follow a published model that its authors report bit-exact on the hardware for
// cta_group::1, M = 128, K = 64:
//
//   D = RZ_f32( sum_g trunc(dot16_g * SFA_g * SFB_g) + trunc(C) ), g = 0..3,
//
// where trunc cuts each of the five terms toward zero to a multiple of 2^(E-35) and E is the largest of the
// exponents of C and of the four products SFA_g * SFB_g. Such a product has the sum of the exponents of its
// two factors, even where dot16_g is zero. A factor of zero has exponent -126, and so has a C of zero. NaN in
// C or in a used factor gives 0x7FFFFFFF. The dense kinds are in mma_dense.cpp. These are assumed, not
// published: infinite C stays infinite; a sum that truncates to nothing is +0; a subnormal factor of ue4m3
// has the exponent of the smallest normal one, -6, as subnormal operands of the dense kinds do.
//
// The tile version works in double: after truncation every term is a multiple of 2^(E-35) below 2^(E+11.1),
// so the five-term sum needs at most 49 bits and double adds it exactly. Most outputs need no truncation at
// all; a conservative test on exponents per 16 columns finds them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "sim/engine/dot_products.h"
#include "sim/engine/numerics.h"

namespace sim {

constexpr int kBlockScaledFraction = 35;
constexpr int kExponentFloor = -126;
constexpr uint32_t kNan32 = 0x7FFFFFFF;

static int scale_exponent(float scale, ScaleFormat format) {
  if (scale == 0 || std::isnan(scale)) return kExponentFloor;
  const int exponent = std::fabs(scale) < 0x1p-126f ? std::ilogb(scale) : f32_exponent(scale);
  constexpr int kUe4m3Floor = -6;
  return format == ScaleFormat::kUe4m3 ? std::max(exponent, kUe4m3Floor) : exponent;
}

static int64_t shift_toward_zero(int64_t value, int left) {
  if (left >= 0) return value * (int64_t{1} << left);
  if (left <= -63) return 0;
  const int64_t magnitude = (value < 0 ? -value : value) >> -left;
  return value < 0 ? -magnitude : magnitude;
}

float mma_block_scaled_reference(const uint8_t a[64], const uint8_t b[64], const float* sfa, const float* sfb,
                                 int groups, float c, ScaleFormat format) {
  const int groups_per_scale = kGroups / groups;
  bool nan = std::isnan(c);
  for (int s = 0; s < groups; ++s) nan = nan || std::isnan(sfa[s]) || std::isnan(sfb[s]);
  if (nan) return std::bit_cast<float>(kNan32);
  if (std::isinf(c)) return c;

  int exponent_a[kGroups], exponent_b[kGroups];
  int top = f32_exponent(c);
  for (int g = 0; g < kGroups; ++g) {
    exponent_a[g] = scale_exponent(sfa[g / groups_per_scale], format);
    exponent_b[g] = scale_exponent(sfb[g / groups_per_scale], format);
    top = std::max(top, exponent_a[g] + exponent_b[g]);
  }
  const int unit = top - kBlockScaledFraction;  // everything below is in units of 2^unit

  const int exponent_c = f32_exponent(c);
  const int64_t significand_c = static_cast<int64_t>(std::ldexp(c, 23 - exponent_c));
  int64_t sum = shift_toward_zero(significand_c, exponent_c - 23 - unit);
  for (int g = 0; g < kGroups; ++g) {
    int64_t dot = 0;  // in quarters
    for (int k = g * kGroupDepth; k < (g + 1) * kGroupDepth; ++k)
      dot += kTwiceE2m1[a[k] & 15] * kTwiceE2m1[b[k] & 15];
    const int s = g / groups_per_scale;
    const int64_t eighths_a = static_cast<int64_t>(std::ldexp(sfa[s], 3 - exponent_a[g]));
    const int64_t eighths_b = static_cast<int64_t>(std::ldexp(sfb[s], 3 - exponent_b[g]));
    sum += shift_toward_zero(dot * eighths_a * eighths_b, exponent_a[g] + exponent_b[g] - 8 - unit);
  }
  return f64_to_f32_toward_zero(std::ldexp(static_cast<double>(sum), unit));  // |sum| < 2^50
}

namespace {

// ---- the tile ----

// Columns go in blocks of 16, whose dot products with some rows are found by FloatDots or ByteDots. The
// combination with scales and C runs in double, kLanes / 2 columns at a time. There is one body, instantiated
// with the vector width of each instruction set; vectors never cross a function that is not inlined.

// Summarises the exponents of the scales of one row or of one block of columns.
struct ExponentRange {
  int high = std::numeric_limits<int>::min() / 4;  // largest exponent, zeros included as kExponentFloor
  int low = std::numeric_limits<int>::max() / 4;   // smallest exponent of a non-zero scale
  void add(float scale, int exponent) {
    high = std::max(high, exponent);
    if (scale != 0) low = std::min(low, exponent);
  }
};

struct alignas(64) ColumnBlock {
  double scale[kGroups][kBlock];  // already divided by 4, for the two doubled operands
  int32_t exponent[kGroups][kBlock];
  ExponentRange range;
  bool zero;  // every element of B is
};

struct RowScales {
  double scale[kGroups];
  int32_t exponent[kGroups];
  ExponentRange range;
};

template <class V>
SIM_INLINE void load_as_double(typename V::D& vector, const float* from) {
  typename V::HalfF narrow;
  load(narrow, from);
  vector = __builtin_convertvector(narrow, typename V::D);
}
template <class V>
SIM_INLINE void load_as_double(typename V::D& vector, const int32_t* from) {
  typename V::HalfI narrow;
  load(narrow, from);
  vector = __builtin_convertvector(narrow, typename V::D);
}

// The window holds the bits of |c| that the sum without truncation accepts besides zero: [least, limit).
struct Window {
  bool open;
  int32_t least, limit;
  template <int kLanes>
  SIM_INLINE bool holds(const float* c) const {
    using I = typename Vec<kLanes>::I;
    I out = {};
    for (int i = 0; i < kBlock; i += kLanes) {
      I bits;
      load(bits, c + i);
      mark_outside<I>(out, bits & 0x7FFFFFFF, least, limit);
    }
    return all_bits<int32_t>(out) >= 0;
  }
};

SIM_INLINE Window no_truncation_window(const ExponentRange& a, const ExponentRange& b) {
  const int high = a.high + b.high, low = a.low + b.low;
  constexpr int kTermFraction = 8, kAccumulatorFraction = 23;
  const int reach = kBlockScaledFraction - kTermFraction;
  if (high - low > reach) return {false, 0, 0};
  const auto bits = [](int exponent) {
    return static_cast<int32_t>(std::clamp(exponent + 127, 0, 255)) << 23;
  };
  const int least = high - (kBlockScaledFraction - kAccumulatorFraction);
  return {true, least <= kExponentFloor ? 0 : bits(least), bits(std::min(low + reach + 1, 128))};
}

// Cuts x toward zero to a multiple of `unit` = 2^(E-35). Adding the anchor 2^(E+17) to the smaller magnitude
// leaves units of 2^(E-35) in the 53-bit sum; a sum that was rounded up shows as a result above the magnitude
// and loses one unit.
template <class D, class L>
SIM_INLINE void truncate_to_unit(D& x, const D& anchor, const D& unit) {
  const L sign = (L)x & std::numeric_limits<int64_t>::min();
  const D magnitude = (D)((L)x & std::numeric_limits<int64_t>::max());
  D cut = (magnitude + anchor) - anchor;
  cut = cut > magnitude ? cut - unit : cut;
  x = (D)((L)cut | sign);
}

// Computes one row of 16 outputs from its dot products.
template <class Dots>
SIM_INLINE void combine(const typename Dots::Products& dot, int r, const RowScales& row,
                        const ColumnBlock& block, bool truncate, const float* c_in, float* out) {
  using V = Vec<Dots::kLanes>;
  using D = typename V::D;
  using L = typename V::L;
  alignas(64) double sums[kBlock];
  L rare = {};
  for (int p = 0; p < kBlock; p += V::kHalf) {
    D c;
    load_as_double<V>(c, c_in + p);
    D term[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      D product, scale;
      load_as_double<V>(product, &dot[g][r][p]);
      load(scale, &block.scale[g][p]);
      term[g] = product * (row.scale[g] * scale);
    }

    D sum;
    if (!truncate) {
      sum = ((term[0] + term[1]) + (term[2] + term[3])) + c;
    } else {
      typename V::HalfI c_bits;
      load(c_bits, c_in + p);
      typename V::HalfI top = (c_bits >> 23) & 0xFF;
      top = (top > 1 ? top : typename V::HalfI{} + 1) - 127;
      for (int g = 0; g < kGroups; ++g) {
        typename V::HalfI e;
        load(e, &block.exponent[g][p]);
        e += row.exponent[g];
        top = top > e ? top : e;
      }
      const L biased = __builtin_convertvector(top, L) + 1023;
      const D anchor = (D)((biased + (52 - kBlockScaledFraction)) << 52);
      const D unit = (D)((biased - kBlockScaledFraction) << 52);
      D cut_c = c;
      truncate_to_unit<D, L>(cut_c, anchor, unit);
      sum = D{} + cut_c;
      for (int g = 0; g < kGroups; ++g) {
        truncate_to_unit<D, L>(term[g], anchor, unit);
        sum += term[g];
      }
    }

    // Adding zero makes -0 +0.
    round_sums<typename V::HalfF>(sum + 0.0, std::numeric_limits<double>::infinity(), sums + p, out + p,
                                  rare);
  }
  // Subnormal results keep fewer bits, and NaN has prescribed ones.
  if (__builtin_expect(all_bits<int64_t>(rare) < 0, 0))
    for (int i = 0; i < kBlock; ++i) {
      const double magnitude = std::fabs(sums[i]);
      const bool done = magnitude == 0 || (magnitude >= 0x1p-126 && std::isfinite(magnitude));
      if (!done) out[i] = f64_to_f32_toward_zero(sums[i]);
    }
}

// Returns whether all elements of these rows of codes are zero.
bool all_zero(const uint8_t* codes, int rows) {
  constexpr int kMagnitude = 7;
  uint8_t any = 0;
  for (int i = 0; i < rows * kDepth; ++i) any |= codes[i];
  return (any & kMagnitude) == 0;
}

void prepare_block(const uint8_t* b, const float* sfb, int groups, int columns, ScaleFormat format,
                   ColumnBlock& block) {
  block.range = {};
  block.zero = all_zero(b, columns);
  for (int n = 0; n < columns; ++n) {
    for (int g = 0; g < kGroups; ++g) {
      const float scale = sfb[n * groups + g * groups / kGroups];
      block.scale[g][n] = double{scale} * 0.25;
      block.exponent[g][n] = scale_exponent(scale, format);
      block.range.add(scale, block.exponent[g][n]);
    }
  }
}

RowScales prepare_row(const float* sfa, int groups, ScaleFormat format) {
  RowScales row;
  for (int g = 0; g < kGroups; ++g) {
    const float scale = sfa[g * groups / kGroups];
    row.scale[g] = scale;
    row.exponent[g] = scale_exponent(scale, format);
    row.range.add(scale, row.exponent[g]);
  }
  return row;
}

// A whole block is one fixed-size copy.
SIM_INLINE void copy_columns(float* to, const float* from, int columns) {
  if (columns == kBlock) std::memcpy(to, from, sizeof(float) * kBlock);
  else std::memcpy(to, from, sizeof(float) * static_cast<size_t>(columns));
}

template <class Dots>
SIM_INLINE void tile(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups,
                     int rows, int cols, bool accumulate, float* d, ScaleFormat format) {
  // Rows are padded to whole steps with zero elements and scales; their results are not stored.
  constexpr int kRowStep = Dots::kRows;
  const int padded_rows = (rows + kRowStep - 1) / kRowStep * kRowStep;
  static thread_local Dots dots;
  static thread_local std::vector<RowScales> row_scales;
  dots.set_rows(a, rows, padded_rows);
  row_scales.resize(static_cast<size_t>(rows));
  static thread_local std::vector<uint8_t> zero_steps;
  zero_steps.clear();
  for (int m0 = 0; m0 < rows; m0 += kRowStep)
    zero_steps.push_back(all_zero(a + m0 * kDepth, std::min(kRowStep, rows - m0)));
  for (int m = 0; m < rows; ++m)
    row_scales[static_cast<size_t>(m)] = prepare_row(sfa + m * groups, groups, format);

  ColumnBlock block{};
  for (int n0 = 0; n0 < cols; n0 += kBlock) {
    const int columns = std::min(kBlock, cols - n0);
    prepare_block(b + n0 * kDepth, sfb + n0 * groups, groups, columns, format, block);
    dots.set_columns(b + n0 * kDepth, columns);
    for (int m0 = 0; m0 < padded_rows; m0 += kRowStep) {
      // Tiles that reach beyond the matrices have many rows and columns of zeros.
      alignas(64) typename Dots::Products dot;
      if (block.zero || zero_steps[static_cast<size_t>(m0 / kRowStep)] != 0) std::memset(dot, 0, sizeof dot);
      else dots.multiply(m0, dot);
      for (int r = 0; r < kRowStep && m0 + r < rows; ++r) {
        const RowScales& row = row_scales[static_cast<size_t>(m0 + r)];
        float* out = d + static_cast<size_t>(m0 + r) * static_cast<size_t>(cols) + n0;
        alignas(64) float c[kBlock] = {}, result[kBlock];
        if (accumulate) copy_columns(c, out, columns);

        const Window window = no_truncation_window(row.range, block.range);
        const bool truncate = !window.open || !window.holds<Dots::kLanes>(c);
        combine<Dots>(dot, r, row, block, truncate, c, result);
        copy_columns(out, result, columns);
      }
    }
  }
}

#define SIM_TILE_ARGUMENTS                                                                                \
  const uint8_t *a, const uint8_t *b, const float *sfa, const float *sfb, int groups, int rows, int cols, \
      bool accumulate, float *d, ScaleFormat format

void tile_portable(SIM_TILE_ARGUMENTS) {
  tile<FloatDots<4>>(a, b, sfa, sfb, groups, rows, cols, accumulate, d, format);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void tile_avx2(SIM_TILE_ARGUMENTS) {
  tile<FloatDots<8>>(a, b, sfa, sfb, groups, rows, cols, accumulate, d, format);
}
SIM_AVX512 void tile_avx512(SIM_TILE_ARGUMENTS) {
  tile<ByteDots>(a, b, sfa, sfb, groups, rows, cols, accumulate, d, format);
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
}
#endif

}  // namespace

std::vector<TileVariant> tile_variants() {
  std::vector<TileVariant> variants;
#if defined(__x86_64__)
  if (has_avx512()) variants.push_back({"avx512", tile_avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    variants.push_back({"avx2", tile_avx2});
#endif
  variants.push_back({"portable", tile_portable});
  return variants;
}

void mma_block_scaled_tile(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups,
                           int rows, int cols, bool accumulate, float* d, ScaleFormat format) {
  static const TileVariant fastest = tile_variants().front();
  fastest.run(a, b, sfa, sfb, groups, rows, cols, accumulate, d, format);
}

}  // namespace sim
