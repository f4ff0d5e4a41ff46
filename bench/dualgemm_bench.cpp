// dualgemm_bench.cpp -- verifies, then times, libdualgemm on the GPU, beside what cuBLASLt and an activation
// kernel take; where there is none, says so and prints what the cost model expects. Launches go through the
// public interface; budgets, plans, the model and the ablations look inside the library. Tables go to stdout,
// progress to a terminal, everything to --json.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ablation/tables.h"
#include "bench/git_hash.h"
#include "budget.h"
#include "calibrate.h"
#include "chain_report.h"
#include "compare.h"
#include "cube.h"
#include "dualgemm.h"
#include "errors.h"
#include "first_hour/calibration.h"
#include "host/common/device.h"
#include "instances.h"
#include "machine.h"
#include "model.h"
#include "nvml.h"
#include "options.h"
#include "report_json.h"
#include "results.h"
#include "shapes.h"
#include "tables.h"

namespace {

using nlohmann::json;

// Prints what --suite takes, and how many problems each has.
void print_suites() {
  const bench::Table table({{"suite", 14, true}, {"problems", 8}, {"products", 8}, {"", 66, true}});
  fmt::print("{}", table.heading());
  for (const bench::Suite& suite : bench::suites())
    fmt::print("{}", table.line({suite.name, std::to_string(suite.shapes.size()),
                                 std::to_string(suite.shapes.front().products), suite.what}));
}

// Where the program runs, and what it can do there.
struct Place {
  dualgemm_device_t device;
  std::string name;
  bool found, gpu, supported;  // there is a device; it is no simulated one; the library has kernels for it
};

Place find_place() {
  Place place{};
  dualgemm_device_init(&place.device);
  place.found = dualgemm_current_device(&place.device) == DUALGEMM_STATUS_SUCCESS;
  place.name = place.found ? place.device.name : "no CUDA device";
  place.gpu = place.found && place.name.find("simulated") == std::string::npos;
  place.supported = place.found && dualgemm::served_architecture(place.device) != nullptr;
  return place;
}

bench::Times times_of(const bench::Options& options, const Place& place) {
  if (options.baseline_only) {
    if (!place.gpu) throw std::runtime_error("--baseline-only needs a GPU (found: " + place.name + ")");
    return bench::Times::kBaseline;
  }
  if (options.verify_only) {
    if (!place.supported)
      throw std::runtime_error(
          "--verify-only needs a device of compute capability 9.0 or 10.x (found: " + place.name + ")");
    return bench::Times::kVerified;
  }
  return place.supported && place.gpu ? bench::Times::kMeasured : bench::Times::kModelled;
}

// Returns the machine that the figures are about: where times are modelled and there is none, a B200.
bool described(const Place& place, bench::Times times) {
  return times == bench::Times::kModelled && !place.supported;
}
bench::Machine machine_of(const bench::Options& options, const Place& place, bench::Times times) {
  return described(place, times) ? bench::described_machine()
                                 : bench::describe_machine(place.device, bench::a_dtype_of(options));
}

json report_of(const bench::Options& options, const Place& place, bench::Times times,
               const bench::Machine& machine, int32_t products) {
  const bench::RunInfo info{times,           DUALGEMM_GIT_HASH,
                            options.dtype,   products == 1 ? options.linear_activation : options.activation,
                            options.repeats, options.samples,
                            options.a_dtype, products};
  return bench::report_json(
      info, machine,
      place.gpu && !described(place, times) ? bench::gpu_state(place.device.ordinal) : bench::GpuState{});
}

void write_json(const json& report, const std::string& path) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << bench::report_text(report);
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// Writes the results there are so far, for --keep. The file is replaced as a whole, so that an interrupted
// run leaves a report behind. What is no file, such as a pipe, only gets the report at the end.
void save_json(const json& report, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return;
  write_json(report, path + ".new");
  std::filesystem::rename(path + ".new", path);
}

int run_ablations(const bench::Options& options, const Place& place, const std::vector<bench::Shape>& shapes,
                  json report) {
  if (options.a_dtype != "nvfp4" || options.dtype != "fp16" || options.activation != "SWIGLU" ||
      shapes.front().products != 2)
    throw std::runtime_error(
        "--ablation: built for --a-dtype nvfp4 --dtype fp16 --activation SWIGLU --products 2 only");
  if (std::any_of(shapes.begin(), shapes.end(),
                  [](const bench::Shape& s) { return s.problems() > 1 || s.grouped(); }))
    throw std::runtime_error("--ablation: for single problems only");
  for (const bench::Shape& shape : shapes) bench::check_compact(shape);
  int wrong = 0;
  if (report.at("times") == "modelled") {
    const dualgemm_device_t device = place.supported ? place.device : bench::described_b200();
    report["results"] = bench::print_modelled_ablations(shapes, options.ablation, device);
  } else {
    const bench::AblationRun run{options.ablation, options.repeats, options.input_sets, options.samples,
                                 options.verify_only};
    report["results"] = bench::print_ablations(shapes, run, place.device, wrong);
  }
  report["ablation"] = options.ablation;
  write_json(report, options.json_path);
  return wrong == 0 ? 0 : 1;
}

std::vector<bench::ContenderFunctions> load_contenders(const std::vector<std::string>& paths) {
  std::vector<bench::ContenderFunctions> out;
  for (const std::string& path : paths) out.push_back(bench::load_contender(path));
  return out;
}

// The results of a report, in the order of its shapes. Some are taken over from earlier reports; the others
// are filled in one after the other.
class Results {
 public:
  Results(const std::vector<bench::Shape>& shapes, const bench::Machine& machine,
          const std::map<std::string, json>& kept)
      : machine_(machine) {
    for (const bench::Shape& shape : shapes) {
      const auto found = kept.find(bench::problem_of(to_json(bench::Result{shape}, machine)));
      rows_.push_back(found == kept.end() ? json() : found->second);
      if (found == kept.end()) missing_.push_back(shape);
    }
  }
  // Returns the shapes that have no result yet.
  const std::vector<bench::Shape>& missing() const { return missing_; }
  size_t kept() const { return rows_.size() - missing_.size(); }
  // Fills in the first of these that has none.
  void add(const bench::Result& result) {
    *std::find(rows_.begin(), rows_.end(), json()) = to_json(result, machine_);
  }
  json rows() const {
    json out = json::array();
    for (const json& row : rows_)
      if (!row.is_null()) out.push_back(row);
    return out;
  }

