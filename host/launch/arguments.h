// arguments.h -- from the caller's structure, of whichever release, to a Problem: defaults, and every row
// pitch and stride resolved. What the numbers may be is not decided here (validate.h).
#pragma once

#include "host/common/problem.h"

namespace dualgemm {

// Returns what dualgemm_args_init sets.
const dualgemm_args_t& default_args();

// Copies what the caller has of the structure; fields that are younger than the caller keep their defaults.
// Refuses a size that fits no release, and fields that are set but not known.
dualgemm_status_t copy_args(const dualgemm_args_t* args, dualgemm_args_t* out);

// Completes a problem whose args are set, with checked enumerators and counts. Pitches and strides may
// still be anything.
void describe(Problem& problem);

}  // namespace dualgemm
