// e2m1.cuh -- the conversion to e2m1, by an instruction or, on targets without one, by comparisons.
#pragma once

#include <cmath>
#include <cstdint>

#include "ptx/host_device.h"
#ifdef __CUDACC__
#include "ptx/math.cuh"
#endif

namespace dualgemm {

// Returns the code of the e2m1 number that is nearest to x, ties to even, as cvt.rn.satfinite.e2m1x2.f32
// does: NaN becomes 6. Each comparison is with the middle between two neighbouring numbers, and is true for
// NaN. In the middle the neighbour with the even code is taken.
DUALGEMM_HOST_DEVICE uint32_t nearest_e2m1(float x) {
  const float size = std::fabs(x);
  uint32_t code = 0;
  code += !(size <= 0.25f);
  code += !(size < 0.75f);
  code += !(size <= 1.25f);
  code += !(size < 1.75f);
  code += !(size <= 2.5f);
  code += !(size < 3.5f);
  code += !(size <= 5.0f);
  return std::signbit(x) && x == x ? code | 8 : code;
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
