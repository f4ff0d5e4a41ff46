#include "sim/shim/pointer.h"

namespace sim::shim {

const HostBlock* host_block_of(const Runtime& runtime, const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  auto next = runtime.host_blocks.upper_bound(address);
  if (next == runtime.host_blocks.begin()) return nullptr;
  --next;
  return address - next->first < next->second.size ? &next->second : nullptr;
}

int device_of(Runtime& runtime, const void* pointer) {
  const auto* allocation = runtime.memory.find(reinterpret_cast<uint64_t>(pointer), 1);
  return allocation ? allocation->device : kNoDevice;
}

Pointer look_up(Runtime& runtime, const void* pointer) {
  const auto* allocation = runtime.memory.find(reinterpret_cast<uint64_t>(pointer), 1);
  if (!allocation) return {};
  if (const HostBlock* block = host_block_of(runtime, pointer))
    return {block->type, block->device, allocation->base, allocation->size};
  if (allocation->device == kNoDevice) return {};
  return {cudaMemoryTypeDevice, allocation->device, allocation->base, allocation->size};
}

}  // namespace sim::shim
