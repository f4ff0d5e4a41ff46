// tables.cpp -- see tables.h.
#include "bench/ablation/tables.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/ablation/ideas.h"
#include "bench/inputs.h"
#include "bench/measure.h"
#include "bench/progress.h"
#include "bench/table.h"
#include "host/model/cost_model.h"
#include "test/support/device_memory.h"

namespace bench {
namespace {

using nlohmann::json;

std::vector<Idea> chosen(const std::string& name, const Shape& shape, const dualgemm_device_t& device) {
  std::vector<Idea> out;
  for (const Idea& idea : ideas_for(shape, device))
    if (name == "all" || idea.name == name) out.push_back(idea);
  if (out.empty()) throw std::runtime_error("--ablation " + name + ": not built for this device");
  return out;
}

std::string problem_text(const Shape& s) { return fmt::format("{} x {} x {}", s.m, s.n, s.k); }

void print_title(const Shape& shape, const Idea& idea, const Table& table) {
  fmt::print("\n{}, {}\n{}\n{}", idea.name, problem_text(shape), idea.title, table.heading());
}

// The columns of a way, before those of its times. All ways are for fp16.
Table table_of(std::vector<Column> times) {
  times.insert(times.begin(), {{"", 32, true}, {"instance", 24, true}});
  return Table(times);
}
std::string instance_text(const dualgemm::Instance& instance) {
  const std::string name = instance.name;
  return name.substr(0, name.rfind('_'));
}

json row_json(const Shape& shape, const Idea& idea, const Way& way, const dualgemm::Instance& instance) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"idea", idea.name},
          {"way", way.what},
          {"table", idea.title},
          {"instance", instance.name}};
}

json timing_json(const Timing& t) {
  return {{"median_us", t.median_us}, {"p10_us", t.p10_us}, {"p90_us", t.p90_us}};
}

// Gives times relative to the first row of the table: "1.00" for that row itself.
class Ratio {
 public:
  std::string of(double us) {
    if (!baseline_) baseline_ = us;
    return fmt::format("{:.2f}", us / *baseline_);
  }

 private:
  std::optional<double> baseline_;
};

}  // namespace

std::vector<std::string> idea_names() {
  std::vector<std::string> names{"all"};
  for (const Idea& idea : ideas())
    if (std::find(names.begin(), names.end(), idea.name) == names.end()) names.push_back(idea.name);
  return names;
}

namespace {

// A way with one of its instances.
struct Attempt {
  const Way* way;
  const dualgemm::Instance* instance;
  std::string error = {};
  Timing stream = {}, graph = {};
};

// Verifies every instance of every way.
std::vector<Attempt> attempts_of(const Idea& idea, Workload* workload, const Intermediates& products,
                                 int samples, std::vector<Launch>* right) {
  std::vector<Attempt> out;
  for (const Way& way : idea.ways)
    for (const dualgemm::Instance* instance : way.instances) {
      Attempt& attempt = out.emplace_back(Attempt{&way, instance});
      load(*instance);
      const Launch launch_way = [&way, instance, products](const dualgemm_args_t& args, cudaStream_t stream) {
        launch(way, *instance, args, products, stream);
      };
      const std::string mismatch =
          workload->verify(samples, launch_way, way.two_pass ? Rounding::kIntermediates : Rounding::kOnce);
      if (mismatch.empty()) right->push_back(launch_way);
      else attempt.error = "wrong: " + mismatch;
    }
  return out;
}

// Prints what failed, and of each way the fastest, or, where nothing is timed, all that is right.
json print_attempts(const Shape& shape, const Idea& idea, const std::vector<Attempt>& attempts, bool timed,
                    const Table& table) {
  json rows = json::array();
  Ratio ratio;
  for (const Way& way : idea.ways) {
    const Attempt* best = nullptr;
    json tried = json::array();
    for (const Attempt& attempt : attempts) {
      if (attempt.way != &way) continue;
      json& row = tried.emplace_back(json{{"instance", attempt.instance->name}});
      if (!attempt.error.empty()) {
        row["error"] = attempt.error;
        fmt::print("{}", wrapped(fmt::format("{}, {}: FAILED: {}", way.what, instance_text(*attempt.instance),
                                             attempt.error)));
        continue;
      }
      if (timed) row["graph"] = timing_json(attempt.graph);
      else fmt::print("{}", table.line({way.what, instance_text(*attempt.instance), "verified"}));
      if (!best || attempt.graph.median_us < best->graph.median_us) best = &attempt;
    }
    json& row = rows.emplace_back(row_json(shape, idea, way, best ? *best->instance : *way.instances.at(0)));
    row["verified"] = best != nullptr;
    row["tried"] = tried;
    if (!best) row["error"] = "nothing is right";
    if (!best || !timed) continue;
    row["stream"] = timing_json(best->stream);
    row["graph"] = timing_json(best->graph);
    const Timing& s = best->stream;
    fmt::print("{}", table.line({way.what, instance_text(*best->instance),
                                 range_text(s.median_us, s.p10_us, s.p90_us, us_text),
                                 us_text(best->graph.median_us), ratio.of(best->graph.median_us)}));
  }
  return rows;
}

}  // namespace

