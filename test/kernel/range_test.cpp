// range_test.cpp -- gates and ups from zero to infinity, NaN among them, and parameters at the ends of what
// is legal: a launch and dualgemm_reference_host agree on what is NaN, infinite or finite, and are near each
// other. Biases bring the values: the alphas are zero.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/device_problem.h"
#include "support/extras.h"

using namespace dualgemm_test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::min();

// The least sigmoid that a launch keeps is that of -87.34, the least exp(-g^2 / 2) that of -13.22.
constexpr float kValues[] = {-kInfinity, -3e38f, -1e20f, -800,      -100,
                             -87.5f,     -87.2f, -60,    -13.3f,    -13.1f,
                             -3,         -0.5f,  0,      0.5f,      3,
                             60,         1e20f,  3e38f,  kInfinity, std::numeric_limits<float>::quiet_NaN()};
constexpr float kWeights[] = {1, -1e-30f, 1e30f, 0, kInfinity};

// Every pair of values is a column, and every weight a row.
Problem pairs() {
  constexpr int32_t kCount = static_cast<int32_t>(std::size(kValues));
  Problem p = make_problem(Data::kContest, std::size(kWeights), (kCount * kCount + 3) / 4 * 4, 32, 1);
  p.alpha1 = p.alpha2 = 0;
  p.bias_dtype = DUALGEMM_DTYPE_FP32;
  for (int32_t i = 0; i < p.n; ++i) {
    p.bias1.push_back(kValues[i / kCount % kCount]);
    p.bias2.push_back(kValues[i % kCount]);
  }
  p.c_row_scale.assign(std::begin(kWeights), std::end(kWeights));
  return p;
}

// Returns C by the library's reference, which takes what the launch takes.
std::vector<float> reference_of(const Problem& p, dualgemm_args_t args) {
  std::vector<float> c(static_cast<size_t>(p.m) * p.n);
  args.a = p.a.data();
  args.b1 = p.b1.data();
  args.b2 = p.b2.data();
  args.sfa = p.sfa.data();
  args.sfb1 = p.sfb1.data();
  args.sfb2 = p.sfb2.data();
  args.bias1 = p.bias1.data();
  args.bias2 = p.bias2.data();
  args.c_row_scale = p.c_row_scale.data();
  args.c = c.data();
  args.ldc = 0;
  args.workspace = nullptr;
  args.workspace_size = 0;
  check_status(dualgemm_reference_host(&args, nullptr));
  return c;
}

enum class Kind { kNan, kAbove, kBelow, kFinite };
Kind kind_of(double x) {
  if (std::isnan(x)) return Kind::kNan;
  if (std::isinf(x)) return x > 0 ? Kind::kAbove : Kind::kBelow;
  return Kind::kFinite;
}

// What a launch may lose of y: of f(g) an absolute 2^-126 (1 + |g|), which h(u) and the weight multiply. Of a
// gate below -1000 nothing is left to lose.
bool near(double got, double expected, double g, double h, double weight) {
  const double lost = 0x1p-126 * (1 + (1 + std::min(std::fabs(g), 1000.0)) * h) * std::fabs(weight);
  return std::fabs(got - expected) <= 0x1p-16 * std::fabs(expected) + lost;
}

void check_pairs(dualgemm_activation_t activation, const ref::Parameters& parameters, uint32_t flags) {
  Problem p = pairs();
  p.parameters = parameters;
  LaunchOptions options;
  options.activation = activation;
  options.dtype = DUALGEMM_DTYPE_FP32;
  options.flags = flags;
  const DeviceProblem on(p, options);
  on.launch(nullptr);
  const Output out = on.download();
  const std::vector<float> expected = reference_of(p, on.args());
  int wrong = 0;
  std::string first;
  for (int32_t row = 0; row < p.m; ++row)
    for (int32_t column = 0; column < p.n; ++column) {
      const auto i = static_cast<size_t>(column);
      const double got = out.value(row, column), want = expected[static_cast<size_t>(row) * p.n + i];
      const double h =
          activation == DUALGEMM_ACTIVATION_SITU
              ? std::min<double>(std::fabs(p.bias2[i]), parameters.situ_up)
              : std::min<double>(std::fabs(p.bias2[i]), parameters.limit) + std::fabs(parameters.beta);
      const bool right = kind_of(got) == kind_of(want) &&
                         (kind_of(want) != Kind::kFinite ||
                          near(got, want, p.bias1[i], h, p.c_row_scale[static_cast<size_t>(row)]));
      if (!right && wrong++ == 0)
        first = "g " + std::to_string(p.bias1[i]) + ", u " + std::to_string(p.bias2[i]) + ", weight " +
                std::to_string(p.c_row_scale[static_cast<size_t>(row)]) + ": " + std::to_string(got) +
                ", by the reference " + std::to_string(want);
    }
  INFO("activation " << activation << ", flags " << flags << ", parameters " << parameters.alpha << ", "
                     << parameters.beta << ", " << parameters.limit << ", " << parameters.situ_gate << ", "
                     << parameters.situ_up << ": " << first);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a launch and the reference agree where gate or up is infinite, NaN or underflows", "[range]") {
  for (const dualgemm_activation_t activation : kActivations)
    for (const uint32_t flags : {uint32_t{0}, uint32_t{DUALGEMM_FLAG_EXACT_ACT}}) {
      check_pairs(activation, {}, flags);
      if (activation == DUALGEMM_ACTIVATION_SWIGLU || activation == DUALGEMM_ACTIVATION_SWIGLU_STEP)
        for (const ref::Parameters& parameters :
             {ref::Parameters{1.702f, 1, 7}, ref::Parameters{-0.75, -2, 1.5}})
          check_pairs(activation, parameters, flags);
    }
}

TEST_CASE("a launch and the reference agree about SITU with the least and the largest parameters",
          "[range]") {
  for (const uint32_t flags : {uint32_t{0}, uint32_t{DUALGEMM_FLAG_EXACT_ACT}})
    for (const float gate : {kLeast, 1e-20f, 1e20f, kMax})
      for (const float up : {kLeast, 1e-20f, 1e20f, kMax}) {
        ref::Parameters parameters;
        parameters.situ_gate = gate;
        parameters.situ_up = up;
        check_pairs(DUALGEMM_ACTIVATION_SITU, parameters, flags);
      }
}
