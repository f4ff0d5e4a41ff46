// e2m1.cuh -- the conversion to e2m1, by an instruction or, on targets without one, by sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "ptx/host_device.h"
#ifdef __CUDACC__
#include "ptx/math.cuh"
#endif

namespace dualgemm {

// Returns the code of the e2m1 number that is nearest to x, ties to even, as cvt.rn.satfinite.e2m1x2.f32
// does: NaN becomes 6. Up to 2 the numbers lie 1/2 apart, up to 4 they lie 1 apart, up to 6 they lie 2 apart.
// So the code of a magnitude y is the nearest integer of 2 y, of y + 2, or of y / 2 + 4, the least of these
// three. The sum with 1.5 * 2^23 has that integer in the low bits of a float.
DUALGEMM_HOST_DEVICE uint32_t nearest_e2m1(float x) {
  constexpr float kIntegers = 1.5f * (1 << 23);
  const float y = std::fmax(std::fmin(x, 6.0f), -6.0f), size = std::fabs(y);
  const float code =
      std::fmin(std::fmin(size * 2 + kIntegers, size + (kIntegers + 2)), size * 0.5f + (kIntegers + 4));
  return (__builtin_bit_cast(uint32_t, code) & 7) | (__builtin_bit_cast(uint32_t, y) >> 28 & 8);
}

#ifdef __CUDACC__
// Converts eight numbers, the first to the lowest nibble.
DUALGEMM_DEVICE uint32_t to_e2m1x8(const float* x) {
#ifdef DUALGEMM_PTX_CVT_E2M1
  return ptx::cvt_rn_satfinite_e2m1x8_f32(x);
#else
  uint32_t result = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) result |= nearest_e2m1(x[i]) << 4 * i;
  return result;
#endif
}
#endif

}  // namespace dualgemm
