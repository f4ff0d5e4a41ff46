// model.cpp -- see model.h.
#include "model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "budget.h"
#include "host/model/cost_model.h"
#include "host/model/epilogue_work.h"
#include "host/model/select_instance.h"
#include "modelled.h"
#include "names.h"
#include "published.h"
#include "sensitivity.h"

namespace bench {
namespace {

using dualgemm::Cost;
using dualgemm::Instance;
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

double us_of(const Instance& instance, const GemmShape& shape, const dualgemm::Machine& machine,
             const dualgemm::CostConstants& constants) {
  Cost cost;
  cost_of(instance, shape, machine, &cost, constants);
  return cost.total_us;
}

std::string us_and_range(const Instance& instance, const GemmShape& shape, const dualgemm::Machine& machine) {
  const Modelled m = modelled(instance, shape, machine);
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", m.us(), m.low_us, m.high_us);
}

// Returns the faster of the two tiles of the best public kernel, which has neither groups nor a choice of its
// own for other shapes than the contest's.
const Instance* best_public(const GemmShape& shape, const dualgemm::Machine& machine) {
  const Instance* best = nullptr;
  double lowest = std::numeric_limits<double>::infinity();
  for (const Instance* instance : {&kV2Narrow, &kV2Wide}) {
    Cost cost;
    if (!cost_of(*instance, shape, machine, &cost) || cost.total_us >= lowest) continue;
    best = instance;
    lowest = cost.total_us;
  }
  return best;
}

// Returns the text without the spaces inside of its shapes and ranges: "256x4096x7168", "10.6..11.8".
std::string narrow(std::string text) {
  for (const auto& [wide, short_one] :
       {std::pair<std::string_view, std::string_view>{" x ", "x"}, {" to ", ".."}})
    for (size_t at; (at = text.find(wide)) != std::string::npos;) text.replace(at, wide.size(), short_one);
  return text;
}

// Prints for the front page the contest's shapes with their best published times, and one of each other kind.
std::string figures_table(const dualgemm::Machine& machine) {
  const auto us = [&machine](const GemmShape& shape) {
    const int32_t index = dualgemm::select_instance(kCompared, shape, machine);
    return narrow(us_and_range(dualgemm::instance(index), shape, machine));
  };
  std::string text =
      "| M x N x K | us | best public, us | published, us |\n"
      "| --- | --- | --- | --- |\n";
  for (const Published& p : kPublished)
    if (p.instance.name == kV2Narrow.name || p.instance.name == kV2Wide.name)
      text += fmt::format("| {} | {} | {:.1f} | {} |\n", narrow(shape_text(p.shape)), us(p.shape),
                          us_of(p.instance, p.shape, machine, dualgemm::kB200Costs), p.reported_us);
  for (const GemmShape& shape : {GemmShape{16, 3584, 8192}, GemmShape{64, 1536, 4096, 128, true}})
    text += fmt::format("| {} | {} | - | - |\n", narrow(shape_text(shape)), us(shape));
  return text;
}

std::string choices_table(const dualgemm::Machine& machine) {
  std::string text =
      "| | M x N x K | instance | tiles of the busiest SM | KB into that SM | clocks of its tensor core | "
      "modelled, us | best public kernel, modelled, us |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Class& c : classes())
    for (const GemmShape& shape : c.shapes) {
      const int32_t index = dualgemm::select_instance(kCompared, shape, machine);
      if (index < 0) continue;
      const Instance& i = dualgemm::instance(index);
      Cost cost;
      cost_of(i, shape, machine, &cost);
      const int64_t k_tiles = cost.waves * static_cast<int64_t>(cost.k_tiles);
      const dualgemm::TilePlan& tile = i.plan.tile;
      const int64_t flops = 4 * int64_t{tile.m} * tile.n * tile.k / i.plan.mma.cta_group;
      const Instance* other = best_public(shape, machine);
      text +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", &shape == &c.shapes[0] ? c.name : "",
                      shape_text(shape), without_dtype(i.name), cost.waves, k_tiles * cost.fill_bytes / 1000,
                      k_tiles * flops / tensor_rate(described_b200()).flops_per_clock,
                      us_and_range(i, shape, machine), other ? us_and_range(*other, shape, machine) : "-");
    }
  return text;
}

// Returns the time of the large product's kernel alone, as it was published: without the gap between
// launches.
double large_us(const dualgemm::Machine& machine, const dualgemm::CostConstants& constants) {
  return us_of(kPublishedLarge.instance, kPublishedLarge.shape, machine, constants) - kLaunchGap;
}

std::string error_text(const dualgemm::Machine& machine, const dualgemm::CostConstants& constants) {
  int inside = 0;
  double worst = 0;
  for (const Published& p : kPublished) {
    const double outside = outside_us(p, us_of(p.instance, p.shape, machine, constants));
    inside += outside == 0;
    if (std::abs(outside) > std::abs(worst)) worst = outside;
  }
  return fmt::format(
      "{} of {} within what the published figure allows, the worst {:+.2f} us outside it; {:+.1f} % on a "
      "large product",
      inside, std::size(kPublished), worst,
      100 * (large_us(machine, constants) / kPublishedLarge.kernel_us - 1));
}

std::string errors_table(const dualgemm::Machine& machine) {
  std::string text =
      "| kernel, tile | M x N x K | published, us | period it allows, us | modelled, us | "
      "with held-out constants, us |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  const auto row = [&](const char* name, const GemmShape& shape, double published, const std::string& allowed,
                       double us, double held_out_us) {
    text += fmt::format("| {} | {} | {} | {} | {:.2f} | {:.2f} |\n", name, shape_text(shape), published,
                        allowed, us, held_out_us);
  };
  const dualgemm::CostConstants others = held_out();
  for (const Published& p : kPublished)
    row(p.instance.name, p.shape, p.reported_us, fmt::format("{} to {}", p.low_us, p.high_us),
        us_of(p.instance, p.shape, machine, dualgemm::kB200Costs),
        us_of(p.instance, p.shape, machine, others));
  row(kPublishedLarge.instance.name, kPublishedLarge.shape, kPublishedLarge.kernel_us, "the kernel alone",
      large_us(machine, dualgemm::kB200Costs), large_us(machine, others));
  return text;
}

