// load.cuh -- the two load roles: TMA copies of one k-tile after another into the ring of stages. They differ
// in what they copy and in the bytes they announce; params.h says what each tensor map covers. One thread
// each, in each CTA of a pair.
#pragma once

#include "kernel/cta.cuh"
#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/wait.cuh"

namespace dualgemm {

// A, B1, B2 of one k-tile.
template <class Cfg>
struct Operands {
  static constexpr int kBytes = Cfg::kABytes + Cfg::kBBoxes * Cfg::kBBoxBytes;

  DUALGEMM_DEVICE static void load(const Params& p, Stage<Cfg>& stage, uint64_t& full, Cta<Cfg> cta,
                                   Tile tile, int k_tile) {
    const int k_byte = k_tile * (Cfg::kTileK / 2);
    const int n = tile.n * Cfg::kTileN;
    if constexpr (Cfg::kOneBPerCta) {
      cta.load(stage.b[0], cta.rank == 0 ? p.b1 : p.b2, k_byte, n, full);
    } else {
      const int row = n + static_cast<int>(cta.rank) * Cfg::kBBoxRows;
      cta.load(stage.b[0], p.b1, k_byte, row, full);
      cta.load(stage.b[1], p.b2, k_byte, row, full);
    }
    cta.load(stage.a, p.a, k_byte, tile.m * Cfg::kTileM + static_cast<int>(cta.rank) * Cfg::kABoxRows, full);
  }
};

// SFA, SFB1, SFB2 of one k-tile. Scale factors come in blocks of 128 rows: tiles of 64 rows of A or B load
// the block two of them share, and the mma picks its half. Both CTAs of a pair multiply with all of B and
// need all its scale factors: each brings one of SFB1 and SFB2 for both.
template <class Cfg>
struct Scales {
  static constexpr int kBytes = 3 * Cfg::kSfBytes;  // that arrive in a CTA
  static constexpr int kBlockRows = 128;
  static_assert(kBlockRows % Cfg::kABoxRows == 0 && kBlockRows % Cfg::kTileN == 0,
                "a box lies inside one block of rows");

  DUALGEMM_DEVICE static void load(const Params& p, Stage<Cfg>& stage, uint64_t& full, Cta<Cfg> cta,
                                   Tile tile, int k_tile) {
    const int k_word = k_tile * (Cfg::kSfBytes / 8);
    const int a_block = (tile.m * Cfg::kTileM + static_cast<int>(cta.rank) * Cfg::kABoxRows) / kBlockRows;
    const int b_block = tile.n * Cfg::kTileN / kBlockRows;
    if constexpr (Cta<Cfg>::kPaired) {
      cta.load_to_both(cta.rank == 0 ? stage.sfb1 : stage.sfb2, cta.rank == 0 ? p.sfb1 : p.sfb2, k_word,
                       b_block, full);
    } else {
      cta.load(stage.sfb1, p.sfb1, k_word, b_block, full);
      cta.load(stage.sfb2, p.sfb2, k_word, b_block, full);
    }
    cta.load(stage.sfa, p.sfa, k_word, a_block, full);
  }
};

template <class Cfg, template <class> class Part>
DUALGEMM_DEVICE void load_role(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, TileScheduler tiles) {
  static_assert(Operands<Cfg>::kBytes + Scales<Cfg>::kBytes == Cfg::kStageBytes,
                "the two parts fill a stage");
  const KRange k = k_range(p.k_tiles, cta.slice, Cfg::kSplitK);
  auto s = producer_start<Cfg::kStages>();
  for (Tile tile; tiles.next(tile);) {
#pragma unroll 1  // one thread issues it all: keep the code small (not measured here)
    for (int k_tile = k.first; k_tile < k.end; ++k_tile, ++s) {
      // The mma that read this stage, in both CTAs, come before the bytes below.
      wait(smem.empty[s.index], s.phase);
      // A box counts in full, also where it sticks out of the tensor and zeros are written. The other CTA's
      // bytes may land first: the phase cannot end before this arrival.
      if (cta.leads())
        ptx::mbarrier_arrive_expect_tx(&smem.full[s.index], Cfg::kCtaGroup * Part<Cfg>::kBytes);
      Part<Cfg>::load(p, smem.stage[s.index], smem.full[s.index], cta, tile, k_tile);
    }
  }
  drain(smem.empty, s);
}

}  // namespace dualgemm
