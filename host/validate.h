// validate.h -- every precondition of a launch, one status each, in the documented order. No CUDA call and no
// access to what a pointer points at: all of it can be tested, and asked by users, on a machine without a
// GPU.
#pragma once

#include <cstdint>

#include "host/dualgemm.h"
#include "kernel/instances.h"

namespace dualgemm {

// Arguments that passed: full structure, defaults resolved, nothing left to check but the device.
struct Problem {
  dualgemm_args_t args;  // every row pitch and stride is explicit, batch at least 1
  CType c_type;
  int32_t problems;    // of the batch, or groups: as many B1, B2, SFB1, SFB2 there are
  int32_t a_problems;  // as many A, SFA and C there are: groups with DUALGEMM_GROUP_OFFSETS share one
  bool empty;          // M == 0 or N == 0: succeed without looking any further

  bool grouped() const { return args.group_mode != DUALGEMM_GROUP_NONE; }
  bool group_offsets() const { return args.group_mode == DUALGEMM_GROUP_OFFSETS; }
  // Groups that can have rows at all.
  int32_t groups_with_rows() const { return args.m < args.groups ? args.m : args.groups; }
};

// On failure the text of dualgemm_last_error() names the argument and *problem is unspecified.
dualgemm_status_t validate(const dualgemm_args_t* args, Problem* problem);

// Tiles of C that `instance` computes; with groups an upper bound, since their rows are not known here.
int64_t tile_bound(const Problem& problem, const Instance& instance);

// Driver and compute capability: can the kernels of this build run there?
dualgemm_status_t validate_device(const dualgemm_device_t& device);

// What dualgemm_args_init sets.
dualgemm_args_t default_args();

}  // namespace dualgemm
