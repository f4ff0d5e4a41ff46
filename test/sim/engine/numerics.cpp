// numerics.cpp -- scalar arithmetic of the machine, without touching the host's rounding mode.
//
// These are exact: all decoders; all conversions (one routine rounds a double into any small format); f32
// add, mul and fma in the four rounding modes. A sum is taken in double with its error term and rounded to
// odd, which keeps enough of the lost bits for one correct final rounding. These are assumed: a result is
// tiny for .ftz when it is subnormal after rounding; a ue8m0 conversion takes the absolute value of a
// negative input and makes 0xFF of NaN; approximate functions are the double result rounded to nearest,
// inside the ISA's error bounds.
#include "sim/engine/numerics.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sim {
namespace {

constexpr uint32_t kNan32 = 0x7FFFFFFF;

float nan32() { return std::bit_cast<float>(kNan32); }
bool negative(double x) { return std::signbit(x); }

// Describes the magnitude of a small binary format; the sign sits above it.
struct Format {
  int mantissa_bits;
  int bias;
  uint32_t max_finite;  // code of the largest finite magnitude
  uint32_t infinity;    // code of infinity; unused when the caller saturates
};
constexpr Format kF32{23, 127, 0x7F7FFFFF, 0x7F800000};
constexpr Format kF16{10, 15, 0x7BFF, 0x7C00};
constexpr Format kBf16{7, 127, 0x7F7F, 0x7F80};
constexpr Format kE4m3{3, 7, 0x7E, 0x7E};
constexpr Format kE5m2{2, 15, 0x7B, 0x7C};
constexpr Format kE2m1{1, 1, 0x7, 0x7};

// True when a discarded fraction makes the magnitude step up;
// `rest` is the fraction in units of 2^-64 of the last place.
bool steps_up(Round r, bool is_negative, bool odd, uint64_t rest) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  switch (r) {
    case Round::kNearestEven: return rest > kHalf || (rest == kHalf && odd);
    case Round::kZero: return false;
    case Round::kDown: return is_negative && rest != 0;
    case Round::kUp: return !is_negative && rest != 0;
  }
  return false;
}

// Returns the code of the magnitude of x, which is not NaN, rounded once. The mode decides whether an
// overflow gives infinity or the largest finite value.
uint32_t encode_magnitude(double x, const Format& f, Round r, bool saturate) {
  const bool minus = negative(x);
  const bool overflow_is_infinite =
      r == Round::kNearestEven || (r == Round::kUp && !minus) || (r == Round::kDown && minus);
  const uint32_t beyond = saturate || !overflow_is_infinite ? f.max_finite : f.infinity;
  if (std::isinf(x)) return saturate ? f.max_finite : f.infinity;
  if (x == 0) return 0;

  int lead;              // exponent of the leading bit
  uint64_t significand;  // leading bit at 63
  if (std::fabs(x) >= std::numeric_limits<double>::min()) {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    lead = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
    significand = bits << 11 | uint64_t{1} << 63;
  } else {
    significand = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(x), &lead), 64));
    --lead;
  }
  const int floor = 1 - f.bias;                                      // of the smallest normal
  const int last = (lead > floor ? lead : floor) - f.mantissa_bits;  // weight of the last place
  const int drop = 63 - (lead - last);                               // bits below the last place, >= 11
  uint64_t kept, rest;
  if (drop < 64) {
    kept = significand >> drop;
    rest = significand << (64 - drop);
  } else {  // below half of the smallest subnormal, or exactly half of it to its double
    kept = 0;
    rest = drop == 64 ? significand : 1;
  }
  kept += steps_up(r, minus, (kept & 1) != 0, rest);
  // Biased exponent and mantissa are one integer:
  // a carry out of the mantissa lands in the exponent by itself.
  const int biased = lead > floor ? lead - floor : 0;
  const uint64_t code = (static_cast<uint64_t>(biased) << f.mantissa_bits) + kept;
  return code > f.max_finite ? beyond : static_cast<uint32_t>(code);
}

