// common.cuh -- what every wrapper header shares: addresses of shared memory, and the rank of a CTA in its
// cluster.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm::ptx {

// Returns the address of `pointer` in the shared window, the form that every instruction below takes.
DUALGEMM_DEVICE uint32_t smem_u32(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Returns the same address of shared memory, which the compiler has to hold in a register from here on.
// Otherwise the compiler would compute the address again in every round of a loop. For that it would read the
// special register that names the CTA in its cluster, and wait for it. Holding it made the tiles of few rows
// of sm90 1 to 4 % faster on an H200.
DUALGEMM_DEVICE uint8_t* hold_address(uint8_t* shared) {
  asm("" : "+l"(shared));
  __builtin_assume(__isShared(shared));  // without this every access would be a generic one
  return shared;
}

// Returns the same place in the even CTA of the pair. In the shared::cluster window the rank of a CTA stands
// in the bits from 24 up, so bit 24 is cleared. This is not documented; every kernel for pairs of CTAs that
// is known to run relies on it.
DUALGEMM_DEVICE uint32_t even_cta_address(uint32_t smem_address) { return smem_address & 0xFEFFFFFF; }

// %cluster_ctarank;      10 (special registers)
DUALGEMM_DEVICE uint32_t cluster_ctarank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

}  // namespace dualgemm::ptx
