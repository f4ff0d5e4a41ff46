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

#include "sim/engine/numerics.h"

namespace sim {
namespace {

constexpr int kDepth = 64;  // K of one instruction
constexpr int kGroups = 4;  // groups of the model, whatever the number of scales
constexpr int kGroupDepth = kDepth / kGroups;
constexpr int kBlockScaledFraction = 35;
constexpr int kExponentFloor = -126;
constexpr uint32_t kNan32 = 0x7FFFFFFF;

// Twice the value of an e2m1 code, which is an integer.
constexpr int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

int scale_exponent(float scale, ScaleFormat format) {
  if (scale == 0 || std::isnan(scale)) return kExponentFloor;
  const int exponent = std::ilogb(scale);
  constexpr int kUe4m3Floor = -6;
  return format == ScaleFormat::kUe4m3 ? std::max(exponent, kUe4m3Floor) : exponent;
}

int64_t shift_toward_zero(int64_t value, int left) {
  if (left >= 0) return value * (int64_t{1} << left);
  if (left <= -63) return 0;
  const int64_t magnitude = (value < 0 ? -value : value) >> -left;
  return value < 0 ? -magnitude : magnitude;
}

}  // namespace

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

// Columns go in blocks of 16. For a block, B is stored as float [k][16] so that one row of A times the block
// is 64 multiply-adds of a broadcast with a vector; the four groups' dot products are exact in float. The
// combination with scales and C runs in double, kLanes / 2 columns at a time. There is one body, instantiated
// with the vector width of each instruction set; vectors never cross a function that is not inlined.

#define SIM_INLINE inline __attribute__((always_inline))

constexpr int kBlock = 16;

// Returns how many rows share the loads of B. That makes eight running sums in all, which are enough to hide
// the latency of a multiply-add and few enough for the registers of each instruction set.
constexpr int row_step(int lanes) { return 8 * lanes / kBlock; }

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
  float b[kDepth][kBlock];        // integers: twice the element
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

// The window holds the bits of |c| that the sum without truncation accepts besides zero: [least, limit).
struct Window {
  bool open;
  uint32_t least, limit;
};

SIM_INLINE Window no_truncation_window(const ExponentRange& a, const ExponentRange& b) {
  const int high = a.high + b.high, low = a.low + b.low;
  constexpr int kTermFraction = 8, kAccumulatorFraction = 23;
  const int reach = kBlockScaledFraction - kTermFraction;
  if (high - low > reach) return {false, 0, 0};
  const auto bits = [](int exponent) {
    return static_cast<uint32_t>(std::clamp(exponent + 127, 0, 255)) << 23;
  };
  const int least = high - (kBlockScaledFraction - kAccumulatorFraction);
  return {true, least <= kExponentFloor ? 0 : bits(least), bits(std::min(low + reach + 1, 128))};
}

template <int kLanes>
struct Vec {
  static constexpr int kHalf = kLanes / 2;
  typedef float F __attribute__((vector_size(4 * kLanes)));
  typedef float HalfF __attribute__((vector_size(4 * kHalf)));
  typedef int32_t HalfI __attribute__((vector_size(4 * kHalf)));
  typedef double D __attribute__((vector_size(8 * kHalf)));
  typedef int64_t L __attribute__((vector_size(8 * kHalf)));
};

// Computes dot[g][r][c] of row_step rows and one block; rows of a are floats that hold integers.
template <int kLanes>
SIM_INLINE void dot_products(const float* a, const ColumnBlock& block,
                             float dot[kGroups][row_step(kLanes)][kBlock]) {
  using F = typename Vec<kLanes>::F;
  constexpr int kParts = kBlock / kLanes, kRows = row_step(kLanes);
  for (int g = 0; g < kGroups; ++g) {
    F sum[kRows][kParts] = {};
    for (int k = g * kGroupDepth; k < (g + 1) * kGroupDepth; ++k) {
      F column[kParts];
      std::memcpy(column, block.b[k], sizeof column);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
        for (int p = 0; p < kParts; ++p) sum[r][p] += a[r * kDepth + k] * column[p];
    }
    std::memcpy(dot[g], sum, sizeof sum);
  }
}

template <class T>
SIM_INLINE void load(T& vector, const void* from) {
  std::memcpy(&vector, from, sizeof vector);
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
template <int kLanes>
SIM_INLINE void combine(const float (*dot)[row_step(kLanes)][kBlock], int r, const RowScales& row,
                        const ColumnBlock& block, bool truncate, const float* c_in, float* out) {
  using V = Vec<kLanes>;
  using D = typename V::D;
  using L = typename V::L;
  alignas(64) double sums[kBlock];
  L rare = {};
  for (int p = 0; p < kBlock; p += V::kHalf) {
    typename V::HalfF c32;
    load(c32, c_in + p);
    const D c = __builtin_convertvector(c32, D);
    D term[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      typename V::HalfF d32;
      D scale;
      load(d32, &dot[g][r][p]);
      load(scale, &block.scale[g][p]);
      term[g] = __builtin_convertvector(d32, D) * (row.scale[g] * scale);
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

    // Rounding toward zero clears the bits that float has no room for. That is right for zero and the normal
    // range; the rest is mended below.
    const L magnitude = (L)sum & std::numeric_limits<int64_t>::max();
    rare |= ((magnitude < std::bit_cast<int64_t>(0x1p-126)) & (magnitude != 0)) |
            (magnitude >= std::bit_cast<int64_t>(std::numeric_limits<double>::infinity()));
    const D cut = (D)((L)sum & ~((int64_t{1} << 29) - 1));
    const typename V::HalfF result = __builtin_convertvector(cut, typename V::HalfF) + 0.0f;
    std::memcpy(out + p, &result, sizeof result);
    std::memcpy(sums + p, &sum, sizeof sum);
  }
  // Subnormal results keep fewer bits, and NaN has prescribed ones.
  int64_t flags[V::kHalf], any = 0;
  std::memcpy(flags, &rare, sizeof flags);
  for (int64_t flag : flags) any |= flag;
  if (__builtin_expect(any != 0, 0))
    for (int i = 0; i < kBlock; ++i) out[i] = f64_to_f32_toward_zero(sums[i]);
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
  if (columns < kBlock) std::memset(block.b, 0, sizeof block.b);
  block.range = {};
  block.zero = all_zero(b, columns);
  for (int n = 0; n < columns; ++n) {
    for (int k = 0; k < kDepth; ++k) block.b[k][n] = kTwiceE2m1[b[n * kDepth + k] & 15];
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

template <int kLanes>
SIM_INLINE void tile(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups,
                     int rows, int cols, bool accumulate, float* d, ScaleFormat format) {
  // Rows are padded to whole steps with zero elements and scales; their results are not stored.
  constexpr int kRowStep = row_step(kLanes);
  const int padded_rows = (rows + kRowStep - 1) / kRowStep * kRowStep;
  static thread_local std::vector<float> a_values;
  static thread_local std::vector<RowScales> row_scales;
  a_values.assign(static_cast<size_t>(padded_rows) * kDepth, 0.0f);
  row_scales.assign(static_cast<size_t>(padded_rows), RowScales{});
  for (int i = 0; i < rows * kDepth; ++i) a_values[static_cast<size_t>(i)] = kTwiceE2m1[a[i] & 15];
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
    for (int m0 = 0; m0 < padded_rows; m0 += kRowStep) {
      // Tiles that reach beyond the matrices have many rows and columns of zeros.
      alignas(64) float dot[kGroups][kRowStep][kBlock];
      if (block.zero || zero_steps[static_cast<size_t>(m0 / kRowStep)] != 0) std::memset(dot, 0, sizeof dot);
      else dot_products<kLanes>(&a_values[static_cast<size_t>(m0) * kDepth], block, dot);
      for (int r = 0; r < kRowStep && m0 + r < rows; ++r) {
        const RowScales& row = row_scales[static_cast<size_t>(m0 + r)];
        float* out = d + static_cast<size_t>(m0 + r) * static_cast<size_t>(cols) + n0;
        alignas(64) float c[kBlock] = {}, result[kBlock];
        if (accumulate) copy_columns(c, out, columns);

        const Window window = no_truncation_window(row.range, block.range);
        bool truncate = !window.open;
        uint32_t bits[kBlock];
        std::memcpy(bits, c, sizeof bits);
        uint32_t outside = 0;
        for (uint32_t word : bits) {
          const uint32_t magnitude = word & 0x7FFFFFFF;
          outside |=
              static_cast<uint32_t>(magnitude != 0) & (static_cast<uint32_t>(magnitude < window.least) |
                                                       static_cast<uint32_t>(magnitude >= window.limit));
        }
        truncate = truncate || outside != 0;
        combine<kLanes>(dot, r, row, block, truncate, c, result);
        copy_columns(out, result, columns);
      }
    }
  }
}

#define SIM_TILE_ARGUMENTS                                                                                \
  const uint8_t *a, const uint8_t *b, const float *sfa, const float *sfb, int groups, int rows, int cols, \
      bool accumulate, float *d, ScaleFormat format

void tile_portable(SIM_TILE_ARGUMENTS) { tile<4>(a, b, sfa, sfb, groups, rows, cols, accumulate, d, format); }

#if defined(__x86_64__)
// An AVX-512 instance was measured slower than this one on the same core.
__attribute__((target("avx2,fma"))) void tile_avx2(SIM_TILE_ARGUMENTS) {
  tile<8>(a, b, sfa, sfb, groups, rows, cols, accumulate, d, format);
}
#endif

}  // namespace

std::vector<TileVariant> tile_variants() {
  std::vector<TileVariant> variants;
#if defined(__x86_64__)
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
