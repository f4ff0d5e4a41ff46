// load.cuh -- the two load roles: TMA copies of one k-tile after another into the ring of operands, and of
// their scale factors into the ring of scale stages. One role brings what belongs to the weights, the other
// what belongs to the activations, which the preceding grid may still be writing. Each role is one warp, in a
// pair one warp of each CTA. params.h says what each tensor map covers.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/k_loop.cuh"
#include "kernel/common/rings.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "ptx/cluster.cuh"
#include "ptx/sync.cuh"

namespace dualgemm {

// Loads B1, B2 and their scale factors, or B1 and its own. Scale factors come in blocks of 128 rows. A tile
// of other than 128 columns of C also loads whole blocks, of which parts belong to neighbouring tiles, and
// the multiply role picks the part of its own tile. Both CTAs of a pair multiply with all rows of B1 and B2
// and need all their scale factors: one CTA brings SFB1 for both CTAs, the other SFB2. With one product the
// leader brings SFB1.
template <class Traits>
struct LoadWeights {
  static constexpr Plan kPlan = Traits::kPlan;
  // Each CTA of the pair brings one of B1 and B2.
  static constexpr bool kOneB = kPlan.operands.b_boxes < kPlan.mma.products;
  static constexpr uint32_t kStageBytes = kPlan.operands.b_boxes * kPlan.operands.b_box_bytes;
  // This many bytes of scale factors arrive in each CTA for a scale stage, whichever CTA of a pair brings
  // them.
  static constexpr uint32_t kScaleStageBytes = kPlan.mma.products * kPlan.scales.sfb_bytes;
  static constexpr bool kBringsA = false;

  Cta<Traits> cta;
  const CUtensorMap *b[2], *sfb[2];  // of each box; where there is one, both entries name it
  uint64_t policy;

  DUALGEMM_DEVICE LoadWeights(const Params& p, Cta<Traits> cta_)
      : cta(cta_), b{&p.b1, &p.b2}, sfb{&p.sfb1, &p.sfb2} {
    if constexpr (kOneB) b[0] = b[1] = cta.rank == 0 ? &p.b1 : &p.b2;
    if constexpr (Cta<Traits>::kPaired && kPlan.mma.products == 2)
      sfb[0] = sfb[1] = cta.rank == 0 ? &p.sfb1 : &p.sfb2;
    // Tiles that share weights mostly run at the same time; few read them again later.
    policy = ptx::create_policy_evict_first();
  }

  // Returns where the boxes of a stage begin, in B1 and in B2 alike.
  DUALGEMM_DEVICE ptx::Coordinates3 at(const Tile& tile, KTile k) const {
    const int first = kOneB ? 0 : static_cast<int>(cta.rank) * kPlan.operands.b_box_rows;
    return {k.index * (kPlan.tile.k / 2), tile.n * kPlan.tile.n + first, tile.problem};
  }
  DUALGEMM_DEVICE ptx::Coordinates4 scales_at(const Tile& tile, KTile k) const {
    return {0, k.index * kPlan.mma.steps, tile.n * kPlan.tile.n / kSfAtomRows, tile.problem};
  }
  DUALGEMM_DEVICE void load(Stage<Traits>& stage, uint64_t& full, const Tile& tile, KTile k) const {
#pragma unroll
    for (int box = 0; box < kPlan.operands.b_boxes; ++box)
      cta.load(stage.b[box], *b[box], at(tile, k), full, policy);
  }
  DUALGEMM_DEVICE void load_scales(ScaleStage<Traits>& stage, uint64_t& full, const Tile& tile,
                                   KTile k) const {
    if constexpr (Cta<Traits>::kPaired) {
      if constexpr (kPlan.mma.products == 1)
        if (!cta.leads()) return;
      cta.load_to_both(stage.sfb[kPlan.mma.products == 1 ? 0 : cta.rank], *sfb[0], scales_at(tile, k), full,
                       policy);
    } else {
#pragma unroll
      for (int product = 0; product < kPlan.mma.products; ++product)
        cta.load(stage.sfb[product], *sfb[product], scales_at(tile, k), full, policy);
    }
  }
  DUALGEMM_DEVICE void prefetch(const Tile& tile, KTile k) const {
#pragma unroll
    for (int box = 0; box < kPlan.operands.b_boxes; ++box)
      ptx::cp_async_bulk_prefetch_tensor_3d(b[box], at(tile, k));
  }
};

// Loads A and its scale factors. Where rows of the next group follow those of the tile within the box, they
// arrive with them and are not used. A CTA of a pair that has no row of the tile loads at a negative row,
// which TMA fills with zeros without reading anything.
template <class Traits>
struct LoadActivations {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr uint32_t kStageBytes = kPlan.operands.a_bytes;
  static constexpr uint32_t kScaleStageBytes = kPlan.scales.sfa_bytes;
  static constexpr bool kBringsA = true;

  const Params& p;
  Cta<Traits> cta;
  int first;  // row of the tile
  uint64_t policy;

  DUALGEMM_DEVICE LoadActivations(const Params& p_, Cta<Traits> cta_)
      : p(p_), cta(cta_), first(static_cast<int>(cta.rank) * kPlan.operands.a_box_rows) {
    // CTAs that compute other columns of C read the same rows.
    policy = ptx::create_policy_evict_last();
  }

