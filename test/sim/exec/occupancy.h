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
// Returns the registers that every thread of a kernel with setmaxnreg has at launch, or 0 where the PTX does
// not say: as ptxas gives them, the most that .maxnreg and the threads and CTAs of .maxntid (or .reqntid) and
// .minnctapersm leave, in the units of 8 in which registers are handed out.
int registers_at_launch(const Machine& machine, const KernelInfo& kernel);
int max_active_clusters(const Machine& machine, const KernelInfo& kernel, const LaunchConfig& config);

}  // namespace sim
