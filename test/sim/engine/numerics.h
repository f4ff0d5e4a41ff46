// numerics.h -- arithmetic of the machine that plain C++ does not give: number formats, conversions, the
// approximate special functions, and the dot product of the tensor core, all as pure functions. What is
// exact, what follows a published model and what is assumed stands at the top of numerics.cpp,
// mma_numerics.cpp and mma_dense.cpp.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace sim {

// The decoders are exact.
float e2m1_to_f32(uint8_t code);   // low 4 bits
float ue4m3_to_f32(uint8_t code);  // sign ignored; 0x7F is NaN
float e4m3_to_f32(uint8_t code);
float e5m2_to_f32(uint8_t code);
float ue8m0_to_f32(uint8_t code);
inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
  if (magnitude > 0x7C00) return std::bit_cast<float>(0x7FFFFFFF);
  if (magnitude == 0x7C00) return std::bit_cast<float>(sign | 0x7F800000);
  // In the fields of a float these bits mean 2^-112 times the number, subnormal ones, too.
  return std::bit_cast<float>(sign | magnitude << 13) * 0x1p112f;
}
inline float bf16_to_f32(uint16_t bits) {
  if ((bits & 0x7FFF) > 0x7F80) return std::bit_cast<float>(0x7FFFFFFF);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

enum class Round : uint8_t { kNearestEven, kZero, kDown, kUp };
uint16_t f32_to_f16(float x, Round r, bool saturate = false);
uint16_t f32_to_bf16(float x, Round r, bool saturate = false);
uint16_t f64_to_f16(double x, Round r);
uint8_t f32_to_e2m1(float x);            // .rn.satfinite, NaN -> +6
uint8_t f32_to_e4m3(float x);            // .rn.satfinite, NaN -> 0x7F
uint8_t f32_to_e5m2(float x);            // .rn.satfinite
uint8_t f32_to_ue8m0(float x, Round r);  // .satfinite, kZero or kUp

// Returns the exponent of the leading bit of a normal number; that of zero and of a subnormal one is -126.
inline int f32_exponent(float x) {
  const int biased = static_cast<int>(std::bit_cast<uint32_t>(x) >> 23 & 0xFF);
  return (biased > 1 ? biased : 1) - 127;
}

// f32 arithmetic in any rounding mode, bit-exact to IEEE 754; `flush` stands for .ftz.
float f32_add(float a, float b, Round r, bool flush);
float f32_mul(float a, float b, Round r, bool flush);
float f32_fma(float a, float b, float c, Round r, bool flush);

// The approximate functions are evaluated in double and rounded to nearest. The ISA only bounds their error,
// so a program must not rely on their last bits. Special values are those of the ISA's tables.
float ex2_approx(float x, bool flush);
float lg2_approx(float x, bool flush);
float rcp_approx(float x, bool flush);
float rsqrt_approx(float x, bool flush);
float sqrt_approx(float x, bool flush);
float sin_approx(float x, bool flush);
float cos_approx(float x, bool flush);
float tanh_approx(float x);
float div_full(float a, float b, bool flush);

// The format that the scale factors came from. It decides the exponent of a subnormal UE4M3 value, on which
// the alignment of the model depends; UE8M0 has no subnormals.
enum class ScaleFormat : uint8_t { kUe4m3, kUe8m0 };

// Computes one output of tcgen05.mma kind::mxf4nvf4 / mxf4 with K = 64: a and b are 64 e2m1 codes (one per
// byte), sfa and sfb the scale factors as decoded floats (4 for block 16, 2 for block 32), c the accumulator
// or 0. The result is bit-exact to the published model: exact products form four groups, which are aligned to
// the largest exponent, truncated to 35 fractional bits, added exactly, and truncated to f32.
float mma_block_scaled_reference(const uint8_t a[64], const uint8_t b[64], const float* sfa, const float* sfb,
                                 int groups, float c, ScaleFormat format = ScaleFormat::kUe4m3);

// Computes the same over a tile, fast and bit-equal to the reference above. a is rows x 64 codes, b cols x 64
// codes (one per byte), sfa rows x groups, sfb cols x groups, d rows x cols accumulators (row-major), which
// are read when `accumulate` is set.
void mma_block_scaled_tile(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups,
                           int rows, int cols, bool accumulate, float* d,
                           ScaleFormat format = ScaleFormat::kUe4m3);

// Returns, for tests, the variants of mma_block_scaled_tile that this processor can run, fastest first. Each
// gives the same bits.
struct TileVariant {
  const char* name;
  void (*run)(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups, int rows,
              int cols, bool accumulate, float* d, ScaleFormat format);
};
std::vector<TileVariant> tile_variants();

// The formats of the dense kinds' operands.
enum class DenseFormat : uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2 };
constexpr int element_bytes(DenseFormat f) {
  return f == DenseFormat::kTf32 ? 4 : f <= DenseFormat::kBf16 ? 2 : 1;
}
float dense_to_f32(DenseFormat f, uint32_t code);

// What decides how products are added up. Both formats are of one size.
struct DenseFormats {
  DenseFormat a, b;
};

// Computes one output of the dense kinds (operands given as floats, k <= 64): products are exact, aligned to
// the largest exponent among products and c, truncated to 25 fractional bits, or to 13 if operands are of 8
// bits, and added exactly. The caller rounds the result, to f32 by round_dense.
double mma_dense_sum(const float* a, const float* b, DenseFormats formats, int k, float c);
float round_dense(double sum, DenseFormats formats);

// Computes the same for every output of a tile with rows of 32 bytes, rounded to f32, fast and bit-equal to
// the sum above. The operands are of 8 or 16 bits, so k is 32 or 16. a is rows x k, b cols x k, d rows x cols
// accumulators (row-major), which are read when `accumulate` is set.
constexpr int kDenseRowBytes = 32;
constexpr int dense_depth(DenseFormats formats) { return kDenseRowBytes / element_bytes(formats.a); }
void mma_dense_tile(const float* a, const float* b, DenseFormats formats, int rows, int cols, bool accumulate,
                    float* d);

// Returns, for tests, the variants of mma_dense_tile that this processor can run, fastest first.
struct DenseTileVariant {
  const char* name;
  void (*run)(const float* a, const float* b, DenseFormats formats, int rows, int cols, bool accumulate,
              float* d);
};
std::vector<DenseTileVariant> dense_tile_variants();

// Keeps `places` fractional bits. A value beyond the range becomes infinity, as the tensor core gives, and
// NaN becomes 0x7FFFFFFF.
float f64_to_f32_toward_zero(double x, int places = 23);

}  // namespace sim
