// numerics.h -- arithmetic of the machine that plain C++ does not give: number formats, conversions, the
// approximate special functions, and the dot product of the tensor core. Pure functions. What is exact, what
// follows a published model and what is assumed stands at the top of numerics.cpp and mma_numerics.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace sim {

// Decoders; exact.
float e2m1_to_f32(uint8_t code);   // low 4 bits
float ue4m3_to_f32(uint8_t code);  // sign ignored; 0x7F is NaN
float e4m3_to_f32(uint8_t code);
float e5m2_to_f32(uint8_t code);
float ue8m0_to_f32(uint8_t code);
float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);

enum class Round : uint8_t { kNearestEven, kZero, kDown, kUp };
uint16_t f32_to_f16(float x, Round r, bool saturate = false);
uint16_t f32_to_bf16(float x, Round r, bool saturate = false);
uint16_t f64_to_f16(double x, Round r);
uint8_t f32_to_e2m1(float x);            // .rn.satfinite, NaN -> +6
uint8_t f32_to_e4m3(float x);            // .rn.satfinite, NaN -> 0x7F
uint8_t f32_to_e5m2(float x);            // .rn.satfinite
uint8_t f32_to_ue8m0(float x, Round r);  // .satfinite, kZero or kUp

// f32 arithmetic in any rounding mode; flush: .ftz. Results bit-exact to IEEE 754.
float f32_add(float a, float b, Round r, bool flush);
float f32_mul(float a, float b, Round r, bool flush);
float f32_fma(float a, float b, float c, Round r, bool flush);

// Approximate functions: evaluated in double and rounded to nearest; the ISA bounds their error, so a program
// must not rely on their last bits. Special values as the ISA tables give them.
float ex2_approx(float x, bool flush);
float lg2_approx(float x, bool flush);
float rcp_approx(float x, bool flush);
float rsqrt_approx(float x, bool flush);
float sqrt_approx(float x, bool flush);
float sin_approx(float x, bool flush);
float cos_approx(float x, bool flush);
float tanh_approx(float x);
float div_full(float a, float b, bool flush);

// The format the scale factors came from: it decides the exponent of a subnormal UE4M3 value, which the
// alignment of the model sees. UE8M0 has no subnormals.
enum class ScaleFormat : uint8_t { kUe4m3, kUe8m0 };

// One output of tcgen05.mma kind::mxf4nvf4 / mxf4 with K = 64: a and b are 64 e2m1 codes (one per byte), sfa
// and sfb the scale factors as decoded floats (4 of block 16, or 2 of block 32), c the accumulator or 0.
// Bit-exact to the published model: products exact, four groups, aligned to the largest exponent, truncated
// to 35 fractional bits, added exactly, truncated to f32.
float mma_block_scaled_reference(const uint8_t a[64], const uint8_t b[64], const float* sfa, const float* sfb,
                                 int groups, float c, ScaleFormat format = ScaleFormat::kUe4m3);

// The same over a tile, fast. a: rows x 64 codes, b: cols x 64 codes (one per byte),
// sfa: rows x groups, sfb: cols x groups, d: rows x cols accumulators (row-major), read when accumulate.
// Bit-equal to the reference above.
void mma_block_scaled_tile(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups,
                           int rows, int cols, bool accumulate, float* d,
                           ScaleFormat format = ScaleFormat::kUe4m3);

// The variants of mma_block_scaled_tile that this processor can run, fastest first:
// each gives the same bits. For tests.
struct TileVariant {
  const char* name;
  void (*run)(const uint8_t* a, const uint8_t* b, const float* sfa, const float* sfb, int groups, int rows,
              int cols, bool accumulate, float* d, ScaleFormat format);
};
std::vector<TileVariant> tile_variants();

// One output of the dense kinds (f16, bf16, tf32 operands given as floats, k <= 64): products exact, aligned
// to the largest exponent among products and c, truncated to 25 fractional bits, added exactly. The caller
// rounds the result.
double mma_dense_sum(const float* a, const float* b, int k, float c);
// Beyond the range: infinity, as the tensor core gives; NaN: 0x7FFFFFFF.
float f64_to_f32_toward_zero(double x);

}  // namespace sim
