// multiply.cuh -- the multiplication of one tile by a warpgroup. It computes D = B * A^T with 64 rows, which
// are gate and up of 32 columns of C, for the tile's rows of A.
//
//   of each warp:   rows 0-7   rows of B1, eight neighbours        D: gate of eight columns of C
//                   rows 8-15  the same rows of B2                 D: up of the same
//
// So a lane has gate and up of the same elements of C, and one wgmma computes both products. Its operand of
// B1 and B2 comes from registers: a lane loads its part of a row of B1 and of B2, and expands it
// (weights.cuh). While one group of four wgmma is under way, the fragments of the next are
// expanded in other registers. Where a k-tile has only one of B1 and B2 (with one product, and in
// bench/ablation), rows 8-15 are the next eight rows of the same matrix. Then a lane has two columns of one
// product, and a tile that needs both products runs through K twice.
//
//   load words and factors   expand panel 0   wgmma x 4 ---------------.
//                                             expand panel 1           '-- done   wgmma x 4 ---- ...
//                                                                                 expand ...
#pragma once

#include <type_traits>

#include "kernel/common/cta.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/half_math.cuh"
#include "kernel/sm90/ring_of_a.cuh"
#include "kernel/sm90/roles.cuh"
#include "kernel/sm90/shared_storage.cuh"
#include "kernel/sm90/weights.cuh"

namespace dualgemm::sm90 {

// The accumulators of a lane for the first kRows rows of the tile: [4 i + j] is row 8 i + r + j, where r is
// Consumer::first_row(): for j = 0, 1 gate, for j = 2, 3 up of the same two rows. With one product, j = 2, 3
// are the same two rows in the second column of the lane.
template <class Traits, int kRows = Traits::kPlan.tile.m>
struct Accumulators {
  static constexpr int kCount = kWgmmaM * kRows / kWarpgroup;
  float d[kCount];

  DUALGEMM_DEVICE void clear() {
#pragma unroll
    for (float& x : d) x = 0.0f;
    defined_here();  // each in a register of its own, before the fence of the first wgmma
  }
  // Nothing tells the compiler that a wait for wgmma defines their registers; these empty statements keep
  // the uses of them below it.
  DUALGEMM_DEVICE void defined_here() {
#pragma unroll
    for (float& x : d) asm volatile("" : "+f"(x)::"memory");
  }
};

// Holds what a lane has of a tile: the accumulators of each run through K.
template <class Traits, int kRows = Traits::kPlan.tile.m>
struct Sums {
  static constexpr MmaPlan kPlan = Traits::kPlan.mma;
  static constexpr int kColumns = 2 / kPlan.products;  // of a lane, eight apart
  Accumulators<Traits, kRows> of_loop[kPlan.main_loops()];

  // Return gate and up of the same element of C. `element` is 4 i + j of the accumulators above, with j = 0
  // or 1, and `column` says which of the columns of the lane. With one product there is no up.
  DUALGEMM_DEVICE float gate(int element, int column) const { return of_loop[0].d[element + 2 * column]; }
  DUALGEMM_DEVICE float up(int element, int column) const {
    static_assert(kPlan.accumulators == 2);
    if constexpr (kPlan.products == 2) return of_loop[0].d[element + 2];
    else return of_loop[1].d[element + 2 * column];
  }
};

// The powers of two that rows of MXFP4 weights are multiplied with, for the two rows of a lane. NVFP4 has
// none.
template <class Traits, bool kThere = Traits::kPlan.mxfp4_b()>
class RowPowers {
 public:
  DUALGEMM_DEVICE RowPowers(const Params&, Consumer<Traits>, const Tile&) {}
  template <int kRows>
  DUALGEMM_DEVICE void apply(Accumulators<Traits, kRows>&) const {}
};
template <class Traits>
class RowPowers<Traits, true> {
  using Rows = LaneRows<Traits>;

