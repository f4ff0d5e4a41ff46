// wait.cuh -- blocking on an mbarrier, and on all barriers of a ring before the CTA may end. A whole warp
// waits, because it wakes up sooner than a single lane would for which the other lanes wait.
#pragma once

#include "kernel/common/pipeline.cuh"
#include "ptx/mbarrier.cuh"

namespace dualgemm {

// Returns once the phase of this parity has completed. What was written or read before the arrivals that
// completed it comes before what these threads do next. Lanes of a warp may see the phase end at different
// times, so at last the warp converges again.
DUALGEMM_DEVICE void wait(uint64_t& mbar, uint32_t phase) {
  while (!ptx::mbarrier_try_wait_parity(&mbar, phase)) {
  }
  __syncwarp();
}

// Waits, from the filling end, until every stage that was ever filled is empty again. An arrival that is
// still under way when the CTA exits would land in shared memory that may belong to another CTA by then.
template <auto kWait = wait, int kStages>
DUALGEMM_DEVICE void drain(uint64_t (&empty)[kStages], PipelineState<kStages> state) {
  for (int i = 0; i < kStages; ++i, ++state) kWait(empty[state.index], state.phase);
}

}  // namespace dualgemm
