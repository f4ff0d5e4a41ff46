// approximate_math.h -- the special functions of the hardware as the activations take them, off by as much as
// the PTX ISA allows: 2 ulp for ex2.approx, 1 ulp for rcp.approx, subnormal numbers flushed to zero. Beside
// them stands silu in double, with the bound that follows for a silu made of them.
#pragma once

#include <cmath>
#include <limits>

namespace dualgemm_test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr double kU = 0x1p-24;          // relative error of one rounding to float
inline constexpr double kSmallest = 0x1p-126;  // below it a float counts as zero

inline float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

inline float move(float x, int ulps) {
  for (; ulps > 0; --ulps) x = std::nextafter(x, kInf);
  for (; ulps < 0; ++ulps) x = std::nextafter(x, -kInf);
  return x;
}

// These functions are off by the given number of ulp wherever the result is a finite normal number.
template <int kEx2Ulps, int kRcpUlps>
struct Math {
  static float off(float exact, int ulps) {
    const float x = flush(exact);
    return x == 0 || std::isinf(x) || std::isnan(x) ? x : flush(move(x, ulps));
  }
  static float ex2(float x) { return off(std::exp2(flush(x)), kEx2Ulps); }
  static float rcp(float x) { return off(1.0f / flush(x), kRcpUlps); }
};

inline double silu_double(double g) { return g / (1 + std::exp(-g)); }

// gate * -log2 e carries the rounding of the constant and of the product: 2u |g| log2 e in the exponent,
// 2u |g| in the logarithm of the power. An error e of the power reaches 1 / (1 + power) as e * (1 - sigma).
// Then 4u for ex2 (2 ulp), u for the sum, 2u for rcp (1 ulp), u for the last product;
// 1/64 more for products of errors.
inline double silu_bound(double g) {
  const double sigma = 1 / (1 + std::exp(-g));
  const double relative = (1 - sigma) * (2 * kU * std::fabs(g) + 4 * kU) + 4 * kU;
  return std::fabs(g) * sigma * relative * (1 + 1.0 / 64) + kSmallest * (1 + std::fabs(g));
}

// These are exact functions that count their calls.
struct Counted {
  static inline int calls[2];
  static float ex2(float x) { return ++calls[0], std::exp2(x); }
  static float rcp(float x) { return ++calls[1], 1.0f / x; }
};

}  // namespace dualgemm_test
