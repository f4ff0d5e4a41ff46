// pair.cuh -- arrivals that cross the two CTAs of a pair. The even CTA leads: its 2-SM mma works for both,
// and both epilogues tell it when they have read the accumulators.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/wait.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tcgen05_mma.cuh"

namespace dualgemm::sm100 {

// The completion of all earlier mma and copies of this thread arrives on `mbar` of each CTA that they worked
// for.
template <class Traits>
DUALGEMM_DEVICE void commit(Cta<Traits> cta, uint64_t& mbar) {
  if constexpr (Cta<Traits>::kPaired) ptx::tcgen05_commit_multicast(&mbar, cta.both());
  else ptx::tcgen05_commit<Cta<Traits>::kGroup>(&mbar);
}

// Arrives on the leader's barrier. From the other CTA the arrival may be relaxed: it has to order reads of
// tensor memory only, and these are ordered by the tcgen05 fences before the arrival and after the wait.
template <class Traits>
DUALGEMM_DEVICE void arrive_at_leader(Cta<Traits>, uint64_t& mbar) {
  if constexpr (Cta<Traits>::kPaired)
    ptx::mbarrier_arrive_relaxed_cluster(ptx::even_cta_address(ptx::smem_u32(&mbar)));
  else ptx::mbarrier_arrive(&mbar);
}

// Waits for the arrivals of arrive_at_leader, which may come from the other CTA. It orders no memory
// accesses; the tcgen05 fences around it do.
DUALGEMM_DEVICE void wait_for_cluster(uint64_t& mbar, uint32_t phase) {
  while (!ptx::mbarrier_try_wait_parity_relaxed_cluster(&mbar, phase)) {
  }
  __syncwarp();
}

}  // namespace dualgemm::sm100
