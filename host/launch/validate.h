// validate.h -- every precondition of a launch, one status each, in the documented order. It makes no CUDA
// call and reads no memory behind a pointer. So all rules can be tested, and users can ask about them, on a
// machine without a GPU.
#pragma once

#include "host/common/problem.h"

namespace dualgemm {

// Makes *problem out of arguments that keep all rules. Only the device is left to check then. On failure the
// text of dualgemm_last_error() names the argument and *problem is unspecified.
dualgemm_status_t validate(const dualgemm_args_t* args, Problem* problem);

}  // namespace dualgemm
