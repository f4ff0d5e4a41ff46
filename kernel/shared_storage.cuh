// shared_storage.cuh -- the shared memory of one CTA. Its size is the dynamic shared memory of a launch.
//
//   barrier          count                  arrives                         waits       meaning
//   full[s]          2, + kStageBytes tx    both load roles, TMA bytes      mma         stage s is filled
//   empty[s]         1                      tcgen05.commit of mma           loads       stage s was read
//   scale_full[q]    2, + kSlotBytes tx     both load roles, TMA bytes      mma         slot q is filled
//   scale_empty[q]   1                      tcgen05.commit of mma           loads       slot q was read
//   acc_full[a]      1                      tcgen05.commit of mma           epilogue    pair a is final
//   acc_empty[a]     8, by epilogue warp    a lane of each epilogue warp    mma         pair a was read
//   window_free[w]   1                      tcgen05.commit of mma           mma         window w was read
//
// full and scale_full: each load role arrives with the bytes of its own copies, so the phase ends when both
// have issued and all bytes have landed, in whichever order. scale_empty[q] is committed after the mma that
// read the slot: it frees the shared memory and also the columns of tensor memory to which the slot was
// copied, where it has its own; window_free[w] does where it passes through windows. Overlapping accumulators
// have ONE acc_full and ONE acc_empty, whose phases take turns with the two pairs: a barrier for each would
// let the mma of a tile overwrite what is left to read of the tile before.
//
// In a pair the even CTA leads: its mma thread works for both. The leader's full and scale_full count the
// bytes of both CTAs, which its own load roles announce; the other's copies only add to them. The leader's
// acc_empty counts 16, the epilogue warps of both. Commits arrive on empty, scale_empty and acc_full of both
// CTAs, so each CTA waits on its own. The other barriers of the other CTA are not used.
#pragma once

#include <type_traits>

#include "kernel/config.h"
#include "kernel/roles.cuh"
#include "kernel/scheduler.cuh"

namespace dualgemm {

// One k-tile of operands: rows of 128 bytes in the 128-byte swizzle, whose pattern repeats every 1024 bytes.
// b is B1, B2 or both as config.h says; B2 follows B1 directly, so one mma can read both as one operand.
template <class Cfg>
struct alignas(1024) Stage {
  uint8_t a[Cfg::kABytes];
  uint8_t b[Cfg::kBBoxes][Cfg::kBBoxBytes];
};

// The scale factors of kScaleKTiles k-tiles: for each block of 128 rows, atoms of 512 bytes in the order of
// K.
template <class Cfg>
struct ScaleSlot {
  uint8_t sfa[Cfg::kSfaBytes];
  uint8_t sfb[Cfg::kPassProducts][Cfg::kSfbBytes];
};

// Results of a chunk on their way to C, a row for each lane of the epilogue.
template <class Cfg>
struct Staging {
  alignas(16) uint8_t row[kEpilogueWarps * 32][Cfg::kStagingPitch];
  static_assert(sizeof row == Cfg::kStagingBytes, "config.h reserves this much");
};

struct Nothing {};

template <class Cfg>
struct SharedStorage {
  Stage<Cfg> stage[Cfg::kStages];
  ScaleSlot<Cfg> slot[Cfg::kScaleStages];
  uint64_t full[Cfg::kStages];
  uint64_t empty[Cfg::kStages];
  uint64_t scale_full[Cfg::kScaleStages];
  uint64_t scale_empty[Cfg::kScaleStages];
  uint64_t acc_full[Cfg::kAccBarriers];
  uint64_t acc_empty[Cfg::kAccBarriers];
  uint64_t window_free[Cfg::kWindows];  // used unless kSlotColumnsFit
  uint32_t tmem_base;                   // written by tcgen05.alloc
  std::conditional_t<Cfg::kGrouped, GroupTable, Nothing> groups;
  std::conditional_t<Cfg::kStore == Store::kBulk, Staging<Cfg>, Nothing> staging;

  static_assert(sizeof(Stage<Cfg>) == Cfg::kStageBytes && sizeof(ScaleSlot<Cfg>) == Cfg::kSlotBytes,
                "exactly what TMA delivers");
  static_assert(Cfg::kABytes % 1024 == 0 && Cfg::kBBoxBytes % 1024 == 0,
                "operands start at a swizzle pattern");
};

}  // namespace dualgemm
