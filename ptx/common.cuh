// common.cuh -- what every wrapper header shares: the conversion of a pointer to a 32-bit shared-memory
// address, and the rank of a CTA in its cluster.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm::ptx {

// Address of `pointer` in the shared window, the form that every instruction below takes.
DUALGEMM_DEVICE uint32_t smem_u32(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// In the shared::cluster window the rank of a CTA stands in the bits from 24 up, so clearing bit 24 of a
// CTA's own address names the same place in the even CTA of its pair. Not documented; every pair kernel known
// to run does it.
DUALGEMM_DEVICE uint32_t even_cta_address(uint32_t smem_address) { return smem_address & 0xFEFFFFFF; }

// %cluster_ctarank;      10 (special registers)
DUALGEMM_DEVICE uint32_t cluster_ctarank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

}  // namespace dualgemm::ptx
