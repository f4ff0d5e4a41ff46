// ablation_test.cpp -- every way of computing the problem that the benchmark compares gives the reference's
// result, and breaks no rule of the machine.
#include "bench/ablation/ideas.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/ablation/kernels.h"
#include "ref/formats.h"
#include "sim/judge/judge.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"

using namespace dualgemm_test;

namespace {

// Not an instance of the library.
bool is_built(const bench::Way& way) {
  const dualgemm::InstanceList& built = bench::kAblations;
  return std::any_of(built.first, built.first + built.count,
                     [&](const dualgemm::Instance& i) { return &i == way.instance; });
}

// The ways that are built for the tables, each once.
std::vector<bench::Way> ways() {
  std::vector<bench::Way> out;
  for (const bench::Idea& idea : bench::ideas())
    for (const bench::Way& way : idea.ways) {
      const auto same = [&](const bench::Way& other) { return other.instance == way.instance; };
      if (is_built(way) && std::none_of(out.begin(), out.end(), same)) out.push_back(way);
    }
  return out;
}

// C, and what a two-pass way left in its intermediates.
struct Outputs {
  Output c, gates, ups;
};

Outputs run(const bench::Way& way, const Problem& p, int32_t max_sms) {
  LaunchOptions options;
  options.max_sms = max_sms;
  const DeviceProblem device(p, options);
  const auto count = static_cast<size_t>(p.m) * static_cast<size_t>(p.n);
  const DeviceBuffer gates(2 * count), ups(2 * count);
  bench::load(way);
  bench::launch(way, device.args(), {gates.get(), ups.get()}, nullptr);
  Outputs out{device.download(), {}, {}};
  if (!way.two_pass) return out;
  for (auto [output, buffer] : {std::pair{&out.gates, &gates}, std::pair{&out.ups, &ups}}) {
    *output = {p.m, p.n, DUALGEMM_DTYPE_FP16, std::vector<uint16_t>(count)};
    buffer->download(output->bits.data(), 2 * count);
  }
  return out;
}

std::vector<double> decode(const std::vector<uint8_t>& codes, const std::vector<uint8_t>& scales,
                           int64_t rows, int64_t k, int64_t ld) {
  std::vector<double> out;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < k; ++i)
      out.push_back(double{ref::e2m1_decode(ref::nibble(&codes[static_cast<size_t>(row * ld / 2)], i))} *
                    ref::ue4m3_decode(scales[ref::sf_offset(k, row, i / ref::kBlock)]));
  return out;
}

double half_ulp(double x) { return std::max(std::fabs(x) * 0x1p-11, 0x1p-25); }  // fp16

// alpha A B^T, each element within what the tensor core may lose, ref/dual_gemm.cpp, and one rounding to
// fp16. With |c_t| at most the sum of magnitudes, that is 2^-23 + 5 * 2^-35 of it per step of 64, and as much
// of the largest scale factors, 448 * 448.
void check_product(const Output& got, const std::vector<double>& a, const std::vector<double>& b, int64_t k,
                   double alpha) {
  const double steps = std::ceil(static_cast<double>(k) / 64);
  int64_t mismatches = 0;
  for (int64_t row = 0; row < got.m; ++row)
    for (int64_t column = 0; column < got.n; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double term = a[static_cast<size_t>(row * k + i)] * b[static_cast<size_t>(column * k + i)];
        sum += term;
        magnitude += std::fabs(term);
      }
      const double lost =
          std::fabs(alpha) * steps * (magnitude * (0x1p-23 + 5 * 0x1p-35) + 5 * 0x1p-35 * 448 * 448);
      const double expected = alpha * sum, before = lost + 0x1p-23 * std::fabs(expected);
      const double error = std::fabs(got.value(row, column) - expected);
      mismatches += !(error <= before + half_ulp(std::fabs(expected) + before));
    }
  CHECK(mismatches == 0);
}

// silu(gate) * up of the rounded products: 2^-20 of the result per unit of gate for the arithmetic in float,
// and the rounding to fp16.
void check_activation(const Outputs& out) {
  int64_t mismatches = 0;
  for (int64_t row = 0; row < out.c.m; ++row)
    for (int64_t column = 0; column < out.c.n; ++column) {
      const double g = out.gates.value(row, column), u = out.ups.value(row, column);
      const double expected = g / (1 + std::exp(-g)) * u;
      const double before = 0x1p-20 * std::fabs(expected) * (1 + std::fabs(g)) + 0x1p-126;
      const double error = std::fabs(out.c.value(row, column) - expected);
      mismatches += !(error <= before + half_ulp(std::fabs(expected) + before));
    }
  CHECK(mismatches == 0);
}

}  // namespace

