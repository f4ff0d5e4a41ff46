// calibration.cpp -- see calibration.h.
#include "bench/first_hour/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bench/arguments.h"
#include "bench/calibrate.h"
#include "bench/first_hour/constants.h"
#include "bench/shapes.h"
#include "bench/table.h"
#include "host/launch/choice.h"
#include "host/launch/validate.h"
#include "host/model/select_instance.h"

namespace bench {
namespace {

using dualgemm::Arch;
using dualgemm::Cost;
using dualgemm::CostConstants;
using nlohmann::json;

// The steps that time what the library chooses.
constexpr const char* kTimed[] = {"contest", "decode", "experts", "large"};

// Returns the report of a step; null where there is none.
const json* report_of(const json& report, const char* step) {
  static const json::json_pointer place("/data/report");
  const auto found = report.at("steps").find(step);
  if (found == report.at("steps").end() || !found->contains(place)) return nullptr;
  return &found->at(place);
}

// A measured problem: the instance that ran, and its time from launch to launch.
struct Timed {
  Shape shape;
  dualgemm::Shape modelled;
  const dualgemm::Instance* instance;
  dualgemm::Machine machine;
  double us;
};

dualgemm::Machine machine_in(const json& device) {
  dualgemm::Machine machine{device.at("sms")};
  machine.memory_gb_s = static_cast<int32_t>(1e3 * device.at("roofs").at("dram_tb_per_s").get<double>());
  return machine;
}

Shape shape_in(const json& row) {
  Shape shape{row.at("m"), row.at("n"), row.at("k"), row.at("label")};
  shape.group_rows = row.at("group_rows").get<std::vector<int32_t>>();
  const std::string mode = row.at("mode");
  if (mode == "none") shape.batch = row.at("problems");
  else shape.mode = mode == "offsets" ? DUALGEMM_GROUP_OFFSETS : DUALGEMM_GROUP_MASKED;
  return shape;
}

const dualgemm::Instance* instance_of(const std::string& name) {
  for (const dualgemm::Instance& instance : dualgemm::instances())
    if (name == instance.name) return &instance;
  return nullptr;
}

std::vector<Timed> timed_of(const json& report) {
  std::vector<Timed> out;
  for (const char* step : kTimed) {
    const json* const of_step = report_of(report, step);
    if (!of_step || of_step->at("times") != "measured") continue;
    for (const json& row : of_step->at("results")) {
      if (!row.contains("stream") || !row.contains("instance")) continue;
      const dualgemm::Instance* const instance = instance_of(row.at("instance"));
      if (!instance) continue;
      const Shape shape = shape_in(row);
      const dualgemm_args_t args = described_args(shape, {DUALGEMM_DTYPE_FP16});
      dualgemm::Problem problem;
      check(dualgemm::validate(&args, &problem), "validate");
      out.push_back({shape, dualgemm::shape_of(problem), instance, machine_in(of_step->at("device")),
                     row.at("stream").at("median_us").get<double>()});
    }
  }
  return out;
}

std::map<std::string, json> measurements_of(const json& data) {
  std::map<std::string, json> out;
  for (const json& one : data.at("measurements"))
    if (one.contains("constant")) out.emplace(one.at("constant"), one);
  return out;
}

// Returns the constants with those that were measured whole in place of the others. A difference of two times
// may come out below zero, which means that it cannot be seen.
CostConstants with_measured(CostConstants constants, Arch arch, const std::map<std::string, json>& measured) {
  for (const ModelConstant& constant : kModelConstants) {
    const auto found = measured.find(std::string(constant.name));
    if (constant.known(arch) != Known::kMeasured || found == measured.end()) continue;
    if (found->second.contains("median"))
      constants.*constant.value = std::max(1e-12, found->second.at("median").get<double>());
  }
  return constants;
}

std::string number(const json& one, const char* field) {
  return one.contains(field) ? fmt::format("{:.4g}", one.at(field).get<double>()) : "-";
}

std::string constants_text(const json& data, const std::map<std::string, json>& measured) {
  const Table table({{"constant", 17, true},
                     {"known by", 16, true},
                     {"in use", 10},
                     {"here", 10},
                     {"p10", 10},
                     {"p90", 10},
                     {"sources allow", 18}});
  std::string out = table.heading();
  for (const json& constant : data.at("constants")) {
    const auto found = measured.find(constant.at("name"));
    const json one = found == measured.end() ? json::object() : found->second;
    const std::string allowed =
        constant.contains("low") ? number(constant, "low") + " .. " + number(constant, "high") : "";
    out += table.line({constant.at("name"), constant.at("known"), number(constant, "in_use"),
                       number(one, "median"), number(one, "p10"), number(one, "p90"), allowed});
  }
  return out;
}

// Returns the time that the model expects, if it has one.
std::optional<double> expected(const Timed& timed, const dualgemm::Machine& machine,
                               const CostConstants& constants) {
  Cost cost;
  if (!cost_of(*timed.instance, timed.modelled, machine, &cost, constants)) return {};
  return cost.total_us;
}

// Returns what the library would choose with these constants, among the instances of the one that ran.
const dualgemm::Instance* choice(const Timed& timed, const dualgemm::Machine& machine,
                                 const CostConstants& constants) {
  const dualgemm::Plan& plan = timed.instance->plan;
  const dualgemm::InstanceKind kind{plan.arch, dualgemm::CType::kFp16, timed.instance->epilogue.general};
  std::vector<dualgemm::Candidate> candidates;
  for (const dualgemm::IndexedInstance& x : instances_of(kind, plan.tile.grouped)) {
    const dualgemm::Plan& other = x.instance->plan;
    Cost cost;
    if (takes_part(other, {true, true, true}) &&
        cost_of(*x.instance, timed.modelled, machine, &cost, constants))
      candidates.push_back({x.index, other.tile.split_k, other.tmem.overlapped(), cost});
  }
  const int32_t best = dualgemm::best_of(candidates);
  return best < 0 ? nullptr : &dualgemm::instance(candidates[best].index);
}

struct Errors {
  double sum = 0, worst = 0;
  int count = 0;

