// swiglu_test.cpp -- the SwiGLU of the kernel against double, with special functions that are off by as much
// as the PTX ISA allows.
#include "kernel/epilogue/activation.cuh"
#include "support/approximate_math.h"
#include "support/catch.hpp"

namespace {

using namespace dualgemm_test;
using dualgemm::silu;
using dualgemm::TwoFloats;

template <class M>
void check_range() {
  for (double g = -120; g <= 120; g += 1.0 / 64) {
    const float gate = static_cast<float>(g);
    const double got = silu<M>(gate);
    INFO("gate " << gate << " got " << got << " expected " << silu_double(gate));
    REQUIRE(std::fabs(got - silu_double(gate)) <= silu_bound(gate));  // false for NaN
  }
}

// Computes f(gate) * h(up) as the epilogue multiplies them.
template <class M>
TwoFloats swiglu(TwoFloats gate, TwoFloats up) {
  const dualgemm::Swiglu<M> activation{dualgemm::Params{}};
  const TwoFloats f = activation.gate(gate), h = activation.up(up);
  return {f.first * h.first, f.second * h.second};
}

}  // namespace

TEST_CASE("silu is within its bound for every admissible error of ex2 and rcp", "[swiglu]") {
  check_range<Math<0, 0>>();
  check_range<Math<2, 1>>();
  check_range<Math<2, -1>>();
  check_range<Math<-2, 1>>();
  check_range<Math<-2, -1>>();
}

TEST_CASE("silu: the bound is tight enough to notice functions that are 64 ulp off", "[swiglu]") {
  const float gate = -3.0f;
  const double got = silu<Math<64, -64>>(gate);
  CHECK(std::fabs(got - silu_double(gate)) > silu_bound(gate));
}

TEST_CASE("silu at the ends: large gates, infinities, zero, NaN", "[swiglu]") {
  using M = Math<0, 0>;
  const float largest = std::numeric_limits<float>::max();
  CHECK(silu<M>(kInf) == kInf);
  CHECK(silu<M>(largest) == largest);
  CHECK(silu<M>(1e4f) == 1e4f);
  CHECK(silu<M>(-1e4f) == 0.0f);
  CHECK(silu<M>(-largest) == 0.0f);
  CHECK(silu<M>(-kInf) == 0.0f);
  CHECK(silu<M>(0.0f) == 0.0f);
  CHECK(std::isnan(silu<M>(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("swiglu: gate and up are not interchangeable, and NaN in either reaches the result", "[swiglu]") {
  using M = Math<0, 0>;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TwoFloats result = swiglu<M>({-2.0f, 3.0f}, {3.0f, -2.0f});
  CHECK(result.first == silu<M>(-2.0f) * 3.0f);
  CHECK(result.second == silu<M>(3.0f) * -2.0f);
  CHECK(result.first != result.second);
  const TwoFloats not_numbers = swiglu<M>({nan, 1.0f}, {1.0f, nan});
  CHECK(std::isnan(not_numbers.first));
  CHECK(std::isnan(not_numbers.second));
  CHECK(std::isnan(swiglu<M>({nan, 1.0f}, {0.0f, 1.0f}).first));
}

TEST_CASE("swiglu: its stated error covers the derived bound, and is less than twice that somewhere",
          "[swiglu]") {
  double closest = 0;  // derived bound over stated error
  for (double g = -80; g <= 120; g += 1.0 / 16) {
    const double size = std::fabs(silu_double(g));
    const double stated = dualgemm::Swiglu<Counted>::kErrorUnits * kU * (1 + std::fabs(g)) * size +
                          kSmallest * (1 + std::fabs(g));
    INFO("gate " << g);
    REQUIRE(silu_bound(g) <= stated);
    closest = std::max(closest, silu_bound(g) / stated);
  }
  CHECK(closest > 0.5);
}

TEST_CASE("swiglu takes the special functions that its cost states", "[swiglu]") {
  Counted::calls[0] = Counted::calls[1] = 0;
  swiglu<Counted>({1.0f, 2.0f}, {3.0f, 4.0f});
  constexpr dualgemm::ActivationCost kCost = dualgemm::Swiglu<Counted>::kCost;
  CHECK(Counted::calls[0] == 2 * kCost.ex2);
  CHECK(Counted::calls[1] == 2 * kCost.rcp);
  CHECK(kCost.other_special == 0);
}
