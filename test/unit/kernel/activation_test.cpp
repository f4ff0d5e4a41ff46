// activation_test.cpp -- the activations of the kernel against double, with special functions that are off by
// as much as the PTX ISA allows.
#include <algorithm>
#include <cmath>

#include "kernel/epilogue/activation.cuh"
#include "kernel/epilogue/exact.cuh"
#include "support/approximate_math.h"
#include "support/catch.hpp"

namespace activation_test {

using namespace dualgemm_test;
using namespace dualgemm;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class M>
static void check_range() {
  for (double g = -120; g <= 120; g += 1.0 / 64) {
    const float gate = static_cast<float>(g);
    const double got = silu<M>(gate);
    INFO("gate " << gate << " got " << got << " expected " << silu_double(gate));
    REQUIRE(std::fabs(got - silu_double(gate)) <= silu_bound(gate));  // false for NaN
  }
}

// Computes f(gate) * h(up) as the epilogue multiplies them.
template <class M>
static TwoFloats swiglu(TwoFloats gate, TwoFloats up) {
  const dualgemm::Swiglu<M> activation{dualgemm::Params{}};
  const TwoFloats f = activation.gate(gate), h = activation.up(up);
  return {f.first * h.first, f.second * h.second};
}

TEST_CASE("silu is within its bound for every admissible error of ex2 and rcp", "[swiglu]") {
  check_range<Math<0, 0>>();
  check_range<Math<2, 1>>();
  check_range<Math<2, -1>>();
  check_range<Math<-2, 1>>();
  check_range<Math<-2, -1>>();
}

TEST_CASE("silu: the bound is tight enough to notice functions that are 64 ulp off", "[swiglu]") {
  const float gate = -3.0f;
  const double got = silu<Math<64, -64>>(gate);
  CHECK(std::fabs(got - silu_double(gate)) > silu_bound(gate));
}

TEST_CASE("silu at the ends: large gates, infinities, zero, NaN", "[swiglu]") {
  using M = Math<0, 0>;
  const float largest = std::numeric_limits<float>::max();
  CHECK(silu<M>(kInf) == kInf);
  CHECK(silu<M>(largest) == largest);
  CHECK(silu<M>(1e4f) == 1e4f);
  CHECK(silu<M>(-1e4f) == 0.0f);
  CHECK(silu<M>(-largest) == 0.0f);
  CHECK(silu<M>(-kInf) == 0.0f);
  CHECK(silu<M>(0.0f) == 0.0f);
  CHECK(std::isnan(silu<M>(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("swiglu: gate and up are not interchangeable, and NaN in either reaches the result", "[swiglu]") {
  using M = Math<0, 0>;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TwoFloats result = swiglu<M>({-2.0f, 3.0f}, {3.0f, -2.0f});
  CHECK(result.first == silu<M>(-2.0f) * 3.0f);
  CHECK(result.second == silu<M>(3.0f) * -2.0f);
  CHECK(result.first != result.second);
  const TwoFloats not_numbers = swiglu<M>({nan, 1.0f}, {1.0f, nan});
  CHECK(std::isnan(not_numbers.first));
  CHECK(std::isnan(not_numbers.second));
  CHECK(std::isnan(swiglu<M>({nan, 1.0f}, {0.0f, 1.0f}).first));
}

// The functions of the general activations: those of ex2 and rcp, off by so much, and the exact others.
template <int kEx2Ulps, int kRcpUlps>
struct GeneralMath : Math<kEx2Ulps, kRcpUlps> {
  static float min(float x, float y) { return std::isnan(x) || std::isnan(y) ? kNan : std::min(x, y); }
  static float max(float x, float y) { return std::isnan(x) || std::isnan(y) ? kNan : std::max(x, y); }
};

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// An activation in double, and how far f and h may be off, relative to their values.
struct Stated {
  ActivationKind kind;
  double (*f)(double);
  double (*f_error)(double);
  double (*h)(double);
  double (*h_error)(double);
};

constexpr float kAlpha = 1.702f, kBeta = 1, kLimit = 7, kSituGate = 4, kSituUp = 25;

static GeneralParams parameters(ActivationKind kind) {
  GeneralParams p{};
  p.activation = static_cast<int32_t>(kind);
  p.swiglu_alpha = kAlpha;
  p.swiglu_beta = kBeta;
  p.swiglu_limit = kLimit;
  p.situ_gate = kSituGate;
  p.situ_up = kSituUp;
  p.situ_gate_reciprocal = 1 / kSituGate;
  p.situ_up_reciprocal = 1 / kSituUp;
  return p;
}

// sigmoid(z) of a z that is off by `of_z` ulp in front of ex2, and one product.
static double of_sigmoid(double z, double of_z) {
  return (1 - sigmoid(z)) * (of_z * kU * std::fabs(z) + 4 * kU) + 4 * kU;
}
static double nothing(double) { return 0; }
static double same(double x) { return x; }
static double clamped(double u) { return std::clamp<double>(u, -kLimit, kLimit) + double{kBeta}; }
static double one_rounding(double) { return kU; }
static double gelu_z(double g) { return 2 * std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g); }

const Stated kStated[] = {
    {ActivationKind::kSwiglu,
     [](double g) { return std::min<double>(g, kLimit) * sigmoid(kAlpha * std::min<double>(g, kLimit)); },
     [](double g) { return of_sigmoid(kAlpha * std::min<double>(g, kLimit), 3); }, clamped, one_rounding},
    {ActivationKind::kSwigluStep, [](double g) { return std::min<double>(g * sigmoid(kAlpha * g), kLimit); },
     [](double g) { return of_sigmoid(kAlpha * g, 3); }, clamped, one_rounding},
    {ActivationKind::kGegluTanh, [](double g) { return g * sigmoid(gelu_z(g)); },
     [](double g) { return of_sigmoid(gelu_z(g), 7); }, same, nothing},
    {ActivationKind::kGegluErf, [](double g) { return g * std::erfc(-g / std::sqrt(2.0)) / 2; },
     [](double g) { return 16 * kU * (1 + g * g) + kU; }, same, nothing},
    {ActivationKind::kReglu, [](double g) { return std::max(g, 0.0); }, nothing, same, nothing},
    {ActivationKind::kGlu, sigmoid, [](double g) { return of_sigmoid(g, 2); }, same, nothing},
    {ActivationKind::kSitu, [](double g) { return kSituGate * std::tanh(g / kSituGate) * sigmoid(g); },
     [](double g) { return of_sigmoid(g, 2) + 14 * kU; },
     [](double u) { return kSituUp * std::tanh(u / kSituUp); }, [](double) { return 14 * kU; }},
};

template <class M>
static void check_general() {
  for (const Stated& stated : kStated)
    dualgemm::visit_activation<M>(stated.kind, parameters(stated.kind), [&](const auto& activation) {
      for (double x = -90; x <= 90; x += 1.0 / 64) {
        const auto input = static_cast<float>(x + 1.0 / 4096);
        const double f = stated.f(input), h = stated.h(input);
        INFO("activation " << static_cast<int>(stated.kind) << " of " << input << ": "
                           << activation.gate(input) << " for " << f << ", " << activation.up(input)
                           << " for " << h);
        // Below 2^-126 the hardware flushes a factor of f. False for NaN.
        REQUIRE(std::fabs(activation.gate(input) - f) <=
                stated.f_error(input) * std::fabs(f) * (1 + 1.0 / 64) + kSmallest * (1 + std::fabs(input)));
        REQUIRE(std::fabs(activation.up(input) - h) <= stated.h_error(input) * std::fabs(h));
      }
    });
}

TEST_CASE("every activation is within its stated error for every admissible error of ex2 and rcp",
          "[activation]") {
  check_general<GeneralMath<0, 0>>();
  check_general<GeneralMath<2, 1>>();
  check_general<GeneralMath<2, -1>>();
  check_general<GeneralMath<-2, 1>>();
  check_general<GeneralMath<-2, -1>>();
}

TEST_CASE("every activation with special functions notices when they are 256 ulp off", "[activation]") {
  for (const Stated& stated : kStated) {
    if (stated.kind == ActivationKind::kReglu) continue;
    dualgemm::visit_activation<GeneralMath<256, -256>>(
        stated.kind, parameters(stated.kind), [&](const auto& activation) {
          const float g = -3.0f;
          INFO("activation " << static_cast<int>(stated.kind));
          CHECK(std::fabs(activation.gate(g) - stated.f(g)) > stated.f_error(g) * std::fabs(stated.f(g)));
        });
  }
}

TEST_CASE("every activation at the ends: infinities, NaN", "[activation]") {
  for (const Stated& stated : kStated)
    dualgemm::visit_activation<GeneralMath<0, 0>>(
        stated.kind, parameters(stated.kind), [&](const auto& activation) {
          INFO("activation " << static_cast<int>(stated.kind));
          const double large = stated.f(1e30);  // a bound, or as large as the gate
          if (large == 1e30) CHECK(activation.gate(kInf) == kInf);
          else CHECK(std::fabs(activation.gate(kInf) - large) <= 16 * kU * large);
          CHECK(activation.gate(-kInf) == 0.0f);
          CHECK(std::isnan(activation.gate(kNan)));
          CHECK(std::isnan(activation.up(kNan)));
          CHECK_FALSE(std::isnan(activation.up(kInf)));
        });
}

TEST_CASE("the exact activations are within one ulp of the true product", "[activation]") {
  for (const Stated& stated : kStated) {
    const GeneralParams p = parameters(stated.kind);
    for (double x = -90; x <= 90; x += 1.0 / 32) {
      const auto g = static_cast<float>(x + 1.0 / 4096), u = static_cast<float>(3 - x / 7);
      const double exact = stated.f(g) * stated.h(u);
      INFO("activation " << static_cast<int>(stated.kind) << " of " << g << " and " << u);
      REQUIRE(std::fabs(dualgemm::exact_activation(p, g, u) - exact) <=
              0x1p-23 * std::fabs(exact) + std::numeric_limits<float>::denorm_min());
    }
    CHECK(std::isnan(dualgemm::exact_activation(p, kNan, 1)));
    CHECK(std::isnan(dualgemm::exact_activation(p, 1, kNan)));
    CHECK(dualgemm::exact_activation(p, -kInf, 1) == 0.0f);
  }
}

}  // namespace activation_test
