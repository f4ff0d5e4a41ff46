// judge.cpp -- see judge.h.
#include "sim/judge/judge.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/decode/program.h"
#include "sim/judge/trace.h"
#include "sim/schedule/schedule.h"
#include "sim/text.h"

namespace sim {

constexpr const char* kOtherPhase = "mbarrier-bytes-in-other-phase";
// The rules that are broken at a barrier whose phases no longer fit the copies.
constexpr std::array<std::string_view, 7> kOfPhases = {"mbarrier-copy-before-observed",
                                                       "mbarrier-arrive-before-observed",
                                                       "mbarrier-bytes-unobserved",
                                                       "mbarrier-phase-lap",
                                                       "mbarrier-phase-skipped",
                                                       "mbarrier-lagging-waiter",
                                                       "deadlock"};

static RegionText text_of(const Region& region, const Names& names) {
  RegionText out;
  out.memory = region.memory == Memory::kGlobal   ? "global"
               : region.memory == Memory::kShared ? "shared"
                                                  : "tensor";
  out.write = region.write;
  out.name = names.of(region);
  out.bytes = region.bytes;
  if (region.memory == Memory::kGlobal) {
    const auto* whole = names.allocation(region.address);
    out.address = whole == nullptr ? region.address : region.address - whole->base;
    return out;
  }
  out.cta = region.cta;
  if (region.memory == Memory::kShared) {
    out.address = region.address;
  } else {
    out.bytes = 0;
    out.lane = region.lane, out.lanes = region.lanes, out.column = region.column,
    out.columns = region.columns;
  }
  return out;
}

static bool read_number(const char* text, uint64_t* out) {
  char* end = nullptr;
  errno = 0;
  *out = std::strtoull(text, &end, 10);
  return *end == 0 && std::isdigit(static_cast<unsigned char>(*text)) && errno == 0;
}

// Passes every event on to all observers: first to those that learn names and sites, then to the trace, then
// to the checkers, so that a finding can be named at once.
class Judge::Watcher : public Observers {
 public:
  explicit Watcher(Judge& judge) : judge_(judge) {}
  void start(const GridStart& grid) override {
    ++judge_.grids_;
    judge_.behind_a_cut_ = judge_.grid_was_cut_;
    judge_.by_site_.clear();
    judge_.of_grid_.start(grid.work);
    *judge_.of_grid_ = {grid.config != nullptr ? grid.config->grid : Dim3{}, grid.declared_align, {}, {}};
    if (grid.kernel != nullptr && !grid.kernel->code.empty()) {
      const Inst* first = grid.kernel->code.data();
      std::erase_if(judge_.launched_, [&](const Launched& one) { return one.first == first; });
      judge_.launched_.push_back({first, first + grid.kernel->code.size(),
                                  short_name(readable(grid.kernel->info.name)), judge_.of_grid_->shape});
    }
    Observers::start(grid);
  }
  void resume(uint64_t work) override {
    judge_.of_grid_.resume(work);
    Observers::resume(work);
  }
  void outlived(FaultKind kind, const std::string& text) override {
    Observers::outlived(kind, text);
    if (!judge_.checkers_->explained()) judge_.add(kind, text);
    judge_.grid_was_cut_ |=
        kind == FaultKind::kTrap || kind == FaultKind::kAssert || kind == FaultKind::kDeadlock;
  }
  // Among the observers, only the trace looks at single instructions.
  void instruction(const Thread& thread, uint32_t mask, const Inst& inst) override {
    if (judge_.trace_) judge_.trace_->instruction(thread, mask, inst);
  }
  void finish(const char* fault) override {
    Observers::finish(fault);
    judge_.explained_ = fault != nullptr && judge_.checkers_->explained();
    judge_.of_grid_.finish();
    if (const Certifier* certifier = judge_.checkers_->certifier()) judge_.certify(certifier->certificate());
    if (judge_.reports_.size() != judge_.written_) judge_.write_json(false);
  }

