// ref_activation_test.cpp -- the activations of the reference against values worked out elsewhere, and their
// bounds against what they bound: neighbours of gate and up, and an arithmetic as far off as it may be.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ref/dual_gemm.h"
#include "support/approximate_math.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace ref_activation_test {

using namespace dualgemm_test;

const double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int32_t kActivations = 7;

TEST_CASE("every activation has the values of its formula", "[ref]") {
  struct Case {
    int32_t activation;
    ref::Parameters parameters;
    double g, f, up, h;
  };
  const ref::Parameters plain, oss = {1.702, 1, 7}, deepseek = {1, 0, 10};
  const std::vector<Case> cases = {
      {0, plain, 1, 0.7310585786300049, -3, -3},
      {0, oss, 100, 6.99995312830332, 100, 8},     // sigma(11.914)
      {0, oss, -1, -0.154204234067179, -100, -6},  // sigma(-1.702)
      {0, deepseek, -20, -4.122307236380e-8, 4, 4},
      {1, plain, 1, 0.8411919906, -3, -3},
      {1, plain, -1, -0.1588080094, 2, 2},
      {2, plain, 1, 0.8413447461, -3, -3},
      {2, plain, -1, -0.1586552539, 2, 2},
      {2, plain, -10, -10 * 7.6198530242e-24, 2, 2},
      {3, plain, 1.5, 1.5, -3, -3},
      {3, plain, -1.5, 0, 2, 2},
      {4, plain, 0, 0.5, -3, -3},
      {4, plain, -1, 0.2689414213699951, 2, 2},
      {5, {1, 0, 7}, 100, 7, 100, 7},  // min(silu(g), 7), not silu(min(g, 7))
      {5, {1, 0, 7}, 7, 6.99362264163920, -100, -7},
      {6, plain, 2, 1.62812576719225, 50, 24.1006895019},          // 4 tanh(1/2) sigma(2), 25 tanh(2)
      {6, {1, 0, 1, 1, 2}, -1, -0.2048242148, -2, -1.5231883119},  // tanh(-1) sigma(-1), 2 tanh(-1)
  };
  for (const Case& c : cases) {
    INFO("activation " << c.activation << ", g " << c.g << ", u " << c.up);
    const ref::Activation activation = ref::activation(c.activation, c.parameters);
    CHECK(std::fabs(activation.f(c.g) - c.f) <= 2e-9 * std::fabs(c.f));
    CHECK(std::fabs(activation.h(c.up) - c.h) <= 1e-10 * std::fabs(c.h));
    CHECK(std::isnan(activation.f(kNan)));
    CHECK(std::isnan(activation.h(kNan)));
    CHECK(std::isfinite(activation.rounding(-1e30)));
    CHECK(std::isfinite(activation.rounding(1e30)));
  }
  CHECK_THROWS(ref::activation(kActivations));
}

const ref::Parameters kParameters[] = {{}, {1.702, 1, 7}, {-0.75, -2, 1.5}, {1, 0, 3, 0.5, 1.5}};

// Returns gates and ups from tiny to thousands, of both signs.
static double spread(Rng& rng) {
  const double magnitude = std::exp2(14 * rng.unit() - 5);
  return rng.below(2) != 0 ? magnitude : -magnitude;
}

TEST_CASE("the bound covers every gate and up within its errors, and says something", "[ref]") {
  for (int32_t number = 0; number < kActivations; ++number)
    for (const ref::Parameters& parameters : kParameters) {
      INFO("activation " << number << ", alpha " << parameters.alpha);
      const ref::Activation activation = ref::activation(number, parameters);
      Rng rng(50);
      double worst = 0;
      for (int i = 0; i < 3000; ++i) {
        const double g = spread(rng), up = spread(rng), dg = std::exp2(-12 * rng.unit()),
                     du = std::exp2(-12 * rng.unit());
        const double bound = ref::error_bound(activation, g, up, dg, du);
        const double exact = activation.f(g) * activation.h(up);
        for (const double x : {-1.0, -0.5, 0.5, 1.0})
          for (const double y : {-1.0, 0.0, 1.0}) {
            const double off = activation.f(g + x * dg) * activation.h(up + y * du);
            REQUIRE(std::fabs(off - exact) <= bound);
            worst = std::max(worst, std::fabs(off - exact) / bound);
          }
      }
      CHECK(worst > 0.5);
    }
}

