// verify.h -- every output of a launch against a computation in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "example/checkpoint/checkpoint.h"

namespace checkpoint {

// f(g) * h(u) with f(g) = min(g, limit) * sigmoid(alpha * min(g, limit)) and h(u) = clamp(u, -limit, limit)
// + beta.
struct Activation {
  float alpha = 1, beta = 0, limit = INFINITY;
};

// The rows of one expert.
struct Problem {
  const Matrix *gate, *up;  // of one product, which has no activation, up is nullptr
  int32_t n, k;
  std::vector<float> a;            // [rows, k]: what the elements of A are worth with their factors
  std::vector<double> row_scales;  // [rows]: what an element of A is worth beyond that
  const uint16_t* c;               // [rows, n] BF16
  Activation activation;
};

struct Verdict {
  int64_t outputs = 0, wrong = 0;
  double largest = 0;  // error, as a part of what is allowed

  void add(const Problem& problem);
};

}  // namespace checkpoint
