// arguments.h -- from the caller's structure, of whichever release, to a Problem: defaults, and every row
// pitch and stride resolved. Which values the numbers may have is decided elsewhere (validate.h).
#pragma once

#include "host/common/problem.h"

namespace dualgemm {

// Returns the structure as dualgemm_args_init sets it.
const dualgemm_args_t& default_args();

// Copies the fields that the caller's structure has; younger fields get their defaults. Refuses a size that
// fits no release, and fields that are set but that this library does not know.
dualgemm_status_t copy_args(const dualgemm_args_t* args, dualgemm_args_t* out);

// Completes a problem whose args are set, with checked enumerators and counts. Pitches and strides may
// still be anything.
void describe(Problem& problem);

}  // namespace dualgemm
