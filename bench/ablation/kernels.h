// kernels.h -- what kernels.cu and kernels_sm90.cu compile, for the bench and its test only. The library has
// none of it.
#pragma once

#include "kernel/instance.h"

namespace bench {

// All are for fp16.
extern const dualgemm::InstanceList kAblations;  // for compute capability 10.x
extern const dualgemm::InstanceList kSequentialSm90;

}  // namespace bench
