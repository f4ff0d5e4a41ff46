// kernels.h -- what kernels.cu compiles, for the bench and its test only. The library has none of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernel/instance.h"

namespace bench {

extern const dualgemm::InstanceList kAblations;  // fp16

// Computes c = silu(gates) * ups, elementwise. All three are compact, fp16, and a multiple of 8 elements.
cudaError_t launch_activation(const void* gates, const void* ups, void* c, int64_t elements,
                              cudaStream_t stream);

}  // namespace bench
