// load_a.cuh -- the load role of the activations where A comes in 16 bits: TMA copies straight into the ring
// of such an A. What a pass before has put in order comes a stage at a time; an A as it is comes by whole
// k-tiles, four panels of 64 neighbouring elements each, for the orderers.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void load_a_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                 Scheduler tiles) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kStagePanels = ExpandedStage<Traits>::kPanels, kStagesOfTile = kTileK / kPlan.expand.k;
  constexpr int kTogether = kPlan.orders_a() ? kStagesOfTile : 1;  // stages that are filled at once
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  // The CTAs of other columns of C read the same rows.
  const uint64_t policy = ptx::create_policy_evict_last();
  auto e = producer_start<kPlan.expand.stages>();
  for (Tile tile; tiles.next(tile);) {
#pragma unroll 1  // one thread issues it all: keep the code small
    for (int32_t i = 0; i < kStagesOfTile * loop.length(); i += kTogether) {
      const int32_t k_tile = loop[i / kStagesOfTile].index, first = e.index;
#pragma unroll
      for (int stage = 0; stage < kTogether; ++stage, ++e)
        wait(smem.expanded_empty[e.index], e.phase);  // the wgmma have read this stage
      if (ptx::elect_sync()) {
        if constexpr (kPlan.orders_a()) {
          uint64_t& full = smem.unordered.full[first / kTogether];
          ptx::mbarrier_arrive_expect_tx(&full, kTogether * kPlan.expand.stage_bytes);
#pragma unroll
          for (int panel = 0; panel < kTileK / kPanelK; ++panel)
            cta.load(smem.expanded[first + panel / kStagePanels].panel[panel % kStagePanels], p.a,
                     ptx::Coordinates3{k_tile * kTileK + panel * kPanelK, tile.row, tile.a_problem}, full,
                     policy);
        } else {
          uint64_t& full = smem.expanded_full[first];
          ptx::mbarrier_arrive_expect_tx(&full, kPlan.expand.stage_bytes);
          const int panel = k_tile * (kTileK / kPanelK) + i % kStagesOfTile * kStagePanels;
          cta.load(&smem.expanded[first], p.expanded, ptx::Coordinates4{0, tile.row, panel, tile.a_problem},
                   full, policy);
        }
      }
      __syncwarp();
    }
  }
  // The next grid may start now (load.cuh says why it may, and why so late).
  if (ptx::elect_sync()) ptx::griddepcontrol_launch_dependents();
  __syncwarp();
  drain(smem.expanded_empty, e);
}

}  // namespace dualgemm::sm90
