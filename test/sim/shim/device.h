// device.h -- the attributes of the simulated device that the runtime and the driver API both answer.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "sim/machine.h"

namespace sim::shim {

struct Runtime;

constexpr int kGreatestStreamPriority = -5;  // the least is 0

// At most this many devices can be simulated.
constexpr int kMaxDevices = 128;

// Returns the calling thread's current device.
int current_device();
void set_current_device(int device);
// Returns how many devices SIM_DEVICES asks for, 1 unless it is set. Ends the process when it is no number of
// devices.
int device_count_from_environment();
// Returns the GPU that SIM_MACHINE names, a B200 unless it is set. Ends the process when there is no such
// GPU.
Machine machine_from_environment();
std::string device_name(const Machine& machine);  // "simulated B200"
// Throws Failure cudaErrorInvalidValue, which names the attribute, when it is not in the table. The driver's
// CUdevice_attribute uses the same numbers.
int device_attribute(const Machine& machine, int attribute);
// Throws Failure cudaErrorInvalidDevice when there is no such device.
void require_device(const Runtime& runtime, int device);
// Frees every allocation, module, stream and event of the device, and ends its access to peers and theirs to
// it. Function attributes stay.
void reset_device(Runtime& runtime, int device);

}  // namespace sim::shim
