// validate.h -- every precondition of a launch, one status each, in the documented order. No CUDA call and no
// access to what a pointer points at: all of it can be tested, and asked by users, on a machine without a
// GPU.
#pragma once

#include <cstdint>

#include "host/dualgemm.h"
#include "kernel/config.h"

namespace dualgemm {

// Arguments that passed: full structure, defaults resolved, nothing left to check but the device.
struct Problem {
  dualgemm_args_t args;  // every row pitch is explicit
  CType c_type;
  bool empty;  // M == 0 or N == 0: succeed without looking any further
};

// On failure the text of dualgemm_last_error() names the argument and *problem is unspecified.
dualgemm_status_t validate(const dualgemm_args_t* args, Problem* problem);

// Driver and compute capability: can the kernels of this build run there?
dualgemm_status_t validate_device(const dualgemm_device_t& device);

// What dualgemm_args_init sets.
dualgemm_args_t default_args();

}  // namespace dualgemm
