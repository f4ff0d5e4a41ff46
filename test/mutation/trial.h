// trial.h -- what became of a mutant: it runs under one schedule after another until one of them rejects it,
// and on until a report also names the cause.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "mutation/bench.h"
#include "mutation/diagnosis.h"
#include "mutation/mutate.h"

namespace mutation {

struct Verdict {
  std::string id;
  Outcome outcome = Outcome::kClean;  // of the first run that rejected it
  Schedule killed_by;
  size_t runs = 0;  // until then
  bool diagnosed = false;
  Schedule diagnosed_by;
  std::string report;  // the finding or fault that names the cause; of the killing run when none does
  std::string rules;   // of the killing run, distinct, in order
  std::string crash;   // the simulator itself died: always an error

  bool killed() const { return outcome != Outcome::kClean; }
  bool in_default_schedule() const { return killed() && runs == 1; }
};

// Runs at most `most` schedules.
Verdict try_out(Bench& bench, const Mutant& mutant, const Expectation& expected, size_t most);

void to_json(nlohmann::json& out, const Verdict& verdict);
void from_json(const nlohmann::json& in, Verdict& verdict);

}  // namespace mutation
