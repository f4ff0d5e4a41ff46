// stream_parts.cuh -- how the parts of a tile come together that CTAs share along K (common/stream_k.cuh).
// No CTA waits for another. Each leaves its sums in global memory and counts itself; the last to come adds
// up the parts and finishes the tile:
//
//   all but the last:   sums  -->  part_sums[slot][i / 4][thread][i % 4]    parts_there[tile] + 1
//   the last:           part 0 + part 1 + ...  --> finish                   i: of a thread's sums
//
// The pass over A, which precedes each launch with stream-K, has set parts_there to 0.
//
// Parts are added in the order of K, also the part of the CTA that adds them, so that the result does not
// depend on which CTA was last. If a CTA finds that all others have been counted before it has written
// anything, it is the last and does not write its sums.
//
// CTA c has two slots: 2 c for a part of a tile that the team's member before it has begun, 2 c + 1 for the
// first part of a tile.
#pragma once

#include "kernel/params.h"
#include "kernel/sm90/multiply.cuh"
#include "ptx/global.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

template <class Traits>
class StreamParts {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kThreads = Consumer<Traits>::kThreads;
  static constexpr int kCount = Accumulators<Traits>::kCount;
  // A lane adds up this many of its sums at a time. In tiles of up to 128 rows it has registers for the
  // totals of all its sums at once, in tiles of 192 or 256 rows only for 32 totals.
  static constexpr int kAtOnce = kCount <= 64 ? kCount : 32;
  static_assert(kCount % kAtOnce == 0 && kAtOnce % 4 == 0);
  static_assert(kPlan.mma.main_loops() == 1 && kPlan.consumers.k_groups == 1 &&
                kCount * kThreads == kPlan.mma.accumulators * kPlan.tile.m * kPlan.tile.n);

 public:
  DUALGEMM_DEVICE StreamParts(const Params& p, Consumer<Traits> consumer)
      : p_(p), thread_(consumer.thread()) {}

  // Returns whether this CTA finishes the tile. Then `sums` are those of all its parts.
  DUALGEMM_DEVICE bool gather(Sums<Traits>& sums, TilePart part) const {
    // The broadcast from lane 0 tells the compiler that these values are the same in all lanes of a warp.
    part.count = __shfl_sync(0xffffffff, part.count, 0);
    part.index = __shfl_sync(0xffffffff, part.index, 0);
    if (part.count == 1) return true;
    uint32_t* const there = p_.parts_there + part.shared;
    const auto others = static_cast<uint32_t>(part.count - 1);
    const bool first = thread_ == 0;
    float(&d)[kCount] = sums.of_loop[0].d;
    // The first thread acquires. The barrier in meet() orders that before what all threads read below.
    bool last = meet(ptx::ld_acquire_gpu_global_u32_if(there, first) == others);
    if (!last) {
      leave(d, part);
      // This barrier orders the writes of all threads before the release of the first thread.
      ptx::barrier_sync(kMultiplyBarrier, kThreads);
      last = meet(ptx::atom_acq_rel_gpu_global_add_u32_if(there, 1, first) == others);
    }
    if (last) add(d, part);
    return last;
  }

 private:
  // Returns whether `value` is true in any thread. The broadcast from lane 0 tells the compiler that the
  // answer is the same in all lanes of a warp. So it keeps the state of the rings in uniform registers.
  DUALGEMM_DEVICE static bool meet(bool value) {
    const bool any = ptx::barrier_red_or(kMultiplyBarrier, kThreads, value);
    return __shfl_sync(0xffffffff, static_cast<int>(any), 0) != 0;
  }
  // Returns where this thread's first four sums of a part are. Its next four follow the first four of all
  // threads.
  DUALGEMM_DEVICE float* place(const TilePart& part, int index) const {
    const int cta = part.first_cta + index * part.cta_step;
    const int slot = static_cast<int>(kPartsOfCta) * cta + (index == 0 ? 1 : 0);
    return p_.part_sums + (int64_t{slot} * kCount * kThreads + 4 * thread_);
  }
  DUALGEMM_DEVICE void leave(const float (&d)[kCount], const TilePart& part) const {
    float* const to = place(part, part.index);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint32_t words[4] = {__float_as_uint(d[i]), __float_as_uint(d[i + 1]), __float_as_uint(d[i + 2]),
                                 __float_as_uint(d[i + 3])};
      ptx::st_global_v4_b32(to + i * kThreads, words);
    }
  }
  DUALGEMM_DEVICE void add(float (&d)[kCount], const TilePart& part) const {
#pragma unroll
    for (int first = 0; first < kCount; first += kAtOnce) {
      float total[kAtOnce] = {};
#pragma unroll 1
      for (int index = 0; index < part.count; ++index) {
        if (index == part.index) {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) total[i] += d[first + i];
          continue;
        }
        const float* const from = place(part, index) + first * kThreads;
#pragma unroll
        for (int i = 0; i < kAtOnce; i += 4) {
          uint32_t words[4];
          ptx::ld_global_v4_b32(words, from + i * kThreads);
#pragma unroll
          for (int j = 0; j < 4; ++j) total[i + j] += __uint_as_float(words[j]);
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) d[first + i] = total[i];
    }
  }

  const Params& p_;
  int thread_;
};

}  // namespace dualgemm::sm90
