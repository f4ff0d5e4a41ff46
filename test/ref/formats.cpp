// formats.cpp -- see formats.h. Decoding builds each value from its bit fields; encoding searches the decoded
// values for the nearest, which cannot be wrong in the ways a bit trick can.
#include "ref/formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace ref {

// Returns 2^exponent, which is a normal double.
static double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// Returns the value of sign-exponent-mantissa bits as IEEE 754 lays them out; with `infinities` the top
// exponent means inf and NaN.
static double decode_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool infinities) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const bool negative = (bits >> (mantissa_bits + exponent_bits)) & 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude;
  if (infinities && exponent == (1u << exponent_bits) - 1) {
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = mantissa * power_of_two(1 - bias - mantissa_bits);
  } else {
    magnitude =
        (mantissa + (1u << mantissa_bits)) * power_of_two(static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

// These are the values of the codes from 0 on, in ascending order.
template <size_t kCount>
static std::array<double, kCount> values_of(float (*decode)(uint8_t)) {
  std::array<double, kCount> out;
  for (size_t code = 0; code < kCount; ++code) out[code] = decode(static_cast<uint8_t>(code));
  return out;
}

// Returns the code whose value is nearest to x >= 0; of two equally near the even one.
template <size_t kCount>
static uint8_t nearest_code(double x, const std::array<double, kCount>& values) {
  const auto above = static_cast<size_t>(std::lower_bound(values.begin(), values.end(), x) - values.begin());
  if (above == 0) return 0;
  const size_t below = above - 1;
  if (above == kCount) return static_cast<uint8_t>(below);
  const double to_below = x - values[below], to_above = values[above] - x;
  const size_t best = to_below < to_above || (to_below == to_above && below % 2 == 0) ? below : above;
  return static_cast<uint8_t>(best);
}

float e2m1_decode(uint8_t code) { return static_cast<float>(decode_float(code & 0xF, 2, 1, false)); }

uint8_t e2m1_encode(double x) {
  if (std::isnan(x)) return 0x7;
  static const std::array<double, 8> values = values_of<8>(e2m1_decode);
  const uint8_t magnitude = nearest_code(std::fmin(std::fabs(x), 6.0), values);
  return std::signbit(x) ? magnitude | 0x8 : magnitude;
}

float ue4m3_decode(uint8_t code) {
  code &= 0x7F;
  if (code == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(decode_float(code, 4, 3, false));
}

uint8_t ue4m3_encode(double x) {
  if (std::isnan(x)) return 0x7F;
  static const std::array<double, 0x7F> values = values_of<0x7F>(ue4m3_decode);
  return nearest_code(std::fmin(x, 448.0), values);
}

double e4m3_decode(uint8_t code) {
  return (code & 0x7F) == 0x7F ? std::numeric_limits<double>::quiet_NaN() : decode_float(code, 4, 3, false);
}

uint8_t e4m3_encode(double x) {
  const uint8_t magnitude = ue4m3_encode(std::fabs(x));
  return std::signbit(x) && !std::isnan(x) ? magnitude | 0x80 : magnitude;
}

double ue8m0_decode(uint8_t code) {
  return code == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
}

double mxfp4_weight(uint8_t code, uint8_t factor) {
  const double scale = ue8m0_decode(factor);
  if (!(scale <= 0x1p6)) return std::numeric_limits<double>::quiet_NaN();
  return e4m3_decode(e4m3_encode(double{e2m1_decode(code)} * scale));
}

double fp16_decode(uint16_t bits) { return decode_float(bits, 5, 10, true); }
double bf16_decode(uint16_t bits) { return decode_float(bits, 8, 7, true); }
double fp32_decode(uint32_t bits) { return decode_float(bits, 8, 23, true); }

double decode(Format type, uint32_t bits) {
  switch (type) {
    case Format::kFp16: return fp16_decode(static_cast<uint16_t>(bits));
    case Format::kBf16: return bf16_decode(static_cast<uint16_t>(bits));
    case Format::kFp32: return fp32_decode(bits);
    case Format::kE4m3: return e4m3_decode(static_cast<uint8_t>(bits));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double conversion_error(Format type, double x) {
  x = std::fabs(x);
  switch (type) {
    case Format::kFp16: return std::fmax(x * 0x1p-11, 0x1p-25);
    case Format::kBf16: return std::fmax(x * 0x1p-8, 0x1p-134);
    case Format::kFp32: return std::fmax(x * 0x1p-24, 0x1p-150);
    case Format::kE4m3: return std::fmax(std::fmax(x * 0x1p-4, 0x1p-10), x - 448);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// Returns the smallest magnitude that becomes infinity.
static double overflow_threshold(Format type) {
  if (type == Format::kFp16) return 65520;
  return type == Format::kBf16 ? 0x1.FFp127 : 0x1.FFFFFFp127;
}

bool may_become(Format type, double expected, double error, double actual) {
  if (std::isnan(expected)) return std::isnan(actual);
  // What saturates is judged by the ends of the range: the conversion keeps their order.
  if (type == Format::kE4m3)
    return actual >= e4m3_decode(e4m3_encode(expected - error)) &&
           actual <= e4m3_decode(e4m3_encode(expected + error));
  const double largest = std::fabs(expected) + error;
  if (std::isinf(actual))
    return std::signbit(actual) == std::signbit(expected) && largest >= overflow_threshold(type);
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
