// load_a.cuh -- how an A in 16 bits or in FP8 comes by TMA. For the orderers, and in FP8, it comes in its own
// order, in panels of 64 or 128 neighbouring elements. An A that a pass has put in order comes a k-tile at a
// time to the ring of the operands. Where A has a ring of its own, it comes panel by panel.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/load.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

template <class Traits>
inline constexpr int kTilePanels = kTileK / Traits::kPlan.panel_k();

// Brings a k-tile of A to each stage of the operands, as a part of load_role.
template <class Traits>
struct LoadA {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr uint32_t kStageBytes = kPlan.a16.bytes, kScaleStageBytes = 0;
  static constexpr bool kBringsA = true;

  const Params& p;
  Cta<Traits> cta;
  uint64_t policy;

  DUALGEMM_DEVICE LoadA(const Params& p_, Cta<Traits> cta_) : p(p_), cta(cta_) {
    // The CTAs of other columns of C read the same rows.
    policy = ptx::create_policy_evict_last();
  }
  DUALGEMM_DEVICE void load(Stage<Traits>& stage, uint64_t& full, const Tile& tile, KTile k) const {
    if constexpr (kPlan.prepared_a()) {
      cta.load(stage.a16, p.prepared_a,
               ptx::Coordinates4{0, tile.row, k.index * kTilePanels<Traits>, tile.a_problem}, full, policy);
    } else {
#pragma unroll
      for (int panel = 0; panel < kTilePanels<Traits>; ++panel)
        cta.load(stage.a16 + panel * kPanelBytes<Traits>, p.a,
                 ptx::Coordinates3{k.index * kTileK + panel * kPlan.panel_k(), tile.row, tile.a_problem},
                 full, policy);
    }
  }
  DUALGEMM_DEVICE void load_scales(ScaleStage<Traits>&, uint64_t&, const Tile&, KTile) const {}
};

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void load_panels_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                      Scheduler tiles) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kMainLoops = kPlan.mma.main_loops();
  typename Traits::KLoop loop(p.k_tiles, cta.slice);
  // The CTAs of other columns of C read the same rows.
  const uint64_t policy = ptx::create_policy_evict_last();
  auto e = producer_start<kPlan.a16.stages>();
  for (Tile tile; tiles.next(tile);) {
    loop.enter(tile);
    const int32_t first = loop.range.first * kTilePanels<Traits>;
    // A tile that runs through K twice needs A twice.
    for (int main_loop = 0; main_loop < kMainLoops; ++main_loop)
#pragma unroll 1  // one thread issues it all: keep the code small
      for (int32_t i = 0; i < loop.length() / kMainLoops * kTilePanels<Traits>; ++i, ++e) {
        wait(smem.panel_empty[e.index], e.phase);  // the wgmma have read this stage
        if (ptx::elect_sync()) {
          uint64_t& full = smem.panel_full[e.index];
          ptx::mbarrier_arrive_expect_tx(&full, kPanelBytes<Traits>);
          if constexpr (kPlan.prepared_a())
            cta.load(smem.panel[e.index], p.prepared_a,
                     ptx::Coordinates4{0, tile.row, first + i, tile.a_problem}, full, policy);
          else
            cta.load(smem.panel[e.index], p.a,
                     ptx::Coordinates3{(first + i) * kPlan.panel_k(), tile.row, tile.a_problem}, full,
                     policy);
        }
        __syncwarp();
      }
  }
  // The next grid may start now (load.cuh says why it may, and why so late).
  if (ptx::elect_sync()) ptx::griddepcontrol_launch_dependents();
  __syncwarp();
  drain(smem.panel_empty, e);
}

}  // namespace dualgemm::sm90
