// activation.h -- the activations in double precision, C = f(g) * h, and how far their arithmetic in float
// may be from them. It is written from their formulas and knows neither the library nor the simulator.
#pragma once

#include <cstdint>

namespace ref {

struct Activation {
  int32_t number;  // of DUALGEMM_ACTIVATION_*
  double (*f)(double g);
  double (*slope)(double g, double dg);  // bound of |f'| within dg of g
  double (*rounding)(double g);  // relative error of f(g) h in float for exact g and h, products included
};

// Throws std::invalid_argument where there is none.
const Activation& activation(int32_t number);

}  // namespace ref
