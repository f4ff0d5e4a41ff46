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

}  // namespace dualgemm::ptx
