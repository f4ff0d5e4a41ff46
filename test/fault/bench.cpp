// bench.cpp -- see bench.h.
#include "fault/bench.h"

#include <algorithm>
#include <stdexcept>

#include "fault/judges.h"
#include "fault/mutate.h"
#include "sim/decode/program.h"
#include "sim/shim/shim.h"
#include "support/compare.h"

namespace fault {
namespace {

using dualgemm_test::Data;
using dualgemm_test::NamedConfig;

constexpr size_t kMostSightings = 64;  // of one run; what follows a first error is rarely news

NamedConfig config_named(const std::string& instance) {
  for (const NamedConfig& config : dualgemm_test::all_configs())
    if (config.info.name == instance) return config;
  throw std::runtime_error("the library has no instance " + instance);
}

std::string place_of(const sim::Site& site) {
  if (site.inst == nullptr || site.inst->statement == nullptr) return {};
  return spelling(*site.inst->statement) + " @ " + path_of(*site.inst->statement);
}

uint32_t line_of(const sim::Site& site) {
  return site.inst == nullptr || site.inst->statement == nullptr ? 0 : site.inst->statement->site.ptx_line;
}

Outcome strongest(const Run& run) {
  const auto has = [&](sim::Severity severity) {
    return std::any_of(run.sightings.begin(), run.sightings.end(),
                       [&](const Sighting& s) { return s.severity == severity; });
  };
  if (has(sim::Severity::kError)) return Outcome::kError;
  if (run.fault.find("deadlock") != std::string::npos || run.fault.find("livelock") != std::string::npos)
    return Outcome::kHang;
  if (!run.fault.empty()) return Outcome::kFault;
  if (has(sim::Severity::kStrict)) return Outcome::kStrict;
  return run.values.empty() ? Outcome::kClean : Outcome::kWrongValues;
}

}  // namespace

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kClean: return "clean";
    case Outcome::kFault: return "machine fault";
    case Outcome::kHang: return "hang";
    case Outcome::kError: return "E finding";
    case Outcome::kStrict: return "S finding";
    case Outcome::kWrongValues: return "wrong values";
  }
  return "?";
}

Shape smoke_shape(const dualgemm_config_info_t& info) {
  // Split over K: one tile, ragged, whose last share of columns is not empty; twice as many
  // k-tiles in each slice as there are stages.
  if (info.split_k > 1)
    return {info.tile_m - 8, info.tile_n - 8, info.split_k * 2 * info.stages * info.tile_k - 144, 1};
  // A pair is twice the work: two tiles of twice as many k-tiles as there are stages.
  if (info.cta_group == 2)
    return {info.tile_m - 40, info.tile_n + 24, (2 * info.stages - 1) * info.tile_k + 112, 1};
  // Two pairs of accumulators: 2 x 3 tiles of four k-tiles. One: 2 x 2 tiles, each of more k-tiles than there
  // are stages, or the wait for the pair would stand in for the waits inside a tile. The last k-tile has two
  // of its four steps.
  const int32_t columns = info.acc_stages * info.tile_n, k_tiles = info.acc_stages == 1 ? info.stages : 3;
  return {info.tile_m + 40, columns + 24, k_tiles * info.tile_k + 112, 1};
}

Bench* Bench::loaded_ = nullptr;

Bench::~Bench() {
  if (loaded_ != this) return;
  loaded_ = nullptr;
  sim::shim::set_module_editor({});
  sim::shim::reload_modules();
}

Bench::Bench(const std::string& instance, const Shape* shape) : instance_(instance) {
  const NamedConfig config = config_named(instance);
  info_ = config.info;
  shape_ = shape != nullptr ? *shape : smoke_shape(info_);
  const bool fp16 = info_.c_dtype == DUALGEMM_DTYPE_FP16;
  const auto number = [](int32_t n) { return "Li" + std::to_string(n) + "E"; };
  entry_ = "ConfigI" + number(info_.tile_m) + number(info_.tile_n) + number(info_.split_k) + "LNS_5CTypeE" +
           (fp16 ? "1" : "0") + "E";
  problem_ = dualgemm_test::make_problem(Data::kFullRange, shape_.m, shape_.n, shape_.k, 1);
  expected_ = problem_.reference();
  dualgemm_test::LaunchOptions options;
  options.dtype = static_cast<dualgemm_dtype_t>(info_.c_dtype);
  options.config_id = config.id;
  options.max_sms = shape_.max_sms;
  device_ = std::make_unique<dualgemm_test::DeviceProblem>(problem_, options);
  // The library sets the attributes of all its kernels at its first launch; from here on only one is decoded.
  sim::shim::set_module_editor({});
  sim::shim::reload_modules();
  launch_to_load();
  use([this](sim::ptx::Function& f) { kernel_ = f; });
  launch_to_load();
  use(nullptr);
}

