// dualgemm_bench.cpp -- verifies, then times, libdualgemm on the GPU, beside what cuBLASLt and an activation
// kernel take; where there is none, says so and prints what the cost model expects. Launches go through the
// public interface; budgets, plans, the model and the ablations look inside the library. Tables go to stdout,
// progress to a terminal, everything to --json.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "ablation/tables.h"
#include "bench/git_hash.h"
#include "budget.h"
#include "calibrate.h"
#include "compare.h"
#include "cube.h"
#include "dualgemm.h"
#include "errors.h"
#include "host/common/device.h"
#include "instances.h"
#include "machine.h"
#include "model.h"
#include "names.h"
#include "nvml.h"
#include "report_json.h"
#include "results.h"
#include "shapes.h"
#include "tables.h"

namespace {

using nlohmann::json;

// What --dtype calls the types of C.
constexpr bench::Named<dualgemm_dtype_t> kTypes[] = {{DUALGEMM_DTYPE_FP16, "fp16"},
                                                     {DUALGEMM_DTYPE_BF16, "bf16"},
                                                     {DUALGEMM_DTYPE_FP32, "fp32"},
                                                     {DUALGEMM_DTYPE_FP8_E4M3, "fp8"},
                                                     {DUALGEMM_DTYPE_NVFP4, "nvfp4"}};

// What --a-dtype calls the types of A.
constexpr bench::Named<dualgemm_dtype_t> kTypesOfA[] = {
    {DUALGEMM_DTYPE_NVFP4, "nvfp4"}, {DUALGEMM_DTYPE_BF16, "bf16"}, {DUALGEMM_DTYPE_FP16, "fp16"}};

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> out;
  for (const auto& entry : list) out.push_back(entry.name);
  return out;
}
template <class List>
auto number_of(const List& list, const std::string& name) {
  return std::find_if(std::begin(list), std::end(list), [&](const auto& entry) { return entry.name == name; })
      ->number;
}

struct Options {
  std::vector<std::string> suites{"contest"}, shapes;
  std::vector<std::string> contenders;
  std::vector<int32_t> rows;
  int32_t products = 0;  // 0: those of the suites
  std::string a_dtype = "nvfp4", dtype = "fp16", activation = "SWIGLU", linear_activation = "NONE", json_path,
              compare_path, calibrate_path, ablation;
  int repeats = 20, input_sets = 50, samples = 1000;
  bool verify_only = false, baseline_only = false, instances = false, model = false, cube = false,
       errors = false, every_instance = false, suites_only = false;
};

std::vector<bench::Shape> named_shapes(const Options& options) {
  std::vector<bench::Shape> out;
  for (const std::string& text : options.shapes) out.push_back(bench::parse_shape(text));
  if (!out.empty()) return out;
  for (const std::string& name : options.suites) {
    const auto& all = bench::suites();
    const auto suite =
        std::find_if(all.begin(), all.end(), [&](const bench::Suite& s) { return s.name == name; });
    if (suite == all.end()) throw std::runtime_error("unknown suite " + name);
    out.insert(out.end(), suite->shapes.begin(), suite->shapes.end());
  }
  const auto other = [&](const bench::Shape& shape) { return shape.products != out.front().products; };
  if (options.products == 0 && std::any_of(out.begin(), out.end(), other))
    throw std::runtime_error("--suite: some have one product, others two: --products says what is run");
  return out;
}

std::vector<bench::Shape> chosen_shapes(const Options& options) {
  std::vector<bench::Shape> out = named_shapes(options);
  for (bench::Shape& shape : out) {
    shape.a_dtype = number_of(kTypesOfA, options.a_dtype);
    if (options.products != 0) shape.products = options.products;
  }
  return options.rows.empty() ? out : bench::with_rows(out, options.rows);
}

// Returns what the options say of the products, or refuses what belongs to another number of them.
bench::Epilogue chosen_epilogue(const Options& options, int32_t products) {
  if (products == 1 && options.activation != "SWIGLU")
    throw std::runtime_error("--activation " + options.activation +
                             ": of two products; one takes --linear-activation");
  if (products == 2 && options.linear_activation != "NONE")
    throw std::runtime_error("--linear-activation " + options.linear_activation +
                             ": of one product; two take --activation");
  return {number_of(kTypes, options.dtype), number_of(bench::kActivations, options.activation),
          number_of(bench::kLinearActivations, options.linear_activation)};
}

