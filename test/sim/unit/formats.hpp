// formats.hpp -- the number formats of operands and scale factors by their definitions, in real numbers, and
// the bits of a float: what the tests of the arithmetic compare with.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace formats {

inline constexpr uint32_t kCanonicalNan = 0x7FFFFFFF;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

// These are the magnitudes of e2m1, by code.
inline constexpr double kE2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

inline double element(uint8_t code) { return (code & 8) != 0 ? -kE2m1[code & 7] : kE2m1[code & 7]; }

// A scale is significand * 2^exponent.
struct Scale {
  double significand;
  int exponent;
  bool nan;
};

inline Scale scale_of(uint8_t code, bool ue8m0) {
  if (ue8m0) return {1.0, code - 127, code == 0xFF};
  const int m = code & 7, e = code >> 3 & 15;
  if (m == 0 && e == 0) return {0, -126, false};
  return {e == 0 ? m / 8.0 : 1 + m / 8.0, e == 0 ? -6 : e - 7, (code & 0x7F) == 0x7F};
}

}  // namespace formats
