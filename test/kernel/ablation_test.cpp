// ablation_test.cpp -- every way of computing the problem that the benchmark compares gives the reference's
// result, and breaks no rule of the machine.
#include "bench/ablation/ideas.h"

#include <algorithm>
#include <array>
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
#include "support/expected.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// A way with an instance: of bench/ablation, or for one of two GEMMs of the library.
struct Built {
  bench::Way way;
  const dualgemm::Instance* instance;
};

bool is_built(const dualgemm::Instance* instance) {
  const dualgemm::InstanceList& built = bench::kAblations;
  return instance >= built.first && instance < built.first + built.count;
}

bool on_hopper() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  REQUIRE(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS);
  return device.cc_major == 9;
}

// Returns what is built for the tables on this device, each instance once, and what makes two passes. On
// Hopper that is one of each number of rows: one_product_test.cpp has the others.
std::vector<Built> ways() {
  std::vector<Built> out;
  if (on_hopper()) {
    std::set<int32_t> rows;
    for (const dualgemm::Instance* instance : bench::ones_of_two_gemms(dualgemm::Arch::kSm90))
      if (rows.insert(instance->plan.tile.m).second) out.push_back({{"", {}, false, true}, instance});
    const dualgemm::InstanceList& sequential = bench::kSequentialSm90;
    for (int32_t i = 0; i < sequential.count; ++i) out.push_back({{}, sequential.first + i});
    return out;
  }
  for (const bench::Idea& idea : bench::ideas())
    for (const bench::Way& way : idea.ways)
      for (const dualgemm::Instance* instance : way.instances) {
        const auto same = [&](const Built& other) { return other.instance == instance; };
        if ((is_built(instance) || way.two_pass) && std::none_of(out.begin(), out.end(), same))
          out.push_back({way, instance});
      }
  return out;
}

// Two CTAs have several tiles each, ragged, of `k_tiles` whole k-tiles and one of half the steps. On Hopper
// tiles have few rows or many.
Problem problem_of(const dualgemm::Instance& instance, int32_t k_tiles, uint64_t seed) {
  const dualgemm::TilePlan& tile = instance.plan.tile;
  const int32_t rows = instance.plan.arch == dualgemm::Arch::kSm90 ? tile.m + tile.m / 2 + 1 : 300;
  const int32_t columns = instance.plan.arch == dualgemm::Arch::kSm90 ? tile.n + 8 : 200;
  return make_problem(Data::kFullRange, rows, columns, k_tiles * tile.k + 112, seed);
}

// These are C, and what a two-pass way left in its intermediates.
struct Outputs {
  Output c, gates, ups;
};

Outputs run(const Built& built, const Problem& p, int32_t max_sms) {
  const auto& [way, instance] = built;
  LaunchOptions options;
  options.max_sms = max_sms;
  const DeviceProblem device(p, options);
  const auto count = static_cast<size_t>(p.m) * static_cast<size_t>(p.n);
  const DeviceArray<uint16_t> gates(count), ups(count);
  bench::load(*instance);
  dualgemm_args_t args = device.args();
  const DeviceArray<uint16_t> prepared(static_cast<size_t>(p.m) * static_cast<size_t>(p.k / 256 + 1) * 256);
  args.workspace = prepared.data();
  args.workspace_size = prepared.size() * sizeof(uint16_t);
  bench::launch(way, *instance, args, {gates.data(), ups.data()}, nullptr);
  Outputs out{device.download(), {}, {}};
  out.c.split_k = instance->plan.tile.split_k;
  if (!way.two_pass) return out;
  out.gates = {p.m, p.n, DUALGEMM_DTYPE_FP16, gates.host()};
  out.ups = {p.m, p.n, DUALGEMM_DTYPE_FP16, ups.host()};
  return out;
}

// Checks alpha A B^T: each element is within what the tensor core and the alpha may lose, and one rounding to
// fp16.
void check_product(const Output& got, const ref::Product& expected, double alpha, int32_t split_k) {
  const size_t slices = ref::split_index(split_k);
  int64_t mismatches = 0;
  for (int64_t i = 0; i < got.m * got.n; ++i) {
    const double exact = alpha * expected.sums[static_cast<size_t>(i)].exact;
    const double error =
        std::fabs(alpha) * expected.sums[static_cast<size_t>(i)].lost[slices] + 0x1p-23 * std::fabs(exact);
    mismatches += !ref::may_become(ref::Format::kFp16, exact, error, got.value(i / got.n, i % got.n));
  }
  CHECK(mismatches == 0);
}

