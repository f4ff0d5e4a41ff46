// mbarrier.cuh -- mbarrier instructions on this CTA's shared memory (PTX ISA 9.0, 9.7.13.15).
//
// There is one function per instruction, named after it. A wrapper converts types and address spaces and does
// nothing else: no loops, no lane election, no phase bookkeeping (that is kernel/common/pipeline.cuh).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// mbarrier.init.shared::cta.b64 [mbar], count;      9.7.13.15.9
// `count` arrivals complete a phase.
DUALGEMM_DEVICE void mbarrier_init(uint64_t* mbar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_u32(mbar)), "r"(count) : "memory");
}

// fence.mbarrier_init.release.cluster;      9.7.13.4
// Makes the initialisations above it visible to asynchronous operations and to the rest of the cluster.
DUALGEMM_DEVICE void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive.release.cta.shared::cta.b64 _, [mbar];      9.7.13.15.13
// Release: what this thread did before comes before what a thread of this CTA does that has seen the phase
// complete by an acquiring wait.
DUALGEMM_DEVICE void mbarrier_arrive(uint64_t* mbar) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(smem_u32(mbar)) : "memory");
}

// @arrives mbarrier.arrive.release.cta.shared::cta.b64 _, [mbar];      9.7.13.15.13
// Does what mbarrier_arrive does, if `arrives` is true. A predicate takes the place of a branch, which
// would end a sequence of wgmma.
DUALGEMM_DEVICE void mbarrier_arrive_if(uint64_t* mbar, bool arrives) {
  asm volatile(
      "{\n\t"
      ".reg .pred arrives;\n\t"
      "setp.ne.b32 arrives, %1, 0;\n\t"
      "@arrives mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];\n\t"
      "}" ::"r"(smem_u32(mbar)),
      "r"(static_cast<uint32_t>(arrives))
      : "memory");
}

// mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [mbar];      9.7.13.15.13
// `mbar_address` may name another CTA of the cluster. Relaxed: it orders no memory accesses; tcgen05
// operations are ordered by the tcgen05 fences around it.
DUALGEMM_DEVICE void mbarrier_arrive_relaxed_cluster(uint32_t mbar_address) {
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(mbar_address) : "memory");
}

// mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [mbar], bytes;      9.7.13.15.13
// Adds `bytes` to what the current phase waits for, then arrives once, with release as above.
DUALGEMM_DEVICE void mbarrier_arrive_expect_tx(uint64_t* mbar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(smem_u32(mbar)),
               "r"(bytes)
               : "memory");
}

// mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [mbar], parity;      9.7.13.15.16
// Returns true once the phase of this parity has completed. It may suspend the thread, and may return false
// before the phase has completed. Acquire: what threads of this CTA did before their arrivals, and the bytes
// that the phase waited for, come before what this thread does next.
DUALGEMM_DEVICE bool mbarrier_try_wait_parity(uint64_t* mbar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, done;\n\t"
      "}"
      : "=r"(done)
      : "r"(smem_u32(mbar)), "r"(parity)
      : "memory");
  return done != 0;
}

// mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [mbar], parity;      9.7.13.15.16
// Does what mbarrier_try_wait_parity does. In addition it orders what threads of other CTAs of the cluster
// did before their arrivals.
DUALGEMM_DEVICE bool mbarrier_try_wait_parity_acquire_cluster(uint64_t* mbar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, done;\n\t"
      "}"
      : "=r"(done)
      : "r"(smem_u32(mbar)), "r"(parity)
      : "memory");
  return done != 0;
}

// mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [mbar], parity;      9.7.13.15.16
// Returns true once the phase of this parity has completed, by arrivals from anywhere in the cluster.
// Relaxed: it orders no memory accesses; tcgen05 operations are ordered by the tcgen05 fences around it.
DUALGEMM_DEVICE bool mbarrier_try_wait_parity_relaxed_cluster(uint64_t* mbar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, done;\n\t"
      "}"
      : "=r"(done)
      : "r"(smem_u32(mbar)), "r"(parity)
      : "memory");
  return done != 0;
}

}  // namespace dualgemm::ptx
