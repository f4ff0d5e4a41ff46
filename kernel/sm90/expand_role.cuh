// expand_role.cuh -- the expanders convert the A of a stage to fp16, with its factors multiplied in. They
// read the packed A of the stage, and write to another place in the same stage. Every other warp expands the
// first half of each k-tile, and the remaining warps the second half, so that neither half waits for the
// other. The warps of a half share its rows, eight at a time. Lane 8 w + r has word w of four 16-byte pieces
// of row r, one for each number in a quad of lanes (expand.cuh): together they are 32 neighbouring places.
// Loads are free of bank conflicts, since the swizzle puts the pieces of eight rows into eight columns, and
// the four words of each piece are its four banks. Stores are free of them, too: 16 bytes of eight rows in
// eight columns.
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

// Expands one half of k-tiles, for eight rows of the tile at a time. Rows of a lane differ by multiples of
// eight, so that their places in the swizzle are the same. These places do not depend on the stage, so they
// are held in registers, for each number in a quad and each of the four columns.
template <class Traits>
class RowExpander {
 public:
  DUALGEMM_DEVICE explicit RowExpander(int half) {
    const int lane = static_cast<int>(threadIdx.x) % 32, word = lane / kRowsAtOnce;
    row_ = lane % kRowsAtOnce;
    panel_ = kPanels * half + word / kPanelWords;
    const int column = word % kPanelWords * 4;  // of 16 bytes
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      from_[i] = operand_offset(row_, i, half) + 4 * word;
      to_[i] = panel_ * kPanelBytes<Traits> + row_ * 128 + ((column + i) ^ row_) * 16;
    }
  }

  // Expands the rows first .. first + 7. `block_row` is where the tile begins in its block of 128 rows of
  // factors.
  DUALGEMM_DEVICE void expand(Stage<Traits>& stage, int first, int block_row) const {
    const uint8_t* const a = stage.a + first * 128;
    const uint8_t* const factors = stage.scales.sfa + sf_offset_in_atom(block_row + first + row_, panel_);
    Pairs of_quad[4];
#pragma unroll
    for (int quad = 0; quad < 4; ++quad)
      of_quad[quad] = expand_word<HalfMath>(
          *reinterpret_cast<const uint32_t*>(a + from_[quad]),
          HalfMath::factor_twice(factors[quad * kSfAtomBytes] & 0x7F, 0));  // without its sign (Factors)
    uint8_t* const a16 = stage.a16 + first * 128;
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const auto pair = [&](int quad) { return of_quad[quad].pair[step][upper]; };
        *reinterpret_cast<uint4*>(a16 + to_[2 * step + upper]) =
            make_uint4(pair(0), pair(1), pair(2), pair(3));
      }
  }

 private:
  int row_, panel_;  // of the four factors that a row has in an atom, a panel has one
  int from_[4];      // in a stage, of the first eight rows: a word of each number in a quad
  int to_[4];        // in its A in fp16: the four columns
};

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void expand_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                 Scheduler tiles, int warp) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kStride = kPlan.a16.warps / 2 * kRowsAtOnce;  // rows that the warps of a half expand at once
  const int half = warp % 2, first_row = warp / 2 * kRowsAtOnce;
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  const RowExpander<Traits> rows(half);
  Rings<Traits>& rings = smem.rings;
  auto s = consumer_start<Rings<Traits>::kStages>();
  for (Tile tile; tiles.next(tile);) {
    const int block_row = tile.m * kPlan.tile.m % kSfAtomRows;
#pragma unroll 1
    for (int32_t i = 0; i < loop.length(); ++i, ++s) {
      // A has arrived. The stage is filled only after the wgmma have read the A in fp16 that is overwritten
      // here.
      wait(rings.a_full[s.index], s.phase);
#pragma unroll(kPlan.tile.m <= 2 * kStride ? 2 : 1)
      for (int before = 0; before < kPlan.tile.m; before += kStride)
        rows.expand(rings.stage[s.index], before + first_row, block_row);
      // The writes of each lane come before the reads of wgmma, which are through the async proxy; one lane
      // arrives for all. The warps that multiply wait for this arrival before they free the stage, so the
      // reads of the lanes here come before the next copy, too.
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.ready[s.index]);
      __syncwarp();
    }
  }
}

}  // namespace dualgemm::sm90
