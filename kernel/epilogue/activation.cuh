// activation.cuh -- the activations. An activation is C = f(gate) * h(up), where f and h are functions of one
// element. With one product it is C = f(gate), with one of the functions f that gates have. The members of an
// activation are its parameters, which are the same for all threads and come from the launch.
//
// kernel/README.md says how to add one.
//
// The approximate functions of the hardware come in as a type: the kernel passes ApproximateMath
// (epilogue.cuh), a test on the host passes exact or deliberately wrong ones. By the PTX ISA ex2 is good to 2
// ulp and rcp to 1 ulp. Errors below are in units of u = 2^-24, the relative error of one rounded operation.
// test/ref/activation.cpp derives how far each f and h may be off.
#pragma once

#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/kinds.h"
#include "kernel/params.h"

namespace dualgemm {

inline constexpr float kLog2E = 1.44269504f;

// Returns x * sigmoid(z) for exponent = -z log2 e.
//   z -> +inf: 2^-inf = 0, the reciprocal of 1 is 1, and the result is x.
//   z -> -inf: below about z = -87.34 the sigmoid is below 2^-126, and rcp.approx.ftz flushes it to 0; below
//   about -88.72 the power overflows to +inf, whose reciprocal is 0. So the result is 0, which is within
//   |x| 2^-126 of the true value. The select keeps 0 * -inf from becoming NaN.
//   NaN passes through: it compares unequal to 0.
template <class Math>
DUALGEMM_HOST_DEVICE float times_sigmoid(float x, float exponent) {
  const float sigmoid = Math::rcp(1.0f + Math::ex2(exponent));
  return sigmoid == 0.0f ? 0.0f : x * sigmoid;
}

// Returns silu(g) = g * sigmoid(g) = g / (1 + 2^(-g log2 e)).
template <class Math>
DUALGEMM_HOST_DEVICE float silu(float gate) {
  return times_sigmoid<Math>(gate, gate * -kLog2E);
}

// C is silu(g) * u. This is all that a plain instance computes.
template <class Math>
struct Swiglu {
  DUALGEMM_HOST_DEVICE explicit Swiglu(const Params&) {}
  DUALGEMM_HOST_DEVICE TwoFloats gate(TwoFloats g) const {
    return {silu<Math>(g.first), silu<Math>(g.second)};
  }
  DUALGEMM_HOST_DEVICE TwoFloats up(TwoFloats u) const { return u; }
};

// ---- what a general instance computes, as the launch says ------------------------------------------------

// This is the SwiGLU with three parameters:
//
//   min(g, limit) sigmoid(alpha min(g, limit)) * (clamp(u, -limit, limit) + beta)
//
// NaN passes through the clamps. With alpha = 1, beta = 0 and an infinite limit it is the plain SwiGLU, bit
// for bit.
template <class Math>
struct GeneralSwiglu {
  float exponent, beta, limit;
  DUALGEMM_HOST_DEVICE explicit GeneralSwiglu(const GeneralParams& p)
      : exponent(p.swiglu_alpha * -kLog2E),
        beta(p.swiglu_beta == 0.0f ? -0.0f : p.swiglu_beta),  // x + -0 is x, also where x is -0
        limit(p.swiglu_limit) {}
  DUALGEMM_HOST_DEVICE float gate(float g) const {
    const float x = Math::min(g, limit);
    return times_sigmoid<Math>(x, x * exponent);
  }
  DUALGEMM_HOST_DEVICE float up(float u) const { return Math::max(Math::min(u, limit), -limit) + beta; }
};

// This is GeneralSwiglu with another limit of the gate. The limit is applied to the result of the gate's
// function: min(g sigmoid(alpha g), limit).
template <class Math>
struct SwigluStep : GeneralSwiglu<Math> {
  using GeneralSwiglu<Math>::GeneralSwiglu;
  DUALGEMM_HOST_DEVICE float gate(float g) const {
    return Math::min(times_sigmoid<Math>(g, g * this->exponent), this->limit);
  }
};

// The activations without parameters leave `up` as it is.
struct NoParameters {
  DUALGEMM_HOST_DEVICE explicit NoParameters(const GeneralParams&) {}
  DUALGEMM_HOST_DEVICE float up(float u) const { return u; }
};

// The gate is g * (1 + tanh(y)) / 2 with y = sqrt(2 / pi) (g + 0.044715 g^3), which is g * sigmoid(2 y).
template <class Math>
struct GegluTanh : NoParameters {
  using NoParameters::NoParameters;
  DUALGEMM_HOST_DEVICE float gate(float g) const {
    constexpr float kLinear = -2 * 0.797884561f * kLog2E, kCubic = kLinear * 0.044715f;
    return times_sigmoid<Math>(g, g * (kLinear + kCubic * (g * g)));
  }
};

// The gate is g * Phi(g), where Phi(g) = (1 + erf(g / sqrt 2)) / 2 = erfc(-g / sqrt 2) / 2. For a = |g|
//
//   Phi(-a) = 2^(-a^2 log2(e) / 2) t P(t),  t = 1 / (1 + a / 4)
//
// with a polynomial P within 2^-26 of the quotient up to a = 14, beyond which Phi(-a) is below 2^-126. It was
// fitted at the Chebyshev nodes. The relative error of Phi is at most 16 u (1 + g^2).
template <class Math>
struct GegluErf : NoParameters {
  using NoParameters::NoParameters;
  DUALGEMM_HOST_DEVICE float gate(float g) const {
    const float a = g < 0.0f ? -g : g;
    const float t = Math::rcp(1.0f + 0.25f * a);
    float p = 0x1.f81704p-7f;
    for (const float c : {-0x1.cd9500p-5f, 0x1.2bf3c2p-5f, 0x1.8bd25ep-5f, -0x1.e213d6p-9f, 0x1.86a888p-4f,
                          0x1.1aabf2p-4f, 0x1.89d57ep-4f, 0x1.9735e2p-4f, 0x1.989556p-4f})
      p = p * t + c;
    const float tail = t * p * Math::ex2(g * g * (-0.5f * kLog2E));
    if (g < 0.0f) return tail == 0.0f ? 0.0f : g * tail;  // no 0 * -inf
    return g * (1.0f - tail);
  }
};

template <class Math>
struct Reglu : NoParameters {
  using NoParameters::NoParameters;
  DUALGEMM_HOST_DEVICE float gate(float g) const { return Math::max(g, 0.0f); }
};

template <class Math>
struct Glu : NoParameters {
  using NoParameters::NoParameters;
  DUALGEMM_HOST_DEVICE float gate(float g) const { return Math::rcp(1.0f + Math::ex2(g * -kLog2E)); }
};

// Returns bound * tanh(x / bound). Near 0 a polynomial in y = x / bound keeps the relative error small:
// tanh(y) is y + y^3 P(y^2), within 2^-27 below kNear. Elsewhere it is 1 - 2 / (1 + 2^(2 |y| log2 e)) with
// the sign of y. The relative error of tanh(y) is at most 12 times 2^-24.
template <class Math>
struct BoundedTanh {
  float bound, reciprocal;
  DUALGEMM_HOST_DEVICE float operator()(float x) const {
    constexpr float kNear = 0.55f;
    const float y = x * reciprocal, z = y * y;
    float p = -0.00661022775f;
    for (const float c : {0.0213093888f, -0.0539094284f, 0.133331135f, -0.333333313f}) p = p * z + c;
    const float near = x * (z * p) + x;  // without the bound, whose reciprocal may make y too small
    const float away = y < 0.0f ? -y : y;
    const float far = 1.0f - 2.0f * Math::rcp(1.0f + Math::ex2(away * (2 * kLog2E)));
    return away < kNear ? near : bound * (y < 0.0f ? -far : far);
  }
};

// The gate is situ_gate tanh(g / situ_gate) sigmoid(g), and up is situ_up tanh(u / situ_up).
template <class Math>
struct Situ {
  BoundedTanh<Math> of_gate, of_up;
  DUALGEMM_HOST_DEVICE explicit Situ(const GeneralParams& p)
      : of_gate{p.situ_gate, p.situ_gate_reciprocal}, of_up{p.situ_up, p.situ_up_reciprocal} {}
  DUALGEMM_HOST_DEVICE float gate(float g) const {
    return of_gate(g) * Math::rcp(1.0f + Math::ex2(g * -kLog2E));
  }
  DUALGEMM_HOST_DEVICE float up(float u) const { return of_up(u); }
};

// ---- with one product ----------------------------------------------------------------------------------

template <class Math>
struct Silu : NoParameters {
  using NoParameters::NoParameters;
  DUALGEMM_HOST_DEVICE float gate(float g) const { return silu<Math>(g); }
};

template <class Math>
struct Relu2 : Reglu<Math> {
  using Reglu<Math>::Reglu;
  DUALGEMM_HOST_DEVICE float gate(float g) const {
    const float x = Reglu<Math>::gate(g);
    return x * x;
  }
};

// Calls visitor(activation) with the activation of this kind, whose gate() is all that one product takes.
// There is no call for kNone.
template <class Math, class Visitor>
DUALGEMM_HOST_DEVICE void visit_linear_activation(LinearActivation kind, const GeneralParams& p,
                                                  const Visitor& visitor) {
  switch (kind) {
    case LinearActivation::kNone: return;
    case LinearActivation::kSilu: return visitor(Silu<Math>(p));
    case LinearActivation::kGeluTanh: return visitor(GegluTanh<Math>(p));
    case LinearActivation::kGeluErf: return visitor(GegluErf<Math>(p));
    case LinearActivation::kRelu: return visitor(Reglu<Math>(p));
    case LinearActivation::kRelu2: return visitor(Relu2<Math>(p));
  }
}

// ---- with two products ---------------------------------------------------------------------------------

// Calls visitor(activation) with the activation of this kind.
template <class Math, class Visitor>
DUALGEMM_HOST_DEVICE void visit_activation(ActivationKind kind, const GeneralParams& p,
                                           const Visitor& visitor) {
  switch (kind) {
    case ActivationKind::kSwiglu: return visitor(GeneralSwiglu<Math>(p));
    case ActivationKind::kGegluTanh: return visitor(GegluTanh<Math>(p));
    case ActivationKind::kGegluErf: return visitor(GegluErf<Math>(p));
    case ActivationKind::kReglu: return visitor(Reglu<Math>(p));
    case ActivationKind::kGlu: return visitor(Glu<Math>(p));
    case ActivationKind::kSwigluStep: return visitor(SwigluStep<Math>(p));
    case ActivationKind::kSitu: return visitor(Situ<Math>(p));
  }
}

}  // namespace dualgemm
