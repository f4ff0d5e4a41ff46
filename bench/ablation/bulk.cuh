// bulk.cuh -- copies of plain bytes from shared to global memory by the async proxy, and how the thread that
// issued them learns that they are done (PTX ISA 9.0, 9.7.9.25).
#pragma once

#include "ptx/common.cuh"

namespace bench {

// cp.async.bulk.global.shared::cta.bulk_group [dst], [src], bytes;      9.7.9.25.4.1
// Addresses and `bytes` are multiples of 16. Part of the group that this thread commits next.
DUALGEMM_DEVICE void cp_async_bulk_shared_to_global(void* dst, const void* src, uint32_t bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(dst)),
      "r"(dualgemm::ptx::smem_u32(src)), "r"(bytes)
      : "memory");
}

// cp.async.bulk.commit_group;      9.7.9.25.6.1
DUALGEMM_DEVICE void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// cp.async.bulk.wait_group.read 0;      9.7.9.25.6.2
// The copies of all committed groups of this thread have read their source, which may be written again.
DUALGEMM_DEVICE void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// cp.async.bulk.wait_group 0;      9.7.9.25.6.2
// They have written their destination, too.
DUALGEMM_DEVICE void cp_async_bulk_wait_group() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

}  // namespace bench
