// verify.cpp -- what a kernel may lose:
//   - the tensor core cuts its running sum to 24 bits once per 64 elements: each time at most 2^-23 of the
//     sum of magnitudes; and alpha is rounded to float, as are the steps from there to g and u;
//   - x * sigmoid(a * x) is at most 1.1 times as steep as x, and a clamp does not add to that;
//   - float arithmetic in the epilogue: 2^-20 of the result, growing with the size of a * g, because exp
//     turns a relative error of it into that many times as much, where exp is not small beside 1;
//   - the conversion to BF16, 8 significant bits: 2^-8;
//   - what is below the least normal float, 2^-126, may be zero. (A row of zeros has no other error.)

#include "example/checkpoint/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "example/checkpoint/weights.h"

namespace checkpoint {
namespace {

struct Sum {
  double value = 0, error = 0;
};

// One row of A with one of a weight, with all factors and the bias.
Sum dot(const float* a, const float* b, int32_t k, double scale, const std::vector<float>& bias,
        int32_t column) {
  double value = 0, magnitude = 0;
  for (int32_t i = 0; i < k; ++i) {
    const double term = double{a[i]} * b[i];
    value += term;
    magnitude += std::fabs(term);
  }
  const double added = bias.empty() ? 0 : bias[column];
  const double steps = std::ceil(k / 64.0) + 2;
  return {scale * value + added, std::ldexp(scale * steps * magnitude + std::fabs(added), -23)};
}

// f(g) * h(u), and how far the launch may be from it before its conversion.
Sum gated(const Sum& g, const Sum& u, const Activation& activation) {
  const auto& [alpha, beta, limit] = activation;
  const double x = std::min<double>(g.value, limit);
  const double f = x / (1 + std::exp(-alpha * x));
  const double exponent = std::fabs(alpha * x) / (1 + std::exp(alpha * x));
  const double h = std::clamp<double>(u.value, -limit, limit) + beta;
  return {f * h, 1.1 * g.error * (std::fabs(h) + u.error) + std::fabs(f) * u.error +
                     std::ldexp(std::fabs(f * h) * (1 + exponent), -20)};
}

}  // namespace

void Verdict::add(const Problem& problem) {
  const std::vector<float> gate = decode(*problem.gate, problem.n, problem.k);
  const std::vector<float> up = problem.up ? decode(*problem.up, problem.n, problem.k) : std::vector<float>{};
  for (size_t row = 0; row < problem.row_scales.size(); ++row)
    for (int32_t column = 0; column < problem.n; ++column) {
      const auto product = [&](const Matrix& matrix, const std::vector<float>& b) {
        return dot(&problem.a[row * problem.k], &b[size_t(column) * problem.k], problem.k,
                   problem.row_scales[row] * matrix.scale, matrix.bias, column);
      };
      Sum exact = product(*problem.gate, gate);
      if (problem.up) exact = gated(exact, product(*problem.up, up), problem.activation);
      const double bound = exact.error + std::ldexp(std::fabs(exact.value) + exact.error, -8) + 0x1p-126;
      const float got = std::bit_cast<float>(uint32_t{problem.c[row * problem.n + column]} << 16);
      const double part = std::fabs(got - exact.value) / bound;
      ++outputs;
      if (!(part <= 1)) ++wrong;  // so counts what is not a number
      else largest = std::max(largest, part);
    }
}

}  // namespace checkpoint
