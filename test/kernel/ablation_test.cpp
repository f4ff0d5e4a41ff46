// ablation_test.cpp -- every way of computing the problem that the benchmark compares gives the reference's
// result, and breaks no rule of the machine.
#include "bench/ablation.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/ablation_kernels.h"
#include "sim/judge/judge.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"

using namespace dualgemm_test;

namespace {

// The ways that are not an instance of the library, each once.
std::vector<bench::Way> ways() {
  std::vector<bench::Way> out;
  for (const bench::Idea& idea : bench::ideas())
    for (const bench::Way& way : idea.ways) {
      const auto same = [&](const bench::Way& other) { return other.instance == way.instance; };
      const bool shipped = std::none_of(std::begin(bench::kAblations), std::end(bench::kAblations),
                                        [&](const auto& i) { return &i == way.instance; });
      if (!shipped && std::none_of(out.begin(), out.end(), same)) out.push_back(way);
    }
  return out;
}

Output run(const bench::Way& way, const Problem& p, int32_t max_sms) {
  LaunchOptions options;
  options.max_sms = max_sms;
  const DeviceProblem device(p, options);
  const size_t bytes = 2 * static_cast<size_t>(p.m) * static_cast<size_t>(p.n);
  const DeviceBuffer gates(bytes), ups(bytes);
  bench::load(way);
  bench::launch(way, device.args(), {gates.get(), ups.get()}, nullptr);
  return device.download();
}

}  // namespace

TEST_CASE("every ablation gives the reference's result", "[kernel]") {
  for (const bench::Way& way : ways()) {
    DYNAMIC_SECTION(way.instance->name) {
      // Two CTAs: several tiles each, ragged, of more k-tiles than the rings hold; the last has two of its
      // four steps.
      const Problem p = make_problem(Data::kFullRange, 300, 200, 9 * 256 + 112, 1);
      const Comparison result = compare(run(way, p, 2), p.reference());
      INFO(result.first);
      CHECK(result.mismatches == 0);
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
          CHECK(report.severity != 'E');
        }
      }
    }
  }
}
