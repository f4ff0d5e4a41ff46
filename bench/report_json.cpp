// report_json.cpp -- see report_json.h.
#include "report_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

#include "names.h"
#include "published.h"

namespace bench {
namespace {

using nlohmann::json;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json shape_json(const Shape& shape) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"label", shape.label},
          {"problems", shape.problems()},
          {"mode", shape.offsets()   ? "offsets"
                   : shape.grouped() ? "masked"
                                     : "none"},
          {"group_rows", shape.group_rows}};
}

json budget_json(const Budget& b) {
  json out = {{"instance", b.instance->name},
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
  if (!b.instance->plan.packed_a() && !b.instance->plan.mxfp4_b()) out["a_order"] = a_order_text(b);
  return out;
}

// The parts add up to the whole: what the tiles take is split into what the tensor core does and what it
// waits.
json modelled_json(const Modelled& m) {
  const dualgemm::Cost& c = m.cost;
  const double tensor = static_cast<double>(c.waves) * c.k_tiles * c.tensor_us;
  return {{"us", m.us()},
          {"low_us", m.low_us},
          {"high_us", m.high_us},
          {"parts_us",
           {{"launch", c.fixed_us},
            {"first_copies", c.start_us},
            {"tensor_core", tensor},
            {"waiting", c.tiles_us - tensor},
            {"exchange", c.exchange_us},
            {"epilogue", c.epilogue_us}}},
          {"k_tile_us",
           {{"fill", c.fill_us}, {"tensor", c.tensor_us}, {"dram", c.dram_us}, {"latency", c.latency_us}}}};
}

// Adds to `out` what was measured of another's kernels, or why nothing was.
template <class Time>
json with_times(json out, const Time& time) {
  if (!time.error.empty()) {
    out["error"] = time.error;
    return out;
  }
  out["stream"] = to_json(time.stream);
  out["graph"] = to_json(time.graph);
  return out;
}

json baseline_json(const BaselineTime& time) {
  json way{{"operands", format_name(time.way.format)}, {"gemms", time.way.gemms}};
  if (time.way.streams > 1) way["streams"] = time.way.streams;
  if (time.way.grouped) way["grouped"] = true;
  if (time.way.format == OperandFormat::kFp8) way["fast_accumulation"] = time.way.fast_accumulation;
  return with_times(std::move(way), time);
}

json instance_json(const InstanceTime& time) {
  json out{{"name", time.name()}, {"modelled_us", or_null(time.modelled_us)}};
  if (!time.error.empty()) {
    out["error"] = time.error;
  } else if (time.stream) {
    out["stream"] = to_json(*time.stream);
    out["graph"] = to_json(*time.graph);
  }
  return out;
}

json contender_json(const ContenderTime& time) {
  return with_times({{"name", time.name}, {"exact", time.exact}}, time);
}

// The times that others published for a B200, in the terms of our shapes.
json published_json() {
  json all = json::array();
  const auto add = [&all](const dualgemm::Instance& of, const dualgemm::Shape& s, double us, double low,
                          double high) {
    const Budget b = budget_of({s.m, s.n, s.k, ""}, DUALGEMM_DTYPE_FP16, described_b200());
    all.push_back({{"kernel", of.name},
                   {"m", s.m},
                   {"n", s.n},
                   {"k", s.k},
                   {"us", us},
                   {"low_us", low},
                   {"high_us", high},
                   {"dram_bytes", b.dram_bytes},
                   {"flops", b.flops}});
  };
  for (const Published& p : kPublished) add(p.instance, p.shape, p.reported_us, p.low_us, p.high_us);
  const PublishedLarge& large = kPublishedLarge;
  add(large.instance, large.shape, large.kernel_us, large.kernel_us, large.kernel_us);
  return all;
}

json device_json(const Machine& machine, const GpuState& state) {
  return {{"name", machine.name},
          {"sms", machine.sms},
          {"driver", or_null(state.driver)},
          {"cuda_driver", machine.driver},
          {"cuda_runtime", machine.runtime},
          {"sm_mhz", or_null(state.sm_mhz)},
          {"memory_mhz", or_null(state.memory_mhz)},
          {"sm_most_mhz", or_null(state.sm_most_mhz)},
          {"memory_most_mhz", or_null(state.memory_most_mhz)},
          {"power_limit_w", or_null(state.power_limit_w)},
          {"roofs", {{"dram_tb_per_s", machine.dram_tb_s}, {"tensor_pflop_per_s", machine.tensor_pflops}}}};
}

}  // namespace

