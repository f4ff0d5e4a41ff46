// targets.h -- which instructions a module's .target has. It covers only instructions that not all simulated
// machines have; all others may be used with any target.
#pragma once

#include "sim/machine.h"
#include "sim/parse/module.h"

namespace sim {

// Throws Fault kSyntax when a module of this target cannot hold the statement, which ptxas would refuse.
void check_target(const Target& target, const ptx::Statement& statement);

}  // namespace sim
