// occupancy.h -- how much of a launch the machine holds at once.
#pragma once

#include <cstddef>

#include "sim/decode/kernel_info.h"
#include "sim/exec/launch_config.h"
#include "sim/machine.h"

namespace sim {

// These are the occupancy calls of the runtime: how many CTAs are resident on an SM, and how many clusters on
// the machine, by registers (64 a thread, since PTX does not say), shared memory and threads.
int max_active_blocks_per_sm(const Machine& machine, const KernelInfo& kernel, int threads,
                             size_t dynamic_smem);
int max_active_clusters(const Machine& machine, const KernelInfo& kernel, const LaunchConfig& config);

}  // namespace sim
