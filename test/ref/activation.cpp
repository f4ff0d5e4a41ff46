// activation.cpp -- see activation.h. u = 2^-24 is the relative error of one rounded operation.
//
// SwiGLU. silu(g) = g / (1 + 2^(-g log2 e)): the exponent's constant and product are rounded, an absolute
// error of 2u |g| in g; ex2.approx is good to 2 ulp (4u), rcp.approx to 1 ulp (2u) by the PTX ISA. An error
// of 2^x reaches 1 / (1 + 2^x) with the factor (1 - sigma). The addition and three more products, the one by
// h among them, cost u each:
//     rounding = (1 - sigma)(2u |g| + 4u) + 2u + 4u
// |silu'(x)| <= min(1.1, sigma(x)(1 + |x|)), and within dg of g
//     slope = min(1.1, sigma(g) e^dg (1 + |g| + dg))
#include "ref/activation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace ref {
namespace {

constexpr double u = 0x1p-24;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double silu(double g) { return g * sigmoid(g); }
double silu_slope(double g, double dg) {
  return std::min(1.1, sigmoid(g) * std::exp(std::min(dg, 700.0)) * (1 + std::fabs(g) + dg));
}
double silu_rounding(double g) { return (1 - sigmoid(g)) * (2 * u * std::fabs(g) + 4 * u) + 6 * u; }

constexpr Activation kActivations[] = {
    {0, silu, silu_slope, silu_rounding},
};

}  // namespace

const Activation& activation(int32_t number) {
  for (const Activation& activation : kActivations)
    if (activation.number == number) return activation;
  throw std::invalid_argument("there is no reference of activation " + std::to_string(number));
}

}  // namespace ref
