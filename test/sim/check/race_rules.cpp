// race_rules.cpp -- the rules of the race checker.
#include "sim/check/finding.h"

namespace sim {

const std::vector<Rule> kRaceRules = {};

}  // namespace sim
