// shared_storage.cuh -- the shared memory of one CTA. Its size is the dynamic shared memory of a launch. The
// barriers of the two rings that TMA fills are described in common/rings.cuh; empty and scale_empty are
// arrived on by each warp that multiplies, when its lanes have loaded what they need to registers, and by
// each expander. A third ring holds A in 16 bits, in order:
//
//   barrier             count                       arrives                who waits   meaning
//   expanded_full[e]    warps of a half, 1 + bytes  expander warps         multiply    a stage of A is there
//   expanded_empty[e]   warps that multiply a half  each of them           expanders   its wgmma have read it
//   unordered.full[u]   1 + bytes                   load activations       orderers    a k-tile of A as it is
//
// Where a pass before has made A what it is here, its load role fills the third ring by TMA, and is the one
// that arrives and waits. Where A has 16 bits and comes as it is, the load role fills two stages at once with
// a k-tile, and orderers put it in order where it lies (order_role.cuh). Where two k groups share the
// columns, the stages of the third ring go to them in turn.
#pragma once

#include <type_traits>

#include "kernel/common/rings.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/list.h"
#include "kernel/sm90/plan.h"

namespace dualgemm::sm90 {

// A stage of A in 16 bits: one or two panels of 64 places each, whose rows of 128 bytes lie in the 128-byte
// swizzle.
template <class Traits>
struct ExpandedStage {
  static constexpr int32_t kPanelBytes = Traits::kPlan.tile.m * kPanelK * 2;
  static constexpr int32_t kPanels = Traits::kPlan.expand.k / kPanelK;
  uint8_t panel[kPanels][kPanelBytes];
  static_assert(sizeof(panel) == Traits::kPlan.expand.stage_bytes);
};

// The barriers of whole k-tiles of A that have yet to be put in order.
template <int32_t kKTiles>
struct Unordered {
  uint64_t full[kKTiles];
};
template <>
struct Unordered<0> {};

// The sums that lanes exchange: of each part, which is a k group of a slice of K, and of each product
// (exchange.cuh).
template <class Traits>
struct ExchangedSums {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kParts = kPlan.tile.split_k * kPlan.consumers.k_groups;
  static constexpr int kRows = kPlan.consumers.exchange_rows;
  static constexpr int kPitch = kPlan.tile.n + kExchangePadding;

  alignas(16) float sum[kParts][2][kRows][kPitch];
};

// The results of 32 rows of each column group, in two places in turn (staged.cuh).
template <class Traits>
struct StagedResults {
  static constexpr int kRows = Traits::kPlan.tile.m < 32 ? Traits::kPlan.tile.m : 32;
  // Eight rows of 16 bytes this far apart lie in all banks once.
  static constexpr int kPitch = kColumns * 2 + 16;

  alignas(16) uint8_t bytes[Traits::kPlan.consumers.column_groups][2][kRows][kPitch];
};

template <class Traits>
struct SharedStorage {
  static constexpr Plan kPlan = Traits::kPlan;

  ExpandedStage<Traits> expanded[kPlan.expand.stages];
  Rings<Traits> rings;
  uint64_t expanded_full[kPlan.expand.stages];
  uint64_t expanded_empty[kPlan.expand.stages];
  [[no_unique_address]] Unordered<kPlan.orders_a() ? kPlan.expand.stages / 2 : 0> unordered;
  std::conditional_t<Traits::kStaged, StagedResults<Traits>, ExchangedSums<Traits>> results;
  std::conditional_t<kPlan.tile.grouped, GroupTable<kPlan.tile.m>, Nothing> groups;
  [[no_unique_address]] typename Traits::Output::Shared output;
};

}  // namespace dualgemm::sm90
