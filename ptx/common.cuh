// common.cuh -- what every wrapper header shares: the function qualifiers and the conversion of a pointer to
// a 32-bit shared-memory address. Nothing here is an instruction of its own.
#pragma once

#include <cstdint>

#define DUALGEMM_DEVICE __device__ __forceinline__

namespace dualgemm::ptx {

// Address of `pointer` in the shared window, the form that every instruction below takes.
DUALGEMM_DEVICE uint32_t smem_u32(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace dualgemm::ptx
