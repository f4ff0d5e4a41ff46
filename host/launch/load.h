// load.h -- loads the kernels of instances on the current device. dualgemm_init loads all of them; a launch
// loads its own kernel, if that is not loaded yet. CUDA does not promise that a kernel can be loaded during a
// stream capture. A failure is not remembered, so a later call may succeed. Loading a kernel also sets how
// much shared memory its launches may have.
#pragma once

#include "host/include/dualgemm.h"
#include "host/model/instance_kinds.h"
#include "host/model/tiling.h"

namespace dualgemm {

// Returns the dynamic shared memory of a launch, in bytes. A CTA goes to an SM as soon as that has room for
// it. Under PDL these may be only the few SMs that the preceding grid does not use. A grid that could have
// an SM for each CTA would be packed there, two CTAs to an SM, and take up to twice as long. So each CTA of
// such a grid takes more than half of the shared memory of an SM.
int32_t smem_bytes_of_launch(const Instance& instance, int64_t ctas, const Machine& machine);
// Returns the most that a launch of this instance may have.
int32_t most_smem_bytes(const Instance& instance);

// Lets the current device run the instance: loads its kernel, and the kernel that prepares A for it.
dualgemm_status_t load_instance(const Instance& instance);

// Load one instance, or all of them, on the current device. `device` describes it. An instance that has been
// loaded there is not loaded again.
dualgemm_status_t load_once(const dualgemm_device_t& device, const IndexedInstance& indexed);
dualgemm_status_t load_all(const dualgemm_device_t& device);

}  // namespace dualgemm
