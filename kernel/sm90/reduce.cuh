// reduce.cuh -- how the parts of a tile's sums come together where K is split: those of the CTAs of a
// cluster, and of the k groups of each. The rows of a tile are cut into shares, and each CTA has some
// neighbouring shares, or none. The first k group of a CTA finishes the shares of the CTA. All other k groups
// of the cluster send it their sums as their lanes have them, 16 bytes at a time (st.async); the bytes count
// on a barrier of the CTA that receives them. Parts are added by slice, and of a slice that of the first k
// group before that of the second, so that the result does not depend on which came first.
//
//   every lane:   sums of the shares of others  --st.async-->  received[part][block][warp][lane] of their CTA
//                 sums of its own shares  + received, once all bytes are there  -->  finish
//
// The received sums of tiles of few rows have memory of their own, and a CTA may send sums as soon as the
// other CTAs have initialised their barriers. Those of tiles of more rows lie where the rings were; then the
// cluster meets after all its CTAs have read their rings.
#pragma once

#include "kernel/common/pipeline.cuh"
#include "kernel/sm90/multiply.cuh"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/cluster.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

// Sums of other CTAs have memory of their own, or take that of the rings. In the first case a CTA has a place
// for them before its main loop, in the second case only after it. At the point where it has the place, each
// of its threads arrives at the cluster barrier, and meet_cluster waits for all threads.
template <class Traits>
DUALGEMM_DEVICE void arrive_before_loop() {
  using R = Reduction<Traits>;
  // The mbarriers are initialised, and the fence after that has released them: so this arrival may be
  // relaxed.
  if constexpr (R::kThere && !R::kInRings) ptx::cluster_arrive_relaxed();
}
template <class Traits>
DUALGEMM_DEVICE void meet_cluster() {
  using R = Reduction<Traits>;
  if constexpr (R::kInRings)
    ptx::cluster_arrive_release();  // this thread has read what it needs of its rings
  if constexpr (R::kThere) ptx::cluster_wait_acquire();
}

template <class Traits>
class Reducer {
  using R = Reduction<Traits>;

 public:
  DUALGEMM_DEVICE Reducer(SharedStorage<Traits>& smem, Cta<Traits> cta, Consumer<Traits> consumer)
      : smem_(smem),
        slice_(static_cast<int>(cta.slice)),
        part_(R::part(slice_, consumer.k_group())),
        consumer_(consumer) {}

  // Sends the sums that other warps finish. For the rows that this warp finishes, `sums` then has the sums of
  // all parts.
  DUALGEMM_DEVICE void reduce(Sums<Traits>& sums) const {
    meet_cluster<Traits>();
#pragma unroll
    for (int share = 0; share < R::kShares; ++share)
      if (part_ != R::part(R::owner(share), 0)) send(sums, share);
    // Finishing a tile writes to the memory of the rings, so all warps have to have read them. If received
    // sums lie there, too, the cluster has met for that already.
    if constexpr (!R::kInRings) ptx::barrier_sync(kMultiplyBarrier, Consumer<Traits>::kThreads);
    if (consumer_.k_group() != 0 || R::shares_of(slice_) == 0) return;
    while (!ptx::mbarrier_try_wait_parity_acquire_cluster(&smem_.sums_full[0], 0)) {
    }
    __syncwarp();
#pragma unroll
    for (int share = 0; share < R::kShares; ++share)
      if (R::owner(share) == slice_) add(sums, share);
  }

 private:
  // The four accumulators that a lane has for a block of eight rows, from one run through K.
  DUALGEMM_DEVICE static float* of_block(Sums<Traits>& sums, int share, int block, int loop) {
    return &sums.of_loop[loop].d[4 * (share * R::kBlocks + block)];
  }
  DUALGEMM_DEVICE float* received(int sender, int share, int block, int loop) const {
    const int own = share - R::first_share(R::owner(share));  // among the shares of its owner
    return smem_.received()
        .sum[sender][own * R::kBlocks + block][loop][consumer_.warp_of_columns()][consumer_.lane];
  }

  DUALGEMM_DEVICE void send(Sums<Traits>& sums, int share) const {
    const int owner = R::owner(share), sender = R::sender(part_, owner);
    const uint32_t full = ptx::mapa(ptx::smem_u32(&smem_.sums_full[0]), static_cast<uint32_t>(owner));
#pragma unroll
    for (int block = 0; block < R::kBlocks; ++block)
#pragma unroll
      for (int loop = 0; loop < R::kLoops; ++loop) {
        const float* const x = of_block(sums, share, block, loop);
        const uint32_t words[4] = {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                                   __float_as_uint(x[3])};
        const uint32_t place = ptx::smem_u32(received(sender, share, block, loop));
        ptx::st_async_v4_b32(ptx::mapa(place, static_cast<uint32_t>(owner)), words, full);
      }
  }

  DUALGEMM_DEVICE void add(Sums<Traits>& sums, int share) const {
    const int owner = R::owner(share), own = R::part(owner, 0);
#pragma unroll
    for (int block = 0; block < R::kBlocks; ++block)
#pragma unroll
      for (int loop = 0; loop < R::kLoops; ++loop) {
        float* const x = of_block(sums, share, block, loop);
        float total[4] = {};
#pragma unroll
        for (int part = 0; part < R::kParts; ++part) {
          uint32_t words[4];
          if (part != own)
            ptx::ld_shared_v4_b32(words, ptx::smem_u32(received(R::sender(part, owner), share, block, loop)));
#pragma unroll
          for (int i = 0; i < 4; ++i) total[i] += part == own ? x[i] : __uint_as_float(words[i]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) x[i] = total[i];
      }
  }

  SharedStorage<Traits>& smem_;
  int slice_, part_;
  Consumer<Traits> consumer_;
};

}  // namespace dualgemm::sm90
