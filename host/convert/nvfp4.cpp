// nvfp4.cpp -- see nvfp4.h.

#include "host/convert/nvfp4.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel/plan.h"

namespace dualgemm {
namespace {

constexpr float kSmallestUe4m3 = 0x1p-9f;
constexpr float kE2m1Values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

uint8_t e2m1_magnitude(float value) {
  for (uint8_t code = 0; code < 7; ++code) {
    const float middle = (kE2m1Values[code] + kE2m1Values[code + 1]) / 2;
    if (value < middle || (value == middle && code % 2 == 0)) return code;
  }
  return 7;
}

}  // namespace

uint8_t to_e2m1(float value) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  return static_cast<uint8_t>(e2m1_magnitude(std::fabs(value)) | (negative ? 8 : 0));
}

float from_e2m1(uint8_t code) {
  const float magnitude = kE2m1Values[code & 7];
  return code & 8 ? -magnitude : magnitude;
}

float from_ue4m3(uint8_t byte) {
  const int code = byte & 0x7F;
  if (code == kUe4m3Nan) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = code >> 3, mantissa = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

uint8_t to_ue4m3(float value) {
  if (!(value >= 0)) return kUe4m3Nan;
  if (value >= kE4m3Max) return 0x7E;
  // The spacing of UE4M3 is 2^(e-3) in the binade [2^e, 2^(e+1)), and 2^-9 below 2^-6. In units of this
  // spacing the value is rounded to an integer, whose low 3 bits are the mantissa. Where it is rounded up to
  // the next binade, the sum below carries into the exponent. All other operations are exact.
  const int exponent = value < 0x1p-6f ? -6 : std::ilogb(value);
  const float units = std::ldexp(value, 3 - exponent);
  float rounded = std::floor(units);
  const float rest = units - rounded;
  if (rest > 0.5f || (rest == 0.5f && std::fmod(rounded, 2.0f) == 1)) rounded += 1;
  return static_cast<uint8_t>((exponent + 6) * 8 + static_cast<int>(rounded));
}

uint8_t quantize_block(const float* x, float global_scale, uint8_t* packed) {
  float amax = 0;
  for (int i = 0; i < kSfBlock; ++i)
    if (!(std::fabs(x[i]) <= amax)) amax = std::isnan(amax) ? amax : std::fabs(x[i]);
  const float sixth = global_scale * (1 / kE2m1Max);
  const uint8_t factor = to_ue4m3(amax * sixth);
  std::memset(packed, 0, kSfBlock / 2);
  if (factor == 0) return 0;
  const float encode = global_scale * (1 / from_ue4m3(factor));
  for (int i = 0; i < kSfBlock; ++i)
    packed[i / 2] = static_cast<uint8_t>(packed[i / 2] | to_e2m1(x[i] * encode) << (i % 2 * 4));
  return factor;
}

float global_scale_of(float largest, float largest_of_type) {
  // For a tiny maximum the scale, or the scale times 1 / factor, would be larger than the largest float. The
  // largest scale for which neither is loses range, but stays correct.
  constexpr float kMax = std::numeric_limits<float>::max(), kLargest = kMax * kSmallestUe4m3;
  return largest > 0 ? std::min(largest_of_type / std::min(largest, kMax), kLargest) : 1;
}

}  // namespace dualgemm