float power_of_two(int exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); }

float decode(uint32_t code, const Format& f) {  // finite codes of formats smaller than float
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const int biased = static_cast<int>(code >> f.mantissa_bits);
  const int exponent = (biased == 0 ? 1 : biased) - f.bias - f.mantissa_bits;
  const uint32_t significand = biased == 0 ? mantissa : mantissa | (1u << f.mantissa_bits);
  return static_cast<float>(significand) * power_of_two(exponent);
}

float flushed(float x, bool flush) {
  return flush && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

float round_to_f32(double x, Round r, bool flush) {
  if (std::isnan(x)) return nan32();
  if (r == Round::kNearestEven) return flushed(static_cast<float>(x), flush);
  const uint32_t code = encode_magnitude(x, kF32, r, false);
  return flushed(std::bit_cast<float>(code | (negative(x) ? 0x80000000u : 0)), flush);
}

// Returns x + y rounded to odd: the double nearest toward zero with its last bit set when bits were lost.
// Rounding that to 24 bits in any mode equals rounding the exact sum, because 53 >= 24 + 2.
double add_to_odd(double x, double y) {
  const double sum = x + y;
  const double y_part = sum - x;
  const double error = (x - (sum - y_part)) + (y - y_part);
  if (error == 0 || !std::isfinite(sum)) return sum;
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : uint64_t(-1);
  return std::bit_cast<double>(bits);
}

// Returns the sum of exact x and y in the given mode; the sign of an exact zero follows IEEE 754.
float sum_to_f32(double x, double y, Round r, bool flush) {
  const double sum = add_to_odd(x, y);
  if (sum == 0 && !(x == 0 && y == 0 && negative(x) == negative(y))) return r == Round::kDown ? -0.0f : 0.0f;
  return round_to_f32(sum, r, flush);
}

float approximate(double result, bool flush) { return round_to_f32(result, Round::kNearestEven, flush); }

}  // namespace

