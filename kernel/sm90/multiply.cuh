// multiply.cuh -- the multiplication of one tile by a warpgroup: D = B * A^T of 64 rows, gate and up of 32
// columns of C, over the tile's rows of A.
//
//   of each warp:   rows 0-7   rows of B1, eight neighbours        D: gate of eight columns of C
//                   rows 8-15  the same rows of B2                 D: up of the same
//
// So a lane has gate and up of the same elements of C, and one wgmma computes both products. Its operand B1,
// B2 comes from registers: a lane loads 16 bytes of a row of each, 32 elements of K, and expands them
// (expand.cuh). While one group of four wgmma is under way, the fragments of the next are expanded in other
// registers.
//
//   load words and factors   expand panel 0   wgmma x 4 ---------------.
//                                             expand panel 1           '-- done   wgmma x 4 ---- ...
//                                                                                 expand ...
#pragma once

#include "kernel/common/cta.cuh"
#include "kernel/common/wait.cuh"
#include "kernel/params.h"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/half_math.cuh"
#include "kernel/sm90/roles.cuh"
#include "kernel/sm90/shared_storage.cuh"
#include "ptx/descriptor.h"

namespace dualgemm::sm90 {

// The accumulators of a lane: [4 i + j] is row 8 i + first_row() + j of the tile for j = 0, 1, gate; for j =
// 2, 3 up of the same two.
template <class Traits>
struct Accumulators {
  static constexpr int kCount = kWgmmaM * Traits::kPlan.tile.m / kWarpgroup;
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

// The registers of the four wgmma of a panel.
struct Fragments {
  uint32_t of_step[kPanelSteps][4];
};

// A row's 16 bytes of one half.
struct Words {
  uint32_t word[kWords];
};

template <class Traits>
class Multiplier {
  using Math = typename Traits::Math;
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kGroups = kPlan.consumers.k_groups;
  static constexpr int kOwnHalves = kGroups == 1 ? 2 : 1;              // of each k-tile that is its own
  static constexpr int kTileGroups = kPlan.consumers.tile_groups();    // which take k-tiles in turn
  static constexpr int kStagePanels = ExpandedStage<Traits>::kPanels;  // of A

 public:
  DUALGEMM_DEVICE Multiplier(SharedStorage<Traits>& smem, Consumer<Traits> consumer)
      : smem_(smem), consumer_(consumer) {
    for (int i = 0; i < half_of_group(); ++i) ++e_;
  }

  // Leaves the sums of all k-tiles of `loop`, of this warpgroup's halves, in `sums`.
  DUALGEMM_DEVICE void multiply(Accumulators<Traits>& sums, const Tile& tile,
                                const typename Traits::KLoop& loop) {
    const int column = consumer_.column();
    const int factor_offset = consumer_.lane % 4 * kSfAtomBytes +
                              sf_offset_in_atom(tile.n * kPlan.tile.n % kSfAtomRows + column, 0);
    const bool first_lane = consumer_.lane == 0;
    const int first_tile = consumer_.k_group() / 2;
    int previous = e_.index;  // the stage of A that the last group of wgmma reads
    sums.clear();
#pragma unroll 1
    for (int32_t i = 0; i < loop.length(); ++i, ++s_, ++q_) {
      if (kTileGroups > 1 && i % kTileGroups != first_tile) {
        pass_by(first_lane);
        continue;
      }
      wait(smem_.rings.full[s_.index], s_.phase);
      wait(smem_.rings.scale_full[q_.index], q_.phase);
      const Factors factors[2] = {load_factors(0, factor_offset), load_factors(1, factor_offset)};
#pragma unroll
      for (int own = 0; own < kOwnHalves; ++own) {
        const int half = kGroups == 1 ? own : half_of_group();
        const Words words[2] = {load_words(0, column, half), load_words(1, column, half)};
#pragma unroll
        for (int panel = 0; panel < kPanels; ++panel) {
          const bool first_of_stage = panel % kStagePanels == 0;
          if (first_of_stage) wait(smem_.expanded_full[e_.index], e_.phase);
          // All lanes have loaded what they need of this k-tile: the wait above brought them together.
          if (panel == 0 && own == kOwnHalves - 1) {
            ptx::mbarrier_arrive_if(&smem_.rings.empty[s_.index], first_lane);
            ptx::mbarrier_arrive_if(&smem_.rings.scale_empty[q_.index], first_lane);
          }
          multiply_panel(sums, expand(words, factors, half, panel),
                         smem_.expanded[e_.index].panel[panel % kStagePanels]);
          // The group before this one is done: its registers may be written again, and with the first
          // panel of a stage the stage that it read.
          ptx::wgmma_wait_group<1>();
          if (first_of_stage)
            ptx::mbarrier_arrive_if(&smem_.expanded_empty[previous],
                                    first_lane && (i >= kTileGroups || own > 0 || panel > 0));
          if (panel % kStagePanels == kStagePanels - 1) {
            previous = e_.index;
            advance();
          }
        }
      }
    }
    ptx::wgmma_wait_group<0>();
    sums.defined_here();
    ptx::mbarrier_arrive_if(&smem_.expanded_empty[previous], first_lane && loop.length() > first_tile);
  }

