// load.h -- loads the kernels of instances on the current device, before a launch needs them: a stream
// capture must not meet one that is not loaded. A failure is not remembered, so a later call may succeed.
// What a launch may have of shared memory is set here, too.
#pragma once

#include "host/include/dualgemm.h"
#include "host/model/instance_kinds.h"
#include "host/model/tiling.h"

namespace dualgemm {

// Returns the dynamic shared memory of a launch, in bytes. A CTA goes to an SM as soon as that has room for
// it. Under PDL these may be only the few SMs that the preceding grid does not use. A grid that could have
// an SM for each CTA would be packed there, two CTAs to an SM, and take up to twice as long. So its CTAs
// take more than half of an SM.
int32_t smem_bytes_of_launch(const Instance& instance, int64_t ctas, const Machine& machine);
// Returns the most that a launch of this instance may have.
int32_t most_smem_bytes(const Instance& instance);

// Lets the current device run the instance: loads its kernel, and the kernel that prepares A for it.
dualgemm_status_t load_instance(const Instance& instance);

// Load one instance, or all of them, on the current device, which is `device`; once per device.
dualgemm_status_t load_once(const dualgemm_device_t& device, const IndexedInstance& indexed);
dualgemm_status_t load_all(const dualgemm_device_t& device);

}  // namespace dualgemm
