// shared_reciprocal_test.cpp -- SwiGLU of two results with one reciprocal (bench/ablation) against double,
// with special functions that are off by as much as the PTX ISA allows.
#include "bench/ablation/shared_reciprocal.cuh"
#include "support/approximate_math.h"
#include "support/catch.hpp"

namespace shared_reciprocal_test {

using namespace dualgemm_test;
using dualgemm::TwoFloats;

// Computes f(gate) * h(up) as the epilogue multiplies them.
template <class M>
static TwoFloats swiglu_shared(TwoFloats gate, TwoFloats up) {
  const bench::SharedReciprocal<M> activation{dualgemm::Params{}};
  const TwoFloats f = activation.gate(gate), h = activation.up(up);
  return {f.first * h.first, f.second * h.second};
}

// Bounds the same for one result of a pair with a shared reciprocal, over up = 1: 3u more, for the product of
// the denominators, its reciprocal times one of them, and the product with up. The errors of that one
// denominator cancel: it is in the reciprocal and multiplied with it. Gates below -43 count as -43.
static double shared_bound(double g) {
  if (g < -43) return 0x1p-56;
  return silu_bound(g) + 3 * kU * (1 + 1.0 / 64) * std::fabs(silu_double(g));
}

constexpr double kPartners[] = {-120, -43.5, -43, -42.5, -20, -1, 0, 0.25, 3, 43, 120};

template <class M>
static void check_pairs() {
  for (double g = -120; g <= 120; g += 1.0 / 64)
    for (double partner : kPartners) {
      const float gate = static_cast<float>(g), other = static_cast<float>(partner);
      const double first = swiglu_shared<M>({gate, other}, {1.0f, 1.0f}).first;
      const double second = swiglu_shared<M>({other, gate}, {1.0f, 1.0f}).second;
      INFO("gate " << gate << " beside " << other << " got " << first << " and " << second << " expected "
                   << silu_double(gate));
      REQUIRE(std::fabs(first - silu_double(gate)) <= shared_bound(gate));  // false for NaN
      REQUIRE(std::fabs(second - silu_double(gate)) <= shared_bound(gate));
    }
}

TEST_CASE(
    "swiglu_shared is within its bound beside any other gate, for every admissible error of ex2 and rcp",
    "[reciprocal]") {
  check_pairs<Math<0, 0>>();
  check_pairs<Math<2, 1>>();
  check_pairs<Math<2, -1>>();
  check_pairs<Math<-2, 1>>();
  check_pairs<Math<-2, -1>>();
}

TEST_CASE("swiglu_shared: the bound is tight enough to notice functions that are 64 ulp off",
          "[reciprocal]") {
  const double got = swiglu_shared<Math<64, -64>>({-3.0f, 0.0f}, {1.0f, 1.0f}).first;
  CHECK(std::fabs(got - silu_double(-3)) > shared_bound(-3));
}

TEST_CASE("swiglu_shared takes three special functions for two results", "[reciprocal]") {
  Counted::calls[0] = Counted::calls[1] = 0;
  swiglu_shared<Counted>({1.0f, 2.0f}, {3.0f, 4.0f});
  CHECK(Counted::calls[0] == 2);
  CHECK(Counted::calls[1] == 1);
}

TEST_CASE("swiglu_shared: each result has its own gate and its own up", "[reciprocal]") {
  using M = Math<0, 0>;
  const auto [first, second] = swiglu_shared<M>({-2.0f, 1.5f}, {3.0f, -0.5f});
  CHECK(std::fabs(first - silu_double(-2) * 3) <= 3 * shared_bound(-2));
  CHECK(std::fabs(second - silu_double(1.5) * -0.5) <= 0.5 * shared_bound(1.5));
}

TEST_CASE("swiglu_shared: what is no number or not finite in one pair does not reach the other",
          "[reciprocal]") {
  using M = Math<0, 0>;
  const float nan = std::numeric_limits<float>::quiet_NaN(), largest = std::numeric_limits<float>::max();
  for (float gate : {nan, kInf, -kInf, largest, -largest})
    for (float up : {1.0f, nan, kInf, -kInf}) {
      INFO("gate " << gate << " up " << up);
      const auto [first, second] = swiglu_shared<M>({gate, -1.25f}, {up, 2.0f});
      CHECK(std::fabs(second - silu_double(-1.25) * 2) <= 2 * shared_bound(-1.25));
      CHECK(std::isnan(first) == (std::isnan(gate) || std::isnan(up)));
      const TwoFloats swapped = swiglu_shared<M>({-1.25f, gate}, {2.0f, up});
      CHECK(std::fabs(swapped.first - silu_double(-1.25) * 2) <= 2 * shared_bound(-1.25));
      CHECK(std::isnan(swapped.second) == (std::isnan(gate) || std::isnan(up)));
    }
  CHECK(swiglu_shared<M>({kInf, 0.0f}, {1.0f, 1.0f}).first == kInf);
  CHECK(std::fabs(swiglu_shared<M>({-kInf, 0.0f}, {1.0f, 1.0f}).first) <= 0x1p-56);
}

}  // namespace shared_reciprocal_test
