// load.cuh -- the two load roles: TMA copies of one k-tile after another into the ring of stages. They differ
// in what they copy and in the bytes they announce; params.h says what each tensor map covers. One thread
// each.
#pragma once

#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/wait.cuh"
#include "ptx/tma.cuh"

namespace dualgemm {

// A, B1, B2 of one k-tile.
template <class Cfg>
struct Operands {
  static constexpr int kBytes = Cfg::kABytes + 2 * Cfg::kBBytes;

  DUALGEMM_DEVICE static void load(const Params& p, Stage<Cfg>& stage, uint64_t& full, Tile tile,
                                   int k_tile) {
    const int k_byte = k_tile * (Cfg::kTileK / 2);
    ptx::cp_async_bulk_tensor_2d(stage.b1, &p.b1, k_byte, tile.n * Cfg::kTileN, &full);
    ptx::cp_async_bulk_tensor_2d(stage.b2, &p.b2, k_byte, tile.n * Cfg::kTileN, &full);
    ptx::cp_async_bulk_tensor_2d(stage.a, &p.a, k_byte, tile.m * Cfg::kTileM, &full);
  }
};

// SFA, SFB1, SFB2 of one k-tile. Scale factors come in blocks of 128 rows: with kTileN = 64 two neighbouring
// tiles load the same block of B, and the mma picks its half.
template <class Cfg>
struct Scales {
  static constexpr int kBytes = 3 * Cfg::kSfBytes;
  static constexpr int kBlockRows = 128;
  static_assert(Cfg::kTileM == kBlockRows && kBlockRows % Cfg::kTileN == 0,
                "a tile lies inside one block of rows");

  DUALGEMM_DEVICE static void load(const Params& p, Stage<Cfg>& stage, uint64_t& full, Tile tile,
                                   int k_tile) {
    const int k_word = k_tile * (Cfg::kSfBytes / 8);
    const int b_block = tile.n / (kBlockRows / Cfg::kTileN);
    ptx::cp_async_bulk_tensor_2d(stage.sfb1, &p.sfb1, k_word, b_block, &full);
    ptx::cp_async_bulk_tensor_2d(stage.sfb2, &p.sfb2, k_word, b_block, &full);
    ptx::cp_async_bulk_tensor_2d(stage.sfa, &p.sfa, k_word, tile.m, &full);
  }
};

template <class Cfg, template <class> class Part>
DUALGEMM_DEVICE void load_role(const Params& p, SharedStorage<Cfg>& smem, TileScheduler tiles) {
  static_assert(Operands<Cfg>::kBytes + Scales<Cfg>::kBytes == Cfg::kStageBytes,
                "the two parts fill a stage");
  auto s = producer_start<Cfg::kStages>();
  for (Tile tile; tiles.next(tile);) {
#pragma unroll 1  // one thread issues it all: keep the code small (not measured here)
    for (int k_tile = 0; k_tile < p.k_tiles; ++k_tile, ++s) {
      wait(smem.empty[s.index], s.phase);  // the mma that read this stage come before the bytes below
      // A box counts in full, also where it sticks out of the tensor and zeros are written.
      ptx::mbarrier_arrive_expect_tx(&smem.full[s.index], Part<Cfg>::kBytes);
      Part<Cfg>::load(p, smem.stage[s.index], smem.full[s.index], tile, k_tile);
    }
  }
  drain(smem.empty, s);
}

}  // namespace dualgemm
