// validate.h -- every precondition of a launch, one status each, in the documented order. It makes no CUDA
// call and does not look at what a pointer points at: all of it can be tested, and asked by users, on a
// machine without a GPU.
#pragma once

#include "host/common/problem.h"

namespace dualgemm {

// Makes *problem of arguments that keep all rules: nothing is left to check but the device. On failure the
// text of dualgemm_last_error() names the argument and *problem is unspecified.
dualgemm_status_t validate(const dualgemm_args_t* args, Problem* problem);

}  // namespace dualgemm