 public:
  DUALGEMM_DEVICE RowPowers(const Params& p, Consumer<Traits> consumer, const Tile& tile) {
    const Rows rows(consumer, tile);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int16_t* const exponents = Rows::product(i) == 0 ? p.b1_row_exponent : p.b2_row_exponent;
      const int row = tile.n * Traits::kPlan.tile.n + rows.row[i];
      exponent_[i] =
          exponents && row < p.n ? exponents[tile.problem * p.b_row_exponent_stride + row] : int16_t{0};
    }
  }
  template <int kRows>
  DUALGEMM_DEVICE void apply(Accumulators<Traits, kRows>& sums) const {
    const float power[2] = {scalbnf(1.0f, exponent_[0]), scalbnf(1.0f, exponent_[1])};
#pragma unroll
    for (int i = 0; i < sums.kCount; ++i) sums.d[i] *= power[i / 2 % 2];
  }

 private:
  int exponent_[2];
};

template <class Traits>
class Multiplier {
  using Math = typename Traits::Math;
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kLoops = kPlan.mma.main_loops();            // that `loop` below goes through
  static constexpr int kOwnHalves = 2 / kPlan.consumers.k_groups;  // of each k-tile
  using A = std::conditional_t<(kPlan.a16.stages > 0), AInPanels<Traits>, AInStages<Traits>>;
  using Weights = std::conditional_t<kPlan.mxfp4_b(), Mxfp4Weights<Traits>, Nvfp4Weights<Traits>>;
  static constexpr int kPanels = Weights::kPanels;  // of a half
  static constexpr int kGroups = Weights::kGroups, kGroupSteps = kPanelSteps / kGroups;
  static_assert(
      kGroups == 1 || kPlan.a16.stages == 0,
      "where A comes by panels, lanes converge before the first group of a panel alone, and have to "
      "have loaded all weights of the stage by then");

 public:
  DUALGEMM_DEVICE Multiplier(SharedStorage<Traits>& smem, Consumer<Traits> consumer)
      : smem_(smem), consumer_(consumer), a_(smem, consumer.lane) {}

  // Leaves the sums of one run through K, of this warpgroup's halves, in `sums`.
  template <int kRows>
  DUALGEMM_DEVICE void multiply(Accumulators<Traits, kRows>& sums, const Tile& tile,
                                const typename Traits::KLoop& loop) {
    Weights weights(smem_, consumer_, tile);
    sums.clear();
#pragma unroll 1
    for (int32_t i = 0; i < loop.length() / kLoops; ++i, ++s_) {
      const Stage<Traits>& stage = smem_.rings.stage[s_.index];
      wait(smem_.rings.full[s_.index], s_.phase);
      a_.enter(s_);
      weights.enter(stage);
#pragma unroll
      for (int own = 0; own < kOwnHalves; ++own) {
        const int half = kOwnHalves == 2 ? own : consumer_.k_group();
        weights.enter_half(stage, half);
#pragma unroll
        for (int panel = 0; panel < kPanels; ++panel) {
          const PanelOfPart at{.first = own == 0 && panel == 0,
                               .last = own == kOwnHalves - 1 && panel == kPanels - 1,
                               .stage_before = i > 0};
          uint64_t descriptor = 0;
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const auto fragments = weights.fragments(stage, half, panel, group);
            if (group == 0) descriptor = a_.descriptor(s_, half * kPanels + panel, at);
            multiply_group(sums, fragments, ptx::advance(descriptor, group * kGroupSteps * kWgmmaKBytes));
            // Now the group of wgmma before this one has completed. The registers of its fragments may be
            // written again, and what it was the last to read in shared memory may be freed.
            ptx::wgmma_wait_group<1>();
          }
          a_.release_before(s_, at);
        }
      }
    }
    ptx::wgmma_wait_group<0>();
    sums.defined_here();
    __syncwarp();  // all lanes have loaded what they need of the last stage
    a_.release_last(loop.length() > 0);
  }

 private:
  template <int kRows>
  DUALGEMM_DEVICE static void multiply_group(Accumulators<Traits, kRows>& sums,
                                             const Fragments<kGroupSteps>& fragments, uint64_t descriptor) {
    ptx::wgmma_fence();  // the registers above are written before the wgmma read them
#pragma unroll
    for (int step = 0; step < kGroupSteps; ++step)
      Math::wgmma(sums.d, fragments.of_step[step], ptx::advance(descriptor, step * kWgmmaKBytes));
    ptx::wgmma_commit_group();
  }

  SharedStorage<Traits>& smem_;
  Consumer<Traits> consumer_;
  PipelineState<Rings<Traits>::kStages> s_ = consumer_start<Rings<Traits>::kStages>();
  A a_;
};

}  // namespace dualgemm::sm90
