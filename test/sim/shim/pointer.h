// pointer.h -- what the runtime knows of the memory at an address.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "sim/shim/state.h"

namespace sim::shim {

// Returns the block of host memory that holds an address, or null.
const HostBlock* host_block_of(const Runtime& runtime, const void* pointer);

// Returns the device whose memory holds an address, or kNoDevice.
int device_of(Runtime& runtime, const void* pointer);

struct Pointer {
  cudaMemoryType type = cudaMemoryTypeUnregistered;
  int device = cudaInvalidDeviceId;
  uint64_t start = 0;  // of the allocation
  size_t size = 0;
};
Pointer look_up(Runtime& runtime, const void* pointer);

}  // namespace sim::shim
