// diagnosis.h -- what a report must say to be right: which rules may be named, and which instruction or
// barrier. "It failed" is not a diagnosis.
#pragma once

#include <string>
#include <vector>

#include "fault/bench.h"
#include "fault/mutate.h"

namespace fault {

// One acceptable answer. Every list that is not empty must match; within a list one entry is enough.
struct Answer {
  std::vector<std::string> rules;     // ids, a trailing * matches any rest
  std::vector<std::string> parties;   // beginnings of either party's spelling: "tcgen05.mma"
  std::vector<std::string> barriers;  // "full", "empty": the ring
  std::vector<std::string> faults;    // parts of the machine's report
};

struct Expectation {
  std::vector<Answer> answers;
};

// Empty when nothing in the run is right; otherwise the report that is.
std::string right_report(const Run& run, const Expectation& expected);

// What the sweep expects of a mutant, by instruction class and operation.
Expectation expectation_of(const Mutant& mutant);

}  // namespace fault
