// swiglu_test.cpp -- silu, swiglu and swiglu_shared against double. The hardware's approximations enter as
// the worst case that the PTX ISA allows: 2 ulp for ex2.approx, 1 ulp for rcp.approx, subnormal numbers
// flushed to zero.
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

// gate * -log2 e carries the rounding of the constant and of the product: 2u |g| log2 e in the exponent,
// 2u |g| in the logarithm of the power. An error e of the power reaches 1 / (1 + power) as e * (1 - sigma).
// Then 4u for ex2 (2 ulp), u for the sum, 2u for rcp (1 ulp), u for the last product;
// 1/64 more for products of errors.
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

// The same for one result of a pair with a shared reciprocal, over up = 1: 3u more, for the product of the
// denominators, its reciprocal times one of them, and the product with up. The errors of that one denominator
// cancel: it is in the reciprocal and multiplied with it. Gates below -43 count as -43.
double shared_bound(double g) {
  if (g < -43) return 0x1p-56;
  return bound(g) + 3 * kU * (1 + 1.0 / 64) * std::fabs(silu_double(g));
}

constexpr double kPartners[] = {-120, -43.5, -43, -42.5, -20, -1, 0, 0.25, 3, 43, 120};

template <class M>
void check_pairs() {
  for (double g = -120; g <= 120; g += 1.0 / 64)
    for (double partner : kPartners) {
      const float gate = static_cast<float>(g), other = static_cast<float>(partner);
      const double first = dualgemm::swiglu_shared<M>({gate, other}, {1.0f, 1.0f}).first;
      const double second = dualgemm::swiglu_shared<M>({other, gate}, {1.0f, 1.0f}).second;
      INFO("gate " << gate << " beside " << other << " got " << first << " and " << second << " expected "
                   << silu_double(gate));
      REQUIRE(std::fabs(first - silu_double(gate)) <= shared_bound(gate));  // false for NaN
      REQUIRE(std::fabs(second - silu_double(gate)) <= shared_bound(gate));
    }
}

// Exact functions that count their calls.
struct Counted {
  static inline int calls[2];
  static float ex2(float x) { return ++calls[0], std::exp2(x); }
  static float rcp(float x) { return ++calls[1], 1.0f / x; }
};

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

TEST_CASE(
    "swiglu_shared is within its bound beside any other gate, for every admissible error of ex2 and rcp") {
  check_pairs<Math<0, 0>>();
  check_pairs<Math<2, 1>>();
  check_pairs<Math<2, -1>>();
  check_pairs<Math<-2, 1>>();
  check_pairs<Math<-2, -1>>();
}

TEST_CASE("swiglu_shared: the bound is tight enough to notice functions that are 64 ulp off") {
  const double got = dualgemm::swiglu_shared<Math<64, -64>>({-3.0f, 0.0f}, {1.0f, 1.0f}).first;
  CHECK(std::fabs(got - silu_double(-3)) > shared_bound(-3));
}

TEST_CASE("swiglu_shared takes three special functions for two results") {
  Counted::calls[0] = Counted::calls[1] = 0;
  dualgemm::swiglu_shared<Counted>({1.0f, 2.0f}, {3.0f, 4.0f});
  CHECK(Counted::calls[0] == 2);
  CHECK(Counted::calls[1] == 1);
}

TEST_CASE("swiglu_shared: each result has its own gate and its own up") {
  using M = Math<0, 0>;
  const auto [first, second] = dualgemm::swiglu_shared<M>({-2.0f, 1.5f}, {3.0f, -0.5f});
  CHECK(std::fabs(first - silu_double(-2) * 3) <= 3 * shared_bound(-2));
  CHECK(std::fabs(second - silu_double(1.5) * -0.5) <= 0.5 * shared_bound(1.5));
}

TEST_CASE("swiglu_shared: what is no number or not finite in one pair does not reach the other") {
  using M = Math<0, 0>;
  const float nan = std::numeric_limits<float>::quiet_NaN(), largest = std::numeric_limits<float>::max();
  for (float gate : {nan, kInf, -kInf, largest, -largest})
    for (float up : {1.0f, nan, kInf, -kInf}) {
      INFO("gate " << gate << " up " << up);
      const auto [first, second] = dualgemm::swiglu_shared<M>({gate, -1.25f}, {up, 2.0f});
      CHECK(std::fabs(second - silu_double(-1.25) * 2) <= 2 * shared_bound(-1.25));
      CHECK(std::isnan(first) == (std::isnan(gate) || std::isnan(up)));
      const dualgemm::Pair swapped = dualgemm::swiglu_shared<M>({-1.25f, gate}, {2.0f, up});
      CHECK(std::fabs(swapped.first - silu_double(-1.25) * 2) <= 2 * shared_bound(-1.25));
      CHECK(std::isnan(swapped.second) == (std::isnan(gate) || std::isnan(up)));
    }
  CHECK(dualgemm::swiglu_shared<M>({kInf, 0.0f}, {1.0f, 1.0f}).first == kInf);
  CHECK(std::fabs(dualgemm::swiglu_shared<M>({-kInf, 0.0f}, {1.0f, 1.0f}).first) <= 0x1p-56);
}
