// activation.cuh -- the activations, and the list of them that the library builds. An activation is
// C = f(gate) * h(up): two functions of two neighbouring elements each, of which f never looks at up, so that
// it can be computed before up is complete. Its members are its uniform parameters, which it takes from
// Params. Beside it stand how far f may be from the exact function and what its machine code may take.
//
// To add one: a functor here, an entry in Activations, its reference in test/ref/activation.cpp and a test
// like test/unit/kernel/swiglu_test.cpp.
//
// The approximate functions of the hardware come in as a type: the kernel passes ApproximateMath
// (epilogue.cuh), a test on the host exact or deliberately wrong ones.
#pragma once

#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/kinds.h"
#include "kernel/epilogue/list.h"
#include "kernel/params.h"

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

// C is silu(g) * u.
template <class Math>
struct Swiglu {
  static constexpr ActivationKind kKind = ActivationKind::kSwiglu;
  static constexpr const char* kName = "swiglu";
  // |f(g) - silu(g)| <= kErrorUnits 2^-24 (1 + |g|) |silu(g)| + 2^-126 (1 + |g|), for ex2 within 2 ulp and
  // rcp within 1 ulp, as the PTX ISA promises (test/support/approximate_math.h derives it).
  static constexpr double kErrorUnits = 9;
  // The products are those by alpha1, alpha2, log2 e, sigmoid and up. One more would be a fix-up of the range
  // of ex2 or rcp.
  static constexpr ActivationCost kCost = {.ex2 = 1, .rcp = 1, .other_special = 0, .multiplications = 5};

  DUALGEMM_HOST_DEVICE explicit Swiglu(const Params&) {}
  DUALGEMM_HOST_DEVICE TwoFloats gate(TwoFloats g) const {
    return {silu<Math>(g.first), silu<Math>(g.second)};
  }
  DUALGEMM_HOST_DEVICE TwoFloats up(TwoFloats u) const { return u; }
};

template <class Math>
using Activations = List<Swiglu<Math>>;

}  // namespace dualgemm