TEST_CASE("a way that is built for a table differs from its baseline in nothing but what the table asks",
          "[kernel]") {
  using dualgemm::Plan;
  const std::pair<std::string, int32_t (*)(const Plan&)> fields[] = {
      {"cta_group", [](const Plan& p) { return p.mma.cta_group; }},
      {"tile_m", [](const Plan& p) { return p.tile.m; }},
      {"tile_n", [](const Plan& p) { return p.tile.n; }},
      {"split_k", [](const Plan& p) { return p.tile.split_k; }},
      {"stages", [](const Plan& p) { return p.operands.stages; }},
      {"scale_stages", [](const Plan& p) { return p.scales.stages; }},
      {"scale_k_tiles", [](const Plan& p) { return p.scales.k_tiles; }},
      {"acc_stages", [](const Plan& p) { return p.tmem.acc_stages; }},
      {"keep_a", [](const Plan& p) { return int32_t{p.mma.keep_a}; }},
      {"products", [](const Plan& p) { return p.mma.products; }},
      {"mma per step", [](const Plan& p) { return p.mma.per_step; }}};
  // The others ask for what is no field of a plan.
  const std::map<std::string, std::set<std::string>> asked = {
      {"two-pass", {"stages", "scale_stages", "acc_stages", "products"}},  // as many as fit of one product
      {"sequential", {"stages", "scale_stages", "products", "mma per step"}},
      {"depth", {"stages"}},
      {"scale-ring", {"scale_stages", "scale_k_tiles"}},
      {"collector", {"keep_a"}},
      {"accumulators", {"acc_stages"}},
      {"store", {"stages"}}};
  for (const bench::Idea& idea : bench::ideas())
    for (const bench::Way& way : idea.ways) {
      if (!is_built(way)) continue;
      INFO(way.instance->name);
      const auto may_differ = asked.find(idea.name);
      for (const auto& [name, field] : fields) {
        INFO(name);
        if (may_differ == asked.end() || may_differ->second.count(name) == 0)
          CHECK(field(way.instance->plan) == field(idea.ways.front().instance->plan));
      }
    }
}

TEST_CASE("every ablation gives the reference's result", "[kernel]") {
  for (const bench::Way& way : ways()) {
    DYNAMIC_SECTION(way.instance->name) {
      // Two CTAs: several tiles each, ragged, of more k-tiles than the rings hold;
      // the last has two of its four steps.
      const Problem p = make_problem(Data::kFullRange, 300, 200, 9 * 256 + 112, 1);
      const Outputs out = run(way, p, 2);
      if (way.two_pass) {
        // Its products are rounded to fp16, which the bound of the reference does not allow: each step alone.
        const auto a = decode(p.a, p.sfa, p.m, p.k, p.lda);
        check_product(out.gates, a, decode(p.b1, p.sfb1, p.n, p.k, p.ldb1), p.k, p.alpha1);
        check_product(out.ups, a, decode(p.b2, p.sfb2, p.n, p.k, p.ldb2), p.k, p.alpha2);
        check_activation(out);
      } else {
        const Comparison result = compare(out.c, p.reference());
        INFO(result.first);
        CHECK(result.mismatches == 0);
      }
    }
  }
}

TEST_CASE("no ablation breaks a rule of the machine, in any of four schedules", "[kernel]") {
  for (const bench::Way& way : ways()) {
    DYNAMIC_SECTION(way.instance->name) {
      const Problem p = make_problem(Data::kFullRange, 300, 200, 3 * 256 + 112, 2);
      for (const char* mode : {"default", "late", "reverse", "random"}) {
        sim::JudgeOptions options;
        options.mode = mode;
        sim::Judge judge(options, sim::shim::memory());
        sim::shim::set_judge(&judge);
        std::string fault;
        try {
          run(way, p, 2);
        } catch (const std::runtime_error& error) {
          fault = error.what() + std::string("\n") + sim::shim::last_fault_text();
        }
        sim::shim::set_judge(nullptr);
        sim::shim::clear_fault();
        INFO(mode << ": " << fault);
        CHECK(fault.empty());
        for (const sim::Report& report : judge.reports()) {
          INFO(report.severity << " " << report.rule << ": " << report.summary);
          CHECK(report.severity == 'A');
        }
      }
    }
  }
}
