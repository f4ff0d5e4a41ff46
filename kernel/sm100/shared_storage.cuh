// shared_storage.cuh -- the shared memory of one CTA. Its size is the dynamic shared memory of a launch. The
// barriers of the two rings are described in common/rings.cuh; empty and scale_empty are arrived on by
// tcgen05.commit here. scale_empty[q] is committed after the mma that used scale stage q: it frees the shared
// memory and, where scale factors are resident (tmem_map.cuh), the columns of tensor memory of that stage.
//
//   barrier          count                  arrives                         who waits   meaning
//   acc_full[a]      1                      tcgen05.commit of mma           epilogue    pair a is final
//   acc_empty[a]     epilogue.warps         a lane of each epilogue warp    mma         pair a may be filled
//   window_free[w]   1                      tcgen05.commit of mma           mma         window w was read
//   sums_full        1, + the bytes         the epilogue, st.async of CTAs  epilogue    sums of others came
//
// sums_full exists only with split-K (reduce.cuh). Then a CTA has one tile, and nobody arrives on acc_empty.
//
// Overlapping accumulator pairs have one acc_full and one acc_empty, whose phases belong to the two pairs in
// turn. If each pair had an acc_empty of its own, the mma of a tile would wait for the tile two before it,
// which used the same accumulator pair, but not for the tile just before it, whose accumulator pair shares 64
// columns with this one.
//
// In a pair of CTAs the leader's acc_empty counts the epilogue warps of both. Commits arrive on empty,
// scale_empty and acc_full of both CTAs, so each CTA waits on its own. The other CTA's acc_empty and
// window_free are not used.
#pragma once

#include <type_traits>

#include "kernel/common/rings.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/list.h"

namespace dualgemm::sm100 {

template <class Traits>
struct SharedStorage {
  Rings<Traits> rings;
  uint64_t acc_full[Traits::kPlan.tmem.acc_barriers];
  uint64_t acc_empty[Traits::kPlan.tmem.acc_barriers];
  uint64_t window_free[Traits::kPlan.tmem.windows];  // used unless the scale factors are resident
  [[no_unique_address]] std::conditional_t<(Traits::kPlan.tile.split_k > 1), uint64_t, Nothing> sums_full;
  uint32_t tmem_base;  // written by tcgen05.alloc
  std::conditional_t<Traits::kPlan.tile.grouped, GroupTable<Traits::kPlan.tile.m>, Nothing> groups;
  [[no_unique_address]] typename Traits::Output::Shared output;
};

}  // namespace dualgemm::sm100