  DUALGEMM_DEVICE void load(Stage<Traits>& stage, uint64_t& full, const Tile& tile, KTile k) const {
    const int row = first < tile.rows ? tile.row + first : -kPlan.operands.a_box_rows;
    cta.load(stage.a, p.a, ptx::Coordinates3{k.index * (kPlan.tile.k / 2), row, tile.a_problem}, full,
             policy);
  }
  DUALGEMM_DEVICE void load_scales(ScaleStage<Traits>& stage, uint64_t& full, const Tile& tile,
                                   KTile k) const {
    const int block = first < tile.rows ? tile.sfa_block + first / kSfAtomRows : -1;
    cta.load(stage.sfa, p.sfa, ptx::Coordinates4{0, k.index * kPlan.mma.steps, block, tile.a_problem}, full,
             policy);
  }
};

// Part is LoadWeights or LoadActivations.
template <class Part, class Traits, class Scheduler>
DUALGEMM_DEVICE void load_role(const Params& p, Rings<Traits>& rings, Cta<Traits> cta, Scheduler tiles) {
  const Part part(p, cta);
  typename Traits::KLoop loop(p.k_tiles, cta.slice);
  auto s = producer_start<Rings<Traits>::kStages>();       // the next stage to fill
  auto q = producer_start<Rings<Traits>::kScaleStages>();  // the next scale stage to fill
  constexpr bool kOwnScales = Rings<Traits>::kOwnScales;
  // All bytes of a box count, also where it reaches beyond the tensor and zeros are written. The other CTA's
  // bytes may land before this arrival: the phase cannot end without it.
  const auto expect = [&](uint64_t& full, uint32_t bytes) {
    // Where warps read the stages themselves, they do so through the generic proxy, and the copies that
    // follow write through the async proxy. The wait before this fence has put those reads before it.
    if constexpr (limits_of(Traits::kPlan.arch).warps_read_operands) ptx::fence_proxy_async_shared_cta();
    if (cta.leads()) ptx::mbarrier_arrive_expect_tx(&full, Cta<Traits>::kGroup * bytes);
  };
  for (Tile tile; tiles.next(tile);) {
    loop.enter(tile);
#pragma unroll 1  // one thread issues it all: keep the code small
    for (int32_t i = 0; i < loop.length(); ++i) {
      const auto k = loop[i];
      // On a new barrier a wait for the phase before the first passes at once: nothing holds up the first
      // round through a ring.
      if constexpr (kOwnScales) {
        if (loop.in_scale_stage(i) == 0) {
          // The copies below may overwrite this scale stage once the mma has read it.
          wait(rings.scale_empty[q.index], q.phase);
          if (ptx::elect_sync()) {
            expect(rings.scale_full[q.index], Part::kScaleStageBytes);
            part.load_scales(rings.scale_stage[q.index], rings.scale_full[q.index], tile, k);
          }
          __syncwarp();
          ++q;
        }
      }
      wait(rings.empty[s.index], s.phase);  // the mma have read this stage, in both CTAs of a pair
      if (ptx::elect_sync()) {
        Stage<Traits>& stage = rings.stage[s.index];
        uint64_t& full = rings.template full_of<Part::kBringsA>(s.index);
        expect(full, Part::kStageBytes + (kOwnScales ? 0 : Part::kScaleStageBytes));
        if constexpr (!kOwnScales) part.load_scales(stage.scales, full, tile, k);
        part.load(stage, full, tile, k);
      }
      __syncwarp();
      ++s;
    }
  }
  if constexpr (Part::kBringsA) {
    // The next grid may start on SMs that are free. It starts only now for the sake of speed: all copies of A
    // have been issued, and the loads of the next grid do not compete with them. It is safe, because a grid
    // that starts early executes griddepcontrol.wait, which returns when this grid has ended, before it
    // writes anything and before it reads anything that earlier grids write. There is one exception: if the
    // next grid is of this library, it may read weights before its wait, provided its caller says that no
    // work still running writes them. The only work that still runs then is this grid, which writes no
    // weights: all grids before it had ended when this role passed its own griddepcontrol.wait
    // (dual_gemm.cuh). At that point the next grid has waited for nothing. No document says that it sees what
    // those earlier grids wrote; on an H200 it always did (test/EVIDENCE.md).
    if (ptx::elect_sync()) ptx::griddepcontrol_launch_dependents();
    __syncwarp();
  }
  drain(rings.empty, s);
  if constexpr (kOwnScales) drain(rings.scale_empty, q);
}

// One thread calls this.
template <int32_t kProducts = 2>
DUALGEMM_DEVICE void prefetch_tensor_maps(const Params& p) {
  if constexpr (kProducts == 1)
    for (const CUtensorMap* map : {&p.b1, &p.a, &p.sfb1, &p.sfa}) ptx::prefetch_tensormap(map);
  else
    for (const CUtensorMap* map : {&p.b1, &p.b2, &p.a, &p.sfb1, &p.sfb2, &p.sfa})
      ptx::prefetch_tensormap(map);
}

// Brings the first weights into L2. A pair of CTAs does this before its barriers are ready for copies to
// shared memory, and a load role does where its copies have to wait for the preceding grid. It is safe even
// where that grid still writes the weights: L2 is where all writes become visible, so what was prefetched is
// never stale, and unless the weights are static their copies to shared memory still come after
// griddepcontrol.wait. There are at most four prefetches: more would delay the other warps at a cluster
// barrier of the prologue. On an H200 four cost 3 to 6 cycles each, every further one 37 to 116. One thread
// calls this.
template <class Traits, class Scheduler>
DUALGEMM_DEVICE void prefetch_weights(const Params& p, Cta<Traits> cta, Scheduler tiles) {
  constexpr int kKTilesAhead = 4 / Traits::kPlan.operands.b_boxes;
  const typename Traits::LoadWeights weights(p, cta);
  typename Traits::KLoop loop(p.k_tiles, cta.slice);
  Tile tile;
  if (!tiles.next(tile)) return;
  loop.enter(tile);
#pragma unroll 1
  for (int32_t i = 0; i < loop.length() && i < kKTilesAhead; ++i) weights.prefetch(tile, loop[i]);
}

}  // namespace dualgemm
