// ring_of_a.cuh -- where the multiplication finds A in 16 bits or in FP8: in the stages of the operands, or
// in a ring of its own, by panels. The multiplication goes through the panels of a k-tile, or of its half,
// with four wgmma for each panel. Each class below is a policy of Multiplier (multiply.cuh):
//
//   enter             the next stage of the operands is there
//   descriptor        waits for a panel of A, and returns its descriptor
//   release_before    frees what the group of wgmma before that of this panel was the last to read; that
//                     group has completed
//   release_last      does so for the last group, after all groups
//
// Before a warp frees a stage of operands, its lanes have converged after their last loads of it: in `wait`,
// which ends with __syncwarp, or in the __syncwarp at the end of `multiply`.
#pragma once

#include "kernel/common/wait.cuh"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/common.cuh"
#include "ptx/descriptor.h"

namespace dualgemm::sm90 {

// Returns the descriptor of an A in 16 bits. The address is broadcast from lane 0 to tell the compiler that
// it is the same in all lanes: then the descriptors made of it stay in uniform registers. This costs one
// shuffle per stage or panel, and none per wgmma.
DUALGEMM_DEVICE uint64_t descriptor_of(const uint8_t* a) {
  return ptx::wgmma_descriptor(__shfl_sync(0xffffffff, ptx::smem_u32(a), 0));
}
// One lane of each warp arrives.
DUALGEMM_DEVICE void release(uint64_t& empty, bool was_read, int lane) {
  ptx::mbarrier_arrive_if(&empty, was_read && lane == 0);
}

// Says whether a panel is the first, or the last, of the part of a k-tile that a warpgroup multiplies, and
// whether this run through K has had a stage before.
struct PanelOfPart {
  bool first, last, stage_before;
};

// A lies in the stages of the operands, and is freed with them.
template <class Traits>
class AInStages {
  static constexpr bool kWaits = Traits::kPlan.a16.warps > 0;  // until warps have prepared it

 public:
  using State = PipelineState<Rings<Traits>::kStages>;

  DUALGEMM_DEVICE AInStages(SharedStorage<Traits>& smem, int lane) : smem_(smem), lane_(lane) {}

  DUALGEMM_DEVICE void enter(const State& s) { a_ = descriptor_of(smem_.rings.stage[s.index].a16); }
  DUALGEMM_DEVICE uint64_t descriptor(const State& s, int panel, PanelOfPart at) const {
    if constexpr (kWaits)
      if (at.first) wait(smem_.ready[s.index], s.phase);
    return ptx::advance(a_, panel * kPanelBytes<Traits>);
  }
  DUALGEMM_DEVICE void release_before(const State& s, PanelOfPart at) {
    if (at.first) release(smem_.rings.empty[read_], at.stage_before, lane_);
    if (at.last) read_ = s.index;
  }
  DUALGEMM_DEVICE void release_last(bool anything) const {
    release(smem_.rings.empty[read_], anything, lane_);
  }

 private:
  SharedStorage<Traits>& smem_;
  int lane_;
  uint64_t a_ = 0;  // descriptor of the A of the stage
  int read_ = 0;    // the stage that the last group of wgmma read
};

// A has a ring of its own, of panels.
template <class Traits>
class AInPanels {
 public:
  using State = PipelineState<Rings<Traits>::kStages>;

  DUALGEMM_DEVICE AInPanels(SharedStorage<Traits>& smem, int lane) : smem_(smem), lane_(lane) {}

  DUALGEMM_DEVICE void enter(const State&) const {}
  DUALGEMM_DEVICE uint64_t descriptor(const State&, int, PanelOfPart) const {
    wait(smem_.panel_full[e_.index], e_.phase);
    return descriptor_of(smem_.panel[e_.index]);
  }
  DUALGEMM_DEVICE void release_before(const State& s, PanelOfPart at) {
    release(smem_.panel_empty[read_], at.stage_before || !at.first, lane_);
    read_ = e_.index;
    ++e_;
    if (at.last) release(smem_.rings.empty[s.index], true, lane_);
  }
  DUALGEMM_DEVICE void release_last(bool anything) const {
    release(smem_.panel_empty[read_], anything, lane_);
  }

 private:
  SharedStorage<Traits>& smem_;
  int lane_;
  PipelineState<Traits::kPlan.a16.stages> e_ = {0, 0};
  int read_ = 0;  // the panel that the last group of wgmma read
};

}  // namespace dualgemm::sm90
