// tmem_map.cuh -- the columns of tensor memory: the accumulators of both products and the scale factors. With
// one product there is no acc2, and no SFB2.
//
//   0          mma.columns  2 mma.columns                  tmem.scales                      tmem.used
//   | acc1[0]  | acc2[0]    | acc1[1], acc2[1] if doubled  | window 0 | window 1 | ...       |
//
// Two accumulator pairs of 2 x 128 columns overlap by 64, which leaves room for scale factors:
//
//   0          128        192        256        320                   448        512
//   | acc1[0]  | acc2[0]             |                                | windows  |
//                         | acc1[1]             | acc2[1]             |
//
// acc2[0] columns 64..127 are acc1[1] columns 0..63. With one product, acc1 has all 256 columns that acc1 and
// acc2 have in this drawing. The epilogue reads the shared columns first and then arrives on acc_empty, so
// that the mma of the next tile may start while the epilogue reads the rest (epilogue.cuh). The tile after
// the next uses the first pair again. By then all columns of that pair have been read, because the epilogue
// takes tiles in order.
//
// Scale factors are copied here before the mma that use them, into one of several windows. Where tensor
// memory is large enough, each scale stage has a window of its own, and its factors are resident: they stay
// until scale_empty. Elsewhere a window holds the factors of half a k-tile, and the windows are used in turn.
// Each atom, the factors of 128 rows and one step, takes four columns, those of A first. k is the mma step;
// SFB1 and SFB2 have one or two blocks of 128 rows each:
//
//   | SFA k0 | SFA k1 | ... | SFB1 k0 | SFB2 k0 | SFB1 k1 | SFB2 k1 | ...
//
// Four columns hold the factors of 128 rows: row r in column r / 32, lanes r % 32 + {0, 32, 64, 96}. The
// atoms of B of a step are neighbours, so a single mma of up to N = 256 reads them as eight columns.
//
// No document says that an mma has read its scale factors before a later copy overwrites them. So between the
// mma and that copy there is a wait for a commit that follows the mma. For windows used in turn the multiply
// role waits for window_free[w]. For resident factors the load roles wait for scale_empty[q] before they
// refill the stage, and the copy to tensor memory waits for that refill (scale_full[q]).
//
// In a pair of CTAs the tensor memory of each CTA has this map: the accumulators and the SFA of its own 128
// rows of A, and a copy of SFB1 and SFB2.
#pragma once

#include <cstdint>

#include "kernel/common/pipeline.cuh"
#include "kernel/sm100/plan.h"
#include "ptx/host_device.h"

namespace dualgemm::sm100 {

template <class Traits>
struct TmemMap {
  static constexpr Plan kPlan = Traits::kPlan;

  uint32_t base;  // what tcgen05.alloc returned

  DUALGEMM_HOST_DEVICE constexpr uint32_t acc1(int acc) const {
    return base + acc * (kPlan.tmem.acc_columns - kPlan.tmem.shared_columns);
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t acc2(int acc) const { return acc1(acc) + kPlan.mma.columns; }
  // `step` counts in the window.
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfa(int window, int step) const {
    return base + kPlan.tmem.scales + window * kPlan.tmem.window_columns + step * kSfColumns;
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfb(int window, int step, int product) const {
    return base + kPlan.tmem.scales + window * kPlan.tmem.window_columns +
           kPlan.tmem.window_steps * kSfColumns +
           (step * kPlan.mma.products + product) * kPlan.scales.sfb_blocks * kSfColumns;
  }
};

// This is the position of the mma (the producer) or of the epilogue (the consumer) in the accumulator pairs.
// Pairs that overlap have one barrier, whose phases alternate between them: the phase of parity 0 belongs to
// pair 0, that of parity 1 to pair 1. The epilogue waits for the phase of its own tile. The mma waits for the
// phase before, which ends when the epilogue has released the tile before. kFirstPhase is the parity of the
// first wait (pipeline.cuh): 1 for the producer, 0 for the consumer.
template <class Traits, uint32_t kFirstPhase>
struct AccState : PipelineState<Traits::kPlan.tmem.acc_barriers> {
  DUALGEMM_HOST_DEVICE constexpr int pair() const {
    return Traits::kPlan.tmem.overlapped() ? static_cast<int>(this->phase ^ kFirstPhase) : this->index;
  }
};
// The multiply role, which fills accumulators, starts as a producer, and the epilogue, which reads them, as a
// consumer (pipeline.cuh).
template <class Traits>
DUALGEMM_HOST_DEVICE constexpr auto acc_producer_start() {
  return AccState<Traits, 1>{producer_start<Traits::kPlan.tmem.acc_barriers>()};
}
template <class Traits>
DUALGEMM_HOST_DEVICE constexpr auto acc_consumer_start() {
  return AccState<Traits, 0>{consumer_start<Traits::kPlan.tmem.acc_barriers>()};
}

}  // namespace dualgemm::sm100
