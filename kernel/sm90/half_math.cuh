// half_math.cuh -- the operations of expand.cuh as instructions, for fp16 and for bf16, and the wgmma of each
// type.
#pragma once

#include "kernel/plan.h"
#include "ptx/math.cuh"
#include "ptx/wgmma.cuh"

namespace dualgemm::sm90 {

struct HalfMath {
  static constexpr CType kType = CType::kFp16;

  DUALGEMM_DEVICE static uint32_t select(uint32_t mask, uint32_t x, uint32_t y) {
    return ptx::lop3_select(mask, x, y);
  }
  DUALGEMM_DEVICE static uint32_t multiply(uint32_t x, uint32_t y) { return ptx::mul_rn_f16x2(x, y); }
  DUALGEMM_DEVICE static uint32_t factor_twice(uint16_t pair, int i) {
    constexpr uint32_t kTwoTo7 = 0x58005800;  // expand.cuh; in both halves
    return ptx::half_twice(ptx::mul_rn_f16x2(ptx::cvt_rn_f16x2_e4m3x2(pair), kTwoTo7), i);
  }
  template <int kCount>
  DUALGEMM_DEVICE static void wgmma(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b_descriptor) {
    ptx::wgmma_m64k16_f32_f16(d, a, b_descriptor);
  }
};

// wgmma multiplies an A in FP8 as it is, by weights that are expanded to FP8 (mxfp4.cuh).
struct Fp8Math {
  static constexpr CType kType = CType::kFp8;

  template <int kCount>
  DUALGEMM_DEVICE static void wgmma(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b_descriptor) {
    ptx::wgmma_m64k32_f32_e4m3(d, a, b_descriptor);
  }
};

struct BrainMath {
  static constexpr CType kType = CType::kBf16;

  DUALGEMM_DEVICE static uint32_t select(uint32_t mask, uint32_t x, uint32_t y) {
    return ptx::lop3_select(mask, x, y);
  }
  DUALGEMM_DEVICE static uint32_t multiply(uint32_t x, uint32_t y) { return ptx::mul_rn_bf16x2(x, y); }
  // The conversion goes by way of fp16 and fp32, because there is no instruction from e4m3 to bf16; NaN stays
  // NaN on this way.
  DUALGEMM_DEVICE static uint32_t factor_twice(uint16_t pair, int i) {
    const uint32_t halves = ptx::cvt_rn_f16x2_e4m3x2(pair);
    const float factor =
        ptx::cvt_f32_f16(static_cast<uint16_t>(i == 0 ? halves : halves >> 16)) * 0x1p119f;  // expand.cuh
    return ptx::cvt_rn_bf16x2_f32(factor, factor);
  }
  template <int kCount>
  DUALGEMM_DEVICE static void wgmma(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b_descriptor) {
    ptx::wgmma_m64k16_f32_bf16(d, a, b_descriptor);
  }
};

}  // namespace dualgemm::sm90
