// load.h -- loads the kernels of instances on the current device, before a launch needs them: a stream
// capture must not meet one that is not loaded. A failure is not remembered, so a later call may succeed.
#pragma once

#include "host/include/dualgemm.h"
#include "host/model/instance_kinds.h"

namespace dualgemm {

// Lets the current device run the instance: loads its kernel, and the kernel that prepares A for it.
dualgemm_status_t load_instance(const Instance& instance);

// Load one instance, or all of them, on the current device, which is `device`; once per device.
dualgemm_status_t load_once(const dualgemm_device_t& device, const IndexedInstance& indexed);
dualgemm_status_t load_all(const dualgemm_device_t& device);

}  // namespace dualgemm
