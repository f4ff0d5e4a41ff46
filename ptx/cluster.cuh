// cluster.cuh -- accesses to shared memory, of this CTA and of others in the cluster, and the fence between
// ordinary and asynchronous ones (PTX ISA 9.0, 9.7.9 and 9.7.13).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// mapa.shared::cluster.u32 result, address, rank;      9.7.9.23
// Returns the address in CTA `rank` of the cluster that corresponds to `address` in this CTA.
DUALGEMM_DEVICE uint32_t mapa(uint32_t address, uint32_t rank) {
  uint32_t result;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
  return result;
}

// st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [address], {values[0], ...}, [mbar];
//      9.7.9.12
// The 16 bytes land later, and then count on the mbarrier at `mbar`, which is in the same CTA as `address`.
DUALGEMM_DEVICE void st_async_v4_b32(uint32_t address, const uint32_t (&values)[4], uint32_t mbar) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          address),
      "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3]), "r"(mbar)
      : "memory");
}

// ld.shared::cta.v4.b32 {values[0], ..., values[3]}, [address];      9.7.9.8
DUALGEMM_DEVICE void ld_shared_v4_b32(uint32_t (&values)[4], uint32_t address) {
  asm volatile("ld.shared::cta.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(address)
               : "memory");
}

// fence.proxy.async;      9.7.13.4
// Orders this thread's ordinary accesses and the asynchronous ones it knows to be complete,
// in both directions.
DUALGEMM_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

// fence.proxy.async.shared::cta;      9.7.13.4
// Does what fence_proxy_async does, but only for accesses to this CTA's shared memory. It does not wait for
// writes to global memory.
DUALGEMM_DEVICE void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace dualgemm::ptx
