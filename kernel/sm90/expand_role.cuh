// expand_role.cuh -- the expanders: A from the ring of operands to the ring of A in fp16, with its factors
// multiplied in. A warp takes eight rows at a time. Lane 8 w + r has word w of four 16-byte pieces of row r,
// one for each number in a quad of lanes (expand.cuh): together they are 32 neighbouring places. Its loads
// are free of conflicts, since the swizzle puts the pieces of eight rows into eight columns, and the four
// words of each are its four banks; so are its stores, 16 bytes of eight rows in eight columns.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/half_math.cuh"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/cluster.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

inline constexpr int kRowsAtOnce = 8;

// Expands one half of a k-tile for the rows first .. first + 7 of the tile. `block_row` is where the tile
// begins in its block of 128 rows of factors.
template <class Traits>
DUALGEMM_DEVICE void expand_rows(const Stage<Traits>& stage, const ScaleStage<Traits>& scales,
                                 ExpandedStage<Traits>& expanded, int half, int first, int block_row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = first + lane % kRowsAtOnce, word = lane / kRowsAtOnce;
  const int panel = word / kPanelWords;
  Pairs of_quad[4];
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    const auto* const from = stage.a + operand_offset(row, quad, half) + 4 * word;
    const auto* const factors = scales.sfa + quad * kSfAtomBytes + sf_offset_in_atom(block_row + row, 0);
    of_quad[quad] = expand_word<HalfMath>(
        *reinterpret_cast<const uint32_t*>(from),
        Factors{*reinterpret_cast<const uint32_t*>(factors)}.template of<HalfMath>(half, panel));
  }
  uint8_t* const to = expanded.panel[panel] + row * 128;
#pragma unroll
  for (int step = 0; step < 2; ++step)
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int column = word % kPanelWords * 4 + step * 2 + upper;  // of 16 bytes
      const auto pair = [&](int quad) { return of_quad[quad].pair[step][upper]; };
      *reinterpret_cast<uint4*>(to + (column ^ row % 8) * 16) =
          make_uint4(pair(0), pair(1), pair(2), pair(3));
    }
}

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void expand_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                 Scheduler tiles, int warp) {
  constexpr Plan kPlan = Traits::kPlan;
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  Rings<Traits>& rings = smem.rings;
  auto s = consumer_start<Rings<Traits>::kStages>();
  auto q = consumer_start<Rings<Traits>::kScaleStages>();
  auto e = producer_start<kPlan.expand.stages>();
  for (Tile tile; tiles.next(tile);) {
    const int block_row = tile.m * kPlan.tile.m % kSfAtomRows;
#pragma unroll 1
    for (int32_t i = 0; i < loop.length(); ++i, ++s, ++q) {
      wait(rings.full[s.index], s.phase);
      wait(rings.scale_full[q.index], q.phase);
#pragma unroll 1
      for (int half = 0; half < 2; ++half, ++e) {
        wait(smem.expanded_empty[e.index], e.phase);  // the wgmma have read this stage
        for (int first = warp * kRowsAtOnce; first < kPlan.tile.m; first += kPlan.expand.warps * kRowsAtOnce)
          expand_rows<Traits>(rings.stage[s.index], rings.scale_stage[q.index], smem.expanded[e.index], half,
                              first, block_row);
        // What each lane wrote comes before what wgmma read, which is through the async proxy; the arrival
        // of one lane tells it for all.
        ptx::fence_proxy_async_shared_cta();
        __syncwarp();
        if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.expanded_full[e.index]);
        __syncwarp();
      }
      // All lanes have loaded what they need of these stages: the barriers of the warp above say so.
      if (ptx::elect_sync()) {
        ptx::mbarrier_arrive(&rings.empty[s.index]);
        ptx::mbarrier_arrive(&rings.scale_empty[q.index]);
      }
      __syncwarp();
    }
  }
}

}  // namespace dualgemm::sm90
