// score.h -- the result of a whole campaign: verdicts beside what was expected of them, as tables and JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mutation/mutate.h"
#include "mutation/trial.h"

namespace mutation {

struct Scored {
  Mutant mutant;
  Verdict verdict{};
  std::string equivalent{};  // why it changes nothing a run can tell, empty when it must be killed
  int number = 0;            // of a planted bug
  std::string bug{};         // of a planted bug: what it is
  std::string absent{};      // of a planted bug: why it does not apply to this kernel
};

struct Tally {
  size_t mutants = 0, killed = 0, in_default = 0, diagnosed = 0, equivalent = 0, survivors = 0,
         wrong_table = 0;
};

Tally tally(const std::vector<Scored>& all);
void print_planted(const std::vector<Scored>& all);
void print_controls(const std::vector<Scored>& all);
void print_by_group(const std::vector<Scored>& all);
// Prints survivors, killed ones whose report names something else, and justified ones that were killed.
void print_exceptions(const std::vector<Scored>& all);
nlohmann::json json_of(const std::vector<Scored>& all);

}  // namespace mutation
