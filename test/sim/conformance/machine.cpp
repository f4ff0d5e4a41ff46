// machine.cpp -- what was recorded on an H200 runs on the simulated one, before main and whatever SIM_MACHINE
// says.
#include "sim/machine.h"

#include "sim/shim/shim.h"

namespace {

[[maybe_unused]] const bool kChosen = (sim::shim::set_machine(sim::kH200), true);

}  // namespace
