// possible_plan.cpp -- no test program: CTest compiles it with the options of a kernel that cannot be, and
// looks for the reason in what the compiler says; and with options of one that could be, but does not ship.
#include "kernel/sm100/plan.h"

using namespace dualgemm::sm100;

constexpr Options kOptions{OPTIONS};
static_assert(possible<kOptions, plan_of(kOptions)>());
