// select_config.h -- which kernel instance computes a problem. A pure function of its arguments: no CUDA
// call, no timing, no state, so the same problem always gets the same kernel and the same bits.
#pragma once

#include <cstdint>

#include "host/cost_model.h"
#include "kernel/config.h"

namespace dualgemm {

// Index into kInstances, or -1 when no instance writes `c_type` or fits on the machine. Without `split_k`,
// instances that split K stay out of it.
int32_t select_config(Shape shape, CType c_type, const Machine& machine, bool split_k = true);

}  // namespace dualgemm
