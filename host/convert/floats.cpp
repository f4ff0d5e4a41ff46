// floats.cpp -- see floats.h.

#include "host/convert/floats.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "host/convert/nvfp4.h"

namespace dualgemm {
namespace {

struct Format {
  int bytes;
  int mantissa_bits;  // without the leading one
  int bias;
  bool has_infinity;
  double largest;
};

Format format_of(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_FP32: return {4, 23, 127, true, 0x1.fffffep127};
    case DUALGEMM_DTYPE_FP16: return {2, 10, 15, true, 65504};
    case DUALGEMM_DTYPE_FP8_E4M3: return {1, 3, 7, false, 448};
    default: return {2, 7, 127, true, 0x1.fep127};
  }
}

float from_fp16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F, mantissa = bits & 0x3FF;
  float magnitude = std::ldexp(static_cast<float>(exponent == 0 ? mantissa : 0x400 + mantissa),
                               (exponent == 0 ? 1 : exponent) - 25);
  if (exponent == 0x1F) magnitude = mantissa == 0 ? HUGE_VALF : std::nanf("");
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Returns the bits of a magnitude. The magnitude is divided by the spacing of the format's numbers around it,
// which is exact; nearbyint rounds to nearest, ties to even. If it is rounded up to the next binade, the sum
// of exponent and mantissa carries into the exponent.
uint32_t nearest_bits(const Format& f, double magnitude) {
  const uint32_t infinity = ((uint32_t{1} << (8 * f.bytes - 1 - f.mantissa_bits)) - 1) << f.mantissa_bits;
  if (std::isnan(magnitude)) return f.has_infinity ? infinity | uint32_t{1} << (f.mantissa_bits - 1) : 0x7F;
  const double step_above = std::ldexp(1.0, std::ilogb(f.largest) - f.mantissa_bits);
  if (f.has_infinity && magnitude >= f.largest + step_above / 2) return infinity;
  if (magnitude > f.largest) magnitude = f.largest;
  const int least = 1 - f.bias, exponent = magnitude < std::ldexp(1.0, least) ? least : std::ilogb(magnitude);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent)));
  return (static_cast<uint32_t>(exponent - least) << f.mantissa_bits) + units;
}

}  // namespace

float float_of(int32_t dtype, const void* elements, int64_t i) {
  const auto* const bytes = static_cast<const uint8_t*>(elements);
  if (dtype == DUALGEMM_DTYPE_FP32) {
    float value;
    std::memcpy(&value, bytes + 4 * i, sizeof value);
    return value;
  }
  if (dtype == DUALGEMM_DTYPE_FP8_E4M3) {
    const float magnitude = from_ue4m3(bytes[i]);
    return bytes[i] & 0x80 ? -magnitude : magnitude;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes + 2 * i, sizeof bits);
  return dtype == DUALGEMM_DTYPE_FP16 ? from_fp16(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
}

void store_nearest(int32_t dtype, void* elements, int64_t i, double value) {
  const Format f = format_of(dtype);
  uint32_t bits = nearest_bits(f, std::fabs(value));
  if (std::signbit(value) && !std::isnan(value)) bits |= uint32_t{1} << (8 * f.bytes - 1);
  std::memcpy(static_cast<uint8_t*>(elements) + i * f.bytes, &bits, static_cast<size_t>(f.bytes));
}

}  // namespace dualgemm
