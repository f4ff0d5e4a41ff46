// mma.cuh -- the multiply role: for every k-tile it copies the scale factors to tensor memory and issues the
// mma of both products, A * B1^T into acc1 and A * B2^T into acc2, or their transposes where the sides are
// swapped. One warp, of the leader in a pair: what its elected lane issues works on the shared and tensor
// memory of both CTAs, at the same places. All of it is asynchronous and is reported by tcgen05.commit, of
// the lane that issued it: elect.sync always elects the same.
#pragma once

#include "kernel/cta.cuh"
#include "kernel/load.cuh"
#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/tmem_map.cuh"
#include "kernel/wait.cuh"
#include "ptx/tcgen05_mem.cuh"

namespace dualgemm {

// `stage` and `slot` below are descriptors of a stage of operands and of a slot of scale factors; what lies
// in them is found by its offset (shared_storage.cuh).

// Copies the scale factors of `steps` K steps of 64, an atom for each block of 128 rows of A and each B, from
// `first` in a slot to `column_step` in a window.
template <class Cfg>
DUALGEMM_DEVICE void copy_scales(TmemMap<Cfg> tmem, uint64_t slot, int first, int window, int column_step,
                                 int steps) {
  const auto copy = [slot](uint32_t columns, int offset, int atom) {
    ptx::tcgen05_cp_32x128b_warpx4<Cfg::kCtaGroup>(
        columns, ptx::advance(slot, static_cast<uint32_t>(offset + atom * Cfg::kSfAtomBytes)));
  };
  for (int i = 0; i < steps; ++i) {
    copy(tmem.sfa(window, column_step + i), 0, first + i);
#pragma unroll
    for (int product = 0; product < Cfg::kPassProducts; ++product)
#pragma unroll
      for (int block = 0; block < Cfg::kSfbBlocks; ++block)
        copy(tmem.sfb(window, column_step + i, product) + block * Cfg::kSfColumns,
             Cfg::kSfaBytes + product * Cfg::kSfbBytes, block * Cfg::kSlotSteps + first + i);
  }
}

// The mma of one K step. A step is 32 bytes of a 128-byte row; the swizzle depends on higher address bits
// only, so moving the start address is all it takes. `part` is 2 columns (64 rows) where the rows on the N
// side begin in the middle of a block of scale factors.
template <class Cfg>
DUALGEMM_DEVICE void issue_mma(TmemMap<Cfg> tmem, uint64_t stage, int step, int window, int column_step,
                               int acc, int pass, int part, bool accumulate) {
  using ptx::Collector;
  constexpr uint32_t kInstruction = ptx::mxf4nvf4_instruction_descriptor(Cfg::kMmaM, Cfg::kMmaN);
  constexpr Collector kFirst = Cfg::kKeepA ? Collector::kFill : Collector::kUnsaid;
  constexpr Collector kSecond = Cfg::kKeepA ? Collector::kLastUse : Collector::kUnsaid;
  const auto operand = [stage, step](int offset) {
    return ptx::advance(stage, offset + step * (Cfg::kMmaK / 2));
  };
  const uint64_t a = operand(0), b1 = operand(Cfg::kABytes);
  const uint32_t sfa = tmem.sfa(window, column_step), sfb1 = tmem.sfb(window, column_step, 0);
  if constexpr (Cfg::kOneMma) {
    // B2 follows B1, acc2 follows acc1, SFB2 follows SFB1.
    ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup>(tmem.acc1(acc), a, b1, kInstruction, sfa, sfb1,
                                                      accumulate);
  } else if constexpr (Cfg::kPassProducts == 1) {
    ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup>(pass == 0 ? tmem.acc1(acc) : tmem.acc2(acc), a, b1,
                                                      kInstruction, sfa, sfb1 + part, accumulate);
  } else {
    const uint64_t b2 = operand(Cfg::kABytes + Cfg::kBBoxBytes);
    const uint32_t sfb2 = tmem.sfb(window, column_step, 1);
    if constexpr (Cfg::kSwap) {
      ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup>(tmem.acc1(acc), b1, a, kInstruction, sfb1, sfa + part,
                                                        accumulate);
      ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup>(tmem.acc2(acc), b2, a, kInstruction, sfb2, sfa + part,
                                                        accumulate);
    } else {
      ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup, kFirst>(tmem.acc1(acc), a, b1, kInstruction, sfa,
                                                                sfb1 + part, accumulate);
      ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup, kSecond>(tmem.acc2(acc), a, b2, kInstruction, sfa,
                                                                 sfb2 + part, accumulate);
    }
  }
}

template <class Cfg, class Scheduler>
DUALGEMM_DEVICE void mma_role(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, Scheduler tiles) {
  const TmemMap<Cfg> tmem{smem.tmem_base};
  constexpr auto kWaitForReaders = Cta<Cfg>::kPaired ? wait_for_cluster : wait;
  const uint64_t stages = ptx::operand_descriptor(ptx::smem_u32(&smem.stage[0])),
                 slots = ptx::scale_descriptor(ptx::smem_u32(&smem.slot[0]));
  const KWalk<Cfg> walk(p.k_tiles, cta.slice);
  auto s = consumer_start<Cfg::kStages>();
  auto q = consumer_start<Cfg::kScaleStages>();
  auto copied = q;  // slot of the next k-tile to copy, for kNextKTile
  auto w = producer_start<Cfg::kWindows>();
  auto a = producer_start<Cfg::kAccBarriers>();

  for (Tile tile; tiles.next(tile); ++a) {
    // Overlapping pairs take turns with the phase of their one barrier, which starts at 1 here.
    const int acc = Cfg::kOverlapped ? static_cast<int>(a.phase ^ 1) : a.index;
    const int part = Cfg::kColumns % 128 == 64 ? 2 * ((Cfg::kSwap ? tile.m : tile.n) & 1) : 0;
    // All scale factors of the k-tile at `i`, to the window of their slot.
    const auto copy_k_tile = [&](int32_t i) {
      const int in_slot = walk.in_slot(i);
      if (in_slot == 0) wait(smem.scale_full[copied.index], copied.phase);
      ptx::tcgen05_fence_after_thread_sync();  // the bytes of TMA come before the copies
      if (ptx::elect_sync())
        copy_scales(tmem, ptx::advance(slots, copied.index * Cfg::kSlotBytes), in_slot * Cfg::kMmasPerKTile,
                    copied.index, in_slot * Cfg::kMmasPerKTile, Cfg::kMmasPerKTile);
      __syncwarp();
      if (walk.ends_slot(i)) ++copied;
    };
    kWaitForReaders(smem.acc_empty[a.index], a.phase);
    ptx::tcgen05_fence_after_thread_sync();  // the epilogue's reads of the accumulators come before the mma
    if (Cfg::kScaleCopy == ScaleCopy::kNextKTile && walk.length() > 0) copy_k_tile(0);
#pragma unroll 1
    for (int32_t i = 0; i < walk.length(); ++i, ++s) {
      const KTile k = walk[i];
      const uint64_t stage = ptx::advance(stages, s.index * Cfg::kStageBytes);
      const int in_slot = walk.in_slot(i);
      // The last k-tile may hold fewer steps. What lies past K inside a step is zero; whole steps past it are
      // skipped.
      const int steps = (p.k - k.index * Cfg::kTileK + Cfg::kMmaK - 1) / Cfg::kMmaK;
      if constexpr (Cfg::kScaleCopy == ScaleCopy::kPerKTile) copy_k_tile(i);
      if (Cfg::kScaleCopy == ScaleCopy::kNextKTile && i + 1 < walk.length()) copy_k_tile(i + 1);
      if (Cfg::kScaleCopy == ScaleCopy::kPerStep && in_slot == 0) wait(smem.scale_full[q.index], q.phase);
      wait(smem.full[s.index], s.phase);
      ptx::tcgen05_fence_after_thread_sync();  // the bytes of TMA come before the copies and mma below

      constexpr int kSpan = Cfg::kSlotColumnsFit ? Cfg::kMmasPerKTile : Cfg::kWindowSteps;  // between waits
#pragma unroll
      for (int first = 0; first < Cfg::kMmasPerKTile; first += kSpan) {
        if (first >= steps) break;
        if constexpr (!Cfg::kSlotColumnsFit) {
          wait(smem.window_free[w.index], w.phase);  // the mma that read this window come before the copies
          ptx::tcgen05_fence_after_thread_sync();
        }
        const int window = Cfg::kSlotColumnsFit ? q.index : w.index;
        const int window_step = Cfg::kSlotColumnsFit ? in_slot * Cfg::kMmasPerKTile : 0;
        if (ptx::elect_sync()) {
#pragma unroll
          for (int j = 0; j < kSpan; ++j) {
            const int step = first + j, column_step = window_step + j;
            if (step >= steps) break;
            // A copy before a mma, and two mma on one accumulator, execute in the order of issue: no fence
            // between them.
            if constexpr (Cfg::kScaleCopy == ScaleCopy::kPerStep)
              copy_scales(tmem, ptx::advance(slots, q.index * Cfg::kSlotBytes),
                          in_slot * Cfg::kMmasPerKTile + step, window, column_step, 1);
            issue_mma(tmem, stage, step, window, column_step, acc, k.pass, part,
                      /*accumulate=*/walk.in_pass(i) > 0 || step > 0);
          }
          if constexpr (!Cfg::kSlotColumnsFit)
            ptx::tcgen05_commit<Cfg::kCtaGroup>(&smem.window_free[w.index]);  // to this thread itself
        }
        __syncwarp();
        ++w;
      }
      if (ptx::elect_sync()) {
        // Once the reads above are done: the stage is free, and the slot with the columns it was copied to.
        cta.commit(smem.empty[s.index]);
        if (walk.ends_slot(i)) cta.commit(smem.scale_empty[q.index]);
      }
      __syncwarp();
      if (walk.ends_slot(i)) ++q;
    }
    if (ptx::elect_sync()) cta.commit(smem.acc_full[a.index]);
    __syncwarp();
  }
  if constexpr (!Cfg::kSlotColumnsFit) drain(smem.window_free, w);
  // Split over K there is one tile, whose accumulators are read after every role has ended.
  if constexpr (Cfg::kSplitK == 1) drain<kWaitForReaders>(smem.acc_empty, a);
}

}  // namespace dualgemm
