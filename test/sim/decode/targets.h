// targets.h -- which instructions a module's .target has. It covers only what the simulated machines differ
// in; what all of them have, any target may use.
#pragma once

#include "sim/machine.h"
#include "sim/parse/module.h"

namespace sim {

// Throws Fault kSyntax when a module of this target cannot hold the statement, which ptxas would refuse.
void check_target(const Target& target, const ptx::Statement& statement);

}  // namespace sim
