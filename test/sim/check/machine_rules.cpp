// machine_rules.cpp -- the rules of the machine checker.
#include "sim/check/finding.h"

namespace sim {

const std::vector<Rule> kMachineRules = {};

}  // namespace sim
