// sync.cuh -- the barriers, copies and waits that several suites use: those of ptx/ and test/support/ptx.cuh,
// and the forms that neither has. Waiting is bounded: a machine that never completes a phase gives a record
// that says so, not a run that hangs.
#pragma once

#include <cstdint>

#include "test/support/ptx.cuh"

namespace conformance {

using namespace test_ptx;

__device__ inline void mbarrier_init(uint32_t mbar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbar), "r"(count) : "memory");
}
__device__ inline void expect_tx(uint32_t mbar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbar), "r"(bytes) : "memory");
}

// Returns %globaltimer, in nanoseconds.
__device__ inline uint64_t globaltimer() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Returns 1 when the phase of this parity completed within 0.2 s, else 0.
__device__ inline uint32_t wait_parity(uint32_t mbar, uint32_t parity) {
  const uint64_t start = globaltimer();
  for (;;) {
    uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(mbar), "r"(parity)
        : "memory");
    if (done) return 1;
    if (globaltimer() - start > 200000000) return 0;
  }
}

__device__ inline void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t mbar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(mbar)
      : "memory");
}
}  // namespace conformance
