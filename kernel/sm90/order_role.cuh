// order_role.cuh -- the orderers put an A of 16 bits in order where TMA has left it, a k-tile at a time. A
// k-tile of a row is 512 bytes in four panels. They have these elements before and after it:
//
//   before   panel `quad`: elements 64 quad to 64 quad + 63, of which chunk c = 4 half + word
//   after    panel 2 half + word / 2: places, of which columns 4 (word % 2) to 4 (word % 2) + 3
//
// Before it writes any, a lane has the four chunks c of a row in registers, and a warp all chunks of four
// rows. Of eight lanes that load or store 16 bytes at once, four have chunk c and four have chunk c ^ 5, in
// four neighbouring rows. The swizzle puts them into eight columns, which are all banks: at the load because
// c and c ^ 5 differ in bit 2, and at the store because bit 0 of c decides about bit 2 of the column.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/order.cuh"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/cluster.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

inline constexpr int kRowsInOrder = 4;

// Puts a k-tile of the rows first .. first + 3 of the tile in order.
template <class Traits>
DUALGEMM_DEVICE void order_rows(uint8_t* panels, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = first + lane % kRowsInOrder;
  const int c = lane / 8 ^ lane / kRowsInOrder % 2 * 5;
  const auto at = [=](int panel, int column) {
    return reinterpret_cast<uint4*>(panels + panel * kPanelBytes<Traits> + row * 128 +
                                    (column ^ row % 8) * 16);
  };
  uint4 chunk[4];
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) chunk[quad] = *at(quad, c);
  __syncwarp();  // all lanes have loaded what is overwritten below
  uint4 column[4];
  order_chunks(chunk, column);
#pragma unroll
  for (int i = 0; i < 4; ++i) *at(c / kPanelWords, c % kPanelWords * 4 + i) = column[i];
}

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void order_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                Scheduler tiles, int warp) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kStride = kPlan.a16.warps * kRowsInOrder;  // rows that all warps put in order at once
  const int first_row = warp * kRowsInOrder;
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  auto s = consumer_start<Rings<Traits>::kStages>();
  for (Tile tile; tiles.next(tile);) {
#pragma unroll 1
    for (int32_t i = 0; i < loop.length(); ++i, ++s) {
      wait(smem.rings.a_full[s.index], s.phase);
#pragma unroll(kPlan.tile.m <= 2 * kStride ? 2 : 1)
      for (int before = 0; before < kPlan.tile.m; before += kStride)
        order_rows<Traits>(smem.rings.stage[s.index].a16, before + first_row);
      // The reads and writes of each lane come before the reads of wgmma and before the writes of TMA that
      // follow, both through the async proxy; one lane arrives for all.
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.ready[s.index]);
      __syncwarp();
    }
  }
}

}  // namespace dualgemm::sm90
