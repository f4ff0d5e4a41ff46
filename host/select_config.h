// select_config.h -- which kernel instance computes a problem. A pure function of its arguments: no CUDA
// call, no timing, no state, so the same problem always gets the same kernel and the same bits.
#pragma once

#include <cstdint>

#include "host/cost_model.h"
#include "kernel/config.h"

namespace dualgemm {

// Index into kInstances, or -1 when no instance writes `c_type`. sm_count > 0 is the number of SMs it may
// use.
int32_t select_config(Shape shape, CType c_type, int32_t sm_count);

}  // namespace dualgemm
