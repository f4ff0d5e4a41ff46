// exact.cuh -- C = f(gate) * h(up), or f(gate), in fp64, rounded once to fp32. The result is within half an
// ulp of the true value, plus the errors of the fp64 functions and of their arguments, which are below 2^-20
// of half an ulp.
#pragma once

#include <cmath>

#include "kernel/epilogue/kinds.h"
#include "kernel/params.h"

namespace dualgemm {

// Returns x * sigmoid(z). For z below -1000 it is 0, to which no other fp32 is nearer; this keeps -inf / inf
// from becoming NaN.
DUALGEMM_HOST_DEVICE double exact_times_sigmoid(double x, double z) {
  return z < -1000 ? 0.0 : x / (1 + std::exp(-z));
}
// NaN stays what it is.
DUALGEMM_HOST_DEVICE double at_most(double x, double limit) { return x > limit ? limit : x; }
DUALGEMM_HOST_DEVICE double within(double x, double limit) { return -at_most(-at_most(x, limit), limit); }

DUALGEMM_HOST_DEVICE double exact_gelu_tanh(double g) {
  constexpr double kTwoRootsOf2OverPi = 1.5957691216057307117597842397375;
  return exact_times_sigmoid(g, kTwoRootsOf2OverPi * (g + 0.044715 * g * g * g));
}
DUALGEMM_HOST_DEVICE double exact_gelu_erf(double g) {
  constexpr double kRootOfHalf = 0.70710678118654752440084436210485;
  return g < -1000 ? 0.0 : g * (0.5 * std::erfc(g * -kRootOfHalf));
}
DUALGEMM_HOST_DEVICE double exact_relu(double g) { return g < 0 ? 0.0 : g; }

// Returns C of one product.
DUALGEMM_HOST_DEVICE float exact_linear_activation(LinearActivation activation, float gate) {
  const double g = gate;
  switch (activation) {
    case LinearActivation::kNone: return gate;
    case LinearActivation::kSilu: return static_cast<float>(exact_times_sigmoid(g, g));
    case LinearActivation::kGeluTanh: return static_cast<float>(exact_gelu_tanh(g));
    case LinearActivation::kGeluErf: return static_cast<float>(exact_gelu_erf(g));
    case LinearActivation::kRelu: return static_cast<float>(exact_relu(g));
    case LinearActivation::kRelu2: return static_cast<float>(exact_relu(g) * exact_relu(g));
  }
  return 0.0f;  // there is no other activation
}

DUALGEMM_HOST_DEVICE float exact_activation(const GeneralParams& p, float gate, float up) {
  const double g = gate, u = up, alpha = p.swiglu_alpha, limit = p.swiglu_limit;
  switch (static_cast<ActivationKind>(p.activation)) {
    case ActivationKind::kSwiglu: {
      const double x = at_most(g, limit);
      return static_cast<float>(exact_times_sigmoid(x, alpha * x) * (within(u, limit) + p.swiglu_beta));
    }
    case ActivationKind::kSwigluStep:
      return static_cast<float>(at_most(exact_times_sigmoid(g, alpha * g), limit) *
                                (within(u, limit) + p.swiglu_beta));
    case ActivationKind::kGegluTanh: return static_cast<float>(exact_gelu_tanh(g) * u);
    case ActivationKind::kGegluErf: return static_cast<float>(exact_gelu_erf(g) * u);
    case ActivationKind::kReglu: return static_cast<float>(exact_relu(g) * u);
    case ActivationKind::kGlu: return static_cast<float>(u / (1 + std::exp(-g)));
    case ActivationKind::kSitu: {
      const double a = p.situ_gate, b = p.situ_up;
      return static_cast<float>(a * std::tanh(g / a) / (1 + std::exp(-g)) * (b * std::tanh(u / b)));
    }
  }
  return 0.0f;  // there is no other activation
}

}  // namespace dualgemm
