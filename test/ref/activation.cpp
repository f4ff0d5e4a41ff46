// activation.cpp -- see activation.h. u = 2^-24 is the relative error of one rounded operation.
//
// The sigmoid s(y) = 1 / (1 + 2^(-y log2 e)). A relative error e of y, and those of the exponent's constant
// and product, are an absolute error of (e + 2u) |y| in y; ex2.approx is good to 2 ulp (4u), rcp.approx to
// 1 ulp (2u) by the PTX ISA. An error of 2^y reaches 1 / (1 + 2^y) with the factor (1 - s), the addition
// costs u:
//     S(e) = (1 - s)((e + 2u) |y| + 4u) + 3u
// With S goes what the products add, the one by h among them, u each. A relative error is never stated above
// 1: where it would be, s is below every float, and the floor of dual_gemm.cpp covers it.
//
// SWIGLU, f(g) = x s(alpha x) with x = min(g, limit); h(u) = clamp(u, -limit, limit) + beta. Two products,
// one more to be safe. With parameters, alpha makes the exponent's constant a product, and beta is added:
//     rounding = S(0) + 3u, and with parameters S(u) + 4u
// With y = alpha x, f'(x) = s(y) (1 + y (1 - s(y))), so |f'| <= min(1.1, s(y) (1 + |y|)), and within dg of g
//     slope = min(1.1, s(y) e^dy (1 + |y| + dy)), dy = |alpha| dg
// The clamps only bring neighbours nearer to each other.
//
// SWIGLU_STEP, f(g) = min(g s(alpha g), limit), the same without the clamp of g. Where the product is just
// above the limit and rounded to below it, it is off by less than its rounding.
//
// GEGLU_TANH, f(g) = g s(z) with z = g (c0 + c1 g^2). Both terms have one sign, so the roundings of c0, c1,
// g^2, their product, the sum and the last product are at most 5u of z, for which 6u stand:
//     rounding = S(6u) + 3u
// f' = s(z) (1 + g z' (1 - s(z))) with z' = c0 + 3 c1 g^2 is at most 1.1290 in magnitude, and at most
// s(z) (1 + |g| z'), which grows with g below -1.
//
// GEGLU_ERF, f(g) = g P(g), P = (1 + erf(g / sqrt 2)) / 2, of which the float has a relative error of at most
// 16u (1 + g^2). Above 0, P(g) = 1 - P(-g) is at least a half and P(-g)(1 + g^2) at most a half, so 16u and
// the subtraction are left:
//     rounding = 16u (1 + g^2) + 2u, above 0 no more than 20u
// f' = P + g p with the density p is at most 1.1290 in magnitude. Below 0 its terms have opposite signs and
// P < p / |g|, so below -1, |f'| <= |g| p, which grows with g.
//
// REGLU, f(g) = max(g, 0), is exact, and only the product by h rounds: rounding = u.
//
// GLU, f(g) = s(g): rounding = S(0) + 2u, one product to be safe. s' is at most 1/4 and at most e^-|g|.
//
// RELU2, f(x) = max(x, 0)^2: one product, rounding = u. f' = 2 max(x, 0) grows with x.
//
// SITU, f(g) = G tanh(g / G) s(g), h(u) = U tanh(u / U). The argument of tanh has two roundings, and since
// |x tanh'(x)| <= |tanh x| that many reach the result; tanh itself has 12u. Products by G, s, U and h:
//     rounding = 14u + S(0) + 14u + 4u
// f' = tanh'(g / G) s + G tanh(g / G) s (1 - s) is at most that of SWIGLU with alpha = 1, because
// tanh' <= 1 and |G tanh(g / G)| <= |g|. h' = 1 - tanh^2 falls with |u|.
#include "ref/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>

