// calibrate.cpp -- see calibrate.h. The sum of squared logarithms of modelled over measured times is made
// small one constant at a time, in steps that become smaller. An instance that is far from the fastest for a
// shape counts little: nobody chooses it.
#include "calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

#include "host/model/cost_model.h"
#include "kernel/instance.h"

namespace bench {
namespace {

using dualgemm::Cost;
using dualgemm::CostConstants;

struct Constant {
  const char* name;
  double CostConstants::*value;
};
// The constants that this fit changes. MODEL.md says why not the others.
constexpr Constant kFitted[] = {{"dram", &CostConstants::dram},
                                {"fill_per_sm", &CostConstants::fill_per_sm},
                                {"fixed", &CostConstants::fixed},
                                {"expand_weight", &CostConstants::expand_weight},
                                {"expand_activation", &CostConstants::expand_activation},
                                {"beside", &CostConstants::beside},
                                {"chain", &CostConstants::chain},
                                {"round", &CostConstants::round},
                                {"turn", &CostConstants::turn},
                                {"finish", &CostConstants::finish},
                                {"meet", &CostConstants::meet},
                                {"pass", &CostConstants::pass}};

// The gap between two launches on a stream is so much longer than in a graph (H200: 1.76 against 0.73 us).
constexpr double kStreamGap = 1.03;

struct Time {
  const dualgemm::Instance* instance;
  double us;
};
struct Problem {
  dualgemm::Shape shape;
  std::vector<Time> times;
  double least;
};

std::vector<Problem> problems_of(const nlohmann::json& report) {
  std::map<std::string, const dualgemm::Instance*> by_name;
  for (const dualgemm::Instance& instance : dualgemm::instances(dualgemm::Arch::kSm90))
    by_name[instance.name] = &instance;
  std::vector<Problem> out;
  for (const auto& row : report.at("results")) {
    if (!row.contains("instances") || row.at("mode") != "none") continue;
    Problem problem{{row.at("m"), row.at("n"), row.at("k")}, {}, INFINITY};
    problem.shape.problems = row.at("problems");
    // One product as it is takes no special function, and neither does this activation.
    if (report.value("products", 2) == 1) problem.shape.activation = dualgemm::ActivationKind::kReglu;
    for (const auto& time : row.at("instances")) {
      const auto found = by_name.find(time.at("name"));
      // A general instance is no candidate where a plain one is.
      if (found == by_name.end() || found->second->epilogue.general || !time.contains("graph")) continue;
      problem.times.push_back({found->second, time.at("graph").at("median_us").get<double>() + kStreamGap});
      problem.least = std::min(problem.least, problem.times.back().us);
    }
    if (!problem.times.empty()) out.push_back(problem);
  }
  if (out.empty()) throw std::runtime_error("--calibrate: the report has no times of instances for 9.0");
  return out;
}

// What the model says is the fastest, and its time; no instance if none can run.
Time chosen_by_model(const Problem& problem, const dualgemm::Machine& machine,
                     const CostConstants& constants) {
  Time chosen{nullptr, INFINITY};
  double least = INFINITY;
  for (const Time& time : problem.times)
    if (Cost cost;
        cost_of(*time.instance, problem.shape, machine, &cost, constants) && cost.total_us < least) {
      least = cost.total_us;
      chosen = time;
    }
  return chosen;
}

// How far the model is from the times: weighted, of all, and what the fastest by the model costs over the
// fastest.
struct Distance {
  double weighted = 0, mean_square = 0, choice = 0;
};

Distance distance(const std::vector<Problem>& problems, const dualgemm::Machine& machine,
                  const CostConstants& constants) {
  Distance out;
  double weights = 0, count = 0;
  for (const Problem& problem : problems) {
    for (const Time& time : problem.times) {
      Cost cost;
      if (!cost_of(*time.instance, problem.shape, machine, &cost, constants)) continue;
      const double error = std::log(cost.total_us / time.us), weight = std::pow(problem.least / time.us, 3);
      out.weighted += weight * error * error;
      weights += weight;
      if (time.us < 1.5 * problem.least) {
        out.mean_square += error * error;
        ++count;
      }
    }
    out.choice += std::log(chosen_by_model(problem, machine, constants).us / problem.least);
  }
  out.weighted /= weights;
  out.mean_square = std::sqrt(out.mean_square / count);
  out.choice = std::exp(out.choice / static_cast<double>(problems.size())) - 1;
  return out;
}

// Returns what is closest to `value` in the range that the sources of a constant allow it.
double within_range(const Constant& constant, double value) {
  for (const dualgemm::CostRange& range : dualgemm::cost_table(dualgemm::Arch::kSm90).ranges)
    if (range.constant == constant.value) return std::clamp(value, range.low, range.high);
  return value;
}

CostConstants fit(const std::vector<Problem>& problems, const dualgemm::Machine& machine,
                  CostConstants constants) {
  double best = distance(problems, machine, constants).weighted;
  for (double step = 0.2; step > 0.005;) {
    bool better = false;
    for (const Constant& constant : kFitted)
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        CostConstants tried = constants;
        tried.*constant.value = within_range(constant, tried.*constant.value * factor);
        const double now = distance(problems, machine, tried).weighted;
        if (now >= best) continue;
        best = now;
        constants = tried;
        better = true;
      }
    if (!better) step /= 2;
  }
  return constants;
}

// Names the choices that cost more than a few percent.
std::string bad_choices(const std::vector<Problem>& problems, const dualgemm::Machine& machine,
                        const CostConstants& constants) {
  constexpr double kWorthIt = 1.04;
  std::string out;
  for (const Problem& problem : problems) {
    const Time chosen = chosen_by_model(problem, machine, constants);
    if (chosen.us < kWorthIt * problem.least) continue;
    const Time& best = *std::min_element(problem.times.begin(), problem.times.end(),
                                         [](const Time& x, const Time& y) { return x.us < y.us; });
    out += fmt::format("  {} x {} x {}: {} {:.1f} us, but {} {:.1f} us\n", problem.shape.m, problem.shape.n,
                       problem.shape.k, chosen.instance->name, chosen.us, best.instance->name, best.us);
  }
  return out;
}

std::string distance_text(const Distance& x) {
  return fmt::format("{:.1f} % from times up to 1.5 of the fastest, chosen {:.2f} % over the fastest",
                     100 * x.mean_square, 100 * x.choice);
}

}  // namespace

std::string calibration(const nlohmann::json& report) {
  const std::vector<Problem> problems = problems_of(report);
  const auto& device = report.at("device");
  dualgemm::Machine machine{device.at("sms")};
  machine.memory_gb_s = static_cast<int32_t>(1e3 * device.at("roofs").at("dram_tb_per_s").get<double>());
  const CostConstants before = dualgemm::cost_constants(dualgemm::Arch::kSm90, machine.memory_gb_s);
  const CostConstants after = fit(problems, machine, before);
  std::string out =
      fmt::format("{}, driver {}, {}: {} problems{}\n", device.at("name").get<std::string>(),
                  device.at("driver").is_null() ? "unknown" : device.at("driver").get<std::string>(),
                  report.at("date").get<std::string>(), problems.size(),
                  report.value("products", 2) == 1 ? " of one product" : "");
  out += "before: " + distance_text(distance(problems, machine, before)) + "\n";
  out += "after:  " + distance_text(distance(problems, machine, after)) + "\n" +
         bad_choices(problems, machine, after);
  for (const Constant& constant : kFitted)
    out += fmt::format("  {:18} {:12.4g} -> {:12.4g}\n", constant.name, before.*constant.value,
                       after.*constant.value);
  return out;
}

}  // namespace bench
