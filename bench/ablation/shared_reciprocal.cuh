// shared_reciprocal.cuh -- SwiGLU of two results with one reciprocal, r = 1 / (d1 d2), where d = 1 + 2^(-g
// log2 e): the sigmoids are r d2 and r d1. Three special-function operations instead of four, and the last
// bits of each result depend on the other gate. The product of the denominators must not overflow, and its
// reciprocal must not underflow, so gates below kLowestGate count as that: their results are silu(-43) * up,
// whose distance from the true value is under 2^-56 |up|. NaN and infinity in one pair do not reach the
// other.
#pragma once

#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/kinds.h"
#include "kernel/params.h"

namespace bench {

inline constexpr float kLowestGate = -43.0f;  // d < 2^62.04

template <class Math>
struct SharedReciprocal {
  DUALGEMM_HOST_DEVICE explicit SharedReciprocal(const dualgemm::Params&) {}
  DUALGEMM_HOST_DEVICE dualgemm::TwoFloats gate(dualgemm::TwoFloats g) const {
    const float first = denominator(g.first), second = denominator(g.second);
    const float reciprocal = Math::rcp(first * second);
    return {bounded(g.first) * (reciprocal * second), bounded(g.second) * (reciprocal * first)};
  }
  DUALGEMM_HOST_DEVICE dualgemm::TwoFloats up(dualgemm::TwoFloats u) const { return u; }

 private:
  DUALGEMM_HOST_DEVICE static float denominator(float g) {
    constexpr float kLog2E = 1.44269504f;
    return 1.0f + Math::ex2((g > kLowestGate ? g : kLowestGate) * -kLog2E);  // a number, also for NaN
  }
  // The comparison keeps NaN.
  DUALGEMM_HOST_DEVICE static float bounded(float g) { return g < kLowestGate ? kLowestGate : g; }
};

}  // namespace bench
