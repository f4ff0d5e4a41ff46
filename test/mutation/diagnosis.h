// diagnosis.h -- what a report must say to be right: which rules may be named, and which instruction or
// barrier. "It failed" is not a diagnosis.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "mutation/bench.h"
#include "mutation/mutate.h"

namespace mutation {

// This is one acceptable answer. Every list that is not empty must match; within a list one entry is enough.
struct Answer {
  std::vector<std::string> rules{};    // ids, a trailing * matches any rest; empty: a fault of the machine
  std::vector<std::string> parties{};  // beginnings of either party's spelling: "tcgen05.mma"
  std::vector<std::string> rings{};    // "full", "empty": a barrier of the ring is named
  std::vector<std::string> faults{};   // words of the machine's report; not asked of findings
};

struct Expectation {
  std::vector<Answer> answers{};
  bool values_suffice = false;  // the bug breaks no rule: all it does is compute something else
  uint32_t itself = 0;          // PTX line: a report that names this very statement is right
};

// Returns the report that is right, empty when nothing in the run is.
std::string right_report(const Run& run, const Expectation& expected);

// Returns what the sweep expects of a mutant, by instruction class and the rings that the attacked statement
// works on.
Expectation expectation_of(const Mutant& mutant, const std::set<std::string>& rings);

// Returns the answers for the rings and pairs that bugs concern: "full", "scale_empty", "acc_full",
// "window_free".
std::vector<Answer> answers_of_ring(const std::string& ring);

}  // namespace mutation
