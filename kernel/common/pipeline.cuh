// pipeline.cuh -- the position of one end of a ring: which stage comes next and which phase of its barrier to
// wait for. Both ends carry their position across tiles; nothing is ever reset. It is plain arithmetic,
// tested on the host.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm {

template <int kStages>
struct PipelineState {
  int32_t index;
  uint32_t phase;  // parity of the barrier phase to wait for

  DUALGEMM_HOST_DEVICE constexpr PipelineState& operator++() {
    if (++index == kStages) {
      index = 0;
      phase ^= 1;
    }
    return *this;
  }
};

// The producer, which fills stages, starts here. It first waits for parity 1: on a new barrier the phase
// before the first counts as complete, so a stage that nobody has used yet counts as empty.
template <int kStages>
DUALGEMM_HOST_DEVICE constexpr PipelineState<kStages> producer_start() {
  return {0, 1};
}

// The consumer, which reads stages, starts here. It first waits for the first phase of each barrier.
template <int kStages>
DUALGEMM_HOST_DEVICE constexpr PipelineState<kStages> consumer_start() {
  return {0, 0};
}

}  // namespace dualgemm
