// trial.cpp -- see trial.h.
#include "mutation/trial.h"

#include <algorithm>

#include "mutation/judges.h"

namespace mutation {
namespace {

std::string distinct_rules(const Run& run) {
  std::vector<std::string> seen;
  for (const Sighting& s : run.sightings)
    if (std::find(seen.begin(), seen.end(), s.rule) == seen.end()) seen.push_back(s.rule);
  std::string out;
  for (const std::string& rule : seen) out += (out.empty() ? "" : " ") + rule;
  return out;
}

std::string first_report(const Run& run) {
  if (!run.sightings.empty()) return run.sightings.front().rule + ": " + run.sightings.front().summary;
  return run.fault.empty() ? run.values : run.fault;
}

}  // namespace

Verdict try_out(Bench& bench, const Mutant& mutant, const Expectation& expected, size_t most) {
  Verdict verdict;
  verdict.id = mutant.id;
  bench.use(mutant.edit, mutant.in_entry);
  size_t tried = 0;
  for (const Schedule& schedule : escalation()) {
    if (tried++ == most) break;
    const Run run = bench.run(schedule);
    if (run.outcome == Outcome::kClean) continue;
    if (!verdict.killed()) {
      verdict.outcome = run.outcome;
      verdict.killed_by = schedule;
      verdict.runs = tried;
      verdict.rules = distinct_rules(run);
      verdict.report = first_report(run);
    }
    const std::string report = right_report(run, expected);
    if (report.empty()) continue;
    verdict.diagnosed = true;
    verdict.diagnosed_by = schedule;
    verdict.report = report;
    break;
  }
  if (!verdict.killed()) verdict.runs = tried;
  bench.use(nullptr);
  return verdict;
}

void to_json(nlohmann::json& out, const Verdict& v) {
  out = {{"id", v.id},
         {"outcome", name(v.outcome)},
         {"outcome_code", static_cast<int>(v.outcome)},
         {"mode", v.killed_by.mode},
         {"seed", v.killed_by.seed},
         {"runs", v.runs},
         {"diagnosed", v.diagnosed},
         {"diagnosed_mode", v.diagnosed_by.mode},
         {"diagnosed_seed", v.diagnosed_by.seed},
         {"report", v.report},
         {"rules", v.rules},
         {"crash", v.crash}};
}

void from_json(const nlohmann::json& in, Verdict& v) {
  in.at("id").get_to(v.id);
  v.outcome = static_cast<Outcome>(in.at("outcome_code").get<int>());
  in.at("mode").get_to(v.killed_by.mode);
  in.at("seed").get_to(v.killed_by.seed);
  in.at("runs").get_to(v.runs);
  in.at("diagnosed").get_to(v.diagnosed);
  in.at("diagnosed_mode").get_to(v.diagnosed_by.mode);
  in.at("diagnosed_seed").get_to(v.diagnosed_by.seed);
  in.at("report").get_to(v.report);
  in.at("rules").get_to(v.rules);
  in.at("crash").get_to(v.crash);
}

}  // namespace mutation
