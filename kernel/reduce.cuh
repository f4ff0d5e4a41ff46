// reduce.cuh -- the end of a tile whose K was split over a cluster: the CTAs exchange their accumulators and
// each finishes its share of the columns. Sums are taken in the order of the slices, so the result does not
// depend on who was first.
//
//   accumulators final, ring read  --cluster barrier-->  send partial sums  --cluster barrier-->  add up,
//   finish
//
// The partial sums, fp32, arrive where the rings were: [slice of K][product][column / 4][lane][column % 4].
#pragma once

#include "kernel/epilogue.cuh"
#include "ptx/cluster.cuh"

namespace dualgemm {

template <class Cfg>
struct Reduction {
  static constexpr int kShare = Cfg::kColumns / Cfg::kSplitK;  // columns that one CTA finishes
  // ... and one of two groups of four warps, unless half of a share is less than a full sector of C.
  static constexpr int kHalf = kShare / 2 < 16 && !Cfg::kSwap ? kShare : kShare / 2;
  static constexpr int kWidth = kHalf % 32 == 0 ? 32 : kHalf % 16 == 0 ? 16 : 8;
  static constexpr int kVectorBytes = 16;  // four columns of one lane
  static constexpr int kProductBytes = kShare / 4 * Cfg::kLanes * kVectorBytes;
  static constexpr int kSliceBytes = 2 * kProductBytes;
  static_assert(Cfg::kSplitK * kSliceBytes <= Cfg::kRingBytes, "the partial sums fit into the rings");
  static_assert(kHalf % kWidth == 0 && kWidth % 4 == 0, "half a share is whole chunks of whole vectors");

  // The columns of its share that a warp handles, up to where C ends.
  DUALGEMM_DEVICE static int first(EpilogueWarp warp) { return warp.half * kHalf; }
  DUALGEMM_DEVICE static int end(EpilogueWarp warp, int columns) {
    return min(min((warp.half + 1) * kHalf, kShare), columns);
  }

  // Where the vector at column `column` of a share lies, for one lane of tensor memory.
  DUALGEMM_DEVICE static uint32_t offset(uint32_t slice, int product, int column, int lane) {
    return slice * kSliceBytes + product * kProductBytes + (column / 4 * Cfg::kLanes + lane) * kVectorBytes;
  }
};

// Sends to every CTA of the cluster, itself included, what this one has of that one's columns. Columns beyond
// C are nobody's.
template <class Cfg>
DUALGEMM_DEVICE void send_partial_sums(const Output<Cfg>& output, SharedStorage<Cfg>& smem, Cta<Cfg> cta,
                                       EpilogueWarp warp) {
  using R = Reduction<Cfg>;
  const TmemMap<Cfg> tmem{smem.tmem_base + warp.tmem_lane()};
  const int lane = warp.lane();
#pragma unroll 1
  for (uint32_t owner = 0; owner < Cfg::kSplitK; ++owner) {
    const uint32_t exchange = ptx::mapa(ptx::smem_u32(&smem), owner * Cfg::kCtaGroup + cta.rank);
    const int first = static_cast<int>(owner) * R::kShare;
    for (int column = R::first(warp); column < R::end(warp, output.columns - first); column += R::kWidth) {
      Chunk<R::kWidth> part;
      part.load(tmem.acc1(0) + first + column, tmem.acc2(0) + first + column);
#pragma unroll
      for (int j = 0; j < R::kWidth; j += 4) {
        ptx::st_shared_cluster_v4_b32(exchange + R::offset(cta.slice, 0, column + j, lane), &part.acc1[j]);
        ptx::st_shared_cluster_v4_b32(exchange + R::offset(cta.slice, 1, column + j, lane), &part.acc2[j]);
      }
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
  }
}

// Adds up this CTA's columns over all slices and finishes them.
template <class Cfg>
DUALGEMM_DEVICE void finish_share(const Output<Cfg>& output, const SharedStorage<Cfg>& smem, Cta<Cfg> cta,
                                  EpilogueWarp warp, int k_tiles) {
  using R = Reduction<Cfg>;
  const int lane = warp.lane();
  const uint32_t exchange = ptx::smem_u32(&smem);
  const int first = static_cast<int>(cta.slice) * R::kShare;
  const auto add = [](uint32_t& sum, uint32_t part) {
    sum = __float_as_uint(__uint_as_float(sum) + __uint_as_float(part));
  };
  for (int column = R::first(warp); column < R::end(warp, output.columns - first); column += R::kWidth) {
    Chunk<R::kWidth> sum{};
#pragma unroll 1
    for (uint32_t slice = 0; slice < Cfg::kSplitK; ++slice) {
      if (k_range(k_tiles, slice, Cfg::kSplitK).empty()) continue;  // no mma, nothing sent
#pragma unroll
      for (int j = 0; j < R::kWidth; j += 4) {
        uint32_t part1[4], part2[4];
        ptx::ld_shared_v4_b32(part1, exchange + R::offset(slice, 0, column + j, lane));
        ptx::ld_shared_v4_b32(part2, exchange + R::offset(slice, 1, column + j, lane));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          add(sum.acc1[j + i], part1[i]);
          add(sum.acc2[j + i], part2[i]);
        }
      }
    }
    output.finish(sum, first + column);
  }
}

// Every warp of every CTA of the cluster comes here after its role; the epilogue warps have waited for the
// accumulators.
template <class Cfg>
DUALGEMM_DEVICE void reduce(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, const Tile& tile,
                            Role role, EpilogueWarp warp) {
  // The rings were written by TMA and read by the tensor core, both through the async proxy; what comes next
  // are ordinary stores.
  ptx::fence_proxy_async();
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
  if (role == Role::kEpilogue && !k_range(p.k_tiles, cta.slice, Cfg::kSplitK).empty())
    send_partial_sums(Output<Cfg>(p, cta, tile, warp), smem, cta, warp);
  // The partial sums are written before they are read below. From here on nobody reaches into another CTA, so
  // each may exit when it likes.
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
  if (role == Role::kEpilogue) finish_share(Output<Cfg>(p, cta, tile, warp), smem, cta, warp, p.k_tiles);
}

}  // namespace dualgemm