  void add(double error) {
    sum += std::abs(error);
    if (std::abs(error) > std::abs(worst)) worst = error;
    ++count;
  }
  std::string text() const {
    return fmt::format("mean {:.1f} %, worst {:+.1f} %", 100 * sum / std::max(count, 1), 100 * worst);
  }
};

std::string times_text(const std::vector<Timed>& all, const dualgemm::Machine& machine,
                       const CostConstants& in_use, const CostConstants& here) {
  const Table table(
      {{"problem", 34, true}, {"measured", 8}, {"in use", 8}, {"error", 8}, {"here", 8}, {"error", 8}});
  std::string out = table.heading(), changes;
  Errors before, after;
  for (const Timed& timed : all) {
    const std::optional<double> usual = expected(timed, machine, in_use),
                                now = expected(timed, machine, here);
    if (!usual || !now) continue;
    before.add(*usual / timed.us - 1);
    after.add(*now / timed.us - 1);
    out += table.line({shape_text(timed.shape), us_text(timed.us), us_text(*usual),
                       fmt::format("{:+.1f} %", 100 * (*usual / timed.us - 1)), us_text(*now),
                       fmt::format("{:+.1f} %", 100 * (*now / timed.us - 1))});
    const dualgemm::Instance* const old_choice = choice(timed, machine, in_use);
    const dualgemm::Instance* const new_choice = choice(timed, machine, here);
    if (old_choice && new_choice && old_choice != new_choice)
      changes +=
          fmt::format("  {}: {}, now {}\n", shape_text(timed.shape), new_choice->name, old_choice->name);
  }
  out += fmt::format("{} problems, constants in use: {}\n", before.count, before.text());
  out += fmt::format("{} problems, constants as measured here: {}\n", after.count, after.text());
  return out + (changes.empty() ? "no choice among these problems would change\n"
                                : "choices that would change:\n" + changes);
}

}  // namespace

bool is_first_hour(const json& report) { return report.is_object() && report.contains("first_hour"); }

std::string first_hour_calibration(const json& report) {
  const json::json_pointer place("/steps/constants/data");
  if (!report.contains(place) || !report.at(place).contains("constants"))
    throw std::runtime_error("--calibrate: this first hour has no constants");
  const json& data = report.at(place);
  const std::map<std::string, json> measured = measurements_of(data);
  std::string out =
      fmt::format("{}, {}\n", report.at("gpu").get<std::string>(), report.at("date").get<std::string>());
  if (!data.value("timed", false)) out += "not timed: simulated\n";
  out += constants_text(data, measured);
  const std::vector<Timed> all = timed_of(report);
  if (all.empty()) return out + "there are no measured times of launches\n";
  const dualgemm::Machine& machine = all.front().machine;
  const Arch arch = all.front().instance->plan.arch;
  const CostConstants& in_use = dualgemm::cost_constants(arch, machine.memory_gb_s);
  out += "\n" + times_text(all, machine, in_use, with_measured(in_use, arch, measured));
  const json* const every = report_of(report, "instances");
  if (arch == Arch::kSm90 && every && every->at("times") == "measured") out += "\n" + calibration(*every);
  return out;
}

}  // namespace bench