json to_json(const Timing& t) {
  return {{"median_us", t.median_us}, {"p10_us", t.p10_us}, {"p90_us", t.p90_us}};
}

json to_json(const Result& result, const Machine& machine) {
  json row = shape_json(result.shape);
  if (!result.error.empty()) row["error"] = result.error;
  if (result.budget) row.update(budget_json(*result.budget));
  if (result.modelled) row["modelled"] = modelled_json(*result.modelled);
  if (result.input_sets > 0) {
    row["input_sets"] = result.input_sets;
    row["verified"] = result.verified;
  }
  if (result.stream) row["stream"] = to_json(*result.stream);
  if (result.graph) row["graph"] = to_json(*result.graph);
  if (result.pdl_stream)
    row["pdl"] = {{"stream", to_json(*result.pdl_stream)}, {"graph", to_json(*result.pdl_graph)}};
  if (result.sm_mhz) row["sm_mhz"] = *result.sm_mhz;
  if (result.power_limited) row["power_limited"] = *result.power_limited;
  for (const BaselineTime& time : result.baselines) row["baselines"].push_back(baseline_json(time));
  for (const ContenderTime& time : result.contenders) row["contenders"].push_back(contender_json(time));
  for (const InstanceTime& time : result.instances) row["instances"].push_back(instance_json(time));
  if (!result.no_baseline.empty()) row["no_baseline"] = result.no_baseline;
  if (const BaselineTime* best = fastest(result.baselines); best && result.stream)
    row["speed_up"] = best->stream.median_us / result.stream->median_us;
  if (const std::optional<double> us = result.us()) {
    const Roof roof = roof_of(static_cast<double>(result.budget->dram_bytes), result.budget->flops, machine);
    row["us"] = *us;
    row["tflop_per_s"] = result.budget->flops / *us * 1e-6;
    row["tb_per_s"] = static_cast<double>(result.budget->dram_bytes) / *us * 1e-6;
    row["roof"] = roof.dram ? "DRAM" : "tensor";
    row["percent_of_roof"] = 100 * roof.us / *us;
  }
  return row;
}

json report_json(const RunInfo& info, const Machine& machine, const GpuState& state) {
  return {{"schema", kJsonSchema},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"library",
           {{"version",
             fmt::format("{}.{}.{}", DUALGEMM_VERSION_MAJOR, DUALGEMM_VERSION_MINOR, DUALGEMM_VERSION_PATCH)},
            {"build", dualgemm_build_info()},
            {"git", info.git}}},
          {"device", device_json(machine, state)},
          {"times", times_name(info.times)},
          {"a_dtype", info.a_dtype},
          {"b_dtype", name_in(kTypesOfB, b_dtype_for(number_of(kTypesOfA, info.a_dtype)))},
          {"dtype", info.dtype},
          {"products", info.products},
          {"activation", info.activation},
          {"repeats", info.repeats},
          {"samples", info.samples},
          {"published", published_json()}};
}

std::string report_text(const json& report) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : report.items()) {
    std::string text = value.dump();
    if (value.is_array() && !value.empty()) {
      std::vector<std::string> entries;
      for (const json& entry : value) entries.push_back(entry.dump());
      text = fmt::format("[\n    {}\n  ]", fmt::join(entries, ",\n    "));
    }
    fields.push_back(fmt::format("{}: {}", json(name).dump(), text));
  }
  return fmt::format("{{\n  {}\n}}\n", fmt::join(fields, ",\n  "));
}

}  // namespace bench
