// model.cpp -- see model.h.
#include "model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "budget.h"
#include "host/cost_model.h"
#include "host/select_config.h"
#include "published.h"
#include "sensitivity.h"

namespace bench {
namespace {

using dualgemm::Cost;
using dualgemm::Instance;
using dualgemm::Machine;
using GemmShape = dualgemm::Shape;

struct Class {
  const char* name;
  std::vector<GemmShape> shapes;
};

const std::vector<Class>& classes() {
  static const std::vector<Class> all = {
      {"contest", {{256, 4096, 7168}, {512, 4096, 7168}, {256, 3072, 4096}, {512, 3072, 7168}}},
      {"M up to 64", {{1, 2048, 7168}, {16, 3584, 8192}, {32, 4096, 7168}, {64, 14336, 4096}}},
      {"65 to 128", {{128, 2048, 7168}, {128, 3584, 8192}, {128, 28672, 8192}}},
      {"129 to 256", {{192, 3584, 8192}, {256, 1536, 4096}, {256, 2880, 2880}}},
      {"257 to 512", {{384, 3072, 7168}, {512, 2304, 7168}, {512, 14336, 4096}}},
      {"large", {{513, 3584, 8192}, {2048, 3584, 8192}, {4096, 14336, 4096}, {8192, 28672, 8192}}},
      {"deep K, few tiles", {{16, 256, 7168}, {128, 192, 5120}, {512, 256, 7168}}},
      {"batch", {{16, 720, 2880, 8}, {128, 768, 2048, 32}, {512, 2048, 7168, 8}}},
      {"groups",
       {{8, 2048, 7168, 256, true},
        {64, 1536, 4096, 128, true},
        {128, 4096, 7168, 8, true},
        {128, 7168, 2048, 8, true},
        {256, 3072, 4096, 2, true},
        {1024, 2880, 2880, 32, true}}},
  };
  return all;
}

std::string shape_text(const GemmShape& s) {
  std::string text = fmt::format("{} x {} x {}", s.m, s.n, s.k);
  if (s.grouped) return fmt::format("{} groups of about {}", s.problems, text);
  return s.problems > 1 ? fmt::format("{} of {}", s.problems, text) : text;
}

std::string_view without_dtype(std::string_view name) { return name.substr(0, name.rfind('_')); }

// The faster of the two tiles of the best public kernel, which has neither groups nor a choice of its own for
// other shapes than the contest's.
std::optional<double> public_us(const GemmShape& shape, const Machine& machine) {
  std::optional<double> best;
  for (const Instance* instance : {&kV2Narrow, &kV2Wide}) {
    Cost cost;
    if (!cost_of(*instance, shape, machine, &cost, /*keeps_a=*/true)) continue;
    if (!best || cost.total_us < *best) best = cost.total_us;
  }
  return best;
}

std::string choices_table(const Machine& machine) {
  std::string text =
      "| | M x N x K | instance | tiles of the busiest SM | KB into it | its tensor core, clocks | modelled, "
      "us | "
      "best public kernel, modelled, us |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Class& c : classes())
    for (const GemmShape& shape : c.shapes) {
      const int32_t index = dualgemm::select_config(shape, dualgemm::CType::kFp16, machine);
      if (index < 0) continue;
      const Instance& i = dualgemm::kInstances[index];
      Cost cost;
      cost_of(i, shape, machine, &cost);
      const int64_t k_tiles = cost.waves * cost.k_tiles;
      const int64_t flops = 4 * int64_t{i.tile_m} * i.tile_n * i.tile_k / i.cta_group;
      const std::optional<double> other = public_us(shape, machine);
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f} | {} |\n",
                          &shape == &c.shapes[0] ? c.name : "", shape_text(shape), without_dtype(i.name),
                          cost.waves, k_tiles * cost.fill_bytes / 1000, k_tiles * flops / kFlopsPerClock,
                          cost.total_us, other ? fmt::format("{:.1f}", *other) : "-");
    }
  return text;
}

std::string errors_table(const Machine& machine) {
  std::string text =
      "| kernel, tile | M x N x K | published, us | period it allows, us | modelled, us | outside by, us |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const Published& p : kPublished) {
    Cost cost;
    cost_of(p.instance, p.shape, machine, &cost, /*keeps_a=*/true);
    const double outside = outside_us(p, cost.total_us);
    text += fmt::format("| {} | {} | {} | {} to {} | {:.2f} | {} |\n", p.instance.name, shape_text(p.shape),
                        p.reported_us, p.low_us, p.high_us, cost.total_us,
                        outside == 0 ? "0" : fmt::format("{:+.2f}", outside));
  }
  const PublishedLarge& large = kPublishedLarge;
  Cost cost;
  cost_of(large.instance, large.shape, machine, &cost, /*keeps_a=*/true);
  const double us = cost.total_us - kLaunchGap;
  text += fmt::format("| {} | {} | {} | the kernel alone | {:.1f} | {:+.1f} |\n", large.instance.name,
                      shape_text(large.shape), large.kernel_us, us, us - large.kernel_us);
  return text;
}

std::string sensitivity_table(const Machine& machine) {
  std::string text =
      "| constant | from | to | choices within 2 % of the best | worst choice |\n| --- | --- | --- | --- | "
      "--- |\n";
  for (const dualgemm::CostRange& range : dualgemm::kCostRanges) {
    Regret all{};
    for (const double value : {range.low, range.high}) {
      dualgemm::CostConstants constants;
      constants.*range.constant = value;
      const Regret regret = regret_of(machine, constants);
      all.shapes += regret.shapes;
      all.close += regret.close;
      all.worst = std::max(all.worst, regret.worst);
    }
    text += fmt::format("| {} | {:g} | {:g} | {:.0f} % | {:.0f} % slower |\n", range.name, range.low,
                        range.high, 100.0 * all.close / all.shapes, 100 * all.worst);
  }
  return text;
}

}  // namespace

std::string model_markdown(const dualgemm_device_t& device) {
  const Machine machine{device.sm_count, device.clusters_of_2, device.clusters_of_4};
  const Machine b200{148};
  int inside = 0;
  double worst = 0;
  for (const Published& p : kPublished) {
    Cost cost;
    cost_of(p.instance, p.shape, b200, &cost, /*keeps_a=*/true);
    const double outside = outside_us(p, cost.total_us);
    inside += outside == 0;
    if (std::abs(outside) > std::abs(worst)) worst = outside;
  }
  return fmt::format(
             "Modelled for {} SMs, not measured. Time from launch to launch on a stream, operands in DRAM. "
             "Error of "
             "the model on {} published times of\nother kernels: {} within what the published figure allows, "
             "the "
             "worst {:+.2f} us outside.\n\n",
             device.sm_count, std::size(kPublished), inside, worst) +
         choices_table(machine) + "\n" + errors_table(b200) + "\n" + sensitivity_table(machine);
}

}  // namespace bench