// Prints for each instance how often it is chosen, and how much faster than all others it is where it leads
// most.
std::string instances_table(const dualgemm::Machine& machine) {
  struct Use {
    int32_t chosen = 0;
    double lead = -1;  // the time of the fastest other, less its own, as a part of its own
    GemmShape shape{};
  };
  const int32_t count = dualgemm::instance_count();
  std::vector<Use> uses(static_cast<size_t>(count));
  for_each_shape([&](const GemmShape& shape) {
    const int32_t chosen = dualgemm::select_instance(kCompared, shape, machine);
    if (chosen >= 0) ++uses[chosen].chosen;
    std::vector<double> us(uses.size(), std::numeric_limits<double>::infinity());
    for (int32_t i = 0; i < count; ++i) {
      Cost cost;
      const Instance& instance = dualgemm::instance(i);
      if (is_kind(instance, kCompared) && cost_of(instance, shape, machine, &cost)) us[i] = cost.total_us;
    }
    for (int32_t i = 0; i < count; ++i) {
      if (std::isinf(us[i])) continue;
      double others = std::numeric_limits<double>::infinity();
      for (int32_t j = 0; j < count; ++j)
        if (j != i) others = std::min(others, us[j]);
      const double lead = others / us[i] - 1;
      if (lead > uses[i].lead) uses[i] = {uses[i].chosen, lead, shape};
    }
  });
  std::string text = "| instance | chosen for | largest lead | at |\n| --- | --- | --- | --- |\n";
  for (int32_t i = 0; i < count; ++i)
    if (const Instance& instance = dualgemm::instance(i); is_kind(instance, kCompared))
      text += fmt::format("| {} | {} | {:.1f} % | {} |\n", without_dtype(instance.name), uses[i].chosen,
                          100 * uses[i].lead, shape_text(uses[i].shape));
  return text;
}

