// judging.h -- where the runtime meets the judge: which policy and which watcher a launch gets, and what
// happens to faults. The first work of a program asks the environment whether it is to be judged.
#pragma once

#include "sim/launch.h"

namespace sim::shim {

struct Runtime;

// Policy and observer of work that begins now. The policy of a test goes before the judge's; both watch.
LaunchOptions launch_options(Runtime& runtime);
// To the judge, if there is one.
void judge_fault(Runtime& runtime, FaultKind kind, const std::string& text);

}  // namespace sim::shim
