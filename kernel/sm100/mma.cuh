// mma.cuh -- the multiply role: for every k-tile it copies the scale factors to tensor memory and issues the
// mma of both products, A * B1^T into acc1 and A * B2^T into acc2, or their transposes with swap A/B. With
// one product it issues only the first. The role is one warp, in a pair one warp of the leader, whose 2-SM
// mma work on the shared and tensor memory of both CTAs, at the same places. All copies and mma are
// asynchronous. A tcgen05.commit by the lane that issued them reports their completion, and elect.sync always
// elects the same lane.
#pragma once

#include "kernel/common/k_loop.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm100/pair.cuh"
#include "kernel/sm100/shared_storage.cuh"
#include "kernel/sm100/tmem_map.cuh"
#include "ptx/descriptor.h"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"

namespace dualgemm::sm100 {

// Says where the operands and scale factors of one K step of 64 elements are, and where the products go.
struct MmaStep {
  uint64_t stage;           // descriptor of the stage of operands
  int step;                 // in the k-tile
  int window, window_step;  // of tensor memory, where the scale factors are (tmem_map.cuh)
  int acc;                  // pair of accumulators
  int sf_offset;  // columns: 2 (64 rows) where the rows on the N side begin in the middle of an atom, else 0
  bool accumulate;
};

// Names some steps of scale factors, on their way from a scale stage to a window of tensor memory.
struct ScaleSteps {
  uint64_t stage;           // descriptor of the scale stage
  int first;                // step in it
  int window, window_step;  // where the first one goes
};

// Copies `steps` steps of scale factors: for each step one atom of SFA, and one atom of SFB1 and one of SFB2
// for each of their blocks of 128 rows. ScaleStage (common/rings.cuh) says where they lie in a stage.
template <class Traits>
DUALGEMM_DEVICE void copy_scales(TmemMap<Traits> tmem, const ScaleSteps& from, int steps) {
  constexpr Plan kPlan = Traits::kPlan;
  const auto copy = [&from](uint32_t columns, int offset, int atom) {
    ptx::tcgen05_cp_32x128b_warpx4<Cta<Traits>::kGroup>(
        columns, ptx::advance(from.stage, static_cast<uint32_t>(offset + atom * kSfAtomBytes)));
  };
  for (int i = 0; i < steps; ++i) {
    copy(tmem.sfa(from.window, from.window_step + i), 0, from.first + i);
#pragma unroll
    for (int product = 0; product < kPlan.mma.products; ++product)
#pragma unroll
      for (int block = 0; block < kPlan.scales.sfb_blocks; ++block)
        copy(tmem.sfb(from.window, from.window_step + i, product) + block * kSfColumns,
             kPlan.scales.sfa_bytes + product * kPlan.scales.sfb_bytes,
             block * kPlan.scales.steps + from.first + i);
  }
}

// Copies the scale factors of each step to tensor memory just before its mma.
struct CopyPerStep {
  template <class MainLoop>
  DUALGEMM_DEVICE void begin_k_tile(MainLoop& main, int32_t i) {
    if (main.loop.in_scale_stage(i) == 0)
      wait(main.smem.rings.scale_full[main.q.index], main.q.phase);  // the bytes of TMA have landed
  }
  // One thread calls this. A copy to tensor memory and a later mma of this thread execute in the order of
  // issue, so no fence is needed.
  template <class MainLoop>
  DUALGEMM_DEVICE void begin_step(const MainLoop& main, const ScaleSteps& step) {
    copy_scales(main.tmem, step, 1);
  }
};

// Issues the mma of one K step, for all products. A step is 32 bytes of a 128-byte row; the swizzle depends
// on higher address bits only, so moving the start address is all it takes.
template <class Traits>
struct AllProducts {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr uint32_t kInstruction = ptx::mxf4nvf4_instruction_descriptor(kPlan.mma.m, kPlan.mma.n);
  // The second mma of a step takes its A from the collector. Options::keep_a (sm100/plan.h) says which order
  // of the two mma this needs, and why we rely on it.
  static constexpr auto kFirst = kPlan.mma.keep_a ? ptx::Collector::kFill : ptx::Collector::kDefault;
  static constexpr auto kSecond = kPlan.mma.keep_a ? ptx::Collector::kLastUse : ptx::Collector::kDefault;

