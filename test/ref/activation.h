// activation.h -- the activations in double precision, C = f(g) * h(u), and how far their arithmetic in float
// may be from them. It is written from their formulas and knows neither the library nor the simulator.
#pragma once

#include <cstdint>
#include <limits>

namespace ref {

struct Parameters {
  double alpha = 1, beta = 0, limit = std::numeric_limits<double>::infinity();  // of the two SwiGLU
  double situ_gate = 4, situ_up = 25;
};

// The activation is computed in float, or so that its result is within 2 ulp of float.
enum class Arithmetic { kFloat, kExact };

struct Formula {
  int32_t number;  // of DUALGEMM_ACTIVATION_*, or of DUALGEMM_LINEAR_ACTIVATION_*
  double (*f)(double g, const Parameters&);
  double (*slope)(double g, double dg, const Parameters&);
  double (*rounding)(double g, const Parameters&);
  double (*h)(double u, const Parameters&);
  double (*h_slope)(double u, double du, const Parameters&);
};

class Activation {
 public:
  double f(double g) const { return formula_->f(g, parameters_); }
  // Returns a bound of |f'| within dg of g.
  double slope(double g, double dg) const { return formula_->slope(g, dg, parameters_); }
  // Returns the relative error of f(g) h(u) for exact g and u, products included. Two ulp of fp32 are at
  // least 2^-23 of a number.
  double rounding(double g) const {
    return arithmetic_ == Arithmetic::kExact ? 0x1p-23 : formula_->rounding(g, parameters_);
  }
  double h(double u) const { return formula_->h(u, parameters_); }
  // Returns a bound of |h'| within du of u.
  double h_slope(double u, double du) const { return formula_->h_slope(u, du, parameters_); }

 private:
  friend Activation activation(int32_t, const Parameters&, Arithmetic);
  friend Activation linear_activation(int32_t, Arithmetic);
  Activation(const Formula* formula, const Parameters& parameters, Arithmetic arithmetic)
      : formula_(formula), parameters_(parameters), arithmetic_(arithmetic) {}
  const Formula* formula_;
  Parameters parameters_;
  Arithmetic arithmetic_;
};

// Throws std::invalid_argument where there is none of this number.
Activation activation(int32_t number, const Parameters& parameters = {},
                      Arithmetic arithmetic = Arithmetic::kFloat);

// Does the same for one of DUALGEMM_LINEAR_ACTIVATION_*, of which f alone counts: a launch computes one
// product.
Activation linear_activation(int32_t number, Arithmetic arithmetic = Arithmetic::kFloat);

}  // namespace ref
