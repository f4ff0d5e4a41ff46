// load.cuh -- the two load roles: TMA copies of one k-tile after another into the ring of operands, and of
// their scale factors into the ring of slots. One brings what belongs to the weights, the other what belongs
// to the activations, which the kernel before may still be writing. One warp each, in each CTA of a pair;
// params.h says what each tensor map covers.
#pragma once

#include "kernel/cta.cuh"
#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/wait.cuh"

namespace dualgemm {

// A k-tile on one walk along K: `pass` tells which product it is for where they are computed apart.
struct KTile {
  int32_t index, pass;
};

// The walk of a tile: kPasses times over its k-tiles. `i` counts from 0 to the length.
template <class Cfg>
struct KWalk {
  KRange range;
  int32_t start;  // of the first k-tile, counted from range.first

  DUALGEMM_DEVICE KWalk(int32_t k_tiles, uint32_t slice)
      : range(k_range(k_tiles, slice, Cfg::kSplitK)), start(0) {
    if constexpr (Cfg::kKOrder == KOrder::kRotated)
      start = static_cast<int32_t>(blockIdx.x % static_cast<uint32_t>(k_tiles));
  }
  DUALGEMM_DEVICE int32_t tiles() const { return range.end - range.first; }
  DUALGEMM_DEVICE int32_t length() const { return tiles() * Cfg::kPasses; }
  DUALGEMM_DEVICE KTile operator[](int32_t i) const {
    const int32_t pass = Cfg::kPasses > 1 && i >= tiles() ? 1 : 0;
    int32_t offset = i - pass * tiles() + start;
    if (Cfg::kKOrder == KOrder::kRotated && offset >= tiles()) offset -= tiles();
    return {range.first + offset, pass};
  }
  // A slot of scale factors begins with the k-tile at i, or ends with it: after kScaleKTiles of them, and at
  // the end of a pass.
  DUALGEMM_DEVICE int32_t in_pass(int32_t i) const {
    return Cfg::kPasses > 1 && i >= tiles() ? i - tiles() : i;
  }
  DUALGEMM_DEVICE int32_t in_slot(int32_t i) const { return in_pass(i) % Cfg::kScaleKTiles; }
  DUALGEMM_DEVICE bool ends_slot(int32_t i) const {
    return in_slot(i) == Cfg::kScaleKTiles - 1 || in_pass(i) == tiles() - 1;
  }
};

// B1, B2 and their scale factors. Scale factors come in blocks of 128 rows: tiles of 64 or 192 rows load the
// blocks they share with a neighbour, and the mma picks its part. Both CTAs of a pair multiply with all of B
// and need all its scale factors: each brings one of SFB1 and SFB2 for both.
template <class Cfg>
struct Weights {
  static constexpr int kStageBytes = Cfg::kBBoxes * Cfg::kBBoxBytes;
  static constexpr int kSlotBytes = Cfg::kPassProducts * Cfg::kSfbBytes;  // that arrive in a CTA
  static constexpr bool kLaunchesDependents = false;

  Cta<Cfg> cta;
  // By product. A CTA of a pair that brings one of two has that one in both places.
  const CUtensorMap *b[2], *sfb[2];
  uint64_t policy;

  DUALGEMM_DEVICE Weights(const Params& p, Cta<Cfg> cta_)
      : cta(cta_), b{&p.b1, &p.b2}, sfb{&p.sfb1, &p.sfb2} {
    if constexpr (Cfg::kOneBPerCta) b[0] = b[1] = cta.rank == 0 ? &p.b1 : &p.b2;
    if constexpr (Cta<Cfg>::kPaired) sfb[0] = sfb[1] = cta.rank == 0 ? &p.sfb1 : &p.sfb2;
    // Few weights are read a second time, by tiles of M that do not run at the same time.
    policy = ptx::create_policy_evict_first();
  }

  // With two passes chosen, not indexed: an array whose index is known at run time only lies in local memory.
  DUALGEMM_DEVICE static const CUtensorMap* of(const CUtensorMap* const (&maps)[2], int product) {
    if constexpr (Cfg::kPasses == 1) return maps[product];
    else return product == 0 ? maps[0] : maps[1];
  }

  // Where box 0 and, if there are two, box 1 of a stage come from.
  DUALGEMM_DEVICE ptx::Coordinates3 at(const Tile& tile, KTile k) const {
    const int first = Cfg::kOneBPerCta ? 0 : static_cast<int>(cta.rank) * Cfg::kBBoxRows;
    return {k.index * (Cfg::kTileK / 2), tile.n * Cfg::kTileN + first, tile.problem};
  }
  DUALGEMM_DEVICE void load(Stage<Cfg>& stage, uint64_t& full, const Tile& tile, KTile k) const {
#pragma unroll
    for (int box = 0; box < Cfg::kBBoxes; ++box)
      cta.load(stage.b[box], *of(b, box + k.pass), at(tile, k), full, policy);
  }
  DUALGEMM_DEVICE void load_scales(ScaleSlot<Cfg>& slot, uint64_t& full, const Tile& tile, KTile k) const {
    const ptx::Coordinates4 at{0, k.index * Cfg::kMmasPerKTile, tile.n * Cfg::kTileN / Cfg::kScaleBlockRows,
                               tile.problem};
    if constexpr (Cta<Cfg>::kPaired) {
      cta.load_to_both(slot.sfb[cta.rank], *sfb[0], at, full, policy);
    } else {
#pragma unroll
      for (int product = 0; product < Cfg::kPassProducts; ++product)
        cta.load(slot.sfb[product], *of(sfb, product + k.pass), at, full, policy);
    }
  }
  DUALGEMM_DEVICE void prefetch(const Tile& tile, KTile k) const {
#pragma unroll
    for (int box = 0; box < Cfg::kBBoxes; ++box)
      ptx::cp_async_bulk_prefetch_tensor_3d(of(b, box + k.pass), at(tile, k));
  }
};

// A and its scale factors. Rows of another group behind the tile's own arrive with them, and are not used; a
// CTA of a pair that has no row of the tile at all gets zeros, from in front of the tensor.
template <class Cfg>
struct Activations {
  static constexpr int kStageBytes = Cfg::kABytes;
  static constexpr int kSlotBytes = Cfg::kSfaBytes;
  static constexpr bool kLaunchesDependents = true;