void Bench::launch_to_load() {
  try {
    device_->launch(nullptr);
  } catch (const std::runtime_error&) {  // a kernel that fails: its first run will say so
    sim::shim::clear_fault();
  }
}

void Bench::use(std::function<void(sim::ptx::Function&)> edit) {
  edit_ = std::move(edit);
  load();
}

void Bench::load() {
  loaded_ = this;
  sim::shim::set_module_editor([this](sim::ptx::Module& module) {
    const auto other = [this](const sim::ptx::Function& f) {
      return f.name.find(entry_) == std::string::npos;
    };
    if (std::all_of(module.functions.begin(), module.functions.end(), other)) return;  // not the library's
    std::erase_if(module.functions, other);
    if (edit_) edit_(module.functions.front());
  });
  sim::shim::reload_modules();
}

std::string Bench::barrier_name(uint32_t offset) const {
  // The barriers follow the stages, whose size is a multiple of 1024, and shared memory moves by such
  // multiples.
  const int32_t index = static_cast<int32_t>(offset % 1024 / 8), s = info_.stages, a = info_.acc_stages;
  const auto text = [](const char* ring, int32_t i) { return ring + ("[" + std::to_string(i) + "]"); };
  if (offset % 8 != 0 || index >= 2 * s + 2 * a) return "offset " + std::to_string(offset);
  if (index < s) return text("full", index);
  if (index < 2 * s) return text("empty", index - s);
  return index < 2 * s + a ? text("acc_full", index - 2 * s) : text("acc_empty", index - 2 * s - a);
}

// Reports name a barrier by its shared offset: "mbarrier 0x2fc08", "mbarrier at shared offset 0x2fc08".
std::string Bench::barriers_in(const std::string& text) const {
  std::string out;
  for (const std::string before : {"mbarrier 0x", "mbarrier at shared offset 0x", "mbarrier at offset 0x",
                                   "no mbarrier was initialised at shared offset 0x"})
    for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
      const std::string digits = text.substr(at + before.size(), 10);
      const std::string name = barrier_name(static_cast<uint32_t>(std::stoul(digits, nullptr, 16)));
      if ((" " + out + " ").find(" " + name + " ") == std::string::npos)
        out += (out.empty() ? "" : " ") + name;
    }
  return out;
}

Sighting Bench::sighting(const sim::Finding& finding) const {
  std::string said = finding.summary + "\n" + finding.missing;
  for (const std::string& note : finding.notes) said += "\n" + note;
  std::string barriers = barriers_in(said);
  if (finding.has_mbarrier) barriers += " " + barrier_name(finding.mbarrier.offset);
  return {finding.rule->id,
          finding.summary,
          finding.rule->severity,
          place_of(finding.later),
          finding.has_earlier ? place_of(finding.earlier) : std::string(),
          line_of(finding.later),
          finding.has_earlier ? line_of(finding.earlier) : 0,
          std::move(barriers)};
}

std::string Bench::compare_output() {
  try {
    return compare(device_->download(), expected_).first;
  } catch (const std::runtime_error& error) {  // a guard byte was written
    return error.what();
  }
}

Run Bench::run(const Schedule& schedule) {
  Run run;
  run.schedule = schedule;
  if (loaded_ != this) load();
  device_->poison();
  // The statements of a finding die with the module of the next run: reduce them at once.
  Judges judges([&](const sim::Finding& finding) {
    if (finding.rule->severity == sim::Severity::kAdvice || run.sightings.size() >= kMostSightings) return;
    run.sightings.push_back(sighting(finding));
  });
  const auto policy = policy_of(schedule);
  sim::shim::set_launch_options({policy.get(), &judges.observer()});
  try {
    device_->launch(nullptr);
    run.values = compare_output();
  } catch (const std::runtime_error& error) {
    run.fault = sim::shim::last_fault_text();
    if (run.fault.empty()) run.fault = error.what();
    run.fault_barriers = barriers_in(run.fault);
    sim::shim::clear_fault();
  }
  sim::shim::set_launch_options({});
  run.outcome = strongest(run);
  return run;
}

}  // namespace fault