json print_ablations(const std::vector<Shape>& shapes, const AblationRun& run,
                     const dualgemm_device_t& device, int& wrong) {
  json rows = json::array();
  const Table table = run.verify_only ? table_of({{"", 8, true}})
                                      : table_of({{"us (p10..p90)", 20}, {"graph, us", 9}, {"of first", 8}});
  for (const Shape& shape : shapes) {
    const std::vector<Idea> ideas = chosen(run.idea, shape, device);
    const int sets = input_sets_of(shape, run.verify_only ? std::min(2, run.input_sets) : run.input_sets);
    show_progress(fmt::format("{}: preparing {} input sets", problem_text(shape), sets));
    Workload workload(shape, DUALGEMM_DTYPE_FP16, sets, 1);
    // The products of the two-pass way go here.
    const size_t elements = static_cast<size_t>(shape.m) * static_cast<size_t>(shape.n);
    const dualgemm_test::DeviceArray<uint16_t> gates(elements), ups(elements);
    for (const Idea& idea : ideas) {
      std::vector<Launch> right;  // to be timed in turns
      std::vector<Attempt> attempts =
          attempts_of(idea, &workload, {gates.data(), ups.data()}, run.samples, &right);
      std::vector<Timing> stream, graph;
      if (!run.verify_only) {
        stream = workload.time_stream(right, run.repeats);
        graph = workload.time_graph(right, run.repeats);
      }
      size_t next = 0;
      for (Attempt& attempt : attempts) {
        wrong += !attempt.error.empty();
        if (run.verify_only || !attempt.error.empty()) continue;
        attempt.stream = stream[next];
        attempt.graph = graph[next++];
      }
      clear_progress();
      print_title(shape, idea, table);
      for (const json& row : print_attempts(shape, idea, attempts, !run.verify_only, table))
        rows.push_back(row);
      std::fflush(stdout);
    }
  }
  return rows;
}

json print_modelled_ablations(const std::vector<Shape>& shapes, const std::string& idea_name,
                              const dualgemm_device_t& device) {
  const dualgemm::Machine machine{device.sm_count, device.clusters_of_2, device.clusters_of_4};
  fmt::print("MODELLED for {} SMs, not measured.\n", device.sm_count);
  json rows = json::array();
  const Table table = table_of({{"modelled, us", 12}, {"of first", 8}});
  for (const Shape& shape : shapes) {
    for (const Idea& idea : chosen(idea_name, shape, device)) {
      print_title(shape, idea, table);
      Ratio ratio;
      for (const Way& way : idea.ways) {
        const dualgemm::Instance& instance = *way.instances.at(0);
        json row = row_json(shape, idea, way, instance);
        dualgemm::Cost cost;
        std::vector<std::string> cells = {way.what, instance_text(instance)};
        if (!way.modelled) {
          cells.push_back("not modelled");
        } else if (!cost_of(instance, {shape.m, shape.n, shape.k}, machine, &cost)) {
          cells.push_back("too large");
        } else {
          cells.insert(cells.end(), {fmt::format("{:.2f}", cost.total_us), ratio.of(cost.total_us)});
          row["modelled_us"] = cost.total_us;
        }
        fmt::print("{}", table.line(cells));
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace bench
