// tma.cuh -- tensor memory access: copies of a box of a tensor from global to shared memory, prefetches of a
// box into L2 and of the tensor map that describes it, and the policies that tell L2 how long to keep what it
// fetches (PTX ISA 9.0, 9.7.9). There is one function per instruction; one thread issues each.
#pragma once

#include <cuda.h>

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// prefetch.tensormap [map];      9.7.9.15
DUALGEMM_DEVICE void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// createpolicy.fractional.L2::evict_first.b64 policy;      9.7.9.18
// Returns the policy for what is read once.
DUALGEMM_DEVICE uint64_t create_policy_evict_first() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}

// createpolicy.fractional.L2::evict_last.b64 policy;      9.7.9.18
// Returns the policy for what others are about to read, too.
DUALGEMM_DEVICE uint64_t create_policy_evict_last() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
  return policy;
}

// A box begins at these coordinates, in elements of its map, those of the innermost dimension first.
struct Coordinates3 {
  int32_t c0, c1, c2;
};
struct Coordinates4 {
  int32_t c0, c1, c2, c3;
};

// The copies below bring the box at `at` to `dst`; what lies outside the tensor arrives as zero. The bytes of
// the whole box are counted on the mbarrier when they have been written. `policy` is one of the two above.

// cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [map, {c0, c1, c2}], [mbar], policy;      9.7.9.25.5.2
DUALGEMM_DEVICE void cp_async_bulk_tensor_3d(void* dst, const CUtensorMap* map, Coordinates3 at,
                                             uint64_t* mbar, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(smem_u32(dst)),
      "l"(map), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(smem_u32(mbar)), "l"(policy)
      : "memory");
}

// cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [map, {c0, c1, c2, c3}], [mbar], policy;      9.7.9.25.5.2
DUALGEMM_DEVICE void cp_async_bulk_tensor_4d(void* dst, const CUtensorMap* map, Coordinates4 at,
                                             uint64_t* mbar, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(smem_u32(dst)),
      "l"(map), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(at.c3), "r"(smem_u32(mbar)), "l"(policy)
      : "memory");
}

// cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     .L2::cache_hint [dst], [map, {c0, c1, c2}], [mbar], policy;      9.7.9.25.5.2
// A CTA of a pair calls this: `dst` lies in its own shared memory, the mbarrier in that of either CTA.
DUALGEMM_DEVICE void cp_async_bulk_tensor_3d_pair(void* dst, const CUtensorMap* map, Coordinates3 at,
                                                  uint32_t mbar_address, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
      "L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(smem_u32(dst)),
      "l"(map), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(mbar_address), "l"(policy)
      : "memory");
}

// cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     .L2::cache_hint [dst], [map, {c0, c1, c2, c3}], [mbar], policy;      9.7.9.25.5.2
DUALGEMM_DEVICE void cp_async_bulk_tensor_4d_pair(void* dst, const CUtensorMap* map, Coordinates4 at,
                                                  uint32_t mbar_address, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
      "L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(smem_u32(dst)),
      "l"(map), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(at.c3), "r"(mbar_address), "l"(policy)
      : "memory");
}

// cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     .multicast::cluster.L2::cache_hint
//     [dst], [map, {c0, c1, c2, c3}], [mbar], ranks, policy;      9.7.9.25.5.2
// Reads global memory once, and writes at the offset of `dst` in every CTA whose bit is set in `ranks`.
// Each destination counts its bytes on the mbarrier of the CTA in its own pair that has the parity
// of the CTA `mbar_address` names.
DUALGEMM_DEVICE void cp_async_bulk_tensor_4d_pair_multicast(void* dst, const CUtensorMap* map,
                                                            Coordinates4 at, uint32_t mbar_address,
                                                            uint16_t ranks, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
      "multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7, %8;" ::"r"(smem_u32(dst)),
      "l"(map), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(at.c3), "r"(mbar_address), "h"(ranks), "l"(policy)
      : "memory");
}

// cp.async.bulk.prefetch.tensor.3d.L2.global.tile [map, {c0, c1, c2}];      9.7.9.25.5.4
// Brings the box into L2. Nothing waits for it. It is never too early, because all writes become visible in
// L2.
DUALGEMM_DEVICE void cp_async_bulk_prefetch_tensor_3d(const CUtensorMap* map, Coordinates3 at) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(at.c0),
               "r"(at.c1), "r"(at.c2)
               : "memory");
}

}  // namespace dualgemm::ptx
