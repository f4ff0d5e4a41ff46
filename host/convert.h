// convert.h -- the kernels of convert.cpp, as dualgemm_init loads them, and the one that a launch runs before
// its own.
#pragma once

#include <cuda_runtime_api.h>

#include "host/problem.h"
#include "host/tiling.h"

namespace dualgemm {

// Loads all of them that are exported on the current device.
dualgemm_status_t load_conversions();

// Prepares A of a problem in its workspace, for an instance of Plan::prepared_a.
dualgemm_status_t launch_preparation(const Problem& problem, const Machine& machine, cudaStream_t stream);

}  // namespace dualgemm
