// device.h -- which devices the library serves, what it knows of the current one, and loading a kernel there.
// State is kept per device ordinal, never per process: an attribute set while one device is current says
// nothing about the next one. A failure is not remembered, so a later call may succeed.
#pragma once

#include <cuda_runtime_api.h>

#include "host/common/structure.h"
#include "host/include/dualgemm.h"
#include "kernel/architecture.h"

namespace dualgemm {

inline constexpr Structure kDeviceStructure = {"device", "dualgemm_device_t", "dualgemm_device_init", 100,
                                               sizeof(dualgemm_device_t)};
static_assert(kDeviceStructure.size >= kDeviceStructure.first_size);

// Returns whether there is an instance for this architecture.
bool built_for(Arch arch);

// Returns the architecture that a device's compute capability belongs to, if the library is built for it;
// else null.
const Architecture* served_architecture(const dualgemm_device_t& device);

// Checks the rule about devices: whether kernels of this build run there. Makes no CUDA call.
dualgemm_status_t check_device(const dualgemm_device_t& device);

// Ordinals of devices are below this.
inline constexpr int kMaxDevices = 64;

// Fills in the calling thread's current device, which is asked once per device, then remembered.
dualgemm_status_t query_current_device(dualgemm_device_t* device);

// Both load a kernel on the current device, and allow it its shared memory. load_kernel also reports a
// failure.
cudaError_t allow_shared_memory(const void* kernel, int32_t bytes);
dualgemm_status_t load_kernel(const void* kernel, int32_t smem_bytes);

}  // namespace dualgemm
