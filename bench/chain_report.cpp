// chain_report.cpp -- see chain_report.h.
#include "chain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>

#include "budget.h"
#include "chain_baseline.h"
#include "nvml.h"
#include "progress.h"
#include "report_json.h"

namespace bench {
namespace {

using nlohmann::json;

// Returns the baseline, or says in the result why there is none.
std::unique_ptr<ChainBaseline> baseline_of(ChainResult* result, Chain* chain, int samples) {
  if (chain->layer().experts()) {
    result->no_baseline = "a layer of experts is compared with nothing";
    return nullptr;
  }
  const lt::Library* const library = lt::library();
  try {
    if (library == nullptr)
      throw std::runtime_error("no cuBLASLt (libcublasLt.so.13 or .12 on the library path)");
    show_progress(result->layer.text() + ": cuBLASLt");
    return std::make_unique<ChainBaseline>(*library, chain, samples);
  } catch (const std::exception& error) {
    result->no_baseline = error.what();
    cudaGetLastError();  // too little memory is no reason to give up the library's times
    return nullptr;
  }
}

Table table_for(Times times) {
  std::vector<Column> all = {{"M x I x K", 20, true}, {"", 15, true}};
  if (times == Times::kMeasured)
    all.insert(all.end(),
               {{"us (p10..p90)", 22}, {"PDL", 7}, {"baseline", 8}, {"speed-up", 8}, {"with PDL", 8}});
  else all.insert(all.end(), {{"gate and up", 16, true}, {"down", 16, true}, {"", 8, true}});
  return Table(all);
}

}  // namespace

void describe(ChainResult* result, const dualgemm_device_t& device) {
  for (const Shape* shape : {&result->layer.up, &result->layer.down}) check_compact(*shape);
  result->up_instance = budget_of(result->layer.up, kBetween, device).instance->name;
  result->down_instance = budget_of(result->layer.down, kOut, device).instance->name;
}

void measure(ChainResult* result, const dualgemm_device_t& device, const ChainEffort& effort) {
  describe(result, device);
  const std::string name = result->layer.text();
  result->input_sets =
      input_sets_of(result->layer, effort.timed ? effort.input_sets : std::min(2, effort.input_sets));
  show_progress(name + ": preparing " + std::to_string(result->input_sets) + " input sets");
  Chain chain(result->layer, result->input_sets, 1);
  show_progress(name + ": verifying");
  if (const std::string wrong = chain.verify(effort.samples); !wrong.empty())
    throw std::runtime_error("wrong: " + wrong);
  result->verified = true;
  if (!effort.timed) return;
  const std::unique_ptr<ChainBaseline> baseline = baseline_of(result, &chain, effort.samples);
  show_progress(name + ": timing");
  std::vector<Enqueue> ways = {chain.enqueue(0), chain.enqueue(kDependent)};
  if (baseline != nullptr) ways.push_back(baseline->enqueue());
  const std::optional<PowerReading> before = power_reading(device.ordinal);
  const std::vector<Timing> times = time_graph(ways, result->input_sets, effort.repeats, chain.stream());
  result->sm_mhz = gpu_state(device.ordinal).sm_mhz;
  result->power_limited = power_limited_share(before, power_reading(device.ordinal));
  result->ordinary = times[0];
  result->pdl = times[1];
  if (baseline != nullptr) result->baseline = times[2];
}

ChainReport::ChainReport(Times times, const Machine& machine, size_t layers)
    : times_(times), machine_(machine), layers_(layers), table_(table_for(times)) {}

std::string ChainReport::heading() const {
  const char* const what = times_ == Times::kMeasured
                               ? "MEASURED: microseconds of a layer in a CUDA graph, operands in DRAM, on"
                           : times_ == Times::kVerified ? "Verified, not timed, on"
                                                        : "What computes each launch, on";
  return wrapped(fmt::format("{} {}. {} layer{}: gate and up to NVFP4, then down to fp16.", what,
                             machine_.name, layers_, layers_ == 1 ? "" : "s"),
                 0) +
         "\n" + table_.heading();
}

std::string ChainReport::row(const ChainResult& r) const {
  if (!r.error.empty()) return wrapped(r.layer.text() + ": FAILED: " + r.error);
  std::vector<std::string> cells = {r.layer.text(), r.layer.up.label};
  if (times_ == Times::kMeasured) {
    const Timing& t = *r.ordinary;
    cells.insert(cells.end(),
                 {range_text(t.median_us, t.p10_us, t.p90_us, us_text), us_text(r.pdl->median_us)});
    if (r.baseline)
      for (const std::string& cell :
           {us_text(r.baseline->median_us), fmt::format("{:.2f}", r.baseline->median_us / t.median_us),
            fmt::format("{:.2f}", r.baseline->median_us / r.pdl->median_us)})
        cells.push_back(cell);
    else cells.emplace_back("-");
    return table_.line(cells);
  }
  cells.insert(cells.end(), {short_name(r.up_instance.c_str()), short_name(r.down_instance.c_str())});
  if (r.verified) cells.emplace_back("verified");
  return table_.line(cells);
}

std::string ChainReport::legend(const std::vector<ChainResult>& results) const {
  if (times_ != Times::kMeasured) return {};
  std::string text = "\n" + wrapped("us (p10..p90): median over the repeats, 10th and 90th percentile.") +
                     wrapped("PDL: us of the same launches with PDL and STATIC_WEIGHTS.");
  if (std::any_of(results.begin(), results.end(),
                  [](const ChainResult& r) { return r.baseline.has_value(); }))
    text += wrapped(
        "baseline: us of cuBLASLt in fp16, a GEMM of gate and up, an activation kernel, and a "
        "GEMM of down. speed-up, with PDL: the baseline's time, divided by either of ours.");
  std::set<std::string> reasons;
  for (const ChainResult& r : results) {
    if (!r.no_baseline.empty() && r.error.empty()) reasons.insert(r.no_baseline);
    if (r.power_limited.value_or(0) > 0)
      text += wrapped(fmt::format("{}: the power limit held the clocks down for {:.0f} % of the time.",
                                  r.layer.text(), *r.power_limited * 100));
  }
  for (const std::string& reason : reasons) text += wrapped("No baseline: " + reason + ".");
  return text;
}

json to_json(const ChainResult& r) {
  json row = {{"m", r.layer.up.m}, {"i", r.layer.up.n}, {"k", r.layer.up.k}, {"label", r.layer.up.label}};
  if (r.layer.experts()) {
    row["tokens"] = r.layer.tokens;
    row["experts"] = r.layer.up.problems();
    row["top_k"] = r.layer.top_k;
  }
  if (!r.error.empty()) row["error"] = r.error;
  if (!r.down_instance.empty()) row["instances"] = {r.up_instance, r.down_instance};
  row["flops"] = r.layer.flops();
  if (r.input_sets > 0) {
    row["input_sets"] = r.input_sets;
    row["verified"] = r.verified;
  }
  if (!r.no_baseline.empty()) row["no_baseline"] = r.no_baseline;
  if (r.sm_mhz) row["sm_mhz"] = *r.sm_mhz;
  if (r.power_limited) row["power_limited"] = *r.power_limited;
  if (r.ordinary) row["graph"] = to_json(*r.ordinary);
  if (r.pdl) row["pdl"] = {{"graph", to_json(*r.pdl)}};
  if (!r.baseline) return row;
  row["baseline"] = {{"graph", to_json(*r.baseline)}};
  row["speed_up"] = r.baseline->median_us / r.ordinary->median_us;
  row["pdl"]["speed_up"] = r.baseline->median_us / r.pdl->median_us;
  return row;
}

}  // namespace bench
