// microbenchmarks.cpp -- what the constants of the cost model are on this GPU, one by one: `make first-hour`
// runs it, a process for each group. On a simulated GPU every kernel runs in its smallest form and has to
// compute what it has to; nothing is timed there, and the table says so.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/first_hour/constants.h"
#include "bench/first_hour/microbenchmark.h"
#include "bench/table.h"
#include "bench/timing.h"
#include "host/common/device.h"
#include "test/support/device_memory.h"

namespace {

using bench::Known;
using dualgemm::Arch;
using nlohmann::json;

struct Group {
  const char* name;
  void (*measure)(const bench::Subject&, bench::Findings*);
  bool sm90, sm100;

  bool is_for(Arch arch) const { return arch == Arch::kSm90 ? sm90 : sm100; }
};
constexpr Group kGroups[] = {{"clock", bench::measure_clock, true, true},
                             {"copies", bench::measure_copies, true, true},
                             {"threads", bench::measure_threads, true, true},
                             {"exchange", bench::measure_exchange, true, true},
                             {"launches", bench::measure_launches, true, true},
                             {"wgmma", bench::measure_wgmma, true, false},
                             {"mma", bench::measure_mma, false, true},
                             {"tensor-memory", bench::measure_tensor_memory, false, true}};

struct Options {
  std::string only, json_path;
  int repeats = 9;
  bool groups = false, constants = false;
};

struct Place {
  dualgemm_device_t device;
  Arch arch;
  bool simulated;
};

Place find_place() {
  Place place{};
  dualgemm_device_init(&place.device);
  if (dualgemm_current_device(&place.device) != DUALGEMM_STATUS_SUCCESS)
    throw std::runtime_error(std::string("there is no GPU: ") + dualgemm_last_error());
  const dualgemm::Architecture* const found = dualgemm::served_architecture(place.device);
  if (!found) throw std::runtime_error(std::string(place.device.name) + ": of neither 9.0 nor 10.x");
  place.arch = found->arch;
  place.simulated = std::string(place.device.name).find("simulated") != std::string::npos;
  return place;
}

bench::Subject subject_of(const Place& place, const Options& options) {
  int l2 = 0;
  dualgemm_test::check_cuda(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, place.device.ordinal),
                            "cudaDeviceGetAttribute");
  return {place.arch, place.device.sm_count, static_cast<size_t>(l2), place.simulated,
          place.simulated ? 1 : options.repeats};
}

// The constants of this GPU as they are in use.
json constants_json(const Place& place) {
  const dualgemm::CostConstants& in_use = dualgemm::cost_constants(place.arch, place.device.memory_gb_s);
  json all = json::array();
  for (const bench::ModelConstant& constant : bench::kModelConstants) {
    const Known known = constant.known(place.arch);
    if (known == Known::kNot) continue;
    json one{{"name", constant.name}, {"in_use", in_use.*constant.value}, {"known", text(known)}};
    if (const dualgemm::CostRange* range = range_of(constant, place.arch)) {
      one["low"] = range->low;
      one["high"] = range->high;
    }
    all.push_back(one);
  }
  return all;
}

// Returns the constant that a measurement stands for; null where the model of this GPU has no such term.
const bench::ModelConstant* constant_of(const Place& place, const bench::Measurement& x) {
  for (const bench::ModelConstant& constant : bench::kModelConstants)
    if (constant.name == x.constant && constant.known(place.arch) != Known::kNot) return &constant;
  return nullptr;
}

json measurement_json(const Place& place, const bench::Measurement& x) {
  json one{{"name", x.name}, {"unit", x.unit}};
  if (const bench::ModelConstant* constant = constant_of(place, x)) {
    one["constant"] = constant->name;
    one["in_use"] = dualgemm::cost_constants(place.arch, place.device.memory_gb_s).*constant->value;
  } else if (std::isfinite(x.modelled)) {
    one["constant"] = x.constant;
    one["in_use"] = x.modelled;
  }
  if (place.simulated) return one;
  const bench::Timing spread = bench::summarise(x.values);
  one["median"] = spread.median_us;
  one["p10"] = spread.p10_us;
  one["p90"] = spread.p90_us;
  return one;
}

std::string number(const json& one, const char* field) {
  return one.contains(field) ? fmt::format("{:.4g}", one.at(field).get<double>()) : "-";
}

void print(const json& measurements) {
  const bench::Table table(
      {{"what", 44, true}, {"unit", 6, true}, {"median", 9}, {"p10", 9}, {"p90", 9}, {"in use", 9}});
  fmt::print("{}", table.heading());
  for (const json& one : measurements)
    fmt::print("{}", table.line({one.at("name"), one.at("unit"), number(one, "median"), number(one, "p10"),
                                 number(one, "p90"), number(one, "in_use")}));
}

// Returns whether every group has done what it has to.
bool run(const Options& options, const Place& place) {
  bench::Subject subject = subject_of(place, options);
  json out{{"device", {{"name", place.device.name}, {"sms", subject.sms}, {"l2_bytes", subject.l2_bytes}}},
           {"timed", !place.simulated},
           {"measurements", json::array()},
           {"failed", json::array()}};
  fmt::print("{}\n", place.device.name);
  if (place.simulated) fmt::print("not timed: simulated\n");
  for (const Group& group : kGroups) {
    if (!group.is_for(place.arch) || (!options.only.empty() && options.only != group.name)) continue;
    bench::Findings found;
    try {
      subject.mhz = bench::cycles_per_us(subject);
      group.measure(subject, &found);
    } catch (const std::exception& error) {
      fmt::print(stderr, "microbenchmarks: {}: {}\n", group.name, error.what());
      out["failed"].push_back({{"group", group.name}, {"error", error.what()}});
    }
    json of_group = json::array();
    for (const bench::Measurement& x : found.all()) of_group.push_back(measurement_json(place, x));
    print(of_group);
    std::fflush(stdout);
    out["measurements"].insert(out["measurements"].end(), of_group.begin(), of_group.end());
  }
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    file << out.dump(1) << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + options.json_path);
  }
  return out["failed"].empty();
}

}  // namespace

double bench::Findings::median(const std::string& name) const { return summarise(values(name)).median_us; }

double bench::modelled_mma_cycles(int32_t cta_group, int32_t n) {
  dualgemm::Plan plan{};
  plan.mma.cta_group = cta_group;
  plan.mma.n = n;
  plan.mma.per_step = 1;
  return dualgemm::b200_mma_cycles(plan);
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures the constants of libdualgemm's cost model on this GPU, one by one"};
  std::vector<std::string> names;
  for (const Group& group : kGroups) names.push_back(group.name);
  app.add_option("--only", options.only, "one group of measurements")->check(CLI::IsMember(names));
  app.add_option("--repeats", options.repeats, "of each measurement")->check(CLI::Range(1, 1000));
  app.add_option("--json", options.json_path, "also write everything to this file");
  app.add_flag("--groups", options.groups, "print the groups that this GPU has, and stop");
  app.add_flag("--constants", options.constants,
               "print, as JSON, the constants of this GPU and how they become known, and stop");
  CLI11_PARSE(app, argc, argv);
  try {
    const Place place = find_place();
    if (options.groups) {
      for (const Group& group : kGroups)
        if (group.is_for(place.arch)) fmt::print("{}\n", group.name);
      return 0;
    }
    if (options.constants) {
      fmt::print("{}\n", constants_json(place).dump(1));
      return 0;
    }
    return run(options, place) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "microbenchmarks: {}\n", error.what());
    return 1;
  }
}