// Checks f(gate) * up of the rounded products, which are exact here.
void check_activation(const Outputs& out) {
  const ref::Activation activation = ref::activation(DUALGEMM_ACTIVATION_SWIGLU);
  int64_t mismatches = 0;
  for (int64_t row = 0; row < out.c.m; ++row)
    for (int64_t column = 0; column < out.c.n; ++column) {
      const double g = out.gates.value(row, column), u = out.ups.value(row, column);
      mismatches += !ref::may_become(ref::Format::kFp16, activation.f(g) * u,
                                     ref::error_bound(activation, g, u, 0, 0), out.c.value(row, column));
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
      {"sequential", {"stages", "scale_stages", "products", "mma per step"}},
      {"depth", {"stages"}},
      {"scale-ring", {"scale_stages", "scale_k_tiles"}},
      {"collector", {"keep_a"}},
      {"accumulators", {"acc_stages"}},
      {"store", {"stages"}}};
  for (const bench::Idea& idea : bench::ideas())
    for (const bench::Way& way : idea.ways) {
      const dualgemm::Instance& built = *way.instances.at(0);
      if (!is_built(&built)) continue;
      INFO(built.name);
      const auto may_differ = asked.find(idea.name);
      for (const auto& [name, field] : fields) {
        INFO(name);
        if (may_differ == asked.end() || may_differ->second.count(name) == 0)
          CHECK(field(built.plan) == field(idea.ways.front().instances.at(0)->plan));
      }
    }
}

TEST_CASE("every ablation gives the reference's result", "[kernel]") {
  for (const Built& way : ways()) {
    DYNAMIC_SECTION(way.instance->name) {
      // There are more k-tiles than the rings hold, but for split-K, where a CTA has one tile.
      const dualgemm::Plan& plan = way.instance->plan;
      const int32_t slices = plan.tile.split_k;
      const bool hopper = plan.arch == dualgemm::Arch::kSm90;
      const int32_t k_tiles = !hopper ? 9 : slices > 1 ? 2 * slices : plan.operands.stages + 1;
      const Problem p = problem_of(*way.instance, k_tiles, 1);
      const Outputs out = run(way, p, 2);
      if (way.way.two_pass) {
        // The products are rounded to fp16, which the bound of the reference does not allow, so each step is
        // checked alone.
        const ref::TensorCore core = on_hopper() ? ref::TensorCore::kWgmma : ref::TensorCore::kTcgen05;
        const ref::Operand a = {p.a.data(), p.lda / 2, p.sfa.data(), p.m};
        check_product(out.gates, ref::product(a, {p.b1.data(), p.ldb1 / 2, p.sfb1.data(), p.n}, p.k, core),
                      p.alpha1, plan.tile.split_k);
        check_product(out.ups, ref::product(a, {p.b2.data(), p.ldb2 / 2, p.sfb2.data(), p.n}, p.k, core),
                      p.alpha2, plan.tile.split_k);
        check_activation(out);
      } else {
        const Comparison result = compare(out.c, expected(p, {}, out.c.split_k)->c);
        INFO(result.first);
        CHECK(result.mismatches == 0);
      }
    }
  }
}

TEST_CASE("no ablation breaks a rule of the machine, in schedules of four kinds", "[kernel]") {
  const bool hopper = on_hopper();
  int turn = 0;
  for (const Built& way : ways()) {
    ++turn;
    DYNAMIC_SECTION(way.instance->name) {
      const Problem p = problem_of(*way.instance, 3, 2);
      // Each has two of the schedules; on Hopper, where there are many tiles, one.
      for (int i = 0; i < 4; ++i) {
        if (hopper ? i != turn % 4 : !thorough() && i % 2 != turn % 2) continue;
        const char* const mode = std::array{"default", "late", "reverse", "random"}[i];
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
