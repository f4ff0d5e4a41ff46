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

void print_title(const Shape& shape, const Idea& idea) {
  fmt::print("\n{}, {}: {}\n", idea.name, problem_text(shape), idea.title);
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
std::string timing_text(const Timing& t) {
  return fmt::format("{:.2f} ({:.2f}..{:.2f})", t.median_us, t.p10_us, t.p90_us);
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
  for (const Shape& shape : shapes) {
    fmt::print(stderr, "{}: preparing {} input sets\n", problem_text(shape), run.input_sets);
    Workload workload(shape, DUALGEMM_DTYPE_FP16, run.input_sets, 1);
    // The products of the two-pass way go here.
    const size_t elements = static_cast<size_t>(shape.m) * static_cast<size_t>(shape.n);
    const dualgemm_test::DeviceArray<uint16_t> gates(elements), ups(elements);
    const Intermediates products{gates.data(), ups.data()};
    for (const Idea* idea : chosen(run.idea)) {
      print_title(shape, *idea);
      if (!run.verify_only)
        fmt::print("{:<36} {:<32} {:>25} {:>25} {:>8}\n", "", "instance", "contest, us (p10..p90)",
                   "graph, us (p10..p90)", "of first");
      Ratio ratio;
      for (const Way& way : idea->ways) {
        json row = row_json(shape, *idea, way);
        load(way);
        workload.use([&way, &products](const dualgemm_args_t& args, cudaStream_t stream) {
          launch(way, args, products, stream);
        });
        const std::string mismatch =
            workload.verify(run.samples, way.two_pass ? Rounding::kIntermediates : Rounding::kOnce);
        row["verified"] = mismatch.empty();
        fmt::print("{:<36} {:<32} ", way.what, way.instance->name);
        if (!mismatch.empty()) {
          ++wrong;
          row["mismatch"] = mismatch;
          fmt::print("WRONG: {}\n", mismatch);
        } else if (run.verify_only) {
          fmt::print("verified\n");
        } else {
          const Timing stream = workload.time_stream(run.repeats), graph = workload.time_graph(run.repeats);
          row["contest"] = timing_json(stream);
          row["graph"] = timing_json(graph);
          fmt::print("{:>25} {:>25} {:>8}\n", timing_text(stream), timing_text(graph),
                     ratio.of(graph.median_us));
        }
        std::fflush(stdout);
        rows.push_back(row);
      }
    }
  }
  return rows;
}

json print_modelled_ablations(const std::vector<Shape>& shapes, const std::string& idea_name,
                              const dualgemm_device_t& device) {
  const dualgemm::Machine machine{device.sm_count, device.clusters_of_2, device.clusters_of_4};
  fmt::print("Modelled for {} SMs, not measured.\n", device.sm_count);
  json rows = json::array();
  for (const Shape& shape : shapes) {
    for (const Idea* idea : chosen(idea_name)) {
      print_title(shape, *idea);
      fmt::print("{:<36} {:<32} {:>12} {:>8}\n", "", "instance", "modelled, us", "of first");
      Ratio ratio;
      for (const Way& way : idea->ways) {
        json row = row_json(shape, *idea, way);
        dualgemm::Cost cost;
        fmt::print("{:<36} {:<32} ", way.what, way.instance->name);
        if (!way.modelled) {
          fmt::print("{:>12}\n", "not modelled");
        } else if (!cost_of(*way.instance, {shape.m, shape.n, shape.k}, machine, &cost)) {
          fmt::print("{:>12}\n", "too large");
        } else {
          fmt::print("{:>12.2f} {:>8}\n", cost.total_us, ratio.of(cost.total_us));
          row["modelled_us"] = cost.total_us;
        }
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace bench
