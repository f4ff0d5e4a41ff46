// dualgemm_bench.cpp -- verifies, then times, libdualgemm on the GPU; where there is none, says so and prints
// what each problem costs in bytes and tensor-core clocks. Launches go through the public interface; budgets,
// plans, the model and the ablations look inside the library. Tables go to stdout, progress to stderr,
// everything to --json.
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
#include "budget.h"
#include "cube.h"
#include "dualgemm.h"
#include "errors.h"
#include "host/device.h"
#include "inputs.h"
#include "instances.h"
#include "measure.h"
#include "model.h"
#include "names.h"
#include "shapes.h"

namespace {

using nlohmann::json;

// What --dtype calls the types of C.
constexpr bench::Named<dualgemm_dtype_t> kTypes[] = {{DUALGEMM_DTYPE_FP16, "fp16"},
                                                     {DUALGEMM_DTYPE_BF16, "bf16"},
                                                     {DUALGEMM_DTYPE_FP32, "fp32"},
                                                     {DUALGEMM_DTYPE_FP8_E4M3, "fp8"},
                                                     {DUALGEMM_DTYPE_NVFP4, "nvfp4"}};

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
  std::string dtype = "fp16", activation = "SWIGLU", json_path, ablation;
  int repeats = 20, input_sets = 50, samples = 1000;
  bool verify_only = false, instances = false, model = false, cube = false, errors = false;
};

std::vector<bench::Shape> chosen_shapes(const Options& options) {
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
  return out;
}

using bench::shape_text;

json shape_json(const bench::Shape& shape, const bench::Budget& b) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"label", shape.label},
          {"problems", shape.problems()},
          {"mode", shape.offsets()   ? "offsets"
                   : shape.grouped() ? "masked"
                                     : "none"},
          {"group_rows", shape.group_rows},
          {"instance", b.instance->name},
          {"tiles", b.tiles},
          {"cluster", b.cluster},
          {"ctas", b.ctas},
          {"tiles_per_sm", b.tiles_per_sm},
          {"dram_bytes", b.dram_bytes},
          {"fill_bytes_per_sm", b.fill_bytes},
          {"tensor_clocks_per_sm", b.tensor_clocks},
          {"flops", b.flops},
          {"smem_bytes", b.instance->smem_bytes},
          {"tmem_columns", b.instance->plan.tmem.allocated},
          {"stages", b.instance->plan.operands.stages}};
}

json print_budgets(const std::vector<bench::Shape>& shapes, const bench::Epilogue& epilogue,
                   const dualgemm_device_t& device) {
  fmt::print("Arithmetic, not time: what each problem costs on {} SMs.\n\n", device.sm_count);
  fmt::print("{:<34} {:<20} {:<28} {:>6} {:>7} {:>5} {:>9} {:>10} {:>12} {:>14} {:>10} {:>5}\n", "M x N x K",
             "", "instance", "tiles", "cluster", "CTAs", "tiles/SM", "DRAM, MB", "fill/SM, KB",
             "tensor clk/SM", "smem, B", "TMEM");
  json rows = json::array();
  for (const bench::Shape& shape : shapes) {
    const bench::Budget b = bench::budget_of(shape, epilogue, device);
    fmt::print("{:<34} {:<20} {:<28} {:>6} {:>7} {:>5} {:>9} {:>10.1f} {:>12.0f} {:>14} {:>10} {:>5}\n",
               shape_text(shape), shape.label, b.instance->name, b.tiles, b.cluster, b.ctas, b.tiles_per_sm,
               b.dram_bytes * 1e-6, b.fill_bytes * 1e-3, b.tensor_clocks, b.instance->smem_bytes,
               b.instance->plan.tmem.allocated);
    rows.push_back(shape_json(shape, b));
  }
  fmt::print(
      "\nCluster: CTAs that share a tile. CTAs: working at the same time. DRAM: every input and C once. "
      "Fill and\ntensor clocks: of the SM with the most tiles; "
      "clocks at the tensor core's peak rate of {} operations.\n"
      "TMEM: columns of 512.\n",
      bench::kFlopsPerClock);
  return rows;
}

