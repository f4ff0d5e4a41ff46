// held.h -- launches on their way to the machine. A schedule that overlaps grids holds every launch until the
// host waits for something or gives the device other work than launches; what was held runs together then, in
// the order that CUDA promises and no other. Any other schedule runs a launch at once.
#pragma once

#include <memory>

#include "sim/launch.h"

namespace sim::shim {

struct Runtime;

// Takes the launch that is HostOrder::current, which has been announced, and runs it unless the schedule
// holds it.
void hold(Runtime& runtime, std::unique_ptr<Launch> launch);
// Runs what is held. Throws Failure when a grid faults, which then counts as the caller's.
void run_held(Runtime& runtime);
// Does the same in calls that cannot return a failure; the failure is recorded.
void run_held_quietly(Runtime& runtime, const char* function);

// Turns the fault of a launch into the Failure that the caller gets, and tells the judge. The memory of a
// device whose grid stopped midway cannot be trusted; a launch that began nothing leaves it as it was.
[[noreturn]] void fail_launch(Runtime& runtime, const Fault& fault, bool began);

}  // namespace sim::shim
