// elements.cuh -- how elements of bf16, fp16 and fp32 lie in 32-bit words. Where x is quantised they are the
// elements of x. Where the rows of a token are summed they are those of C, of `add` and of the sum.
#pragma once

#include "ptx/math.cuh"

namespace dualgemm::convert {

struct Bf16 {
  static constexpr int kBytes = 2;
  DUALGEMM_DEVICE static float value(const uint32_t* words, int i) {
    return __uint_as_float(i % 2 ? words[i / 2] & 0xFFFF0000 : words[i / 2] << 16);
  }
  DUALGEMM_DEVICE static void convert(const float* values, uint32_t* words, int count) {
#pragma unroll
    for (int i = 0; i < count; i += 2) words[i / 2] = ptx::cvt_rn_bf16x2_f32(values[i + 1], values[i]);
  }
};
struct Fp16 {
  static constexpr int kBytes = 2;
  DUALGEMM_DEVICE static float value(const uint32_t* words, int i) {
    return ptx::cvt_f32_f16(static_cast<uint16_t>(i % 2 ? words[i / 2] >> 16 : words[i / 2]));
  }
  DUALGEMM_DEVICE static void convert(const float* values, uint32_t* words, int count) {
#pragma unroll
    for (int i = 0; i < count; i += 2) words[i / 2] = ptx::cvt_rn_f16x2_f32(values[i + 1], values[i]);
  }
};
struct Fp32 {
  static constexpr int kBytes = 4;
  DUALGEMM_DEVICE static float value(const uint32_t* words, int i) { return __uint_as_float(words[i]); }
  DUALGEMM_DEVICE static void convert(const float* values, uint32_t* words, int count) {
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = __float_as_uint(values[i]);
  }
};

// Loads words, 16 bytes at a time.
template <int kWords>
DUALGEMM_DEVICE void load_words(const void* from, uint32_t (&words)[kWords]) {
  static_assert(kWords % 4 == 0);
#pragma unroll
  for (int i = 0; i < kWords; i += 4) {
    const uint4 four = static_cast<const uint4*>(from)[i / 4];
    words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
  }
}

}  // namespace dualgemm::convert
