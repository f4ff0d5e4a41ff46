// kernels.h -- what kernels.cu compiles, for the bench and its test only. The library has none of it.
#pragma once

#include "kernel/instance.h"

namespace bench {

extern const dualgemm::InstanceList kAblations;  // fp16

}  // namespace bench
