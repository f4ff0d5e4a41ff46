// arguments.h -- from the caller's structure, of whichever release, to a Problem: defaults, and every row
// pitch and stride resolved. What the numbers may be is not decided here (validate.h).
#pragma once

#include "host/problem.h"

namespace dualgemm {

// Returns what dualgemm_args_init sets.
dualgemm_args_t default_args();

// Copies what the caller has of the structure; fields that are younger than the caller keep their defaults.
// Refuses a size that fits no release, and fields that are set but not known.
dualgemm_status_t copy_args(const dualgemm_args_t* args, dualgemm_args_t* out);

// Returns the launch that checked enumerators and counts describe. Pitches and strides may still be anything.
Problem problem_of(const dualgemm_args_t& args);

}  // namespace dualgemm
