// launch_call.h -- one kernel launch on its way from any of the launching APIs to the machine.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "sim/launch.h"
#include "sim/shim/state.h"

namespace sim::shim {

struct LaunchRequest {
  Kernel* kernel = nullptr;
  LaunchConfig config;
  bool cluster_given = false;
  bool cooperative = false;
  bool programmatic = false;        // may start before the preceding kernel of the stream completes
  std::vector<cudaEvent_t> events;  // to record after the launch
};

// Reads the attributes of a cudaLaunchKernelExC-style configuration. An unknown attribute is an error that
// names it.
LaunchRequest read_request(Runtime& runtime, const cudaLaunchConfig_t& config, const void* function);

// Checks what the function attributes and the device allow, then runs or captures the launch.
void launch_kernel(Runtime& runtime, const LaunchRequest& request, void** args, cudaStream_t stream);

}  // namespace sim::shim
