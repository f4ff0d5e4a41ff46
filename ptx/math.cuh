// math.cuh -- approximate functions and conversions of the epilogue (PTX ISA 9.0, 9.7.3 and 9.7.9.21).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// ex2.approx.ftz.f32 result, x;      9.7.3.21
// 2 to the x within 2 ulp; subnormal x and results count as zero.
DUALGEMM_DEVICE float ex2_approx_ftz(float x) {
  float result;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x) : "memory");
  return result;
}

// rcp.approx.ftz.f32 result, x;      9.7.3.13
// 1 / x within 1 ulp; subnormal x and results count as zero.
DUALGEMM_DEVICE float rcp_approx_ftz(float x) {
  float result;
  asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x) : "memory");
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

}  // namespace dualgemm::ptx
