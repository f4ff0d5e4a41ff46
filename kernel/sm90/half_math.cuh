// half_math.cuh -- the operations of expand.cuh as instructions.
#pragma once

#include "ptx/math.cuh"

namespace dualgemm::sm90 {

struct HalfMath {
  DUALGEMM_DEVICE static uint32_t and_or(uint32_t x, uint32_t y, uint32_t z) {
    return ptx::lop3_and_or(x, y, z);
  }
  DUALGEMM_DEVICE static uint32_t spread(uint32_t x) { return __byte_perm(x, 0, 0x2404); }
  DUALGEMM_DEVICE static uint32_t multiply(uint32_t x, uint32_t y) { return ptx::mul_rn_f16x2(x, y); }
  DUALGEMM_DEVICE static uint32_t from_e4m3x2(uint16_t x) { return ptx::cvt_rn_f16x2_e4m3x2(x); }
  DUALGEMM_DEVICE static uint32_t low_twice(uint32_t x) { return __byte_perm(x, 0, 0x1010); }
  DUALGEMM_DEVICE static uint32_t high_twice(uint32_t x) { return __byte_perm(x, 0, 0x3232); }
};

}  // namespace dualgemm::sm90
