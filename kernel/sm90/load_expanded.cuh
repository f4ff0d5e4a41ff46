// load_expanded.cuh -- the load role of the activations where A comes expanded: TMA copies straight into the
// ring of A in fp16, half a k-tile each.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void load_expanded_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                        Scheduler tiles) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kPanelsOfTile = kTileK / kPanelK, kPanelsOfHalf = kHalfK / kPanelK;
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  // The CTAs of other columns of C read the same rows.
  const uint64_t policy = ptx::create_policy_evict_last();
  auto e = producer_start<kPlan.expand.stages>();
  for (Tile tile; tiles.next(tile);) {
#pragma unroll 1  // one thread issues it all: keep the code small
    for (int32_t i = 0; i < 2 * loop.length(); ++i, ++e) {
      wait(smem.expanded_empty[e.index], e.phase);  // the wgmma have read this stage
      if (ptx::elect_sync()) {
        uint64_t& full = smem.expanded_full[e.index];
        ptx::mbarrier_arrive_expect_tx(&full, kPlan.expand.stage_bytes);
        const int panel = loop[i / 2].index * kPanelsOfTile + i % 2 * kPanelsOfHalf;
        cta.load(&smem.expanded[e.index], p.expanded, ptx::Coordinates4{0, tile.row, panel, tile.a_problem},
                 full, policy);
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