  DUALGEMM_DEVICE static void issue(TmemMap<Traits> tmem, const MmaStep& x, KTile) {
    constexpr int kGroup = kPlan.mma.cta_group;
    const auto operand = [&x](int offset) { return ptx::advance(x.stage, offset + x.step * (kMmaK / 2)); };
    const uint64_t a = operand(0), b1 = operand(kPlan.operands.a_bytes);
    const uint32_t sfa = tmem.sfa(x.window, x.window_step), sfb1 = tmem.sfb(x.window, x.window_step, 0);
    if constexpr (kPlan.mma.products == 1 && kPlan.mma.swap_ab) {
      ptx::tcgen05_mma_mxf4nvf4_block16<kGroup>(tmem.acc1(x.acc), b1, a, kInstruction, sfb1,
                                                sfa + x.sf_offset, x.accumulate);
    } else if constexpr (kPlan.mma.per_step == 1) {
      // If this mma computes two products, B2 follows B1, acc2 follows acc1, SFB2 follows SFB1, and sf_offset
      // is 0.
      ptx::tcgen05_mma_mxf4nvf4_block16<kGroup>(tmem.acc1(x.acc), a, b1, kInstruction, sfa,
                                                sfb1 + x.sf_offset, x.accumulate);
    } else {
      const uint64_t b2 = operand(kPlan.operands.a_bytes + kPlan.operands.b_box_bytes);
      const uint32_t sfb2 = tmem.sfb(x.window, x.window_step, 1);
      if constexpr (kPlan.mma.swap_ab) {
        ptx::tcgen05_mma_mxf4nvf4_block16<kGroup>(tmem.acc1(x.acc), b1, a, kInstruction, sfb1,
                                                  sfa + x.sf_offset, x.accumulate);
        ptx::tcgen05_mma_mxf4nvf4_block16<kGroup>(tmem.acc2(x.acc), b2, a, kInstruction, sfb2,
                                                  sfa + x.sf_offset, x.accumulate);
      } else {
        ptx::tcgen05_mma_mxf4nvf4_block16<kGroup, kFirst>(tmem.acc1(x.acc), a, b1, kInstruction, sfa,
                                                          sfb1 + x.sf_offset, x.accumulate);
        ptx::tcgen05_mma_mxf4nvf4_block16<kGroup, kSecond>(tmem.acc2(x.acc), a, b2, kInstruction, sfa,
                                                           sfb2 + x.sf_offset, x.accumulate);
      }
    }
  }
};

// Runs the main loop of a tile, and holds the positions of the multiply role in the rings and windows.
template <class Traits>
struct MainLoop {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr bool kResident = kPlan.tmem.resident_scales;

  SharedStorage<Traits>& smem;
  Cta<Traits> cta;
  TmemMap<Traits> tmem;
  uint64_t stages, scale_stages;  // descriptors of the first stage of each ring
  typename Traits::KLoop loop;
  int32_t k_elements;
  typename Traits::ScaleCopies copies{};
  // The next stage, scale stage and window.
  PipelineState<kPlan.operands.stages> s = consumer_start<kPlan.operands.stages>();
  PipelineState<kPlan.scales.stages> q = consumer_start<kPlan.scales.stages>();
  // The position in the windows starts as a producer's: this role fills them, and waits until its own commit
  // has freed them.
  PipelineState<kPlan.tmem.windows> w = producer_start<kPlan.tmem.windows>();

  DUALGEMM_DEVICE MainLoop(const Params& p, SharedStorage<Traits>& smem_, Cta<Traits> cta_)
      : smem(smem_),
        cta(cta_),
        tmem{smem_.tmem_base},
        stages(ptx::operand_descriptor(ptx::smem_u32(&smem_.rings.stage[0]))),
        scale_stages(ptx::scale_descriptor(ptx::smem_u32(&smem_.rings.scale_stage[0]))),
        loop(p.k_tiles, cta_.slice),
        k_elements(p.k) {}