 private:
  bench::Machine machine_;
  std::vector<json> rows_;
  std::vector<bench::Shape> missing_;
};

// Prints a row for each shape, and then what the columns mean and how the times compare with earlier ones.
int run_shapes(const bench::Options& options, const Place& place, const std::vector<bench::Shape>& shapes,
               bench::Times times, const bench::Machine& machine, json report) {
  const bench::Epilogue epilogue = bench::chosen_epilogue(options, shapes.front().products);
  json old_report;
  if (!options.compare_path.empty()) {
    old_report = bench::read_report(options.compare_path);
    bench::check_comparable(old_report, report);
  }
  Results all(shapes, machine, bench::kept_results(options.keep_paths, report));
  const bool timed = times != bench::Times::kModelled;
  const bench::Effort effort{options.repeats,
                             options.input_sets,
                             options.samples,
                             options.verify_only,
                             !options.baseline_only,
                             !options.verify_only && !options.every_instance,
                             load_contenders(options.contenders),
                             options.every_instance};
  const dualgemm_device_t device = place.supported || timed ? place.device : bench::described_b200();
  const bench::Report table(times, machine, shapes);
  if (!timed)
    fmt::print("Nothing is timed: no GPU of compute capability 9.0 or 10.x here (found: {}).\n", place.name);
  fmt::print("{}", table.heading());
  const std::vector<bench::Result> results = bench::run_all<bench::Result>(
      all.missing(),
      [&](bench::Result* result) {
        if (timed) return measure(result, epilogue, device, effort);
        describe(result, epilogue, device);
        if (options.every_instance) describe_instances(result, epilogue, device);
      },
      [&](const bench::Result& result) {
        fmt::print("{}", table.row(result));
        std::fflush(stdout);
        all.add(result);
        report["results"] = all.rows();
        save_json(report, options.json_path);
      });
  fmt::print("{}", table.legend(results));
  if (all.kept() > 0)
    fmt::print("{} of {} results are those of earlier reports.\n", all.kept(), shapes.size());
  report["results"] = all.rows();
  write_json(report, options.json_path);
  if (!old_report.is_null()) fmt::print("\n{}", bench::comparison(old_report, report));
  return std::all_of(results.begin(), results.end(), [](const bench::Result& r) { return r.error.empty(); })
             ? 0
             : 1;
}

// Prints a row for each layer, and then what the columns mean. A chain has no modelled times.
int run_chain(const bench::Options& options, const std::vector<bench::Layer>& layers) {
  const Place place = find_place();
  const bench::Times times = times_of(options, place);
  const bool runs = times != bench::Times::kModelled;
  const bench::Machine machine = machine_of(options, place, times);
  const dualgemm_device_t device = place.supported ? place.device : bench::described_b200();
  const bench::ChainEffort effort{options.repeats, options.input_sets, options.samples, !options.verify_only};
  const bench::ChainReport table(times, machine, layers.size());
  if (!runs)
    fmt::print("Nothing is timed: no GPU of compute capability 9.0 or 10.x here (found: {}).\n", place.name);
  fmt::print("{}", table.heading());
  const std::vector<bench::ChainResult> results = bench::run_all<bench::ChainResult>(
      layers,
      [&](bench::ChainResult* result) { runs ? measure(result, device, effort) : describe(result, device); },
      [&](const bench::ChainResult& result) {
        fmt::print("{}", table.row(result));
        std::fflush(stdout);
      });
  fmt::print("{}", table.legend(results));
  json report = report_of(options, place, times, machine, 2);
  if (!runs) report["times"] = "none";
  report["chain"] = options.chain;
  report.erase("products");
  report["results"] = json::array();
  for (const bench::ChainResult& result : results) report["results"].push_back(to_json(result));
  write_json(report, options.json_path);
  return std::all_of(results.begin(), results.end(), [](const auto& r) { return r.error.empty(); }) ? 0 : 1;
}

int run(const bench::Options& options) {
  if (options.instances) {
    fmt::print("{}\n", bench::instances_json().dump(2));
    return 0;
  }
  if (options.errors) {
    fmt::print("{}", bench::errors_markdown());
    return 0;
  }
  if (options.cube) {
    fmt::print("{}", bench::cube_markdown(bench::described_b200()));
    return 0;
  }
  if (options.model) {
    fmt::print("{}", bench::model_markdown(bench::described_b200()));
    return 0;
  }
  if (options.suites_only) {
    print_suites();
    return 0;
  }
  if (!options.calibrate_path.empty()) {
    const json first_hour = bench::read_json(options.calibrate_path);
    fmt::print("{}", bench::is_first_hour(first_hour)
                         ? bench::first_hour_calibration(first_hour)
                         : bench::calibration(bench::read_report(options.calibrate_path)));
    return 0;
  }
  if (!options.chain.empty()) return run_chain(options, bench::chosen_layers(options));
  const std::vector<bench::Shape> shapes = bench::chosen_shapes(options);
  const int32_t products = shapes.front().products;
  bench::chosen_epilogue(options, products);  // before anything is asked of a device
  const Place place = find_place();
  const bench::Times times = times_of(options, place);
  const bench::Machine machine = machine_of(options, place, times);
  const json report = report_of(options, place, times, machine, products);
  if (!options.ablation.empty()) return run_ablations(options, place, shapes, report);
  return run_shapes(options, place, shapes, times, machine, report);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  if (const std::optional<int> status = bench::parse_options(argc, argv, &options)) return *status;
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "dualgemm_bench: {}\n", error.what());
    return 1;
  }
}