 private:
  // A k-tile of other groups. Which stage it has depends on all tiles before it, so that every group sees
  // each phase of every barrier: a wait tells a phase from the next, not from the one after that.
  DUALGEMM_DEVICE void pass_by(bool first_lane) {
    wait(smem_.rings.full[s_.index], s_.phase);
    wait(smem_.rings.scale_full[q_.index], q_.phase);
    wait(smem_.expanded_full[e_.index], e_.phase);
    ptx::mbarrier_arrive_if(&smem_.rings.empty[s_.index], first_lane);
    ptx::mbarrier_arrive_if(&smem_.rings.scale_empty[q_.index], first_lane);
    ptx::mbarrier_arrive_if(&smem_.expanded_empty[e_.index], first_lane);
    advance();
  }
  DUALGEMM_DEVICE Factors load_factors(int product, int offset) const {
    return {*reinterpret_cast<const uint32_t*>(smem_.rings.scale_stage[q_.index].sfb[product] + offset)};
  }
  DUALGEMM_DEVICE Words load_words(int product, int row, int half) const {
    const uint4 x = *reinterpret_cast<const uint4*>(smem_.rings.stage[s_.index].b[product] +
                                                    operand_offset(row, consumer_.lane % 4, half));
    return {{x.x, x.y, x.z, x.w}};
  }

  // Rows 0-7 of the warp's fragment are of B1, rows 8-15 of B2: registers 0 and 2, and 1 and 3.
  DUALGEMM_DEVICE static Fragments expand(const Words (&words)[2], const Factors (&factors)[2], int half,
                                          int panel) {
    const uint32_t gate_factor = factors[0].template of<Math>(half, panel),
                   up_factor = factors[1].template of<Math>(half, panel);
    Fragments x;
#pragma unroll
    for (int i = 0; i < kPanelWords; ++i) {
      const Pairs gate = expand_word<Math>(words[0].word[panel * kPanelWords + i], gate_factor),
                  up = expand_word<Math>(words[1].word[panel * kPanelWords + i], up_factor);
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        uint32_t(&registers)[4] = x.of_step[2 * i + step];
        registers[0] = gate.pair[step][0];
        registers[1] = up.pair[step][0];
        registers[2] = gate.pair[step][1];
        registers[3] = up.pair[step][1];
      }
    }
    return x;
  }

  DUALGEMM_DEVICE static void multiply_panel(Accumulators<Traits>& sums, const Fragments& fragments,
                                             const uint8_t* panel) {
    const uint64_t descriptor = ptx::wgmma_descriptor(ptx::smem_u32(panel));
    ptx::wgmma_fence();  // the registers above are written before the wgmma read them
#pragma unroll
    for (int step = 0; step < kPanelSteps; ++step)
      Math::wgmma(sums.d, fragments.of_step[step], ptx::advance(descriptor, step * kWgmmaK * 2));
    ptx::wgmma_commit_group();
  }

  DUALGEMM_DEVICE int half_of_group() const { return consumer_.k_group() % 2; }
  // To the next stage of A that it looks at.
  DUALGEMM_DEVICE void advance() {
    ++e_;
    if (kGroups > 1) ++e_;
  }

  SharedStorage<Traits>& smem_;
  Consumer<Traits> consumer_;
  PipelineState<Rings<Traits>::kStages> s_ = consumer_start<Rings<Traits>::kStages>();
  PipelineState<Rings<Traits>::kScaleStages> q_ = consumer_start<Rings<Traits>::kScaleStages>();
  PipelineState<kPlan.expand.stages> e_ = consumer_start<kPlan.expand.stages>();
};

}  // namespace dualgemm::sm90
