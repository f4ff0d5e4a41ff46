// reduce.cuh -- the epilogue role with split-K, where K is split over a cluster. There is one tile, the CTAs
// exchange their accumulators, and each finishes its share of the columns. Sums are taken in the order of the
// slices, so the result does not depend on who was first.
//
//   accumulators final,  --cluster-->  send partial  --cluster-->  add up, finish
//   rings read             barrier     sums            barrier
//
// The partial sums, fp32, arrive where the rings were: [slice of K][product][column / 4][lane][column % 4].
#pragma once

#include "kernel/sm100/epilogue.cuh"
#include "ptx/cluster.cuh"

namespace dualgemm::sm100 {

template <class Traits>
struct Reduction {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kSlices = kPlan.tile.split_k;
  static constexpr int kShare = kPlan.mma.columns / kSlices;  // accumulator columns that one CTA finishes
  // Each of the two groups of four warps takes half of these columns. Where half would be less than an output
  // takes at once, such as 16 columns of a row of C, the first group takes all, and the second has none.
  static constexpr int kLeast = Traits::Output::template Writer<Traits, Layout<Traits>>::kLeastWidth;
  static constexpr int kHalf = kShare / 2 < kLeast ? kShare : kShare / 2;
  static constexpr int kWidest = Chunks<Traits>::kWidth;
  static constexpr int kWidth = kHalf % kWidest == 0 ? kWidest : kHalf % 16 == 0 ? 16 : 8;
  static constexpr int kVectorBytes = 16;  // four columns of one lane
  static constexpr int kProductBytes = kShare / 4 * kTmemLanes * kVectorBytes;
  static constexpr bool kBoth = kPlan.mma.accumulators == 2;
  static constexpr int kSliceBytes = kPlan.mma.accumulators * kProductBytes;
  static_assert(kSlices * kSliceBytes <= kPlan.ring_bytes(), "the partial sums fit into the rings");
  static_assert(kHalf % kWidth == 0 && kWidth % 4 == 0, "kHalf is whole chunks of whole vectors");

  // A warp handles these columns of its CTA's share, up to where C ends.
  DUALGEMM_DEVICE static int first(EpilogueWarp warp) { return warp.half * kHalf; }
  DUALGEMM_DEVICE static int end(EpilogueWarp warp, int columns) {
    return min(min((warp.half + 1) * kHalf, kShare), columns);
  }

  // Returns where the vector at column `column` of a share lies, for one lane of tensor memory.
  DUALGEMM_DEVICE static uint32_t offset(uint32_t slice, int product, int column, int lane) {
    return slice * kSliceBytes + product * kProductBytes + (column / 4 * kTmemLanes + lane) * kVectorBytes;
  }
};

// Every thread of the cluster arrives here: what it did to shared memory comes before what any of them does
// to it next.
DUALGEMM_DEVICE void meet_cluster() {
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
}

// The rings were written by TMA and read by the tensor core, both through the async proxy. After the first
// barrier ordinary stores write the same bytes, from other CTAs, too, so a proxy fence comes before it.
DUALGEMM_DEVICE void leave_rings() {
  ptx::fence_proxy_async();
  meet_cluster();
}

// The warps of the other roles only join the two barriers of the exchange.
DUALGEMM_DEVICE void attend_reduction() {
  leave_rings();
  meet_cluster();
}

// Sends this CTA's partial sums of each slice's share of the columns to the CTA of that slice, its own
// included; in a pair of CTAs each keeps to those of its own rank. Of the tile's columns (rows with swap
// A/B) the first `columns` lie in C, and only these are sent.
template <class Traits>
DUALGEMM_DEVICE void send_partial_sums(SharedStorage<Traits>& smem, Cta<Traits> cta, EpilogueWarp warp,
                                       int columns) {
  using R = Reduction<Traits>;
  const TmemMap<Traits> tmem{smem.tmem_base + warp.tmem_lane()};
  const int lane = warp.lane();
#pragma unroll 1
  for (uint32_t owner = 0; owner < R::kSlices; ++owner) {
    const uint32_t exchange = ptx::mapa(ptx::smem_u32(&smem), owner * Cta<Traits>::kGroup + cta.rank);
    const int first = static_cast<int>(owner) * R::kShare;
    for (int column = R::first(warp); column < R::end(warp, columns - first); column += R::kWidth) {
      FragmentOf<Traits, R::kWidth> part;
      load_fragment(part, tmem.acc1(0) + first + column, tmem.acc2(0) + first + column);
#pragma unroll
      for (int j = 0; j < R::kWidth; j += 4) {
        ptx::st_shared_cluster_v4_b32(exchange + R::offset(cta.slice, 0, column + j, lane), &part.acc1[j]);
        if constexpr (R::kBoth)
          ptx::st_shared_cluster_v4_b32(exchange + R::offset(cta.slice, 1, column + j, lane), &part.acc2[j]);
      }
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
  }
}

// Adds up the columns from `column` of this CTA's share, over all slices that have sent something.
template <class Traits>
DUALGEMM_DEVICE auto sum_of_slices(const SharedStorage<Traits>& smem, int k_tiles, int column, int lane) {
  using R = Reduction<Traits>;
  const uint32_t exchange = ptx::smem_u32(&smem);
  const auto add = [](uint32_t& sum, uint32_t part) {
    sum = __float_as_uint(__uint_as_float(sum) + __uint_as_float(part));
  };
  FragmentOf<Traits, R::kWidth> sum{};
#pragma unroll 1
  for (uint32_t slice = 0; slice < R::kSlices; ++slice) {
    if (k_range(k_tiles, slice, R::kSlices).empty()) continue;  // no mma, nothing sent
#pragma unroll
    for (int j = 0; j < R::kWidth; j += 4) {
      uint32_t part1[4], part2[4];
      ptx::ld_shared_v4_b32(part1, exchange + R::offset(slice, 0, column + j, lane));
      if constexpr (R::kBoth) ptx::ld_shared_v4_b32(part2, exchange + R::offset(slice, 1, column + j, lane));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        add(sum.acc1[j + i], part1[i]);
        if constexpr (R::kBoth) add(sum.acc2[j + i], part2[i]);
      }
    }
  }
  return sum;
}

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void reducing_epilogue_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                            Scheduler tiles, EpilogueWarp warp) {
  using R = Reduction<Traits>;
  const auto acc = acc_consumer_start<Traits>();
  wait_for_accumulators(smem.acc_full[acc.index], acc.phase);
  Tile tile;
  tiles.next(tile);
  leave_rings();
  if (!k_range(p.k_tiles, cta.slice, R::kSlices).empty())
    send_partial_sums(smem, cta, warp, epilogue_of(p, smem, cta, tile, warp).output.extent());
  // The partial sums are written before they are read below. From here on nobody reaches into another CTA, so
  // each may exit when it likes.
  meet_cluster();
  const auto epilogue = epilogue_of(p, smem, cta, tile, warp);
  const int first = static_cast<int>(cta.slice) * R::kShare;
  for (int column = R::first(warp); column < R::end(warp, epilogue.output.extent() - first);
       column += R::kWidth)
    epilogue.finish(sum_of_slices(smem, p.k_tiles, column, warp.lane()), first + column);
  if (cta.slice == 0) epilogue.output.complete_tile(warp.thread());
  Traits::Output::complete();
}

}  // namespace dualgemm::sm100
