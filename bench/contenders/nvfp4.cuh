// nvfp4.cuh -- from the fp16 weights that a contender gets back to their NVFP4: codes of e2m1, and for each
// 16 of K a factor in e4m3. The factors need not be those of the library's operands, where several fit.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

namespace nvfp4 {

constexpr int kGroup = 16;  // elements of K that share a factor

struct Group {
  uint8_t factor;         // e4m3, positive
  uint8_t codes[kGroup];  // e2m1: the sign in bit 3
};

// The magnitudes of e2m1, in halves: those of the codes 0 to 7.
__device__ constexpr int kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};

__device__ inline float value_of(uint8_t factor) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(factor, __NV_E4M3)));
}

__device__ inline bool encode(const __half* values, float factor, Group* group) {
  for (int i = 0; i < kGroup; ++i) {
    const float value = __half2float(values[i]), magnitude = fabsf(value);
    int code = 0;
    while (code < 8 && static_cast<float>(kTwice[code]) * factor != 2 * magnitude) ++code;
    if (code == 8) return false;
    group->codes[i] = static_cast<uint8_t>(code | (signbit(value) ? 8 : 0));
  }
  return true;
}

// False where no factor gives all 16 values exactly. Their largest magnitude is the factor times one of seven
// numbers; the smallest that does is taken, since some formats have no small factors.
__device__ inline bool quantise(const __half* values, Group* group) {
  float largest = 0;
  for (int i = 0; i < kGroup; ++i) largest = fmaxf(largest, fabsf(__half2float(values[i])));
  for (int code = 1; code < 8; ++code) {
    group->factor = static_cast<uint8_t>(
        __nv_cvt_float_to_fp8(2 * largest / static_cast<float>(kTwice[code]), __NV_SATFINITE, __NV_E4M3));
    if (encode(values, value_of(group->factor), group)) return true;
  }
  return false;
}

}  // namespace nvfp4
