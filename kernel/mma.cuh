// mma.cuh -- the multiply role: for every stage it copies the scale factors to tensor memory and issues the
// mma of both products, A * B1^T into acc1 and A * B2^T into acc2, or their transposes where the sides are
// swapped. One thread, of the leader in a pair: what it issues works on the shared and tensor memory of both
// CTAs, at the same places. All of it is asynchronous and is reported by tcgen05.commit.
#pragma once

#include "kernel/cta.cuh"
#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/tmem_map.cuh"
#include "kernel/wait.cuh"
#include "ptx/tcgen05_mem.cuh"

namespace dualgemm {

// The scale factors of one K step of 64: an atom of A and one of each B, from shared to tensor memory.
template <class Cfg>
DUALGEMM_DEVICE void copy_scales(TmemMap<Cfg> tmem, const Stage<Cfg>& stage, int s, int step) {
  const int offset = step * Cfg::kSfAtomBytes;
  const auto copy = [offset](uint32_t columns, const uint8_t* atoms) {
    ptx::tcgen05_cp_32x128b_warpx4<Cfg::kCtaGroup>(
        columns, ptx::advance(ptx::scale_descriptor(ptx::smem_u32(atoms)), offset));
  };
  copy(tmem.sfa(s, step), stage.sfa);
  copy(tmem.sfb1(s, step), stage.sfb1);
  copy(tmem.sfb2(s, step), stage.sfb2);
}

// Both products of one K step. A step is 32 bytes of a 128-byte row; the swizzle depends on higher address
// bits only, so moving the start address is all it takes. `half` is 2 columns (64 rows) where the operand on
// the N side is the upper half of its block of scale factors.
template <class Cfg>
DUALGEMM_DEVICE void issue_dual_mma(TmemMap<Cfg> tmem, const Stage<Cfg>& stage, int acc, int s, int step,
                                    int half, bool accumulate) {
  constexpr uint32_t kInstruction = ptx::mxf4nvf4_instruction_descriptor(Cfg::kMmaM, Cfg::kMmaN);
  const auto operand = [step](const uint8_t* rows) {
    return ptx::advance(ptx::operand_descriptor(ptx::smem_u32(rows)), step * (Cfg::kMmaK / 2));
  };
  const auto mma = [&](uint32_t d, uint64_t m_side, uint64_t n_side, uint32_t sf_m, uint32_t sf_n) {
    ptx::tcgen05_mma_mxf4nvf4_block16<Cfg::kCtaGroup>(d, m_side, n_side, kInstruction, sf_m, sf_n,
                                                      accumulate);
  };
  const uint64_t a = operand(stage.a), b1 = operand(stage.b[0]);
  const uint32_t sfa = tmem.sfa(s, step), sfb1 = tmem.sfb1(s, step), sfb2 = tmem.sfb2(s, step);
  if constexpr (Cfg::kOneMma) {
    mma(tmem.acc1(acc), a, b1, sfa, sfb1);  // B2 follows B1, acc2 follows acc1, SFB2 follows SFB1
  } else if constexpr (Cfg::kSwap) {
    mma(tmem.acc1(acc), b1, a, sfb1, sfa + half);
    mma(tmem.acc2(acc), operand(stage.b[1]), a, sfb2, sfa + half);
  } else {
    mma(tmem.acc1(acc), a, b1, sfa, sfb1 + half);
    mma(tmem.acc2(acc), a, operand(stage.b[1]), sfa, sfb2 + half);
  }
}

template <class Cfg>
DUALGEMM_DEVICE void mma_role(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, TileScheduler tiles) {
  const TmemMap<Cfg> tmem{smem.tmem_base};
  constexpr auto kWaitForReaders = Cta<Cfg>::kPaired ? wait_for_cluster : wait;
  const KRange k = k_range(p.k_tiles, cta.slice, Cfg::kSplitK);
  auto s = consumer_start<Cfg::kStages>();
  auto a = producer_start<Cfg::kAccStages>();
  for (Tile tile; tiles.next(tile); ++a) {
    const int half = Cfg::kColumns == 64 ? 2 * ((Cfg::kSwap ? tile.m : tile.n) & 1) : 0;
    kWaitForReaders(smem.acc_empty[a.index], a.phase);
    ptx::tcgen05_fence_after_thread_sync();  // the epilogue's reads of the accumulators come before the mma
#pragma unroll 1
    for (int k_tile = k.first; k_tile < k.end; ++k_tile, ++s) {
      const Stage<Cfg>& stage = smem.stage[s.index];
      // The last k-tile may hold fewer steps. What lies past K inside a step is zero; whole steps past it are
      // skipped.
      const int steps = (p.k - k_tile * Cfg::kTileK + Cfg::kMmaK - 1) / Cfg::kMmaK;
      wait(smem.full[s.index], s.phase);
      ptx::tcgen05_fence_after_thread_sync();  // the bytes of TMA come before the copies and mma below
#pragma unroll
      for (int step = 0; step < Cfg::kMmasPerKTile; ++step) {
        if (step >= steps) break;
        // A copy before a mma, and two mma on one accumulator, execute in the order of issue: no fence
        // between them.
        copy_scales(tmem, stage, s.index, step);
        issue_dual_mma(tmem, stage, a.index, s.index, step, half,
                       /*accumulate=*/k_tile > k.first || step > 0);
      }
      // Once the reads above are done: shared memory and scale-factor columns of the stage are free.
      cta.commit(smem.empty[s.index]);
    }
    cta.commit(smem.acc_full[a.index]);
  }
  // Split over K there is one tile, whose accumulators are read after every role has ended.
  if constexpr (Cfg::kSplitK == 1) drain<kWaitForReaders>(smem.acc_empty, a);
}

}  // namespace dualgemm
