// formats.cpp -- see formats.h. Decoding builds each value from its bit fields; encoding searches the decoded
// values for the nearest, which is slow and cannot be wrong in the ways a bit trick can.
#include "ref/formats.h"

#include <cmath>
#include <limits>

namespace ref {
namespace {

// Returns the value of sign-exponent-mantissa bits as IEEE 754 lays them out; with `infinities` the top
// exponent means inf and NaN.
double decode_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool infinities) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const bool negative = (bits >> (mantissa_bits + exponent_bits)) & 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude;
  if (infinities && exponent == (1u << exponent_bits) - 1) {
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    magnitude =
        std::ldexp(mantissa + (1u << mantissa_bits), static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

// Returns the code in [0, last] whose value is nearest to x >= 0; of two equally near the even one. Codes
// ascend in value.
template <class Decode>
uint8_t nearest_code(double x, int last, Decode decode) {
  int best = 0;
  for (int code = 1; code <= last; ++code) {
    const double distance = std::fabs(decode(code) - x), best_distance = std::fabs(decode(best) - x);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best);
}

}  // namespace

float e2m1_decode(uint8_t code) { return static_cast<float>(decode_float(code & 0xF, 2, 1, false)); }

uint8_t e2m1_encode(double x) {
  if (std::isnan(x)) return 0x7;
  const uint8_t magnitude = nearest_code(std::fmin(std::fabs(x), 6.0), 7, e2m1_decode);
  return std::signbit(x) ? magnitude | 0x8 : magnitude;
}

float ue4m3_decode(uint8_t code) {
  code &= 0x7F;
  if (code == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(decode_float(code, 4, 3, false));
}

uint8_t ue4m3_encode(double x) {
  if (std::isnan(x)) return 0x7F;
  return nearest_code(std::fmin(x, 448.0), 0x7E, ue4m3_decode);
}

double fp16_decode(uint16_t bits) { return decode_float(bits, 5, 10, true); }
double bf16_decode(uint16_t bits) { return decode_float(bits, 8, 7, true); }

double conversion_error(Half type, double x) {
  return type == Half::kFp16 ? std::fmax(std::fabs(x) * 0x1p-11, 0x1p-25)
                             : std::fmax(std::fabs(x) * 0x1p-8, 0x1p-134);
}

bool may_become(Half type, double expected, double error, double actual) {
  if (std::isnan(expected)) return std::isnan(actual);
  const double largest = std::fabs(expected) + error;
  if (std::isinf(actual))
    return std::signbit(actual) == std::signbit(expected) &&
           largest >= (type == Half::kFp16 ? 65520 : 0x1.FFp127);
  return std::fabs(actual - expected) <= error + conversion_error(type, largest);
}

size_t sf_bytes(int64_t rows, int64_t k) {
  const int64_t bands = (rows + 127) / 128;
  const int64_t tiles = ((k + kBlock - 1) / kBlock + 3) / 4;
  return static_cast<size_t>(bands * tiles * 512);
}

size_t sf_offset(int64_t k, int64_t row, int64_t block) {
  const int64_t tiles = ((k + kBlock - 1) / kBlock + 3) / 4;
  const int64_t tile = row / 128 * tiles + block / 4;
  const int64_t in_band = row % 128;
  return static_cast<size_t>(tile * 512 + in_band % 32 * 16 + in_band / 32 * 4 + block % 4);
}

}  // namespace ref