// Prints what --suite takes, and how many problems each has.
void print_suites() {
  const bench::Table table({{"suite", 9, true}, {"problems", 8}, {"products", 8}, {"", 68, true}});
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

bench::Times times_of(const Options& options, const Place& place) {
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

void write_json(const json& report, const std::string& path) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << bench::report_text(report);
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

int run_ablations(const Options& options, const Place& place, const std::vector<bench::Shape>& shapes,
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

// Prints a row for each shape, and then what the columns mean and how the times compare with earlier ones.
int run_shapes(const Options& options, const Place& place, const std::vector<bench::Shape>& shapes,
               bench::Times times, const bench::Machine& machine, json report) {
  const bench::Epilogue epilogue = chosen_epilogue(options, shapes.front().products);
  json old_report;
  if (!options.compare_path.empty()) {
    old_report = bench::read_report(options.compare_path);
    bench::check_comparable(old_report, report);
  }
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
  const std::vector<bench::Result> results = bench::run_all(
      shapes,
      [&](bench::Result* result) {
        timed ? measure(result, epilogue, device, effort) : describe(result, epilogue, device);
      },
      [&](const bench::Result& result) {
        fmt::print("{}", table.row(result));
        std::fflush(stdout);
      });
  fmt::print("{}", table.legend(results));
  report["results"] = json::array();
  for (const bench::Result& result : results) report["results"].push_back(to_json(result, machine));
  write_json(report, options.json_path);
  if (!old_report.is_null()) fmt::print("\n{}", bench::comparison(old_report, report));
  return std::all_of(results.begin(), results.end(), [](const bench::Result& r) { return r.error.empty(); })
             ? 0
             : 1;
}

int run(const Options& options) {
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
    fmt::print("{}", bench::calibration(bench::read_report(options.calibrate_path)));
    return 0;
  }
  const std::vector<bench::Shape> shapes = chosen_shapes(options);
  const int32_t products = shapes.front().products;
  chosen_epilogue(options, products);  // before anything is asked of a device
  const Place place = find_place();
  const bench::Times times = times_of(options, place);
  const bool described = times == bench::Times::kModelled && !place.supported;
  const bench::Machine machine =
      described ? bench::described_machine()
                : bench::describe_machine(place.device, number_of(kTypesOfA, options.a_dtype));
  const bench::RunInfo info{times,           DUALGEMM_GIT_HASH,
                            options.dtype,   products == 1 ? options.linear_activation : options.activation,
                            options.repeats, options.samples,
                            options.a_dtype, products};
  const json report = bench::report_json(
      info, machine, place.gpu && !described ? bench::gpu_state(place.device.ordinal) : bench::GpuState{});
  if (!options.ablation.empty()) return run_ablations(options, place, shapes, report);
  return run_shapes(options, place, shapes, times, machine, report);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Benchmark of libdualgemm: C = silu(A B1^T) * (A B2^T) of NVFP4 operands, or A B1^T alone"};
  std::vector<std::string> names;
  for (const bench::Suite& suite : bench::suites()) names.push_back(suite.name);
  app.add_option("--suite", options.suites, "named shapes to run")
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  app.add_option("--shape", options.shapes,
                 "instead of a suite, may be repeated: MxNxK, L*MxNxK, offsets:G~RxNxK");
  app.add_option("--rows", options.rows, "the M of all shapes instead of theirs: 1,16,64")
      ->check(CLI::Range(1, INT32_MAX))
      ->delimiter(',');
  app.add_option("--products", options.products, "of A: 2, or 1; otherwise as the suites have them")
      ->check(CLI::Range(1, 2));
  app.add_option("--a-dtype", options.a_dtype, "type of A; bf16 and fp16 on Hopper")
      ->check(CLI::IsMember(names_of(kTypesOfA)));
  app.add_option("--dtype", options.dtype, "type of C")->check(CLI::IsMember(names_of(kTypes)));
  app.add_option("--activation", options.activation, "with its default parameters")
      ->transform(CLI::IsMember(names_of(bench::kActivations), CLI::ignore_case));
  app.add_option("--linear-activation", options.linear_activation, "of one product")
      ->transform(CLI::IsMember(names_of(bench::kLinearActivations), CLI::ignore_case));
  const auto ablation =
      app.add_option("--ablation", options.ablation, "one idea on and off (README.md names them), or all")
          ->check(CLI::IsMember(bench::idea_names()).description("IDEA"));
  app.add_option("--repeats", options.repeats, "timed repeats")->check(CLI::Range(1, 100000));
  app.add_option("--input-sets", options.input_sets, "launches per repeat, each on inputs of its own")
      ->check(CLI::Range(1, 1000));
  app.add_option("--samples", options.samples, "outputs verified per input set")
      ->check(CLI::Range(4, 100000000));
  const auto verify_only =
      app.add_flag("--verify-only", options.verify_only, "verify and stop; runs in the simulator, too");
  app.add_flag("--suites", options.suites_only, "print the suites and how many problems they have, and stop");
  app.add_flag("--instances", options.instances, "print every instance with its plan as JSON and stop");
  app.add_flag("--errors", options.errors,
               "print how far each activation is off in every type of C, and stop");
  app.add_flag("--cube", options.cube, "print how many combinations a B200 accepts, and stop");
  app.add_flag("--model", options.model,
               "print the choices and the times that the cost model predicts and stop");
  app.add_flag("--baseline-only", options.baseline_only,
               "time cuBLASLt and an activation kernel alone; Hopper or newer")
      ->excludes(verify_only)
      ->excludes(ablation);
  app.add_option(
         "--contender", options.contenders,
         "a kernel of somebody else's, timed in turns with the library (contender.h); may be repeated")
      ->excludes(verify_only)
      ->excludes(ablation);
  app.add_flag("--every-instance", options.every_instance,
               "time every instance that takes a shape, instead of the baseline")
      ->excludes(verify_only)
      ->excludes(ablation);
  app.add_option("--calibrate", options.calibrate_path,
                 "fit the cost model's constants for Hopper to such a run, written by --json, and stop");
  app.add_option("--json", options.json_path, "also write everything to this file");
  app.add_option("--compare", options.compare_path, "print how the times differ from those of such a file")
      ->excludes(verify_only)
      ->excludes(ablation);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "dualgemm_bench: {}\n", error.what());
    return 1;
  }
}
