// swiglu.cuh -- silu(gate) * up, of one pair of numbers or of two at once. The two approximate functions come
// in as a type: the kernel passes the hardware's, a test on the host passes exact or deliberately wrong ones.
#pragma once

#include "ptx/descriptor.h"

namespace dualgemm {

// silu(g) = g * sigmoid(g) = g / (1 + 2^(-g log2 e)).
//   g -> +inf: 2^-inf = 0, the reciprocal of 1 is 1, and the result is g.
//   g -> -inf: the power overflows to +inf and its reciprocal is 0. Below about -87 the result is therefore
//   0, whose distance from the true value is under 2^-119; the select keeps 0 * -inf from becoming NaN. NaN
//   passes through: it compares unequal to 0.
template <class Math>
DUALGEMM_HOST_DEVICE float silu(float gate) {
  constexpr float kLog2E = 1.44269504f;
  const float sigmoid = Math::rcp(1.0f + Math::ex2(gate * -kLog2E));
  return sigmoid == 0.0f ? 0.0f : gate * sigmoid;
}

template <class Math>
DUALGEMM_HOST_DEVICE float swiglu(float gate, float up) {
  return silu<Math>(gate) * up;
}

struct Pair {
  float first, second;
};

// The same of two with one reciprocal, r = 1 / (d1 d2), where d = 1 + 2^(-g log2 e): the sigmoids are r d2
// and r d1. Three special-function operations instead of four, and the last bits of each result depend on the
// other gate. The product of the denominators must not overflow, and its reciprocal must not underflow, so
// gates below kLowestGate count as that: their results are silu(-43) * up, whose distance from the true value
// is under 2^-56 |up|. NaN and infinity in one pair do not reach the other.
inline constexpr float kLowestGate = -43.0f;  // d < 2^62.04

template <class Math>
DUALGEMM_HOST_DEVICE Pair swiglu_shared(Pair gate, Pair up) {
  constexpr float kLog2E = 1.44269504f;
  const auto denominator = [](float g) {
    return 1.0f + Math::ex2((g > kLowestGate ? g : kLowestGate) * -kLog2E);  // a number, also for NaN
  };
  const auto bounded = [](float g) { return g < kLowestGate ? kLowestGate : g; };  // keeps NaN
  const float first = denominator(gate.first), second = denominator(gate.second);
  const float reciprocal = Math::rcp(first * second);
  return {bounded(gate.first) * (reciprocal * second) * up.first,
          bounded(gate.second) * (reciprocal * first) * up.second};
}

}  // namespace dualgemm