 private:
  Judge& judge_;
};

Judge::Judge(JudgeOptions options, GlobalMemory& memory) : options_(std::move(options)), names_(memory) {
  policy_ = make_policy(options_.mode, options_.seed);
  if (!options_.names.empty()) names_.set_table(read_names(options_.names));
  watcher_ = std::make_unique<Watcher>(*this);
  watcher_->add(names_);
  if (!options_.trace.empty()) {
    trace_ = std::make_unique<Trace>(options_.trace);
    watcher_->add(*trace_);
  }
  checkers_ =
      std::make_unique<Checkers>(options_.checks, [this](Finding finding) { add(std::move(finding)); });
  for (const auto& checker : checkers_->all()) watcher_->add(*checker);
  write_json(false);
}

Judge::~Judge() = default;
Policy& Judge::policy() { return *policy_; }
Observer& Judge::observer() { return *watcher_; }

SiteText Judge::text_of(const Site& site) const {
  SiteText out;
  const auto kernel = std::find_if(launched_.rbegin(), launched_.rend(), [&](const Launched& one) {
    return site.inst >= one.first && site.inst < one.last;
  });
  const Thread& t = site.thread;
  out.where = "CTA " + std::to_string(t.cta);
  if (kernel != launched_.rend()) {
    const Dim3& g = kernel->grid;
    out.kernel = kernel->name;
    out.where += " (" + std::to_string(t.cta % g.x) + "," + std::to_string(t.cta / g.x % g.y) + "," +
                 std::to_string(t.cta / g.x / g.y) + ")";
  }
  const bool several = (site.mask & (site.mask - 1)) != 0;
  out.where += ", warp " + std::to_string(t.warp) +
               (several ? ", lanes " + hex(site.mask) : ", lane " + std::to_string(t.lane));
  out.operation = site.async_id;
  if (site.inst == nullptr || site.inst->statement == nullptr) return out;
  const ptx::Statement& statement = *site.inst->statement;
  out.ptx_line = statement.site.ptx_line;
  out.text = statement.text;
  out.source = statement.site.source;
  return out;
}

// If a barrier was told of too few bytes, waits end too early from then on: its phases complete out of step
// with the copies, threads touch the bytes of copies that are still landing, and at last nothing moves. All
// this is one mistake.
bool Judge::follows_from_another(const Finding& finding) {
  const std::string id = finding.rule->id;
  std::vector<MbarrierRef> barriers;
  if (id == "race-async") barriers = finding.signals;
  else if (finding.has_mbarrier && std::find(kOfPhases.begin(), kOfPhases.end(), id) != kOfPhases.end())
    barriers = {finding.mbarrier};
  for (const MbarrierRef& barrier : barriers) {
    const auto cause = of_grid_->out_of_step.find({barrier.cta, barrier.offset});
    if (cause == of_grid_->out_of_step.end()) continue;
    const SiteText there = text_of(finding.later);
    if (of_grid_->consequences.insert({finding.rule, finding.later.inst}).second)
      reports_[cause->second].notes.push_back("and so " + finding.summary + ": " + there.where +
                                              ", PTX line " + std::to_string(there.ptx_line) + ": `" +
                                              there.text + "`");
    return true;
  }
  return false;
}

void Judge::add(Finding finding) {
  if (follows_from_another(finding)) return;
  const auto site =
      std::make_tuple(finding.rule, finding.later.inst, finding.has_earlier ? finding.earlier.inst : nullptr);
  const auto [known, fresh] = by_site_.try_emplace(site, reports_.size());
  if (fresh) known->second = count(report_of(finding));
  else ++reports_[known->second].seen.front().count;
  if (std::strcmp(finding.rule->id, kOtherPhase) == 0)
    of_grid_->out_of_step[{finding.mbarrier.cta, finding.mbarrier.offset}] = known->second;
}

Report Judge::report_of(const Finding& finding) const {
  Report report = sim::report_of(*finding.rule);
  report.summary = finding.summary;
  report.later = text_of(finding.later);
  if (finding.has_earlier) report.earlier = text_of(finding.earlier);
  for (const auto& [what, site] : finding.others) {
    const SiteText text = text_of(site);
    report.others.push_back(what + ", " + text.where + "\nPTX line " + std::to_string(text.ptx_line) + ": `" +
                            text.text + "`" + (text.source.empty() ? "" : "\n" + text.source));
  }
  if (finding.has_region) report.region = sim::text_of(finding.region, names_);
  if (finding.has_mbarrier)
    report.mbarrier = {finding.mbarrier.cta, finding.mbarrier.offset, names_.of(finding.mbarrier)};
  report.missing = finding.missing;
  report.notes = finding.notes;
  report.every_schedule = finding.every_schedule;
  report.declared_align = of_grid_->declared_align;
  return report;
}

void Judge::certify(const Certificate& certificate) {
  CertificateText more;
  for (const Certificate::Barrier& b : certificate.barriers) {
    ++more.barriers;
    if (b.certified()) {
      ++more.certified;
      continue;
    }
    const SiteText init = text_of(Site{{b.barrier.cta, 0, 0}, 0, 0, b.init});
    std::string place = init.source.empty() ? "PTX line " + std::to_string(init.ptx_line) : init.source;
    if (!init.kernel.empty()) place = init.kernel + ", " + place;
    more.refused.push_back({place, b.reason, 1});
  }
  merge(certificate_, more);
}

size_t Judge::count(Report report) {
  const auto [entry, fresh] = by_key_.try_emplace(report.key(), reports_.size());
  if (fresh) {
    if (behind_a_cut_)
      report.notes.push_back("it may follow from what an earlier grid did not do, which a fault had ended");
    report.seen = {{options_.mode, options_.seed, 1}};
    reports_.push_back(std::move(report));
  } else {
    ++reports_[entry->second].seen.front().count;
  }
  return entry->second;
}

// Returns " [mbarrier 2 of 5 initialised at ...]" for a line about a waiting warp of the grid.
std::string Judge::barrier_name(const std::string& waiting) const {
  const size_t cta = waiting.find("CTA ("), barrier = waiting.find("mbarrier at shared offset 0x");
  unsigned x = 0, y = 0, z = 0, offset = 0;
  if (cta == std::string::npos || barrier == std::string::npos ||
      std::sscanf(waiting.c_str() + cta, "CTA (%u,%u,%u)", &x, &y, &z) != 3 ||
      std::sscanf(waiting.c_str() + barrier, "mbarrier at shared offset %x", &offset) != 1)
    return "";
  const Dim3& g = of_grid_->shape;
  const std::string name = names_.of(MbarrierRef{x + uint64_t(g.x) * (y + uint64_t(g.y) * z), offset});
  return name.empty() ? "" : " [" + name + "]";
}

// The machine puts the place at the end of a fault's text: "  in kernel K, CTA (0,0,0), warp 1, lane 0" and
// "  at PTX line 12: `...` (source)". A deadlock has one line for everybody who waits instead.
void Judge::add(FaultKind kind, const std::string& text) {
  Report report = sim::report_of(rule(rule_of(kind)));
  report.every_schedule = false;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const bool nested = line.starts_with("  ");
    if (nested) line.erase(0, line.find_first_not_of(' '));
    if (report.summary.empty()) {
      report.summary = line;
    } else if (nested && line.starts_with("in kernel ")) {
      const size_t comma = line.find(", ");
      if (comma != std::string::npos) report.later.where = line.substr(comma + 2);
    } else if (nested && line.starts_with("at PTX line ")) {
      const size_t colon = line.find(": `"), close = line.rfind('`');
      report.later.ptx_line = uint32_t(std::strtoul(line.c_str() + 12, nullptr, 10));
      if (colon == std::string::npos || close < colon + 3) continue;
      report.later.text = line.substr(colon + 3, close - colon - 3);
      if (line.size() > close + 3) report.later.source = line.substr(close + 3, line.size() - close - 4);
    } else if (!line.empty()) {
      report.notes.push_back(line);
    }
  }
  report.later.kernel = short_name(readable(kernel_in(text)));
  report.summary = with_short_kernel(std::move(report.summary));
  for (std::string& note : report.notes) note += barrier_name(note);
  report.declared_align = of_grid_->declared_align;
  count(std::move(report));
}

