// device.h -- the attributes of the simulated B200 that the runtime and the driver API both answer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace sim::shim {

constexpr size_t kDeviceMemoryBytes = size_t{183359} << 20;
constexpr int kGreatestStreamPriority = -5;  // the least is 0
constexpr const char* kDeviceName = "simulated B200";

// Failure cudaErrorInvalidValue naming the attribute when it is not in the table. The driver's
// CUdevice_attribute uses the same numbers.
int device_attribute(int attribute);
// Failure cudaErrorInvalidDevice for anything but the one device, 0.
void require_device(int device);

}  // namespace sim::shim
