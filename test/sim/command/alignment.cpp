// alignment.cpp -- see alignment.h.
#include "sim/command/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/check/finding.h"

namespace command {

constexpr const char* kRule = "shared-alignment";

static bool may_follow(const sim::Report& report) {
  return (report.severity == 'E' || report.rule == kRule) && report.declared_align != 0;
}

static bool shows(const std::vector<sim::Report>& findings, const std::string& key) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const sim::Report& report) { return report.key() == key; });
}

static sim::Report lacking(const sim::Report& error) {
  sim::Report report = sim::report_of(sim::rule(kRule));
  report.summary = fmt::format(
      "dynamic shared memory is aligned to {} bytes only, as its module declares, and this kernel needs more: {}",
      error.declared_align, error.summary);
  report.later = error.later;
  report.missing =
      "the alignment in the declaration, or as many bytes more as rounding the address up can skip";
  report.notes = {
      fmt::format("{} is not found in the same run with the memory at a multiple of 1024", error.rule)};
  report.notes.insert(report.notes.end(), error.notes.begin(), error.notes.end());
  report.every_schedule = false;
  report.seen = error.seen;
  return report;
}

bool may_lack_alignment(const RunResult& run) {
  return std::any_of(run.findings.begin(), run.findings.end(), may_follow);
}

void blame_alignment(RunResult& run, const RunResult& aligned) {
  run.judged = run.judged && aligned.judged;
  if (!aligned.judged) return;
  std::vector<sim::Report> all;
  std::map<std::string, size_t> of_kernel;
  for (sim::Report& report : run.findings) {
    const bool shown = shows(aligned.findings, report.key());
    if (!may_follow(report) || shown) {
      if (shown) report.declared_align = 0;  // the error has another cause
      all.push_back(std::move(report));
      continue;
    }
    const auto [known, fresh] = of_kernel.try_emplace(report.later.kernel, all.size());
    if (fresh) all.push_back(report.rule == kRule ? std::move(report) : lacking(report));
    else all[known->second].notes.push_back(fmt::format("and so {}: {}", report.rule, report.summary));
  }
  for (const auto& [kernel, place] : of_kernel)
    all[place].notes.emplace_back("what lies behind it is judged with the memory at a multiple of 1024");
  if (of_kernel.empty()) {
    run.findings = std::move(all);
    return;
  }
  for (const sim::Report& report : aligned.findings)
    if (!shows(all, report.key())) all.push_back(report);
  run = aligned;
  run.findings = std::move(all);
}

}  // namespace command