void Judge::fault(FaultKind kind, const std::string& text) {
  if (!std::exchange(explained_, false)) add(kind, text);
  write_json(false);
}

std::string Judge::take_text() {
  std::string out;
  const std::string program = replay_words(
      {options_.machine, words_of(options_.checks), options_.names, options_.go_on, options_.elect_lowest},
      options_.program);
  for (; rendered_ < reports_.size(); ++rendered_) out += render(reports_[rendered_], program) + "\n";
  return out;
}

nlohmann::json Judge::json(bool finished) const {
  return {{"mode", options_.mode},
          {"seed", options_.seed},
          {"program", options_.program},
          {"grids", grids_},
          {"finished", finished},
          {"findings", reports_},
          {"checks",
           {{"race", options_.checks.race},
            {"protocol", options_.checks.protocol},
            {"certificate", options_.checks.certificate}}},
          {"certificate", certificate_}};
}

void Judge::write_json(bool finished) {
  written_ = reports_.size();
  if (options_.json.empty()) return;
  std::ofstream out(options_.json);
  out << json(finished).dump(1) << '\n';
  if (!out.flush()) throw std::runtime_error("report file " + options_.json + " cannot be written");
}

bool options_from_environment(JudgeOptions& options) {
  bool any = false;
  const auto read = [&](const char* name) -> const char* {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == 0) return nullptr;
    any = true;
    return value;
  };
  const auto names_variable = [](const char* name, const char* value, const std::string& why) {
    return std::runtime_error(std::string(name) + "=" + value + ": " + why);
  };
  if (const char* value = read("SIM_MODE")) {
    std::string known;
    for (const Mode& mode : modes()) known += (known.empty() ? "" : ", ") + std::string(mode.name);
    if (std::none_of(modes().begin(), modes().end(),
                     [&](const Mode& mode) { return std::string(mode.name) == value; }))
      throw names_variable("SIM_MODE", value, "no such schedule mode; the modes are " + known);
    options.mode = value;
  }
  if (const char* value = read("SIM_SEED")) {
    if (!read_number(value, &options.seed))
      throw names_variable("SIM_SEED", value, "a seed is a whole number from 0 to 2^64 - 1");
  }
  if (const char* value = read("SIM_PATIENCE")) {
    if (!read_number(value, &options.patience) || options.patience == 0)
      throw names_variable("SIM_PATIENCE", value, "it is a whole number of instructions from 1 to 2^64 - 1");
  }
  if (const char* value = read("SIM_CHECKS")) {
    try {
      options.checks = parse_checks(value);
    } catch (const std::runtime_error& error) {
      throw names_variable("SIM_CHECKS", value, error.what());
    }
  }
  if (const char* value = read("SIM_TRACE")) options.trace = value;
  if (const char* value = read("SIM_JSON")) options.json = value;
  if (const char* value = read("SIM_NAMES")) options.names = value;
  const auto read_switch = [&](const char* name, bool* is_on) {
    const char* value = read(name);
    if (value == nullptr) return;
    *is_on = std::strcmp(value, "1") == 0;
    if (!*is_on && std::strcmp(value, "0") != 0) throw names_variable(name, value, "it is 0 or 1");
  };
  read_switch("SIM_CONTINUE", &options.go_on);
  read_switch("SIM_ELECT_LOWEST", &options.elect_lowest);
  read_switch("SIM_ALIGN_AS_DECLARED", &options.align_as_declared);
  return any;
}

}  // namespace sim
