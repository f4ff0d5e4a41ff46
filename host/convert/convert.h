// convert.h -- the kernels of convert.cpp, as dualgemm_init loads them, and the one that a launch runs before
// its own.
#pragma once

#include <cuda_runtime_api.h>

#include "host/common/problem.h"
#include "host/model/tiling.h"

namespace dualgemm {

// Loads all of them that are exported on the current device.
dualgemm_status_t load_conversions();

// Expands A of a problem into its workspace, or puts it in order there, for an instance of Plan::expanded_a.
dualgemm_status_t launch_expansion(const Problem& problem, const Machine& machine, cudaStream_t stream);

}  // namespace dualgemm
