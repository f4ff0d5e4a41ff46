// range_test.cpp -- gates and ups from zero to infinity, NaN among them, and parameters at the ends of what
// is legal: a launch and dualgemm_reference_host agree on what is NaN, infinite, zero or another number, and
// are near each other. Biases bring the values: the alphas are zero.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/device_problem.h"
#include "support/extras.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::min();

// The end of exp() in fp32, ln 2^-126, near which edges() adds gates.
constexpr double kEnd = -87.336544750553109;
constexpr float kUnit = std::numeric_limits<float>::denorm_min();

constexpr float kValues[] = {-kInfinity, -3e38f, -1e20f, -800,      -100,
                             -87.5f,     -87.2f, -60,    -13.3f,    -13.1f,
                             -3,         -0.5f,  0,      0.5f,      3,
                             60,         1e20f,  3e38f,  kInfinity, std::numeric_limits<float>::quiet_NaN()};
constexpr float kWeights[] = {1, -1e-30f, 1e30f, 0, kInfinity};

// Returns the gates on either side of the one at which a launch takes a sigmoid, or exp(-g^2 / 2), for zero:
// 16 times farther away than the rounding of an exponent moves it.
std::vector<float> edges(dualgemm_activation_t activation, float alpha) {
  double edge = kEnd;
  if (activation == DUALGEMM_ACTIVATION_GEGLU_ERF) edge = -std::sqrt(-2 * kEnd);
  if (activation == DUALGEMM_ACTIVATION_SWIGLU || activation == DUALGEMM_ACTIVATION_SWIGLU_STEP)
    edge = kEnd / alpha;
  if (activation == DUALGEMM_ACTIVATION_GEGLU_TANH) {  // the root of a cubic, by Newton's method
    const double slope = 2 * std::sqrt(2 / std::acos(-1.0));
    edge = -10;
    for (int i = 0; i < 20; ++i)
      edge -= (slope * (edge + 0.044715 * edge * edge * edge) - kEnd) /
              (slope * (1 + 3 * 0.044715 * edge * edge));
  }
  return {static_cast<float>(edge * (1 - 0x1p-20)), static_cast<float>(edge * (1 + 0x1p-20))};
}

// Every pair of a gate and an up is a column, and every weight a row.
Problem pairs(std::vector<float> gates) {
  gates.insert(gates.end(), std::begin(kValues), std::end(kValues));
  constexpr size_t kUps = std::size(kValues);
  const auto columns = static_cast<int32_t>(gates.size() * kUps);
  Problem p = make_problem(Data::kContest, std::size(kWeights), (columns + 3) / 4 * 4, 32, 1);
  p.alpha1 = p.alpha2 = 0;
  p.bias_dtype = DUALGEMM_DTYPE_FP32;
  for (size_t i = 0; i < static_cast<size_t>(p.n); ++i) {
    p.bias1.push_back(gates[i / kUps % gates.size()]);
    p.bias2.push_back(kValues[i % kUps]);
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

enum class Kind { kNan, kAbove, kBelow, kZero, kOther };
Kind kind_of(double x) {
  if (std::isnan(x)) return Kind::kNan;
  if (std::isinf(x)) return x > 0 ? Kind::kAbove : Kind::kBelow;
  return x == 0 ? Kind::kZero : Kind::kOther;
}

// What a launch may lose of y: of f(g) a few units of the smallest float, which h(u) and the weight multiply.
// Of a gate below -1000 nothing is left to lose.
bool near(double got, double expected, double g, double h, double weight) {
  const double lost = 4 * kUnit * (1 + (1 + std::min(std::fabs(g), 1000.0)) * h) * std::fabs(weight);
  return std::fabs(got - expected) <= 0x1p-15 * std::fabs(expected) + lost;
}

void check_pairs(dualgemm_activation_t activation, const ref::Parameters& parameters, uint32_t flags) {
  Problem p = pairs(edges(activation, parameters.alpha));
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
                         (kind_of(want) != Kind::kOther ||
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

TEST_CASE("a launch and the reference agree where gate or up is infinite, NaN, zero or underflows",
          "[range]") {
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
  const std::vector<float> ends = {kLeast, 1e-20f, 1e20f, kMax};
  size_t turn = 0;  // each pair is met in one of both arithmetics, and each parameter in both
  for (const uint32_t flags : {uint32_t{0}, uint32_t{DUALGEMM_FLAG_EXACT_ACT}})
    for (const float gate : ends)
      for (const float up : all_or_every(2, turn++ + flags / DUALGEMM_FLAG_EXACT_ACT, ends)) {
        ref::Parameters parameters;
        parameters.situ_gate = gate;
        parameters.situ_up = up;
        check_pairs(DUALGEMM_ACTIVATION_SITU, parameters, flags);
      }
}

TEST_CASE("a step below the smallest normal float has the places of a subnormal one in the reference, too",
          "[range]") {
  // Gates are products of sums with an alpha: 2^-149 has no half, and the ups and the weight make it large.
  constexpr float kUps[] = {0.7f, -0.3f, 1.3f, 1e30f};
  Problem p = make_problem(Data::kContest, 4, 64, 32, 1);
  p.alpha1 = 0.37f * 0x1p-147f;
  p.alpha2 = 0;
  p.bias_dtype = DUALGEMM_DTYPE_FP32;
  p.bias1.assign(64, 0);
  for (size_t i = 0; i < 64; ++i) p.bias2.push_back(kUps[i % std::size(kUps)]);
  p.c_row_scale = {1, 1e30f, kMax, kInfinity};
  LaunchOptions options;
  options.activation = DUALGEMM_ACTIVATION_REGLU;
  options.dtype = DUALGEMM_DTYPE_FP32;
  const DeviceProblem on(p, options);
  on.launch(nullptr);
  const Output out = on.download();
  const std::vector<float> expected = reference_of(p, on.args());
  for (int32_t row = 0; row < p.m; ++row)
    for (int32_t column = 0; column < p.n; ++column) {
      const double got = out.value(row, column), want = expected[static_cast<size_t>(row * p.n + column)];
      CAPTURE(row, column, got, want);
      CHECK(kind_of(got) == kind_of(want));
      if (kind_of(want) == Kind::kOther) CHECK(std::fabs(got - want) <= 0x1p-22 * std::fabs(want) + kUnit);
    }
}
