// tmem_map.cuh -- the columns of tensor memory: the accumulators of both products and the scale factors.
//
//   0          kColumns   2 kColumns                     kScales                           kUsed
//   | acc1[0]  | acc2[0]  | acc1[1], acc2[1] if doubled  | window 0 | window 1 | ...      |
//
// Two pairs of 128 columns overlap by 64, which leaves room for scale factors:
//
//   0          128        192        256        320                   448        512
//   | acc1[0]  | acc2[0]             |                                | windows  |
//                         | acc1[1]             | acc2[1]             |
//
// acc2[0] columns 64..127 are acc1[1] columns 0..63. The epilogue reads them first and lets the mma of the
// next tile go on from there (epilogue.cuh).
//
// A window holds the scale factors of a slot of the ring, or of half a k-tile: four columns for each atom,
// the atoms of A first. k is the mma step, of SFB1 and SFB2 one or two blocks of 128 rows:
//   | SFA k0 | SFA k1 | ... | SFB1 k0 | SFB2 k0 | SFB1 k1 | SFB2 k1 | ...
//
// Four columns hold the factors of 128 rows: row r in column r / 32, lanes r % 32 + {0, 32, 64, 96}. The
// atoms of B of a step are neighbours, so the single mma of N = 256 reads them as eight columns. The order of
// a mma before a later copy over its scale factors is not documented: scale_empty[q], committed after the
// mma, or window_free[w] provides it. In a pair each CTA has this map: the accumulators and the SFA of its
// own 128 rows of A, and a copy of SFB1 and SFB2.
#pragma once

#include <cstdint>

#include "kernel/config.h"
#include "ptx/descriptor.h"

namespace dualgemm {

template <class Cfg>
struct TmemMap {
  static constexpr int kAtomColumns = Cfg::kSfColumns;
  static constexpr int kScales = Cfg::kAllAccColumns;
  static constexpr int kUsed = kScales + Cfg::kWindows * Cfg::kWindowColumns;
  static constexpr int kAllocColumns = kUsed <= 128 ? 128 : kUsed <= 256 ? 256 : 512;  // a power of two
  static_assert(kUsed <= kTmemColumns, "accumulators and scale factors fit in tensor memory");
  static_assert(kScales % kAtomColumns == 0, "tcgen05.cp writes to multiples of four columns");

  uint32_t base;  // what tcgen05.alloc returned

  DUALGEMM_HOST_DEVICE constexpr uint32_t acc1(int acc) const {
    return base + acc * (Cfg::kAccColumns - Cfg::kSharedColumns);
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t acc2(int acc) const { return acc1(acc) + Cfg::kColumns; }
  // `step` counts in the window.
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfa(int window, int step) const {
    return base + kScales + window * Cfg::kWindowColumns + step * kAtomColumns;
  }
  DUALGEMM_HOST_DEVICE constexpr uint32_t sfb(int window, int step, int product) const {
    return base + kScales + window * Cfg::kWindowColumns + Cfg::kWindowSteps * kAtomColumns +
           (step * Cfg::kPassProducts + product) * Cfg::kSfbBlocks * kAtomColumns;
  }
};

}  // namespace dualgemm
