// swiglu.cuh -- silu(gate) * up on one pair of numbers. The two approximate functions come in as a type: the
// kernel passes the hardware's, a test on the host passes exact or deliberately wrong ones.
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

}  // namespace dualgemm
