// mxfp4.h -- weights in MXFP4: what a launch with an A in FP8 multiplies by, and the preparation of their
// factors as its rules, its launch and its twin on the host see it.
#pragma once

#include <cstdint>

#include "host/common/problem.h"
#include "host/common/rows.h"

namespace dualgemm {

// Returns the weight that an element and the byte of its factor make as a number of E4M3, or NaN. `code` has
// the element in its lower four bits.
float weight_in_e4m3(uint8_t code, uint8_t byte);

struct Mxfp4Preparation {
  dualgemm_prepare_mxfp4_args_t args;
  Rows rows;
  bool empty;  // nothing to do: no rule about tensors was looked at
  Tensor q, scales, sf, row_exponent, counts;
};

// Returns the structure as dualgemm_prepare_mxfp4_args_init sets it.
dualgemm_prepare_mxfp4_args_t default_prepare_mxfp4_args();

// Checks all rules except the one about the device, in the order of the manual.
dualgemm_status_t validate(const dualgemm_prepare_mxfp4_args_t* args, Mxfp4Preparation* preparation);

}  // namespace dualgemm
