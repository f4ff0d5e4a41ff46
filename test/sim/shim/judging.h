// judging.h -- where the runtime meets the judge: which policy and which observer a launch gets, and what
// happens to faults. The first work of a program asks the environment whether it is to be judged.
#pragma once

#include "sim/launch.h"

namespace sim::shim {

struct Runtime;

// Returns policy and observer of work that begins now. The policy of a test takes precedence over the
// judge's; the observers of both observe.
LaunchOptions launch_options(Runtime& runtime);
// Passes a fault to the judge, if there is one.
void judge_fault(Runtime& runtime, FaultKind kind, const std::string& text);

}  // namespace sim::shim
