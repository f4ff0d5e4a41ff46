// reduce.cuh -- the epilogue role with split-K, where K is split over a cluster. There is one tile, and each
// CTA finishes its share of the columns of the accumulators. The other CTAs send it their sums of these
// columns, 16 bytes at a time (st.async); the bytes count on a barrier of the CTA that receives them:
//
//   accumulators final,  --cluster-->  sums of the shares  --st.async-->  received[slice]  --sums_full-->
//   rings read             barrier     of others
//       in the order of slices: sums of the own share from tensor memory, others as received  -->  finish
//
// Sums are added in the order of the slices, so the result does not depend on which CTA was first. The sums
// of other CTAs, in fp32, arrive where the rings were: [slice of K][product][column / 4][lane][column % 4].
//
// Only sums that lie in C are sent, and a CTA knows beforehand how many bytes it will receive. It does not
// exit before all of them have arrived, and no other CTA accesses its memory after that. So it may exit while
// others still work.
#pragma once

#include "kernel/sm100/epilogue.cuh"
#include "ptx/cluster.cuh"

namespace dualgemm::sm100 {

template <class Traits>
struct Reduction {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kSlices = kPlan.tile.split_k;
  static constexpr int kShare = kPlan.mma.columns / kSlices;  // accumulator columns that one CTA finishes
  // Each of the two groups of four warps takes half of these columns. Where half of them would be fewer than
  // an output takes at once, such as 16 columns of a row of C, the first group takes all columns, and the
  // second none.
  static constexpr int kLeast = Traits::Output::template Writer<Traits, Layout<Traits>>::kLeastWidth;
  static constexpr int kHalf = kShare / 2 < kLeast ? kShare : kShare / 2;
  static constexpr int kWidest = Chunks<Traits>::kWidth;
  static constexpr int kWidth = kHalf % kWidest == 0 ? kWidest : kHalf % 16 == 0 ? 16 : 8;
  static constexpr int kVectorBytes = 16;  // four columns of one lane
  static constexpr int kProductBytes = kShare / 4 * kTmemLanes * kVectorBytes;
  static constexpr int kProducts = kPlan.mma.accumulators;
  static constexpr bool kBoth = kProducts == 2;
  static constexpr int kSliceBytes = kProducts * kProductBytes;
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

// Returns when no ring of the cluster is in use any more. Every thread of the cluster calls this. The load
// roles call it after they have waited for every stage that they filled to be empty again, and the epilogue
// after the accumulators are final: each of them then knows that the rings of its CTA are no longer used. The
// other warps know nothing of that and may arrive at any time; the barrier waits for all threads.
//
// TMA wrote the rings and the tensor core read them, both through the async proxy. After the cluster barrier
// other CTAs write the same bytes through the generic proxy, with st.async, so a proxy fence comes before the
// arrival. A CTA whose threads have arrived has also initialised its mbarriers.
DUALGEMM_DEVICE void leave_rings() {
  ptx::fence_proxy_async();
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
}

// Returns when the sums of all other slices have arrived. They come from other CTAs, so the wait acquires at
// cluster scope.
DUALGEMM_DEVICE void wait_for_sums(uint64_t& sums_full) {
  while (!ptx::mbarrier_try_wait_parity_acquire_cluster(&sums_full, 0)) {
  }
  __syncwarp();
}

// Says which part of a CTA's accumulators lies in C: the first `lanes` lanes of tensor memory, with their
// first `columns` columns. The rest is neither sent nor added up. Each of the two numbers may be 0 or less,
// or more than the CTA has.
struct PartInC {
  int lanes, columns;
};
template <class Traits>
DUALGEMM_DEVICE PartInC part_in_c(const Params& p, Cta<Traits> cta, const Tile& tile) {
  const int rows = tile.rows - static_cast<int>(cta.rank) * kTmemLanes;
  const int columns = p.n - tile.n * Traits::kPlan.tile.n;
  if constexpr (Traits::kPlan.mma.swap_ab) return {columns, rows};
  else return {rows, columns};
}

// Returns the bytes that this CTA receives: all vectors of its share that lie in C, from each other slice
// that has k-tiles.
template <class Traits>
DUALGEMM_DEVICE uint32_t received_bytes(int k_tiles, Cta<Traits> cta, PartInC part) {
  using R = Reduction<Traits>;
  int senders = 0;
#pragma unroll
  for (uint32_t slice = 0; slice < R::kSlices; ++slice)
    if (slice != cta.slice && !k_range(k_tiles, slice, R::kSlices).empty()) ++senders;
  const int first = static_cast<int>(cta.slice) * R::kShare;
  const int columns = max(min(part.columns - first, R::kShare), 0),
            lanes = max(min(part.lanes, kTmemLanes), 0);
  return static_cast<uint32_t>(senders * R::kProducts * lanes * ((columns + 3) / 4) * R::kVectorBytes);
}

// Sends this CTA's sums of each other slice's share of the columns to the CTA of that slice; in a pair of
// CTAs each keeps to those of its own rank. Each slice sends to the next slice first, so that not all slices
// send to one CTA at the same time.
template <class Traits>
DUALGEMM_DEVICE void send_sums(SharedStorage<Traits>& smem, Cta<Traits> cta, EpilogueWarp warp,
                               PartInC part) {
  using R = Reduction<Traits>;
  const TmemMap<Traits> tmem{smem.tmem_base + warp.tmem_lane()};
  const int lane = warp.lane();
  if (warp.first_lane() >= part.lanes) return;
#pragma unroll 1
  for (uint32_t i = 1; i < R::kSlices; ++i) {
    const uint32_t owner = (cta.slice + i) % R::kSlices, rank = owner * Cta<Traits>::kGroup + cta.rank;
    const uint32_t received = ptx::mapa(ptx::smem_u32(&smem), rank);
    const uint32_t full = ptx::mapa(ptx::smem_u32(&smem.sums_full), rank);
    const int first = static_cast<int>(owner) * R::kShare, end = R::end(warp, part.columns - first);
#pragma unroll 1
    for (int column = R::first(warp); column < end; column += R::kWidth) {
      FragmentOf<Traits, R::kWidth> sums;
      load_fragment(sums, tmem.acc1(0) + first + column, tmem.acc2(0) + first + column);
      const auto send = [&](int product, int j, const uint32_t* x) {
        const uint32_t values[4] = {x[0], x[1], x[2], x[3]};
        ptx::st_async_v4_b32(received + R::offset(cta.slice, product, column + j, lane), values, full);
      };
      if (lane < part.lanes) {
#pragma unroll
        for (int j = 0; j < R::kWidth; j += 4) {
          if (column + j >= end) break;
          send(0, j, &sums.acc1[j]);
          if constexpr (R::kBoth) send(1, j, &sums.acc2[j]);
        }
      }
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
  }
}

// Loads what another slice has sent of the columns from `column` of this CTA's share, as far as they lie
// before `end`. The rest is 0.
template <class Traits, int kWidth, int kProducts>
DUALGEMM_DEVICE void load_received(Fragment<kWidth, kProducts>& fragment, const SharedStorage<Traits>& smem,
                                   uint32_t slice, int column, int end, int lane) {
  using R = Reduction<Traits>;
  const auto load = [&](int product, int j, uint32_t* x) {
    uint32_t values[4] = {};
    if (column + j < end)
      ptx::ld_shared_v4_b32(values, ptx::smem_u32(&smem) + R::offset(slice, product, column + j, lane));
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = values[i];
  };
#pragma unroll
  for (int j = 0; j < kWidth; j += 4) {
    load(0, j, &fragment.acc1[j]);
    if constexpr (kProducts == 2) load(1, j, &fragment.acc2[j]);
  }
}

// Adds up the columns from `column` of this CTA's share over all slices that have k-tiles, in their order.
// The other slices have sent no columns from `end` on.
template <class Traits>
DUALGEMM_DEVICE auto sum_of_slices(const SharedStorage<Traits>& smem, Cta<Traits> cta, EpilogueWarp warp,
                                   int k_tiles, int column, int end) {
  using R = Reduction<Traits>;
  const TmemMap<Traits> tmem{smem.tmem_base + warp.tmem_lane()};
  const int of_tile = static_cast<int>(cta.slice) * R::kShare + column;
  const auto add = [](uint32_t& sum, uint32_t part) {
    sum = __float_as_uint(__uint_as_float(sum) + __uint_as_float(part));
  };
  FragmentOf<Traits, R::kWidth> sum{};
#pragma unroll 1
  for (uint32_t slice = 0; slice < R::kSlices; ++slice) {
    if (k_range(k_tiles, slice, R::kSlices).empty()) continue;  // no mma, nothing sent
    FragmentOf<Traits, R::kWidth> part;
    if (slice == cta.slice) load_fragment(part, tmem.acc1(0) + of_tile, tmem.acc2(0) + of_tile);
    else load_received(part, smem, slice, column, end, warp.lane());
#pragma unroll
    for (int i = 0; i < R::kWidth; ++i) {
      add(sum.acc1[i], part.acc1[i]);
      if constexpr (R::kBoth) add(sum.acc2[i], part.acc2[i]);
    }
  }
  return sum;
}

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void reducing_epilogue_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                            Scheduler tiles, EpilogueWarp warp) {
  using R = Reduction<Traits>;
  Tile tile;
  tiles.next(tile);
  const auto epilogue = epilogue_of(p, smem, cta, tile, warp);
  const PartInC part = part_in_c(p, cta, tile);
  if (warp.first() && ptx::elect_sync())
    ptx::mbarrier_arrive_expect_tx(&smem.sums_full, received_bytes(p.k_tiles, cta, part));
  __syncwarp();
  const auto acc = acc_consumer_start<Traits>();
  wait_for_accumulators(smem.acc_full[acc.index], acc.phase);
  leave_rings();
  if (!k_range(p.k_tiles, cta.slice, R::kSlices).empty()) send_sums(smem, cta, warp, part);
  wait_for_sums(smem.sums_full);
  const int first = static_cast<int>(cta.slice) * R::kShare;
  // If any lane of a warp has something to write, all its lanes are needed, because they exchange results.
  if (warp.first_lane() < epilogue.output.writing_lanes(part.lanes)) {
    const int end = warp.lane() < part.lanes ? R::end(warp, part.columns - first) : 0;
    for (int column = R::first(warp); column < R::end(warp, epilogue.output.extent() - first);
         column += R::kWidth) {
      epilogue.finish(sum_of_slices(smem, cta, warp, p.k_tiles, column, end), first + column);
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
  }
  if (cta.slice == 0) epilogue.output.complete_tile(warp.thread());
  Traits::Output::complete();
}

}  // namespace dualgemm::sm100
