// device.h -- the attributes of the simulated device that the runtime and the driver API both answer.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "sim/machine.h"

namespace sim::shim {

struct Runtime;

constexpr int kGreatestStreamPriority = -5;  // the least is 0

// Returns the GPU that SIM_MACHINE names, a B200 unless it is set. Ends the process when there is no such
// GPU.
const Machine& machine_from_environment();
std::string device_name(const Machine& machine);  // "simulated B200"
// Throws Failure cudaErrorInvalidValue, which names the attribute, when it is not in the table. The driver's
// CUdevice_attribute uses the same numbers.
int device_attribute(const Machine& machine, int attribute);
// Throws Failure cudaErrorInvalidDevice for anything but the one device, 0.
void require_device(int device);
// Frees every allocation and module; function attributes go with them.
void reset_device(Runtime& runtime);

}  // namespace sim::shim