json timing_json(const bench::Timing& t) {
  return {{"median_us", t.median_us}, {"p10_us", t.p10_us}, {"p90_us", t.p90_us}};
}

bench::Machine print_machine(const dualgemm_device_t& device) {
  const bench::Machine machine = bench::describe_machine(device);
  fmt::print(
      "{}: {} SMs, up to {:.3f} GHz, {:.2f} TB/s of DRAM pins, {:.2f} PFLOP/s NVFP4 at that clock; "
      "driver {}, runtime {}\n{}\n\n",
      machine.name, machine.sms, machine.clock_ghz, machine.dram_tb_s, machine.tensor_pflops, machine.driver,
      machine.runtime, dualgemm_build_info());
  return machine;
}

// Verifies each shape, then times it in both ways, prints a line for it and returns them all as JSON. `wrong`
// counts the shapes that did not verify; those are not timed.
json print_timings(const std::vector<bench::Shape>& shapes, const bench::Epilogue& epilogue,
                   const dualgemm_device_t& device, const Options& options, int& wrong) {
  const bench::Machine machine = print_machine(device);
  fmt::print("{:<34} {:<20} {:<28} {:>25} {:>25} {:>7} {:>8}  {}\n", "M x N x K", "", "instance",
             "contest, us (p10..p90)", "graph, us (p10..p90)", "TB/s", "PFLOP/s", "roof");
  json rows = json::array();
  for (const bench::Shape& shape : shapes) {
    const bench::Budget b = bench::budget_of(shape, epilogue, device);
    json row = shape_json(shape, b);
    const int input_sets = bench::input_sets_of(
        shape, options.verify_only ? std::min(2, options.input_sets) : options.input_sets, epilogue);
    row["input_sets"] = input_sets;
    fmt::print(stderr, "{}: preparing {} input sets\n", shape_text(shape), input_sets);
    bench::Workload workload(shape, epilogue, input_sets, 1);
    fmt::print(stderr, "{}: verifying\n", shape_text(shape));
    const std::string mismatch = workload.verify(options.samples);
    row["verified"] = mismatch.empty();
    if (!mismatch.empty()) {
      ++wrong;
      row["mismatch"] = mismatch;
      fmt::print("{:<34} {:<20} {:<28} WRONG: {}\n", shape_text(shape), shape.label, b.instance->name,
                 mismatch);
    } else if (options.verify_only) {
      fmt::print("{:<34} {:<20} {:<28} verified\n", shape_text(shape), shape.label, b.instance->name);
    } else {
      fmt::print(stderr, "{}: timing\n", shape_text(shape));
      const bench::Timing stream = workload.time_stream(options.repeats);
      const bench::Timing graph = workload.time_graph(options.repeats);
      const double dram_us = b.dram_bytes / machine.dram_tb_s * 1e-6;
      const double tensor_us = b.flops / machine.tensor_pflops * 1e-9;
      const double roof_us = std::max(dram_us, tensor_us);
      const char* roof = dram_us > tensor_us ? "DRAM" : "tensor";
      const double share = 100 * roof_us / graph.median_us;
      fmt::print("{:<34} {:<20} {:<28} {:>25} {:>25} {:>7.2f} {:>8.2f}  {:.0f} % of {}\n", shape_text(shape),
                 shape.label, b.instance->name,
                 fmt::format("{:.2f} ({:.2f}..{:.2f})", stream.median_us, stream.p10_us, stream.p90_us),
                 fmt::format("{:.2f} ({:.2f}..{:.2f})", graph.median_us, graph.p10_us, graph.p90_us),
                 b.dram_bytes / graph.median_us * 1e-6, b.flops / graph.median_us * 1e-9, share, roof);
      row["contest"] = timing_json(stream);
      row["graph"] = timing_json(graph);
      row["tb_per_s"] = b.dram_bytes / graph.median_us * 1e-6;
      row["pflop_per_s"] = b.flops / graph.median_us * 1e-9;
      row["roof"] = roof;
      row["percent_of_roof"] = share;
    }
    std::fflush(stdout);
    rows.push_back(row);
  }
  return rows;
}

