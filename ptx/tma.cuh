// tma.cuh -- tensor memory access: copies of a box of a tensor from global to shared memory, and the prefetch
// of the tensor map that describes it (PTX ISA 9.0, 9.7.9). One function per instruction; one thread issues
// each.
#pragma once

#include <cuda.h>

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// prefetch.tensormap [map];      9.7.9.15
DUALGEMM_DEVICE void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
//     [dst], [map, {inner, outer}], [mbar];      9.7.9.25.5.2
// Copies the box at {inner, outer}, in elements of the map, to `dst`; what lies outside the tensor arrives as
// zero. The bytes of the whole box are counted on `mbar` when they have been written.
DUALGEMM_DEVICE void cp_async_bulk_tensor_2d(void* dst, const CUtensorMap* map, int32_t inner, int32_t outer,
                                             uint64_t* mbar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(smem_u32(dst)),
      "l"(map), "r"(inner), "r"(outer), "r"(smem_u32(mbar))
      : "memory");
}

// cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes
//     [dst], [map, {inner, outer}], [mbar];      9.7.9.25.5.2
// As above for a CTA of a pair: `dst` is its own, the mbarrier may be that of either CTA.
DUALGEMM_DEVICE void cp_async_bulk_tensor_2d_pair(void* dst, const CUtensorMap* map, int32_t inner,
                                                  int32_t outer, uint32_t mbar_address) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(smem_u32(dst)),
      "l"(map), "r"(inner), "r"(outer), "r"(mbar_address)
      : "memory");
}

// cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
//     [dst], [map, {inner, outer}], [mbar], ranks;      9.7.9.25.5.2
// One read of global memory, written at the offset of `dst` in every CTA whose bit is set in `ranks`. Each
// destination counts its bytes on the mbarrier of the CTA in its own pair that has the parity of the CTA
// `mbar_address` names.
DUALGEMM_DEVICE void cp_async_bulk_tensor_2d_pair_multicast(void* dst, const CUtensorMap* map, int32_t inner,
                                                            int32_t outer, uint32_t mbar_address,
                                                            uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
      "multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(smem_u32(dst)),
      "l"(map), "r"(inner), "r"(outer), "r"(mbar_address), "h"(ranks)
      : "memory");
}

}  // namespace dualgemm::ptx
