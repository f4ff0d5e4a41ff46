// score.cpp -- see score.h.
#include "mutation/score.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace mutation {
namespace {

void count(Tally& t, const Scored& s) {
  if (!s.absent.empty()) return;
  ++t.mutants;
  const Verdict& v = s.verdict;
  if (v.killed()) {
    ++t.killed;
    if (v.in_default_schedule()) ++t.in_default;
    if (v.diagnosed) ++t.diagnosed;
    if (!s.equivalent.empty()) ++t.wrong_table;
  } else if (s.equivalent.empty()) {
    ++t.survivors;
  } else {
    ++t.equivalent;
  }
}

void print_row(const std::string& label, const Tally& t) {
  fmt::print("{:<36}{:>8}{:>8}{:>9}{:>11}{:>12}{:>11}\n", label, t.mutants, t.killed, t.in_default,
             t.diagnosed, t.equivalent, t.survivors);
}

std::string first_line(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return line.size() <= 220 ? line : line.substr(0, 217) + "...";
}

}  // namespace

Tally tally(const std::vector<Scored>& all) {
  Tally t;
  for (const Scored& s : all) count(t, s);
  return t;
}

void print_planted(const std::vector<Scored>& all) {
  std::vector<const Scored*> rows;
  for (const Scored& s : all) rows.push_back(&s);
  std::stable_sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->number < b->number; });
  for (const Scored* s : rows) {
    const Verdict& v = s->verdict;
    fmt::print("{:>3}  {}{}{}\n", s->number, s->mutant.subject.name,
               s->mutant.subject.name.empty() ? "" : ": ", s->bug);
    if (!s->absent.empty()) {
      fmt::print("     not in this kernel: {}\n", s->absent);
    } else if (!v.killed()) {
      fmt::print("     SURVIVES {} schedules\n", v.runs);
    } else {
      fmt::print("     {}, {}; {}: {}\n", name(v.outcome),
                 v.in_default_schedule() ? "every schedule"
                                         : fmt::format("{} seed {}", v.killed_by.mode, v.killed_by.seed),
                 v.diagnosed ? "diagnosis right" : "OTHER DIAGNOSIS", first_line(v.report));
    }
  }
  const Tally t = tally(all);
  fmt::print(
      "planted: {} bugs, {} killed, {} of them in the default schedule, {} with the right diagnosis, "
      "{} survive\n\n",
      t.mutants, t.killed, t.in_default, t.diagnosed, t.survivors);
}

void print_controls(const std::vector<Scored>& all) {
  for (const Scored& s : all)
    if (s.verdict.killed())
      fmt::print("UNCLEAN CONTROL {} / {}: {} ({} seed {}) {}{}\n", s.mutant.subject.name, s.mutant.id,
                 name(s.verdict.outcome), s.verdict.killed_by.mode, s.verdict.killed_by.seed, s.verdict.crash,
                 first_line(s.verdict.report));
  const Tally t = tally(all);
  fmt::print("controls: {} run, {} unclean\n", t.mutants, t.killed);
}

void print_by_group(const std::vector<Scored>& all) {
  std::map<std::string, Tally> groups;
  for (const Scored& s : all) count(groups[s.mutant.group], s);
  fmt::print("{:<36}{:>8}{:>8}{:>9}{:>11}{:>12}{:>11}\n", "instruction class", "mutants", "killed", "default",
             "diagnosis", "equivalent", "survivors");
  for (const auto& [group, t] : groups) print_row(group, t);
  print_row("all", tally(all));
  std::map<std::string, size_t> outcomes;
  for (const Scored& s : all) ++outcomes[name(s.verdict.outcome)];
  std::string line;
  for (const auto& [outcome, n] : outcomes)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", n, outcome);
  fmt::print("first seen as: {}\n", line);
}

void print_exceptions(const std::vector<Scored>& all) {
  for (const Scored& s : all) {
    const Verdict& v = s.verdict;
    if (!v.crash.empty()) fmt::print("SIMULATOR DIED  {} / {}: {}\n", s.mutant.subject.name, v.id, v.crash);
    else if (!v.killed() && s.equivalent.empty())
      fmt::print("SURVIVOR        {} / {}\n", s.mutant.subject.name, v.id);
    else if (v.killed() && !s.equivalent.empty())
      fmt::print("WRONG ENTRY     {} / {}: killed by {} ({} seed {}): {}\n", s.mutant.subject.name, v.id,
                 name(v.outcome), v.killed_by.mode, v.killed_by.seed, first_line(v.report));
    else if (v.killed() && !v.diagnosed)
      fmt::print("OTHER DIAGNOSIS {} / {}: {} ({} seed {}) {}\n", s.mutant.subject.name, v.id,
                 name(v.outcome), v.killed_by.mode, v.killed_by.seed, first_line(v.report));
  }
}

nlohmann::json json_of(const std::vector<Scored>& all) {
  nlohmann::json out = nlohmann::json::array();
  for (const Scored& s : all) {
    nlohmann::json row = s.verdict;
    if (s.number != 0) row["number"] = s.number;
    if (!s.absent.empty()) row["absent"] = s.absent;
    row["instance"] = s.mutant.subject.name;
    row["group"] = s.mutant.group;
    row["operation"] = s.mutant.operation;
    row["ptx_line"] = s.mutant.ptx_line;
    row["source"] = s.mutant.source;
    row["equivalent"] = s.equivalent;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace mutation
