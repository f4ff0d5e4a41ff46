// weights.cuh -- how a lane of the multiply role makes fragments of B1 and B2: the operands of a panel's four
// wgmma. Rows 0-7 of the warp's fragment are rows of B1. Rows 8-15 are the rows of B2 with the same numbers;
// or, where the k-tile has only one of B1 and B2 (with one product, and in bench/ablation), the next eight
// rows of that one. Each class below is a policy of Multiplier (multiply.cuh), for one format of weights:
//
//   kPanels       the panels of a half of a k-tile
//   kGroups       the groups of wgmma of a panel: fragments of two groups are in registers at once
//   enter         reads the factors of a stage
//   enter_half    reads what the panels of a half share
//   fragments     makes those of a group
#pragma once

#include "kernel/common/scheduler.cuh"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/mxfp4.cuh"
#include "kernel/sm90/roles.cuh"
#include "kernel/sm90/shared_storage.cuh"

namespace dualgemm::sm90 {

// A panel has four wgmma, with 32 bytes of each row of A.
inline constexpr int kPanelSteps = kBoxRowBytes / kWgmmaKBytes;

// Holds the registers of some wgmma.
template <int kSteps>
struct Fragments {
  uint32_t of_step[kSteps][4];
};

// The two rows of the weights that a lane expands: their numbers in the tile, and in the block of 128 rows of
// factors.
template <class Traits>
struct LaneRows {
  static constexpr Plan kPlan = Traits::kPlan;
  // kSecond is 1 where the second row is of B2; else it is eight rows further on.
  static constexpr int kSecond = kPlan.mma.products - 1, kFurther = kSecond == 1 ? 0 : 8;

  int row[2], block_row[2];

  DUALGEMM_DEVICE LaneRows(Consumer<Traits> consumer, const Tile& tile) {
    row[0] = consumer.column();
    row[1] = row[0] + kFurther;
    for (int i = 0; i < 2; ++i) block_row[i] = tile.n * kPlan.tile.n % kSfAtomRows + row[i];
  }
  // Returns the matrix of a row: B1 or B2.
  DUALGEMM_HOST_DEVICE static constexpr int product(int i) { return i * kSecond; }
};

// NVFP4, expanded to the type of A in the order of expand.cuh: a lane has 16 bytes of each row and half.
template <class Traits>
class Nvfp4Weights {
  using Math = typename Traits::Math;
  using Rows = LaneRows<Traits>;

 public:
  static constexpr int kPanels = sm90::kPanels, kGroups = 1;
  static_assert(kPanelSteps == 2 * kPanelWords && kPanels * kPanelWords == kWords);

  DUALGEMM_DEVICE Nvfp4Weights(const SharedStorage<Traits>&, Consumer<Traits> consumer, const Tile& tile)
      : rows_(consumer, tile), quad_(consumer.lane % 4) {}

  DUALGEMM_DEVICE void enter(const Stage<Traits>& stage) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      factors_[i] = {*reinterpret_cast<const uint32_t*>(stage.scales.sfb[Rows::product(i)] +
                                                        quad_ * kSfAtomBytes +
                                                        sf_offset_in_atom(rows_.block_row[i], 0))};
  }
  DUALGEMM_DEVICE void enter_half(const Stage<Traits>& stage, int half) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      words_[i] = *reinterpret_cast<const uint4*>(stage.b[Rows::product(i)] +
                                                  operand_offset(rows_.row[i], quad_, half));
  }
  DUALGEMM_DEVICE Fragments<kPanelSteps> fragments(const Stage<Traits>&, int half, int panel, int) const {
    const uint32_t factor[2] = {factors_[0].template of<Math>(half, panel),
                                factors_[1].template of<Math>(half, panel)};
    Fragments<kPanelSteps> x;
#pragma unroll
    for (int word = 0; word < kPanelWords; ++word)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Pairs pairs = expand_word<Math>(word_of(words_[i], panel * kPanelWords + word), factor[i]);
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          x.of_step[2 * word + step][i] = pairs.pair[step][0];
          x.of_step[2 * word + step][i + 2] = pairs.pair[step][1];
        }
      }
    return x;
  }

 private:
  DUALGEMM_DEVICE static uint32_t word_of(const uint4& x, int i) {
    return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
  }

  Rows rows_;
  int quad_;
  Factors factors_[2];
  uint4 words_[2];
};

// With four warpgroups a thread has too few registers for the fragments of two groups of four wgmma. A
// warpgroup that has one half of each k-tile takes it in two groups: with one, an iteration of the loop would
// write the registers that the wgmma of the iteration before may still read.
constexpr int groups_of_panel(const Plan& plan) {
  if (plan.registers.consume < 128) return plan.tile.m < 128 ? 2 : 4;
  return plan.consumers.k_groups == 2 ? 2 : 1;
}

// MXFP4, expanded to FP8 (mxfp4.cuh). A half of a k-tile is a panel, of four blocks, whose factors are the
// four bytes of a row in an atom.
template <class Traits>
class Mxfp4Weights {
  using Rows = LaneRows<Traits>;

 public:
  static constexpr int kPanels = 1, kGroups = groups_of_panel(Traits::kPlan);
  static_assert(kHalfK == kPanelSteps * kMxBlock);

  DUALGEMM_DEVICE Mxfp4Weights(const SharedStorage<Traits>& smem, Consumer<Traits> consumer, const Tile& tile)
      : magnitudes_(smem.magnitudes), rows_(consumer, tile), quad_(consumer.lane % 4) {}

  DUALGEMM_DEVICE void enter(const Stage<Traits>&) const {}
  DUALGEMM_DEVICE void enter_half(const Stage<Traits>& stage, int half) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      factors_[i] =
          *reinterpret_cast<const uint32_t*>(stage.scales.sfb[Rows::product(i)] + half * kSfAtomBytes +
                                             sf_offset_in_atom(rows_.block_row[i], 0));
  }
  DUALGEMM_DEVICE Fragments<kPanelSteps / kGroups> fragments(const Stage<Traits>& stage, int half, int,
                                                             int group) const {
    Fragments<kPanelSteps / kGroups> x;
#pragma unroll
    for (int step = 0; step < kPanelSteps / kGroups; ++step)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int block = group * (kPanelSteps / kGroups) + step;  // of the four of the half
        const Magnitudes magnitudes = magnitudes_.of_factor[factors_[i] >> 8 * block & 0xFF];
        // In the 128-byte swizzle, as operand_offset has it.
        const int row = rows_.row[i], column = half * kPanelSteps + block;
        const uint8_t* const codes =
            stage.b[Rows::product(i)] + row * kBoxRowBytes + (column ^ row % 8) * 16 + 2 * quad_;
        x.of_step[step][i] = expand_four(magnitudes, *reinterpret_cast<const uint16_t*>(codes));
        x.of_step[step][i + 2] = expand_four(magnitudes, *reinterpret_cast<const uint16_t*>(codes + 8));
      }
    return x;
  }

 private:
  const MagnitudeTable& magnitudes_;
  Rows rows_;
  int quad_;
  uint32_t factors_[2];
};

}  // namespace dualgemm::sm90
