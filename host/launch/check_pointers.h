// check_pointers.h -- DUALGEMM_FLAG_CHECK_POINTERS: what the driver knows of the memory that a launch is
// given.
#pragma once

#include "host/common/problem.h"

namespace dualgemm {

// Checks that the device with this ordinal, which is the current one, sees every tensor of the problem as a
// whole, and the whole workspace. It asks the driver and follows no pointer.
dualgemm_status_t check_pointers(const Problem& problem, int32_t ordinal);

}  // namespace dualgemm
