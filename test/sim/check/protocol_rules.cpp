// protocol_rules.cpp -- the rules of the protocol checker.
#include "sim/check/finding.h"

namespace sim {

const std::vector<Rule> kProtocolRules = {};

}  // namespace sim