std::string sensitivity_table(const dualgemm::Machine& machine) {
  std::string text =
      "| constant | from | to | choices within 2 % of the best | worst choice |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const dualgemm::CostRange& range : dualgemm::kB200Ranges) {
    Regret all{};
    for (const double value : {range.low, range.high}) {
      dualgemm::CostConstants constants = dualgemm::kB200Costs;
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

// An epilogue: its name, the kind of instance that has it, and what it asks for.
struct Asked {
  const char* name;
  dualgemm::CType c_type;
  bool general;
  void (*of)(GemmShape&);
};

constexpr Asked kAsked[] = {
    {"plain SwiGLU, fp16", dualgemm::CType::kFp16, false, [](GemmShape&) {}},
    {"general SwiGLU, fp16", dualgemm::CType::kFp16, true, [](GemmShape&) {}},
    {"general SwiGLU, fp32", dualgemm::CType::kFp32, true, [](GemmShape&) {}},
    {"general SwiGLU, fp8", dualgemm::CType::kFp8, true, [](GemmShape&) {}},
    {"general SwiGLU, nvfp4", dualgemm::CType::kNvfp4, true, [](GemmShape&) {}},
    {"fp16 and GEGLU_ERF", dualgemm::CType::kFp16, true,
     [](GemmShape& s) { s.activation = dualgemm::ActivationKind::kGegluErf; }},
    {"fp16 and SITU", dualgemm::CType::kFp16, true,
     [](GemmShape& s) { s.activation = dualgemm::ActivationKind::kSitu; }},
    {"fp16 and both row factors", dualgemm::CType::kFp16, true,
     [](GemmShape& s) { s.a_row_scale = s.c_row_scale = true; }},
    {"fp16 and amax_out", dualgemm::CType::kFp16, true, [](GemmShape& s) { s.amax = true; }},
    {"fp16, and d1 and d2 in bf16", dualgemm::CType::kFp16, true, [](GemmShape& s) { s.d_bits = 32; }},
    {"fp16 and both biases", dualgemm::CType::kFp16, true, [](GemmShape& s) { s.biases = 2; }},
    {"fp16 and EXACT_ACT", dualgemm::CType::kFp16, true, [](GemmShape& s) { s.exact = true; }},
    {"fp16, EXACT_ACT and SITU", dualgemm::CType::kFp16, true,
     [](GemmShape& s) { s.exact = true, s.activation = dualgemm::ActivationKind::kSitu; }},
};

// Prints what the model counts for one result of each step of a general epilogue.
std::string epilogue_steps_table() {
  namespace work = dualgemm::work;
  std::string text = "| step | instructions | of them fp64 |\n| --- | --- | --- |\n";
  const auto row = [&text](const std::string& name, double all, double fp64 = 0) {
    text += fmt::format("| {} | {:.1f} | {} |\n", name, all, fp64 > 0 ? fmt::format("{:g}", fp64) : "");
  };
  row("the loop, alphas", work::kFrame);
  for (const Named<dualgemm_activation_t>& a : kActivations)
    row(a.name, work::activation_instructions(static_cast<dualgemm::ActivationKind>(a.number)));
  for (const Named<dualgemm_activation_t>& a : kActivations) {
    const work::Instructions exact =
        work::exact_instructions(static_cast<dualgemm::ActivationKind>(a.number));
    row(fmt::format("{}, EXACT_ACT", a.name), exact.all, exact.fp64);
  }
  for (const Named<dualgemm_dtype_t>& output : kOutputs)
    row(fmt::format("{}: conversion, stores", output.name),
        work::output_instructions(static_cast<dualgemm::CType>(output.number), false));
  row("NVFP4 in tiles of 64 x 128, by shuffles", work::output_instructions(dualgemm::CType::kNvfp4, true));
  row("a bias", work::kBias);
  row("a_row_scale", work::kARowScale);
  row("c_row_scale", work::kCRowScale);
  row("amax_out", work::kAmax);
  row("d1 and d2: conversion, stores", work::kBothD);
  return text;
}

// Prints what each epilogue costs: with the instance that is chosen for it, the time of a launch, and the
// part of it in which one tile's results leave the accumulators.
std::string epilogues_table(const dualgemm::Machine& machine) {
  const GemmShape shapes[] = {{256, 4096, 7168}, {2048, 3584, 8192}};
  std::string text = "| epilogue |", line = "| --- |";
  for (const GemmShape& shape : shapes) {
    text += fmt::format(" {}: instance | us | of a tile, us |", shape_text(shape));
    line += " --- | --- | --- |";
  }
  text += "\n" + line + "\n";
  for (const Asked& asked : kAsked) {
    text += fmt::format("| {} |", asked.name);
    for (GemmShape shape : shapes) {
      shape.c_type = asked.c_type;
      asked.of(shape);
      const dualgemm::InstanceKind kind{dualgemm::Arch::kSm100, asked.c_type, asked.general};
      const Instance& i = dualgemm::instance(dualgemm::select_instance(kind, shape, machine));
      Cost cost;
      cost_of(i, shape, machine, &cost);
      const std::string_view name(i.name);
      text += fmt::format(" {} | {} | {:.2f} |", name.substr(0, name.find('_')),
                          us_and_range(i, shape, machine), cost.epilogue_us);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string model_markdown(const dualgemm_device_t& device) {
  const dualgemm::Machine machine{device.sm_count, device.clusters_of_2, device.clusters_of_4};
  const dualgemm::Machine b200{148};
  return fmt::format(
      "Modelled for {} SMs, nothing measured: time from launch to launch on a stream, operands in DRAM.\n"
      "In parentheses: if one constant lay at either end of what its sources allow.\n\n"
      "### figures\n\n{}\n### choices\n\n{}\n### instances\n\n{}\n### published\n\n"
      "Published times of other kernels against the model: {}.\n"
      "With constants fitted to 6 times of plain GEMM kernels alone: {}.\n\n{}\n### steps\n\n{}\n### epilogues\n\n{}\n### constants\n\n{}",
      device.sm_count, figures_table(machine), choices_table(machine), instances_table(machine),
      error_text(b200, dualgemm::kB200Costs), error_text(b200, held_out()), errors_table(b200),
      epilogue_steps_table(), epilogues_table(machine), sensitivity_table(machine));
}

}  // namespace bench