  const Params& p;
  Cta<Cfg> cta;
  int first;  // row of the tile
  uint64_t policy;

  DUALGEMM_DEVICE Activations(const Params& p_, Cta<Cfg> cta_)
      : p(p_), cta(cta_), first(static_cast<int>(cta.rank) * Cfg::kABoxRows) {
    // The CTAs of other columns of C read the same rows.
    policy = ptx::create_policy_evict_last();
  }

  DUALGEMM_DEVICE void load(Stage<Cfg>& stage, uint64_t& full, const Tile& tile, KTile k) const {
    const int row = first < tile.rows ? tile.row + first : -Cfg::kABoxRows;
    cta.load(stage.a, p.a, ptx::Coordinates3{k.index * (Cfg::kTileK / 2), row, tile.a_problem}, full, policy);
  }
  DUALGEMM_DEVICE void load_scales(ScaleSlot<Cfg>& slot, uint64_t& full, const Tile& tile, KTile k) const {
    const int block = first < tile.rows ? tile.sfa_block + first / Cfg::kScaleBlockRows : -1;
    cta.load(slot.sfa, p.sfa, ptx::Coordinates4{0, k.index * Cfg::kMmasPerKTile, block, tile.a_problem}, full,
             policy);
  }
};

template <class Cfg, template <class> class Part, class Scheduler>
DUALGEMM_DEVICE void load_role(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, Scheduler tiles) {
  static_assert(Weights<Cfg>::kStageBytes + Activations<Cfg>::kStageBytes == Cfg::kStageBytes &&
                    Weights<Cfg>::kSlotBytes + Activations<Cfg>::kSlotBytes == Cfg::kSlotBytes,
                "the two parts fill a stage and a slot");
  const Part<Cfg> part(p, cta);
  const KWalk<Cfg> walk(p.k_tiles, cta.slice);
  auto s = producer_start<Cfg::kStages>();
  auto q = producer_start<Cfg::kScaleStages>();
  // A box counts in full, also where it sticks out of the tensor and zeros are written. The other CTA's bytes
  // may land first: the phase cannot end before this arrival.
  const auto expect = [&](uint64_t& full, uint32_t bytes) {
    if (cta.leads()) ptx::mbarrier_arrive_expect_tx(&full, Cfg::kCtaGroup * bytes);
  };
  for (Tile tile; tiles.next(tile);) {
#pragma unroll 1  // one thread issues it all: keep the code small (not measured here)
    for (int32_t i = 0; i < walk.length(); ++i) {
      const KTile k = walk[i];
      // On a new barrier a wait for the phase before the first passes at once: nothing holds up the first
      // round through a ring.
      if (walk.in_slot(i) == 0) {
        wait(smem.scale_empty[q.index], q.phase);  // the mma that read this slot come before the bytes below
        if (ptx::elect_sync()) {
          expect(smem.scale_full[q.index], Part<Cfg>::kSlotBytes);
          part.load_scales(smem.slot[q.index], smem.scale_full[q.index], tile, k);
        }
        __syncwarp();
        ++q;
      }
      wait(smem.empty[s.index], s.phase);  // the same for the stage, in both CTAs
      if (ptx::elect_sync()) {
        expect(smem.full[s.index], Part<Cfg>::kStageBytes);
        part.load(smem.stage[s.index], smem.full[s.index], tile, k);
      }
      __syncwarp();
      ++s;
    }
  }
  if constexpr (Part<Cfg>::kLaunchesDependents) {
    // All copies of A are on their way: the next kernel may start where SMs are free. It waits for the end of
    // this one before it reads C. This role has waited for the kernel before: what the next one reads without
    // waiting meets this kernel, and none before it.
    if (ptx::elect_sync()) ptx::griddepcontrol_launch_dependents();
    __syncwarp();
  }
  drain(smem.empty, s);
  drain(smem.scale_empty, q);
}

// The first weights, into L2: before the barriers of a pair are ready for copies to shared memory. No more of
// them than the unit that issues them takes at once: four cost 3 to 6 cycles each on an H200, every further
// one 37 to 116, and whoever waits for this warp would wait for them. One thread.
template <class Cfg, class Scheduler>
DUALGEMM_DEVICE void prefetch_weights(const Params& p, Cta<Cfg> cta, Scheduler tiles) {
  constexpr int kTilesAhead = 4 / Cfg::kBBoxes;
  const Weights<Cfg> weights(p, cta);
  const KWalk<Cfg> walk(p.k_tiles, cta.slice);
  Tile tile;
  if (!tiles.next(tile)) return;
#pragma unroll 1
  for (int32_t i = 0; i < walk.length() && i < kTilesAhead; ++i) weights.prefetch(tile, walk[i]);
}

}  // namespace dualgemm
