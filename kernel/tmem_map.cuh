// tmem_map.cuh -- the columns of tensor memory: the accumulators of both products and the scale factors of
// every stage.
//
//   0          kColumns   2 kColumns                     kScales                        kUsed
//   | acc1[0]  | acc2[0]  | acc1[1], acc2[1] if doubled  | stage 0 | stage 1 | ...      |
//
//   A stage has four columns for each atom of scale factors; k is the mma step:
//   | SFA k0 | SFA k1 | SFA k2 | SFA k3 | SFB1 k0 | SFB2 k0 | SFB1 k1 | SFB2 k1 | ... | SFB2 k3 |
//
// Four columns hold the factors of 128 rows: row r in column r / 32, lanes r % 32 + {0, 32, 64, 96}. The two
// atoms of B of a step are neighbours, so the single mma of N = 256 reads them as eight columns. Stages have
// their own columns because the order of a mma before a later copy over its scale factors is not documented;
// empty[s] provides it. In a pair each CTA has this map: the accumulators and the SFA of its own 128 rows of
// A, and a copy of SFB1 and SFB2.
#pragma once

#include <cstdint>

#include "kernel/config.h"
#include "ptx/descriptor.h"

namespace dualgemm {

template <class Cfg>
struct TmemMap {
  static constexpr int kAtomColumns = Cfg::kSfColumns;
  static constexpr int kSfaColumns = Cfg::kMmasPerKTile * kAtomColumns;
  static constexpr int kStageColumns = Cfg::kStageColumns;  // SFA, SFB1, SFB2
  static constexpr int kScales = Cfg::kAccStages * Cfg::kAccColumns;
  static constexpr int kUsed = kScales + Cfg::kStages * kStageColumns;
  static constexpr int kAllocColumns = kUsed <= 128 ? 128 : kUsed <= 256 ? 256 : 512;  // a power of two
  static_assert(kUsed <= kTmemColumns, "accumulators and scale factors fit in tensor memory");
  static_assert(kScales % kAtomColumns == 0, "tcgen05.cp writes to multiples of four columns");

  uint32_t base;  // what tcgen05.alloc returned

  DUALGEMM_HOST_DEVICE constexpr uint32_t acc1(int acc) const { return base + acc * Cfg::kAccColumns; }
  DUALGEMM_HOST_DEVICE constexpr uint32_t acc2(int acc) const { return acc1(acc) + Cfg::kColumns; }
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfa(int stage, int step) const {
    return base + kScales + stage * kStageColumns + step * kAtomColumns;
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfb1(int stage, int step) const {
    return base + kScales + stage * kStageColumns + kSfaColumns + step * 2 * kAtomColumns;
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfb2(int stage, int step) const {
    return sfb1(stage, step) + kAtomColumns;
  }
};

}  // namespace dualgemm
