// math.cuh -- approximate functions, conversions, and operations on two halves of a register (PTX ISA 9.0,
// 9.7.3, 9.7.4, 9.7.8 and 9.7.9).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// ex2.approx.ftz.f32 result, x;      9.7.3.21
// Returns 2 to the x within 2 ulp; subnormal x and results count as zero.
DUALGEMM_DEVICE float ex2_approx_ftz(float x) {
  float result;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x) : "memory");
  return result;
}

// rcp.approx.ftz.f32 result, x;      9.7.3.13
// Returns 1 / x within 1 ulp; subnormal x and results count as zero.
DUALGEMM_DEVICE float rcp_approx_ftz(float x) {
  float result;
  asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x) : "memory");
  return result;
}

// min.NaN.f32 result, x, y;      9.7.3.11
// Returns NaN if either is NaN.
DUALGEMM_DEVICE float min_nan(float x, float y) {
  float result;
  asm volatile("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y) : "memory");
  return result;
}

// max.NaN.f32 result, x, y;      9.7.3.12
// Returns NaN if either is NaN.
DUALGEMM_DEVICE float max_nan(float x, float y) {
  float result;
  asm volatile("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y) : "memory");
  return result;
}

// cvt.rn.f16x2.f32 result, high, low;      9.7.9.21
// The first source goes to the upper half: `low` is the lower address once stored.
DUALGEMM_DEVICE uint32_t cvt_rn_f16x2_f32(float high, float low) {
  uint32_t result;
  asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low) : "memory");
  return result;
}

// cvt.rn.bf16x2.f32 result, high, low;      9.7.9.21
DUALGEMM_DEVICE uint32_t cvt_rn_bf16x2_f32(float high, float low) {
  uint32_t result;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low) : "memory");
  return result;
}

// cvt.rn.satfinite.e4m3x2.f32 result, high, low;      9.7.9.21
// It saturates at 448; NaN becomes 0x7F.
DUALGEMM_DEVICE uint16_t cvt_rn_satfinite_e4m3x2_f32(float high, float low) {
  uint16_t result;
  asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(result) : "f"(high), "f"(low) : "memory");
  return result;
}

// cvt.rn.f16x2.e4m3x2 result, x;      9.7.9.21
// The result is exact, since every e4m3 is an f16.
DUALGEMM_DEVICE uint32_t cvt_rn_f16x2_e4m3x2(uint16_t x) {
  uint32_t result;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(result) : "h"(x));
  return result;
}

// mul.rn.f16x2 result, x, y;      9.7.4.3
// Subnormal numbers count as what they are.
DUALGEMM_DEVICE uint32_t mul_rn_f16x2(uint32_t x, uint32_t y) {
  uint32_t result;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(y));
  return result;
}

// mul.rn.bf16x2 result, x, y;      9.7.4.3
// Subnormal numbers count as what they are.
DUALGEMM_DEVICE uint32_t mul_rn_bf16x2(uint32_t x, uint32_t y) {
  uint32_t result;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(y));
  return result;
}

// lop3.b32 result, mask, x, y, 0xCA;      9.7.8.6
// Returns the bits of x where those of mask are 1, else those of y. It is one operation, which the compiler
// does not split to join it with masks around it.
DUALGEMM_DEVICE uint32_t lop3_select(uint32_t mask, uint32_t x, uint32_t y) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(result) : "r"(mask), "r"(x), "r"(y));
  return result;
}

// prmt.b32 result, low, high, selector;      9.7.9.7
// Each of the four lowest nibbles of the selector chooses one of the eight bytes of high:low, for a byte of
// the result: by its lower three bits the byte itself, and with its upper bit set eight copies of the sign of
// that byte.
DUALGEMM_DEVICE uint32_t prmt(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

// mov.b32 {low, high}, x;  mov.b32 result, {low, low};  or {high, high};      9.7.9.4
// Returns one half of x twice. If the instruction that takes the result works on halves, ptxas makes this a
// part of that instruction.
DUALGEMM_DEVICE uint32_t half_twice(uint32_t x, int half) {
  uint32_t result;
  if (half == 0)
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tmov.b32 %0, {low, low};\n\t}"
        : "=r"(result)
        : "r"(x));
  else
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tmov.b32 %0, {high, high};\n\t}"
        : "=r"(result)
        : "r"(x));
  return result;
}

// cvt.f32.f16 result, x;      9.7.9.21
DUALGEMM_DEVICE float cvt_f32_f16(uint16_t x) {
  float result;
  asm volatile("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x) : "memory");
  return result;
}

// Is defined where the target has the next instruction.
#if __CUDA_ARCH__ >= 1000
#define DUALGEMM_PTX_CVT_E2M1
#endif

// cvt.rn.satfinite.e2m1x2.f32 byte, high, low;      9.7.9.21
// Converts four pairs: x[0] goes to the lowest nibble, x[7] to the highest. It saturates at 6; NaN becomes 6.
DUALGEMM_DEVICE uint32_t cvt_rn_satfinite_e2m1x8_f32(const float* x) {
  uint32_t result;
  asm volatile(
      "{\n"
      ".reg .b8 b0, b1, b2, b3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b0, %2, %1;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b1, %4, %3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b2, %6, %5;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b3, %8, %7;\n"
      "mov.b32 %0, {b0, b1, b2, b3};\n"
      "}"
      : "=r"(result)
      : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7])
      : "memory");
  return result;
}

}  // namespace dualgemm::ptx