void require_device_to_verify(const Options& options) {
  if (options.verify_only)
    throw std::runtime_error("--verify-only needs a device of compute capability 10.x");
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
  const bench::Epilogue epilogue(number_of(kTypes, options.dtype),
                                 number_of(bench::kActivations, options.activation));
  const std::vector<bench::Shape> shapes = chosen_shapes(options);

  dualgemm_device_t device;
  dualgemm_device_init(&device);
  const bool found = dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS;
  const std::string found_name = found ? device.name : "no CUDA device";
  const bool simulated = found && found_name.find("simulated") != std::string::npos;
  const bool supported = found && dualgemm::served_architecture(device) != nullptr;
  const bool timed = supported && !simulated && !options.verify_only;

  json report = {{"library", dualgemm_build_info()},
                 {"dtype", options.dtype},
                 {"activation", options.activation},
                 {"device", found_name},
                 {"timed", timed}};
  int wrong = 0;
  if (!options.ablation.empty()) {
    if (options.dtype != "fp16" || options.activation != "SWIGLU")
      throw std::runtime_error("--ablation: built for --dtype fp16 --activation SWIGLU only");
    if (std::any_of(shapes.begin(), shapes.end(),
                    [](const bench::Shape& s) { return s.problems() > 1 || s.grouped(); }))
      throw std::runtime_error("--ablation: for single problems only");
    report["ablation"] = options.ablation;
    report["input_sets"] = options.input_sets;
    if (supported && (!simulated || options.verify_only)) {
      const bench::AblationRun run{options.ablation, options.repeats, options.input_sets, options.samples,
                                   options.verify_only};
      print_machine(device);
      report["results"] = bench::print_ablations(shapes, run, wrong);
    } else {
      require_device_to_verify(options);
      report["results"] = bench::print_modelled_ablations(shapes, options.ablation,
                                                          supported ? device : bench::described_b200());
    }
  } else if (supported && (!simulated || options.verify_only)) {
    report["repeats"] = options.repeats;
    report["results"] = print_timings(shapes, epilogue, device, options, wrong);
  } else {
    require_device_to_verify(options);
    fmt::print("Nothing is timed: no Blackwell GPU here (found: {}).\n", found_name);
    report["results"] = print_budgets(shapes, epilogue, supported ? device : bench::described_b200());
  }
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    file << report.dump(2) << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + options.json_path);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Benchmark of libdualgemm: C = silu(A B1^T) * (A B2^T) of NVFP4 operands"};
  std::vector<std::string> names;
  for (const bench::Suite& suite : bench::suites()) names.push_back(suite.name);
  app.add_option("--suite", options.suites, "named shapes to run")
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  app.add_option(
      "--shape", options.shapes,
      "instead of a suite, may be repeated: MxNxK, L*MxNxK, offsets:R,R,..xNxK, masked:G~RxNxK (README.md)");
  app.add_option("--dtype", options.dtype, "type of C")->check(CLI::IsMember(names_of(kTypes)));
  app.add_option("--activation", options.activation, "with its default parameters")
      ->transform(CLI::IsMember(names_of(bench::kActivations), CLI::ignore_case));
  app.add_option("--ablation", options.ablation, "instead of the library's choice: one idea on and off")
      ->check(CLI::IsMember(bench::idea_names()));
  app.add_option("--repeats", options.repeats, "timed repeats")->check(CLI::Range(1, 100000));
  app.add_option("--input-sets", options.input_sets, "launches per repeat, each on inputs of its own")
      ->check(CLI::Range(1, 1000));
  app.add_option("--samples", options.samples, "outputs verified per input set")
      ->check(CLI::Range(4, 100000000));
  app.add_flag("--verify-only", options.verify_only, "verify and stop; runs in the simulator, too");
  app.add_flag("--instances", options.instances, "print every instance with its plan as JSON and stop");
  app.add_flag("--errors", options.errors,
               "print how far each activation is off in every type of C, and stop");
  app.add_flag("--cube", options.cube,
               "print how many combinations of outputs, activations and launches a B200 accepts, and stop");
  app.add_flag("--model", options.model,
               "print the choices and the times that the cost model predicts and stop");
  app.add_option("--json", options.json_path, "also write everything to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "dualgemm_bench: {}\n", error.what());
    return 1;
  }
}
