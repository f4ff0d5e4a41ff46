// scale_copy.cuh -- other times for the copies of scale factors to tensor memory than with the mma of each
// step: all of a k-tile before its first mma, or while the k-tile before is multiplied. They are for scale
// factors that are resident.
#pragma once

#include "kernel/sm100/mma.cuh"

namespace bench {

// Waits for the k-tile at i, which stands in scale stage `q`, and copies all its scale factors.
template <class MainLoop, class State>
DUALGEMM_DEVICE void copy_k_tile(MainLoop& main, int32_t i, const State& q) {
  using namespace dualgemm;
  constexpr Plan kPlan = MainLoop::kPlan;
  static_assert(kPlan.tmem.resident_scales, "a window holds half a k-tile");
  const int in_stage = main.loop.in_scale_stage(i);
  if (in_stage == 0) wait(main.smem.rings.scale_full[q.index], q.phase);
  ptx::tcgen05_fence_after_thread_sync();  // the bytes of TMA come before the copies
  if (ptx::elect_sync()) {
    const int first = in_stage * kPlan.mma.steps;
    sm100::copy_scales(main.tmem,
                       {.stage = ptx::advance(main.scale_stages, q.index * kPlan.scales.stage_bytes),
                        .first = first,
                        .window = q.index,
                        .window_step = first},
                       kPlan.mma.steps);
  }
  __syncwarp();
}

struct NothingPerStep {
  template <class MainLoop>
  DUALGEMM_DEVICE void begin_step(const MainLoop&, const dualgemm::sm100::ScaleSteps&) {}
};

struct CopyKTileFirst : NothingPerStep {
  template <class MainLoop>
  DUALGEMM_DEVICE void begin_k_tile(MainLoop& main, int32_t i) {
    copy_k_tile(main, i, main.q);
  }
};

// Two scale stages are in use at a time. This is the ring position of the next k-tile to copy.
template <int kScaleStages>
struct CopyKTileAhead : NothingPerStep {
  static_assert(kScaleStages >= 2, "one is copied while the other is multiplied with");
  dualgemm::PipelineState<kScaleStages> copied = dualgemm::consumer_start<kScaleStages>();

  template <class MainLoop>
  DUALGEMM_DEVICE void begin_k_tile(MainLoop& main, int32_t i) {
    if (i == 0) copy(main, 0);
    if (i + 1 < main.loop.length()) copy(main, i + 1);
  }

 private:
  template <class MainLoop>
  DUALGEMM_DEVICE void copy(MainLoop& main, int32_t i) {
    copy_k_tile(main, i, copied);
    if (main.loop.ends_scale_stage(i)) ++copied;
  }
};

}  // namespace bench