// These are the activations in float, made of ex2 and rcp that are off by this much, and of a tanh and a
// Gaussian integral that are off by what they may be.
template <int kEx2, int kRcp>
struct Floats {
  using M = Math<kEx2, kRcp>;
  static constexpr float kSign = kEx2 > 0 ? 1 : -1;
  static float sigmoid(float y) { return M::rcp(1.0f + M::ex2(y * -1.44269504088896f)); }
  static float tanh(float y) { return static_cast<float>(std::tanh(double{y}) * (1 + kSign * 11 * kU)); }
  static float phi(float g) {
    const double p = std::erfc(-g / std::sqrt(2.0)) / 2, error = 15 * kU * (1 + double{g} * g);
    return flush(static_cast<float>(g > 0 ? 1 - (1 - p) * (1 + kSign * error) : p * (1 + kSign * error)));
  }
  static float f(int32_t number, float g, const ref::Parameters& p) {
    const float alpha = static_cast<float>(p.alpha), limit = static_cast<float>(p.limit),
                gate = static_cast<float>(p.situ_gate), x = std::min(g, limit);
    switch (number) {
      case 0: return x * sigmoid(alpha * x);
      case 1: return g * sigmoid(g * (1.5957691216f + 0.0713548162726f * (g * g)));
      case 2: return g * phi(g);
      case 3: return std::max(g, 0.0f);
      case 4: return sigmoid(g);
      case 5: return std::min(g * sigmoid(alpha * g), limit);
      default: return gate * tanh(g * (1 / gate)) * sigmoid(g);
    }
  }
  static float h(int32_t number, float up, const ref::Parameters& p) {
    const float limit = static_cast<float>(p.limit), situ_up = static_cast<float>(p.situ_up);
    if (number == 6) return situ_up * tanh(up * (1 / situ_up));
    if (number != 0 && number != 5) return up;
    return std::clamp(up, -limit, limit) + static_cast<float>(p.beta);
  }
};

template <class Float>
static double worst_rounding(int32_t number, const ref::Parameters& parameters, bool check) {
  const ref::Activation activation = ref::activation(number, parameters);
  Rng rng(51);
  double worst = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto g = static_cast<float>(spread(rng)), up = static_cast<float>(spread(rng));
    const double got = Float::f(number, g, parameters) * Float::h(number, up, parameters);
    const double exact = activation.f(g) * activation.h(up);
    const double bound =
        activation.rounding(g) * std::fabs(exact) + kSmallest * (1 + std::fabs(g * activation.h(up)));
    if (check && !(std::fabs(got - exact) <= bound * (1 + 1.0 / 64))) {
      INFO("g " << g << ", u " << up << ": " << got << ", exactly " << exact << ", bound " << bound);
      CHECK(false);
      return kNan;
    }
    worst = std::max(worst, std::fabs(got - exact) / bound);
  }
  return worst;
}

TEST_CASE("the stated roundings cover an arithmetic whose functions are as far off as they may be", "[ref]") {
  for (int32_t number = 0; number < kActivations; ++number)
    for (ref::Parameters parameters : kParameters) {
      INFO("activation " << number << ", alpha " << parameters.alpha);
      parameters.alpha = static_cast<float>(parameters.alpha);
      const double worst = std::max({worst_rounding<Floats<2, 1>>(number, parameters, true),
                                     worst_rounding<Floats<-2, -1>>(number, parameters, true),
                                     worst_rounding<Floats<2, -1>>(number, parameters, true)});
      CHECK(worst > 0.25);
      // Functions that are ten times as far off are noticed.
      if (number != 2 && number != 3) CHECK(worst_rounding<Floats<60, 30>>(number, parameters, false) > 1);
    }
  for (int32_t number = 0; number < kActivations; ++number)
    CHECK(ref::activation(number, {}, ref::Arithmetic::kExact).rounding(-20) == 0x1p-23);
}

}  // namespace ref_activation_test
