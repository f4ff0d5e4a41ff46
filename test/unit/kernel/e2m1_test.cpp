// e2m1_test.cpp -- the conversion to e2m1 where the hardware has none, against the reference: around every
// number and every middle of two, and all powers of two.
#include "kernel/epilogue/e2m1.cuh"

#include <cmath>
#include <limits>

#include "ref/formats.h"
#include "support/catch.hpp"

namespace e2m1_test {

TEST_CASE("e2m1: the nearest number, the even one of two, 6 beyond 6 and for NaN", "[e2m1]") {
  const auto check = [](float x) {
    INFO(x);
    CHECK(dualgemm::nearest_e2m1(x) == ref::e2m1_encode(x));
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (float sign : {1.0f, -1.0f}) {
    for (int i = 0; i <= 32; ++i)
      for (float toward : {-kInf, 0.0f, kInf}) {
        const float x = sign * static_cast<float>(i) / 4;
        check(toward == 0.0f ? x : std::nextafter(x, toward));
      }
    for (int exponent = -149; exponent < 128; ++exponent) check(sign * std::ldexp(1.0f, exponent));
    check(sign * kInf);
  }
  check(std::numeric_limits<float>::quiet_NaN());
}

}  // namespace e2m1_test
