// shared_storage.cuh -- the shared memory of one CTA. Its size is the dynamic shared memory of a launch.
//
//   barrier        count                    arrives                           waits       meaning
//   full[s]        2, and kStageBytes tx    the two load threads, TMA bytes   mma         stage s is filled
//   empty[s]       1                        tcgen05.commit of mma             both loads  stage s was read
//   acc_full[a]    1                        tcgen05.commit of mma             epilogue    pair a is final
//   acc_empty[a]   8, by epilogue warp      one lane of each epilogue warp    mma         pair a was read
//
// full[s]: each load thread arrives with the bytes of its own copies, so the phase ends when both have issued
// and all bytes have landed, in whichever order. empty[s] is committed after the mma of the stage: it frees
// the shared memory and also the tensor-memory columns that hold the stage's scale factors.
//
// In a pair the even CTA leads: its mma thread works for both. The leader's full[s] counts the bytes of both
// CTAs, which its own load threads announce; the other's copies only add to it. The leader's acc_empty[a]
// counts 16, the epilogue warps of both. Commits arrive on empty[s] and acc_full[a] of both CTAs, so each CTA
// waits on its own. full and acc_empty of the other CTA are not used.
#pragma once

#include "kernel/config.h"
#include "kernel/roles.cuh"

namespace dualgemm {

// One k-tile. A, B1 and B2 are rows of 128 bytes in the 128-byte swizzle, whose pattern repeats every 1024
// bytes. b is B1, B2 or both as config.h says; B2 follows B1 directly, so one mma can read both as one
// operand.
template <class Cfg>
struct alignas(1024) Stage {
  uint8_t a[Cfg::kABytes];
  uint8_t b[Cfg::kBBoxes][Cfg::kBBoxBytes];
  uint8_t sfa[Cfg::kSfBytes];  // kMmasPerKTile atoms of 512 bytes, in the order of K
  uint8_t sfb1[Cfg::kSfBytes];
  uint8_t sfb2[Cfg::kSfBytes];
};

template <class Cfg>
struct SharedStorage {
  Stage<Cfg> stage[Cfg::kStages];
  uint64_t full[Cfg::kStages];
  uint64_t empty[Cfg::kStages];
  uint64_t acc_full[Cfg::kAccStages];
  uint64_t acc_empty[Cfg::kAccStages];
  uint32_t tmem_base;  // written by tcgen05.alloc

  static_assert(sizeof(Stage<Cfg>) == Cfg::kStageBytes, "a stage is exactly what TMA delivers");
  static_assert(Cfg::kABytes % 1024 == 0 && Cfg::kBBoxBytes % 1024 == 0,
                "operands start at a swizzle pattern");
};

}  // namespace dualgemm
