// tables.cpp -- see tables.h.
#include "tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "budget.h"
#include "host/common/names.h"

namespace bench {
namespace {

// Returns the shape as --shape has it where that is short, without the spaces of shape_text.
std::string compact(const Shape& shape) {
  std::string text = shape_text(shape);
  for (size_t at; (at = text.find(" x ")) != std::string::npos;) text.replace(at, 3, "x");
  return text;
}

std::vector<Column> columns_of(Times times, bool baselines, bool orders) {
  constexpr bool kLeft = true;
  std::vector<Column> all = {{"instance", 14, kLeft}};
  if (orders) all.push_back({"A by", 6, kLeft});
  switch (times) {
    case Times::kModelled:
      all.insert(all.end(), {{"us (range)", 20}, {"TFLOP/s", 7}, {"of roof", 7}});
      return all;
    case Times::kMeasured: {
      all.insert(all.end(), {{"us (p10..p90)", 20}, {"model", 5}, {"TFLOP/s", 7}, {"of roof", 7}});
      if (baselines) all.insert(all.end(), {{"baseline", 12}, {"speed-up", 8}});
      return all;
    }
    case Times::kBaseline: return {{"way", 14, kLeft}, {"us (p10..p90)", 20}, {"graph", 6}, {"TFLOP/s", 7}};
    default: all.push_back({"", 8, kLeft}); return all;
  }
}

// Returns the type of A of all of them.
dualgemm_dtype_t a_of(const std::vector<Shape>& shapes) {
  return shapes.empty() ? DUALGEMM_DTYPE_NVFP4 : shapes.front().a_dtype;
}

// Whether such an A is put in the order of the weights: it has 16 bits.
bool is_ordered(dualgemm_dtype_t a_dtype) {
  return a_dtype == DUALGEMM_DTYPE_BF16 || a_dtype == DUALGEMM_DTYPE_FP16;
}

// Puts the columns of the shape and, if it fits, of the label before the others.
Table table_for(Times times, const std::vector<Shape>& shapes, bool* labels) {
  int shape_width = 9, label_width = 1;
  bool baselines = false;
  for (const Shape& shape : shapes) {
    shape_width = std::max(shape_width, static_cast<int>(compact(shape).size()));
    label_width = std::max(label_width, static_cast<int>(shape.label.size()));
    baselines = baselines || !shape.grouped();
  }
  const std::vector<Column> others = columns_of(times, baselines, is_ordered(a_of(shapes)));
  const int room = kMostColumns - 1 - Table(others).width();
  std::vector<Column> all = {{"M x N x K", std::min(shape_width, room), true}};
  *labels = shape_width + 1 + label_width <= room;
  if (*labels) all.push_back({"", label_width, true});
  all.insert(all.end(), others.begin(), others.end());
  return Table(all);
}

std::string share_text(const Roof& roof, double us) {
  return fmt::format("{:.0f} % {}", 100 * roof.us / us, roof.dram ? 'D' : 'T');
}

std::string tflops_text(double flops, double us) { return fmt::format("{:.0f}", flops / us * 1e-6); }

// Returns "31.95 bf16 1" for one GEMM; where groups have one each, "1/4" on four streams, "1g" in one call;
// "1f" with fast accumulation.
std::string way_text(const BaselineTime& time) {
  const BaselineWay& way = time.way;
  const std::string streams = way.streams > 1 ? fmt::format("/{}", way.streams) : "";
  return fmt::format("{} {} {}{}{}", us_text(time.stream.median_us),
                     way.format == OperandFormat::kNvfp4 ? "fp4" : format_name(way.format), way.gemms,
                     streams,
                     way.grouped             ? "g"
                     : way.fast_accumulation ? "f"
                                             : "");
}

}  // namespace

std::string short_name(const char* instance) {
  const std::string name(instance);
  return name.substr(0, name.find('_'));
}

const char* a_order_text(const Budget& budget) {
  return budget.instance->plan.prepared_a() ? "pass" : "kernel";
}

const char* times_name(Times times) {
  constexpr const char* kNames[] = {"modelled", "measured", "baseline", "verified"};
  return kNames[static_cast<int>(times)];
}

Report::Report(Times times, const Machine& machine, const std::vector<Shape>& shapes)
    : times_(times),
      machine_(machine),
      a_dtype_(a_of(shapes)),
      products_(shapes.empty() ? 2 : shapes.front().products),
      problems_(shapes.size()),
      table_(table_for(times, shapes, &labels_)) {}

std::string Report::heading() const {
  const char* what = "";
  switch (times_) {
    case Times::kModelled:
      what = "MODELLED, not measured: microseconds from launch to launch on a stream, operands in DRAM, on";
      break;
    case Times::kMeasured:
      what = "MEASURED: microseconds from launch to launch on a stream, operands in DRAM, on";
      break;
    case Times::kBaseline:
      what =
          "MEASURED, the baseline alone: cuBLASLt and its activation kernel, microseconds from launch to "
          "launch on a stream, operands in DRAM, on";
      break;
    case Times::kVerified: what = "Verified, not timed, on"; break;
  }
  std::string of =
      fmt::format("{} {}: {} SMs, up to {:.3f} GHz", what, machine_.name, machine_.sms, machine_.clock_ghz);
  if (times_ == Times::kModelled || times_ == Times::kMeasured)
    of += fmt::format(", {:.2f} TB/s of DRAM pins, {:.2f} PFLOP/s of {} at that clock", machine_.dram_tb_s,
                      machine_.tensor_pflops, machine_.operands);
  if (a_dtype_ != DUALGEMM_DTYPE_NVFP4) of += fmt::format(". A is {}", dualgemm::dtype_name(a_dtype_));
  if (b_dtype_for(a_dtype_) != DUALGEMM_DTYPE_NVFP4)
    of += fmt::format(", weights are {}", dualgemm::dtype_name(b_dtype_for(a_dtype_)));
  of += fmt::format(". {} problem{} of {}", problems_, problems_ == 1 ? "" : "s",
                    products_ == 1 ? "one product" : "two products");
  return wrapped(of + ".", 0) + "\n" + table_.heading();
}

std::string Report::line(const Result& result, std::vector<std::string> cells) const {
  if (labels_) cells.insert(cells.begin(), result.shape.label);
  cells.insert(cells.begin(), compact(result.shape));
  return table_.line(cells);
}

std::vector<std::string> Report::computed_by(const Result& result) const {
  std::vector<std::string> cells = {short_name(result.budget->instance->name)};
  if (result.shape.sixteen_bit_a()) cells.emplace_back(a_order_text(*result.budget));
  return cells;
}

std::string Report::row(const Result& result) const {
  if (!result.error.empty()) return wrapped(compact(result.shape) + ": FAILED: " + result.error);
  switch (times_) {
    case Times::kModelled: return modelled_row(result);
    case Times::kMeasured: return measured_row(result);
    case Times::kBaseline: return baseline_rows(result);
    default: break;
  }
  std::vector<std::string> cells = computed_by(result);
  cells.emplace_back("verified");
  return line(result, cells);
}

std::string Report::modelled_row(const Result& result) const {
  const Modelled& m = *result.modelled;
  const Roof roof = roof_of(static_cast<double>(result.budget->dram_bytes), result.budget->flops, machine_);
  std::vector<std::string> cells = computed_by(result);
  cells.insert(cells.end(), {range_text(m.us(), m.low_us, m.high_us, modelled_us_text),
                             tflops_text(result.budget->flops, m.us()), share_text(roof, m.us())});
  std::string text = line(result, cells);
  for (const InstanceTime& time : result.instances)
    text += fmt::format("  {}: {}\n", time.name(), modelled_us_text(*time.modelled_us));
  return text;
}

std::string Report::measured_row(const Result& result) const {
  const Timing& t = *result.stream;
  const Roof roof = roof_of(static_cast<double>(result.budget->dram_bytes), result.budget->flops, machine_);
  std::vector<std::string> cells = computed_by(result);
  cells.insert(cells.end(),
               {range_text(t.median_us, t.p10_us, t.p90_us, us_text), modelled_us_text(result.modelled->us()),
                tflops_text(result.budget->flops, t.median_us), share_text(roof, t.median_us)});
  if (const BaselineTime* baseline = fastest(result.baselines))
    cells.insert(cells.end(),
                 {way_text(*baseline), fmt::format("{:.2f}", baseline->stream.median_us / t.median_us)});
  else cells.push_back("-");
  std::string text = line(result, cells);
  for (const ContenderTime& time : result.contenders) {
    const std::string what = time.name + (time.exact ? "" : ", with other weights") + ": ";
    text +=
        wrapped(what + (time.error.empty() ? fmt::format("{} us, {:.2f} of ours",
                                                         range_text(time.stream.median_us, time.stream.p10_us,
                                                                    time.stream.p90_us, us_text),
                                                         time.stream.median_us / t.median_us)
                                           : time.error),
                2);
  }
  for (const InstanceTime& time : result.instances)
    text += wrapped(
        time.name() + std::string(": ") +
            (time.error.empty() ? fmt::format("{} us, in a graph {}, model {}",
                                              range_text(time.stream->median_us, time.stream->p10_us,
                                                         time.stream->p90_us, us_text),
                                              us_text(time.graph->median_us),
                                              time.modelled_us ? modelled_us_text(*time.modelled_us) : "none")
                                : "wrong: " + time.error),
        2);
  return text;
}

std::string Report::baseline_rows(const Result& result) const {
  std::string text;
  for (const BaselineTime& time : result.baselines) {
    if (!time.error.empty()) {
      text += wrapped(compact(result.shape) + ", " + time.way.text() + ": FAILED: " + time.error);
      continue;
    }
    const Timing& t = time.stream;
    text += line(result, {time.way.text(), range_text(t.median_us, t.p10_us, t.p90_us, us_text),
                          us_text(time.graph.median_us), tflops_text(result.shape.flops(), t.median_us)});
  }
  return text;
}

std::string Report::legend(const std::vector<Result>& results) const {
  std::string text = "\n";
  const auto explain = [&text](const std::string& sentence) { text += wrapped(sentence); };
  const std::string operations = products_ == 1 ? "2 M N K operations" : "4 M N K operations";
  const bool modelled = times_ == Times::kModelled, measured = times_ == Times::kMeasured;
  if (modelled)
    explain("us (range): by the cost model (host/MODEL.md); with one of its constants at either end.");
  if (modelled &&
      std::any_of(results.begin(), results.end(), [](const Result& x) { return !x.instances.empty(); }))
    explain(
        "Below a problem: the instances that take it, by that time. The choice is the simplest of those within "
        "2 % of the fastest, and a general one only where no plain one takes it.");
  if (measured || times_ == Times::kBaseline)
    explain("us (p10..p90): median over the repeats, 10th and 90th percentile.");
  if (measured) explain("model: what the cost model expects, us (host/MODEL.md).");
  if (times_ == Times::kBaseline)
    explain("graph: the median of the same launches in a CUDA graph. TFLOP/s: " + operations + ".");
  if (modelled || measured)
    explain("TFLOP/s: " + operations +
            ". of roof: T, of the tensor cores' peak; D, of the rate of DRAM's pins.");
  if (is_ordered(a_dtype_) && times_ != Times::kBaseline)
    explain(
        "A by: what puts A in the order of the weights, the kernel, or a pass before it into the workspace.");
  std::set<std::string> reasons;
  bool any = false;
  for (const Result& result : results) {
    any = any || fastest(result.baselines) != nullptr;
    if (!result.no_baseline.empty() && result.error.empty()) reasons.insert(result.no_baseline);
    for (const BaselineTime& time : result.baselines)
      if (measured && !time.error.empty())
        reasons.insert(compact(result.shape) + ", " + time.way.text() + ": " + time.error);
  }
  if (measured && any)
    explain(std::string("baseline: us of cuBLASLt in fp16, bf16 or ") +
            (a_dtype_ == DUALGEMM_DTYPE_FP8_E4M3 ? "FP8 (1f: with fast accumulation), " : "fp4, ") +
            (products_ == 1 ? "which writes C, or products to which a kernel applies an activation or alphas"
                            : "with 1 or 2 GEMMs, and an activation kernel") +
            ". Groups have a GEMM each: 1/4 on 4 streams, 1g in one call of cuBLAS.");
  for (const Result& result : results)
    if (result.power_limited.value_or(0) > 0)
      text += wrapped(fmt::format("{}: the power limit held the clocks down for {:.0f} % of the time.",
                                  compact(result.shape), *result.power_limited * 100));
  for (const std::string& reason : reasons) text += wrapped("No baseline: " + reason + ".");
  return text;
}

}  // namespace bench