  // Multiplies the k-tile at i, into accumulator pair `acc`.
  DUALGEMM_DEVICE void multiply(int32_t i, int acc, int sf_offset) {
    const auto k = loop[i];
    // The last k-tile may hold fewer steps. Elements beyond K inside a step are zero; steps that lie wholly
    // beyond K are skipped.
    const int steps = (k_elements - k.index * kPlan.tile.k + kMmaK - 1) / kMmaK;
    copies.begin_k_tile(*this, i);
    wait(smem.rings.full[s.index], s.phase);
    ptx::tcgen05_fence_after_thread_sync();  // the bytes of TMA come before the copies and mma below

    constexpr int kSpan = kResident ? kPlan.mma.steps : kPlan.tmem.window_steps;  // steps between two waits
#pragma unroll
    for (int first = 0; first < kPlan.mma.steps; first += kSpan) {
      if (first >= steps) break;
      if constexpr (!kResident) {
        wait(smem.window_free[w.index], w.phase);  // the mma that read this window come before the copies
        ptx::tcgen05_fence_after_thread_sync();
      }
      if (ptx::elect_sync()) {
#pragma unroll
        for (int step = first; step < first + kSpan; ++step) {
          if (step >= steps) break;
          issue(i, step, kResident ? step : step - first, {.acc = acc, .sf_offset = sf_offset});
        }
        if constexpr (!kResident) ptx::tcgen05_commit<kPlan.mma.cta_group>(&smem.window_free[w.index]);
      }
      __syncwarp();
      ++w;
    }
    give_back(i);
  }

 private:
  // All steps of a k-tile add to one pair of accumulators and take one sf_offset (MmaStep).
  struct Target {
    int acc, sf_offset;
  };

  // Issues the copies to tensor memory and the mma of one step. One thread calls this. Mma on one accumulator
  // execute in the order of issue, so that the steps add up without a wait between them.
  DUALGEMM_DEVICE void issue(int32_t i, int step, int step_of_window, Target to) {
    const int stage_step = loop.in_scale_stage(i) * kPlan.mma.steps + step;
    const int window = kResident ? q.index : w.index, window_step = kResident ? stage_step : step_of_window;
    copies.begin_step(*this, {.stage = ptx::advance(scale_stages, q.index * kPlan.scales.stage_bytes),
                              .first = stage_step,
                              .window = window,
                              .window_step = window_step});
    Traits::Multiply::issue(tmem,
                            {.stage = ptx::advance(stages, s.index * kPlan.operands.stage_bytes),
                             .step = step,
                             .window = window,
                             .window_step = window_step,
                             .acc = to.acc,
                             .sf_offset = to.sf_offset,
                             .accumulate = loop.accumulates(i) || step > 0},
                            loop[i]);
  }

  // The stage of k-tile i becomes free when all mma issued so far have completed. If i is the last k-tile of
  // a scale stage, the scale stage becomes free, too, and with resident scale factors also its window.
  DUALGEMM_DEVICE void give_back(int32_t i) {
    const bool ends_scale_stage = loop.ends_scale_stage(i);
    if (ptx::elect_sync()) {
      commit(cta, smem.rings.empty[s.index]);
      if (ends_scale_stage) commit(cta, smem.rings.scale_empty[q.index]);
    }
    __syncwarp();
    if (ends_scale_stage) ++q;
    ++s;
  }
};

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void mma_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                              Scheduler tiles) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr auto kWaitForReaders = Cta<Traits>::kPaired ? wait_for_cluster : wait;
  MainLoop<Traits> main(p, smem, cta);
  // The first wait for each acc_empty is for parity 1, which a new barrier counts as complete: it passes.
  auto acc = acc_producer_start<Traits>();
  for (Tile tile; tiles.next(tile); ++acc) {
    const int sf_offset = kPlan.mma.columns % 128 == 64 ? 2 * ((kPlan.mma.swap_ab ? tile.m : tile.n) & 1) : 0;
    kWaitForReaders(smem.acc_empty[acc.index], acc.phase);
    ptx::tcgen05_fence_after_thread_sync();  // the epilogue's reads of the accumulators come before the mma
#pragma unroll 1
    for (int32_t i = 0; i < main.loop.length(); ++i) main.multiply(i, acc.pair(), sf_offset);
    if (ptx::elect_sync()) commit(cta, smem.acc_full[acc.index]);
    __syncwarp();
  }
  if constexpr (!kPlan.tmem.resident_scales) drain(smem.window_free, main.w);
  // With split-K nobody arrives on acc_empty: there is one tile, and no mma after it.
  if constexpr (kPlan.tile.split_k == 1) drain<kWaitForReaders>(smem.acc_empty, acc);
}

}  // namespace dualgemm::sm100
