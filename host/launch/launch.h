// launch.h -- from a checked problem and an instance to a launch: the argument of the kernel, the grid and
// its attributes. Nothing here allocates device memory, synchronises or touches the default stream unless the
// caller passes it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "host/common/problem.h"
#include "host/include/dualgemm.h"
#include "host/model/tiling.h"
#include "kernel/instance.h"
#include "kernel/params.h"

namespace dualgemm {

// Makes the argument of the kernel. Params travels by value.
dualgemm_status_t make_params(const Problem& problem, const Instance& instance, Params* params);

// How a kernel is launched. `config` points to the attributes.
struct LaunchConfig {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attributes[2];
};
void make_launch_config(const Problem& problem, const Instance& instance, const Machine& machine,
                        int64_t ctas, cudaStream_t stream, LaunchConfig* launch);

// Runs a checked problem with K > 0 on a loaded instance, which need not be one of the table.
dualgemm_status_t launch_instance(const Problem& problem, const Instance& instance,
                                  const dualgemm_device_t& device, cudaStream_t stream);

// Fills the outputs with zeros for K == 0: the sum of no products. Columns from N to ldc keep what they hold,
// as does *amax_out.
dualgemm_status_t launch_zero_fill(const Problem& problem, cudaStream_t stream);

}  // namespace dualgemm