namespace ref {

constexpr double u = 0x1p-24;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// This is S of the comment, for a relative error of y.
static double sigmoid_rounding(double y, double error) {
  return std::min(1.0, (1 - sigmoid(y)) * ((error + 2 * u) * std::fabs(y) + 4 * u) + 3 * u);
}
// NaN stays what it is.
static double at_most(double x, double limit) { return x > limit ? limit : x; }
// Multiplies with 0 for good: what is infinite does not make it NaN.
static double product(double x, double factor) { return factor == 0 ? 0 : x * factor; }

static double linear(double up, const Parameters&) { return up; }
static double linear_slope(double, double, const Parameters&) { return 1; }

// This is the slope of x s(alpha x) within dx of x.
static double swish_slope(double x, double dx, double alpha) {
  const double y = alpha * x, dy = std::fabs(alpha) * dx;
  return std::min(1.1, sigmoid(y) * std::exp(std::min(dy, 700.0)) * (1 + std::fabs(y) + dy));
}

static double swiglu_f(double g, const Parameters& p) {
  const double x = at_most(g, p.limit);
  return product(x, sigmoid(p.alpha * x));
}
static double swiglu_slope(double g, double dg, const Parameters& p) {
  return swish_slope(at_most(g, p.limit), dg, p.alpha);
}
static double swiglu_rounding(double g, const Parameters& p) {
  const double y = p.alpha * at_most(g, p.limit);
  const bool plain = p.alpha == 1 && p.beta == 0;
  return plain ? sigmoid_rounding(y, 0) + 3 * u : sigmoid_rounding(y, u) + 4 * u;
}
static double swiglu_h(double up, const Parameters& p) {
  return -at_most(-at_most(up, p.limit), p.limit) + p.beta;
}

static double step_f(double g, const Parameters& p) {
  return at_most(product(g, sigmoid(p.alpha * g)), p.limit);
}
static double step_slope(double g, double dg, const Parameters& p) { return swish_slope(g, dg, p.alpha); }
static double step_rounding(double g, const Parameters& p) {
  return sigmoid_rounding(p.alpha * g, u) + 4 * u;
}

constexpr double kSteepestGelu = 1.13;
const double kC0 = 2 * std::sqrt(2 / std::numbers::pi), kC1 = kC0 * 0.044715;

static double tanh_argument(double g) { return g * (kC0 + kC1 * g * g); }
static double geglu_tanh_f(double g, const Parameters&) { return product(g, sigmoid(tanh_argument(g))); }
static double geglu_tanh_slope(double g, double dg, const Parameters&) {
  const double x = g + dg;
  if (!(x < -1)) return kSteepestGelu;
  return product(1 + std::fabs(x) * (kC0 + 3 * kC1 * x * x), sigmoid(tanh_argument(x)));
}
static double geglu_tanh_rounding(double g, const Parameters&) {
  return sigmoid_rounding(tanh_argument(g), 6 * u) + 3 * u;
}

static double geglu_erf_f(double g, const Parameters&) {
  return product(g, std::erfc(-g / std::numbers::sqrt2) / 2);
}
static double geglu_erf_slope(double g, double dg, const Parameters&) {
  const double x = g + dg;
  if (!(x < -1)) return kSteepestGelu;
  return product(-x, std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi));
}
static double geglu_erf_rounding(double g, const Parameters&) {
  const double rounding = std::min(1.0, 16 * u * (1 + g * g) + 2 * u);
  return g > 0 ? std::min(rounding, 20 * u) : rounding;
}

static double reglu_f(double g, const Parameters&) { return g < 0 ? 0 : g; }
static double reglu_slope(double g, double dg, const Parameters&) { return g + dg < 0 ? 0 : 1; }
static double reglu_rounding(double, const Parameters&) { return u; }

static double glu_f(double g, const Parameters&) { return sigmoid(g); }
static double glu_slope(double g, double dg, const Parameters&) {
  return std::min(0.25, std::exp(std::min(dg - std::fabs(g), 0.0)));
}
static double glu_rounding(double g, const Parameters&) { return sigmoid_rounding(g, 0) + 2 * u; }

static double situ_f(double g, const Parameters& p) {
  return p.situ_gate * std::tanh(g / p.situ_gate) * sigmoid(g);
}
static double situ_slope(double g, double dg, const Parameters&) { return swish_slope(g, dg, 1); }
static double situ_rounding(double g, const Parameters&) { return sigmoid_rounding(g, 0) + 32 * u; }
static double situ_h(double up, const Parameters& p) { return p.situ_up * std::tanh(up / p.situ_up); }
static double situ_h_slope(double up, double du, const Parameters& p) {
  const double t = std::tanh(std::max(0.0, std::fabs(up) - du) / p.situ_up);
  return 1 - t * t;
}

constexpr Formula kFormulas[] = {
    {0, swiglu_f, swiglu_slope, swiglu_rounding, swiglu_h, linear_slope},
    {1, geglu_tanh_f, geglu_tanh_slope, geglu_tanh_rounding, linear, linear_slope},
    {2, geglu_erf_f, geglu_erf_slope, geglu_erf_rounding, linear, linear_slope},
    {3, reglu_f, reglu_slope, reglu_rounding, linear, linear_slope},
    {4, glu_f, glu_slope, glu_rounding, linear, linear_slope},
    {5, step_f, step_slope, step_rounding, swiglu_h, linear_slope},
    {6, situ_f, situ_slope, situ_rounding, situ_h, situ_h_slope},
};

static double none_f(double x, const Parameters&) { return x; }
static double none_slope(double, double, const Parameters&) { return 1; }
static double none_rounding(double, const Parameters&) { return 0; }

static double relu2_f(double x, const Parameters&) { return x < 0 ? 0 : x * x; }
static double relu2_slope(double x, double dx, const Parameters&) { return x + dx < 0 ? 0 : 2 * (x + dx); }

static const Formula* formula(std::span<const Formula> all, int32_t number) {
  for (const Formula& one : all)
    if (one.number == number) return &one;
  throw std::invalid_argument("there is no reference of activation " + std::to_string(number));
}

// With the default parameters f of SWIGLU is that of SILU.
constexpr Formula kLinearFormulas[] = {
    {0, none_f, none_slope, none_rounding, linear, linear_slope},
    {1, swiglu_f, swiglu_slope, swiglu_rounding, linear, linear_slope},
    {2, geglu_tanh_f, geglu_tanh_slope, geglu_tanh_rounding, linear, linear_slope},
    {3, geglu_erf_f, geglu_erf_slope, geglu_erf_rounding, linear, linear_slope},
    {4, reglu_f, reglu_slope, reglu_rounding, linear, linear_slope},
    {5, relu2_f, relu2_slope, reglu_rounding, linear, linear_slope},
};

Activation activation(int32_t number, const Parameters& parameters, Arithmetic arithmetic) {
  return {formula(kFormulas, number), parameters, arithmetic};
}

Activation linear_activation(int32_t number, Arithmetic arithmetic) {
  return {formula(kLinearFormulas, number), {}, arithmetic};
}

}  // namespace ref
