// supported.h -- the last rules of a launch: what the structure can express, but no instance of this library
// computes.
#pragma once

#include "host/problem.h"

namespace dualgemm {

// Checks a problem that keeps all other rules. Returns NOT_SUPPORTED, or INVALID_VALUE for an instance_id
// that does not exist.
dualgemm_status_t check_supported(const Problem& problem);

}  // namespace dualgemm
