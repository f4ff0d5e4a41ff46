// verdict.cpp -- see verdict.h.
#include "sim/command/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace command {

static bool only_beyond(const sim::Report& report) {
  return std::all_of(report.seen.begin(), report.seen.end(),
                     [](const sim::Seen& run) { return run.mode == kBeyond; });
}

static size_t count(const std::map<char, size_t>& classes, char letter) {
  const auto found = classes.find(letter);
  return found == classes.end() ? 0 : found->second;
}

// Returns one line for each way in which runs failed: what happened, how often, and in which runs.
static std::string failures(const std::vector<RunResult>& runs) {
  constexpr size_t kMost = 6;  // runs that are named
  std::vector<std::pair<std::string, std::vector<const RunResult*>>> ways;
  for (const RunResult& run : runs) {
    const std::string what = outcome(run);
    if (what.empty()) continue;
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const auto& w) { return w.first == what; });
    if (way != ways.end()) way->second.push_back(&run);
    else ways.push_back({what, {&run}});
  }
  std::string out;
  for (const auto& [what, failed] : ways) {
    out += fmt::format("the program {} in {} of {} run{}:", what, failed.size(), runs.size(),
                       runs.size() == 1 ? "" : "s");
    for (size_t i = 0; i < std::min(kMost, failed.size()); ++i)
      out += fmt::format(" {}:{}", failed[i]->mode, failed[i]->seed);
    if (failed.size() > kMost) out += fmt::format(" and {} more", failed.size() - kMost);
    out += "\n";
  }
  return out;
}

std::string outcome(const RunResult& run) {
  if (run.timed_out) return "ran out of time";
  if (run.signal != 0) return fmt::format("was ended by signal {} ({})", run.signal, strsignal(run.signal));
  if (run.status != 0) return fmt::format("ended with status {}", run.status);
  if (!run.judged) return "made no launch, or ended without its report";
  if (run.grids == 0) return "ran no kernel";
  return "";
}

Verdict judge(const std::vector<RunResult>& runs, const std::set<std::string>& allow, bool beyond_counts) {
  Verdict verdict;
  std::vector<sim::Report> all;
  for (const RunResult& run : runs) {
    for (const sim::Report& report : run.findings) sim::merge(all, report);
    sim::merge(verdict.certificate, run.certificate);
    const std::string what = outcome(run);
    if (what.empty()) continue;
    const bool elsewhere = std::any_of(runs.begin(), runs.end(), [&](const RunResult& other) {
      return other.mode != kBeyond && outcome(other) == what;
    });
    if (!beyond_counts && run.mode == kBeyond && !elsewhere) ++verdict.failed_beyond;
    else verdict.judged = false;
  }
  for (sim::Report& report : all) {
    if (allow.contains(report.rule)) {
      ++verdict.allowed;
      continue;
    }
    if (!beyond_counts && only_beyond(report)) {
      ++verdict.beyond[report.severity];
      continue;
    }
    ++verdict.classes[report.severity];
    if (report.severity == 'U') verdict.judged = false;
    verdict.findings.push_back(std::move(report));
  }
  const std::string order = "EUSA";
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(), [&](const auto& a, const auto& b) {
    return order.find(a.severity) < order.find(b.severity);
  });
  return verdict;
}

Status status_of(const Verdict& verdict, char fail_on) {
  const std::string order = "ESA";
  for (const char letter : order.substr(0, order.find(fail_on) + 1))
    if (count(verdict.classes, letter) != 0) return kErrors;
  return verdict.judged ? kClean : kNotJudged;
}

void print(const Verdict& verdict, const std::vector<RunResult>& runs, const std::string& program,
           Status status) {
  for (const sim::Report& report : verdict.findings) {
    std::string text = sim::render(report, program);
    if (report.seen.size() > 1) {
      text += "  runs     ";
      for (size_t i = 0; i < std::min<size_t>(report.seen.size(), 8); ++i)
        text += fmt::format(" {}:{}", report.seen[i].mode, report.seen[i].seed);
      if (report.seen.size() > 8) text += fmt::format(" and {} more", report.seen.size() - 8);
      text += "\n";
    }
    fmt::print("{}\n", text);
  }
  fmt::print("{}", failures(runs));
  if (!verdict.beyond.empty() || verdict.failed_beyond != 0)
    fmt::print(
        "only {} showed {} E, {} S, {} A and {} failed run{}, which do not count unless --mode names it\n",
        kBeyond, count(verdict.beyond, 'E'), count(verdict.beyond, 'S'), count(verdict.beyond, 'A'),
        verdict.failed_beyond, verdict.failed_beyond == 1 ? "" : "s");
  fmt::print("{}", sim::render(verdict.certificate));
  uint64_t grids = 0;
  for (const RunResult& run : runs) grids += run.grids;
  fmt::print("dualgemm-sim: {} run{}, {} grid{}: {} E, {} S, {} A", runs.size(), runs.size() == 1 ? "" : "s",
             grids, grids == 1 ? "" : "s", count(verdict.classes, 'E'), count(verdict.classes, 'S'),
             count(verdict.classes, 'A'));
  if (verdict.allowed != 0) fmt::print(", {} allowed", verdict.allowed);
  if (count(verdict.classes, 'U') != 0)
    fmt::print("; {} that the simulator could not judge", count(verdict.classes, 'U'));
  fmt::print("{}\n", status == kNotJudged ? "; not judged to the end" : "");
}

void write_json(const std::string& file, const Verdict& verdict, const std::vector<RunResult>& runs,
                const std::string& program, Status status) {
  nlohmann::json out{{"program", program},
                     {"findings", verdict.findings},
                     {"certificate", verdict.certificate},
                     {"status", int(status)},
                     {"allowed", verdict.allowed}};
  for (const char letter : {'E', 'S', 'A', 'U'})
    out["classes"][std::string(1, letter)] = count(verdict.classes, letter);
  for (const RunResult& run : runs)
    out["runs"].push_back({{"mode", run.mode},
                           {"seed", run.seed},
                           {"status", run.status},
                           {"signal", run.signal},
                           {"timed_out", run.timed_out},
                           {"judged", run.judged},
                           {"grids", run.grids}});
  std::ofstream stream(file);
  stream << out.dump(1) << '\n';
  if (!stream.flush()) throw std::runtime_error(fmt::format("--json {}: the file cannot be written", file));
}

}  // namespace command
