// judges.h -- everything that watches and drives a run:
// the checkers behind one observer, and schedules by name.
#pragma once

#include <memory>
#include <vector>

#include "mutation/bench.h"
#include "sim/check/finding.h"
#include "sim/exec/observer.h"
#include "sim/exec/policy.h"
#include "sim/judge/parts.h"

namespace mutation {

class Judges : public sim::Observers {
 public:
  explicit Judges(const sim::FindingSink& sink);

 private:
  sim::Checkers checkers_;
};

std::unique_ptr<sim::Policy> policy_of(const Schedule& schedule);

// Returns the schedules in the order in which they are tried on a mutant: the default one, directed modes
// with a seed or two each, random ones, then more seeds of directed modes, for what nothing has killed yet.
const std::vector<Schedule>& escalation();

}  // namespace mutation