float e2m1_to_f32(uint8_t code) {
  const float magnitude = decode(code & 7, kE2m1);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

float ue4m3_to_f32(uint8_t code) { return (code & 0x7F) == 0x7F ? nan32() : decode(code & 0x7F, kE4m3); }

float e4m3_to_f32(uint8_t code) {
  const float magnitude = ue4m3_to_f32(code);
  return (code & 0x80) != 0 && !std::isnan(magnitude) ? -magnitude : magnitude;
}

float e5m2_to_f32(uint8_t code) { return f16_to_f32(static_cast<uint16_t>(code << 8)); }

float dense_to_f32(DenseFormat f, uint32_t code) {
  switch (f) {
    case DenseFormat::kF16: return f16_to_f32(uint16_t(code));
    case DenseFormat::kBf16: return bf16_to_f32(uint16_t(code));
    case DenseFormat::kTf32: return std::bit_cast<float>(code & ~0x1FFFu);  // the low 13 bits do not count
    case DenseFormat::kE4m3: return e4m3_to_f32(uint8_t(code));
    case DenseFormat::kE5m2: return e5m2_to_f32(uint8_t(code));
  }
  return 0;
}

float ue8m0_to_f32(uint8_t code) { return code == 0xFF ? nan32() : std::ldexp(1.0f, code - 127); }

uint16_t f32_to_f16(float x, Round r, bool saturate) {
  if (std::isnan(x)) return 0x7FFF;
  return static_cast<uint16_t>(encode_magnitude(x, kF16, r, saturate) | (negative(x) ? 0x8000 : 0));
}

uint16_t f32_to_bf16(float x, Round r, bool saturate) {
  if (std::isnan(x)) return 0x7FFF;
  return static_cast<uint16_t>(encode_magnitude(x, kBf16, r, saturate) | (negative(x) ? 0x8000 : 0));
}

uint16_t f64_to_f16(double x, Round r) {
  if (std::isnan(x)) return 0x7FFF;
  return static_cast<uint16_t>(encode_magnitude(x, kF16, r, false) | (negative(x) ? 0x8000 : 0));
}

uint8_t f32_to_e2m1(float x) {
  if (std::isnan(x)) return 0x7;
  return static_cast<uint8_t>(encode_magnitude(x, kE2m1, Round::kNearestEven, true) |
                              (negative(x) ? 0x8 : 0));
}

uint8_t f32_to_e4m3(float x) {
  if (std::isnan(x)) return 0x7F;
  return static_cast<uint8_t>(encode_magnitude(x, kE4m3, Round::kNearestEven, true) |
                              (negative(x) ? 0x80 : 0));
}

uint8_t f32_to_e5m2(float x) {
  if (std::isnan(x)) return 0x7F;
  return static_cast<uint8_t>(encode_magnitude(x, kE5m2, Round::kNearestEven, true) |
                              (negative(x) ? 0x80 : 0));
}

uint8_t f32_to_ue8m0(float x, Round r) {
  if (std::isnan(x)) return 0xFF;
  const float magnitude = std::fabs(x);
  if (std::isinf(magnitude)) return 0xFE;
  if (magnitude <= std::ldexp(1.0f, -127)) return 0;
  int exponent;
  // magnitude = fraction * 2^exponent, fraction in [0.5, 1).
  const float fraction = std::frexp(magnitude, &exponent);
  const int code = exponent - 1 + 127 + (r == Round::kUp && fraction != 0.5f ? 1 : 0);
  return static_cast<uint8_t>(code > 0xFE ? 0xFE : code);
}

float f32_add(float a, float b, Round r, bool flush) {
  return sum_to_f32(flushed(a, flush), flushed(b, flush), r, flush);
}

float f32_mul(float a, float b, Round r, bool flush) {
  return round_to_f32(double{flushed(a, flush)} * double{flushed(b, flush)}, r, flush);  // 48 bits: exact
}

float f32_fma(float a, float b, float c, Round r, bool flush) {
  return sum_to_f32(double{flushed(a, flush)} * double{flushed(b, flush)}, flushed(c, flush), r, flush);
}

float ex2_approx(float x, bool flush) { return approximate(std::exp2(double{flushed(x, flush)}), flush); }
float lg2_approx(float x, bool flush) { return approximate(std::log2(double{flushed(x, flush)}), flush); }
float rcp_approx(float x, bool flush) { return approximate(1.0 / double{flushed(x, flush)}, flush); }
float rsqrt_approx(float x, bool flush) {
  const double input = flushed(x, flush);
  return approximate(input == 0 ? 1.0 / input : 1.0 / std::sqrt(input), flush);
}
float sqrt_approx(float x, bool flush) { return approximate(std::sqrt(double{flushed(x, flush)}), flush); }
float sin_approx(float x, bool flush) { return approximate(std::sin(double{flushed(x, flush)}), flush); }
float cos_approx(float x, bool flush) { return approximate(std::cos(double{flushed(x, flush)}), flush); }
float tanh_approx(float x) { return approximate(std::tanh(double{x}), false); }
float div_full(float a, float b, bool flush) {
  return approximate(double{flushed(a, flush)} / double{flushed(b, flush)}, flush);
}

float f64_to_f32_toward_zero(double x, int places) {
  if (std::isnan(x)) return nan32();
  const uint32_t dropped = (1u << (kF32.mantissa_bits - places)) - 1;
  const float truncated =
      std::bit_cast<float>(std::bit_cast<uint32_t>(round_to_f32(x, Round::kZero, false)) & ~dropped);
  if (std::fabs(x) >= 0x1p128) return std::copysign(std::numeric_limits<float>::infinity(), truncated);
  return truncated + 0.0f;  // a result that truncates to nothing is +0
}

}  // namespace sim
