// tables.cpp -- see tables.h.
#include "bench/ablation/tables.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/ablation/ideas.h"
#include "bench/measure.h"
#include "bench/progress.h"
#include "bench/table.h"
#include "host/cost_model.h"
#include "test/support/device_memory.h"

namespace bench {
namespace {

using nlohmann::json;

std::vector<const Idea*> chosen(const std::string& name) {
  std::vector<const Idea*> out;
  for (const Idea& idea : ideas())
    if (name == "all" || idea.name == name) out.push_back(&idea);
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
std::string instance_text(const Way& way) {
  const std::string name = way.instance->name;
  return name.substr(0, name.rfind('_'));
}

json row_json(const Shape& shape, const Idea& idea, const Way& way) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"idea", idea.name},
          {"way", way.what},
          {"table", idea.title},
          {"instance", way.instance->name}};
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

json print_ablations(const std::vector<Shape>& shapes, const AblationRun& run, int& wrong) {
  json rows = json::array();
  const Table table = run.verify_only ? table_of({{"", 8, true}})
                                      : table_of({{"us (p10..p90)", 20}, {"graph, us", 9}, {"of first", 8}});
  for (const Shape& shape : shapes) {
    show_progress(fmt::format("{}: preparing {} input sets", problem_text(shape), run.input_sets));
    Workload workload(shape, DUALGEMM_DTYPE_FP16, run.input_sets, 1);
    // The products of the two-pass way go here.
    const size_t elements = static_cast<size_t>(shape.m) * static_cast<size_t>(shape.n);
    const dualgemm_test::DeviceArray<uint16_t> gates(elements), ups(elements);
    const Intermediates products{gates.data(), ups.data()};
    for (const Idea* idea : chosen(run.idea)) {
      clear_progress();
      print_title(shape, *idea, table);
      std::vector<json> of_idea;
      std::vector<Launch> right;  // those that are verified, to be timed in turns
      for (const Way& way : idea->ways) {
        json& row = of_idea.emplace_back(row_json(shape, *idea, way));
        load(way);
        const Launch launch_way = [&way, &products](const dualgemm_args_t& args, cudaStream_t stream) {
          launch(way, args, products, stream);
        };
        const std::string mismatch = workload.verify(
            run.samples, launch_way, way.two_pass ? Rounding::kIntermediates : Rounding::kOnce);
        row["verified"] = mismatch.empty();
        if (mismatch.empty()) right.push_back(launch_way);
        else row["error"] = "wrong: " + mismatch;
        wrong += !mismatch.empty();
      }
      std::vector<Timing> stream, graph;
      if (!run.verify_only) {
        stream = workload.time_stream(right, run.repeats);
        graph = workload.time_graph(right, run.repeats);
      }
      Ratio ratio;
      size_t next = 0;
      for (size_t i = 0; i < of_idea.size(); ++i) {
        json& row = of_idea[i];
        const Way& way = idea->ways[i];
        if (row.contains("error")) {
          fmt::print("{}", wrapped(way.what + ": FAILED: " + row["error"].get<std::string>()));
        } else if (run.verify_only) {
          fmt::print("{}", table.line({way.what, instance_text(way), "verified"}));
        } else {
          const Timing &s = stream[next], &g = graph[next++];
          row["stream"] = timing_json(s);
          row["graph"] = timing_json(g);
          fmt::print("{}", table.line({way.what, instance_text(way),
                                       range_text(s.median_us, s.p10_us, s.p90_us, us_text),
                                       us_text(g.median_us), ratio.of(g.median_us)}));
        }
        rows.push_back(row);
      }
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
    for (const Idea* idea : chosen(idea_name)) {
      print_title(shape, *idea, table);
      Ratio ratio;
      for (const Way& way : idea->ways) {
        json row = row_json(shape, *idea, way);
        dualgemm::Cost cost;
        std::vector<std::string> cells = {way.what, instance_text(way)};
        if (!way.modelled) {
          cells.push_back("not modelled");
        } else if (!cost_of(*way.instance, {shape.m, shape.n, shape.k}, machine, &cost)) {
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
