// swiglu_test.cpp -- silu and swiglu against double. The hardware's approximations enter as the worst case
// that the PTX ISA allows: 2 ulp for ex2.approx, 1 ulp for rcp.approx, subnormal numbers flushed to zero.
#include "kernel/swiglu.cuh"

#include <cmath>
#include <limits>

#include "support/catch.hpp"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kU = 0x1p-24;          // relative error of one rounding to float
constexpr double kSmallest = 0x1p-126;  // below it a float counts as zero

float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float move(float x, int ulps) {
  for (; ulps > 0; --ulps) x = std::nextafter(x, kInf);
  for (; ulps < 0; ++ulps) x = std::nextafter(x, -kInf);
  return x;
}

// Functions that are off by the given number of ulp wherever the result is a finite normal number.
template <int kEx2Ulps, int kRcpUlps>
struct Math {
  static float off(float exact, int ulps) {
    const float x = flush(exact);
    return x == 0 || std::isinf(x) || std::isnan(x) ? x : flush(move(x, ulps));
  }
  static float ex2(float x) { return off(std::exp2(flush(x)), kEx2Ulps); }
  static float rcp(float x) { return off(1.0f / flush(x), kRcpUlps); }
};

double silu_double(double g) { return g / (1 + std::exp(-g)); }

// gate * -log2 e carries the rounding of the constant and of the product: 2u |g| log2 e in the exponent, 2u
// |g| in the logarithm of the power. An error e of the power reaches 1 / (1 + power) as e * (1 - sigma). Then
// 4u for ex2 (2 ulp), u for the sum, 2u for rcp (1 ulp), u for the last product; 1/64 more for products of
// errors.
double bound(double g) {
  const double sigma = 1 / (1 + std::exp(-g));
  const double relative = (1 - sigma) * (2 * kU * std::fabs(g) + 4 * kU) + 4 * kU;
  return std::fabs(g) * sigma * relative * (1 + 1.0 / 64) + kSmallest * (1 + std::fabs(g));
}

template <class M>
void check_range() {
  for (double g = -120; g <= 120; g += 1.0 / 64) {
    const float gate = static_cast<float>(g);
    const double got = dualgemm::silu<M>(gate);
    INFO("gate " << gate << " got " << got << " expected " << silu_double(gate));
    REQUIRE(std::fabs(got - silu_double(gate)) <= bound(gate));  // false for NaN
  }
}

}  // namespace

TEST_CASE("silu is within its bound for every admissible error of ex2 and rcp") {
  check_range<Math<0, 0>>();
  check_range<Math<2, 1>>();
  check_range<Math<2, -1>>();
  check_range<Math<-2, 1>>();
  check_range<Math<-2, -1>>();
}

TEST_CASE("silu: the bound is tight enough to notice functions that are 64 ulp off") {
  const float gate = -3.0f;
  const double got = dualgemm::silu<Math<64, -64>>(gate);
  CHECK(std::fabs(got - silu_double(gate)) > bound(gate));
}

TEST_CASE("silu at the ends: large gates, infinities, zero, NaN") {
  using M = Math<0, 0>;
  const float largest = std::numeric_limits<float>::max();
  CHECK(dualgemm::silu<M>(kInf) == kInf);
  CHECK(dualgemm::silu<M>(largest) == largest);
  CHECK(dualgemm::silu<M>(1e4f) == 1e4f);
  CHECK(dualgemm::silu<M>(-1e4f) == 0.0f);
  CHECK(dualgemm::silu<M>(-largest) == 0.0f);
  CHECK(dualgemm::silu<M>(-kInf) == 0.0f);
  CHECK(dualgemm::silu<M>(0.0f) == 0.0f);
  CHECK(std::isnan(dualgemm::silu<M>(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("swiglu: gate and up are not interchangeable, and NaN in either reaches the result") {
  using M = Math<0, 0>;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(dualgemm::swiglu<M>(-2.0f, 3.0f) == dualgemm::silu<M>(-2.0f) * 3.0f);
  CHECK(dualgemm::swiglu<M>(-2.0f, 3.0f) != dualgemm::swiglu<M>(3.0f, -2.0f));
  CHECK(std::isnan(dualgemm::swiglu<M>(nan, 1.0f)));
  CHECK(std::isnan(dualgemm::swiglu<M>(1.0f, nan)));
  CHECK(std::isnan(dualgemm::swiglu<M>(nan, 0.0f)));
}
