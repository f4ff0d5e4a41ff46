// epilogue.cuh -- the epilogue role: it brings accumulators from tensor memory to registers, and
// epilogue/epilogue.cuh finishes them there. It has eight warps, two for each quarter of the lanes of tensor
// memory. A lane of such a warp has a row of C, or with swap A/B a column, and the half of the accumulator
// columns that belongs to its warp.
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/epilogue/epilogue.cuh"
#include "kernel/params.h"
#include "kernel/sm100/pair.cuh"
#include "kernel/sm100/roles.cuh"
#include "kernel/sm100/shared_storage.cuh"
#include "kernel/sm100/tmem_map.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"

namespace dualgemm::sm100 {

// A thread of the epilogue reads one lane of tensor memory: a column of C with swap A/B, else a row.
template <class Traits>
using Layout = std::conditional_t<Traits::kPlan.mma.swap_ab, DownColumn, AlongRow>;

template <class Traits>
DUALGEMM_DEVICE LanePlace place_of_lane(Cta<Traits> cta, const Tile& tile, EpilogueWarp warp) {
  const int column = tile.n * Traits::kPlan.tile.n;
  if constexpr (Traits::kPlan.mma.swap_ab) return {0, column + warp.lane()};
  else return {static_cast<int>(cta.rank) * kTmemLanes + warp.lane(), column};
}

template <class Traits>
DUALGEMM_DEVICE auto epilogue_of(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                 const Tile& tile, EpilogueWarp warp) {
  return Epilogue<Traits, Layout<Traits>>(p, tile, place_of_lane(cta, tile, warp), smem.output);
}

// Holds what a lane has of kWidth columns.
template <class Traits, int kWidth>
using FragmentOf = Fragment<kWidth, Traits::kPlan.mma.accumulators>;

// Returns when the columns from acc1 on, and with two products those from acc2 on, are in registers.
template <int kWidth, int kProducts>
DUALGEMM_DEVICE void load_fragment(Fragment<kWidth, kProducts>& fragment, uint32_t acc1, uint32_t acc2) {
  constexpr bool kBoth = kProducts == 2;
  ptx::tcgen05_ld_32x32b(fragment.acc1, acc1);
  if constexpr (kBoth) ptx::tcgen05_ld_32x32b(fragment.acc2, acc2);
  ptx::tcgen05_wait_ld();  // the registers are defined, and tensor memory has been read, only after this
  // Nothing tells the compiler that the wait defines the registers; these empty statements keep their uses
  // below it.
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if constexpr (kBoth) asm volatile("" : "+r"(fragment.acc1[i]), "+r"(fragment.acc2[i])::"memory");
    else asm volatile("" : "+r"(fragment.acc1[i])::"memory");
  }
}

// Returns when the accumulators are final and this warp may load them.
DUALGEMM_DEVICE void wait_for_accumulators(uint64_t& acc_full, uint32_t phase) {
  wait(acc_full, phase);
  ptx::tcgen05_fence_after_thread_sync();  // the mma of these accumulators come before the loads that follow
}

// Says which columns of a lane of tensor memory one warp handles, in chunks. The code of a general instance
// is long, so its chunks are narrow, and the loop over them is not unrolled.
template <class Traits>
struct Chunks {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr bool kGeneral = Traits::Arithmetic::kGeneral;
  static constexpr int kWidth = kGeneral ? 16 : kPlan.epilogue.chunk_columns;
  static constexpr int kCount = kPlan.mma.columns / 2 / kWidth;
  static constexpr int kUnrolled = kGeneral ? 1 : kCount;
  // Each of the two warps that have a lane of tensor memory reads half of the columns that overlapping
  // accumulator pairs share.
  static constexpr int kShared = kPlan.tmem.shared_columns / 2;
  // After this chunk is in registers, all that the mma of the next tile overwrites has been read.
  static constexpr int kReleasing = (kPlan.tmem.overlapped() ? kShared / kWidth : kCount) - 1;

  // Returns the first column of chunk i. Where pairs overlap, the shared columns, the last 64 of pair 0 and
  // the first 64 of pair 1, are read first.
  DUALGEMM_DEVICE static int first(EpilogueWarp warp, int i, int acc) {
    if constexpr (kPlan.tmem.overlapped()) {
      constexpr int kOthers = kPlan.mma.columns / 2 - kShared;  // that this warp reads after the shared ones
      static_assert(kShared % kWidth == 0 && kOthers % kShared == 0);
      const bool shared = i <= kReleasing, upper = (acc == 0) == shared;
      if constexpr (kOthers == kShared)
        return warp.half * kShared + i * kWidth % kShared + (upper ? kPlan.mma.columns - 2 * kShared : 0);
      const int of_half = shared ? kShared : kOthers, before = shared ? 0 : kShared;
      return warp.half * of_half + i * kWidth - before + (upper ? kPlan.mma.columns - 2 * of_half : 0);
    } else {
      return warp.half * (kPlan.mma.columns / 2) + i * kWidth;
    }
  }
};

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void epilogue_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                   Scheduler tiles, EpilogueWarp warp) {
  using C = Chunks<Traits>;
  const TmemMap<Traits> tmem{smem.tmem_base + warp.tmem_lane()};
  auto acc = acc_consumer_start<Traits>();
  for (Tile tile; tiles.next(tile); ++acc) {
    const auto epilogue = epilogue_of(p, smem, cta, tile, warp);
    const int pair = acc.pair();
    wait_for_accumulators(smem.acc_full[acc.index], acc.phase);
#pragma unroll C::kUnrolled
    for (int i = 0; i < C::kCount; ++i) {
      const int column = C::first(warp, i, pair);
      FragmentOf<Traits, C::kWidth> fragment;
      load_fragment(fragment, tmem.acc1(pair) + column, tmem.acc2(pair) + column);
      if (i == C::kReleasing) {
        // All columns that a later tile overwrites are in registers now: its mma may overwrite them during
        // the work below.
        ptx::tcgen05_fence_before_thread_sync();  // this lane's reads come before the arrival
        __syncwarp();                             // and so do those of the other lanes
        if (ptx::elect_sync()) arrive_at_leader(cta, smem.acc_empty[acc.index]);
        __syncwarp();
      }
      epilogue.finish(fragment, column);
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
    epilogue.output.complete_tile(warp.thread());
  }
  Traits::Output::complete();
}

}  // namespace dualgemm::sm100
