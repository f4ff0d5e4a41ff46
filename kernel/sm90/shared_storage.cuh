// shared_storage.cuh -- the shared memory of one CTA. Its size is the dynamic shared memory of a launch. The
// barriers of the ring that TMA fills are described in common/rings.cuh; `empty` is arrived on by each warp
// that multiplies, when it has loaded to registers what it needs of a stage and its wgmma have read the A in
// it. There are two more sets of barriers, of which a kernel has one at most:
//
//   barrier        count                  arrives               who waits   meaning
//   ready[s]       expanders, orderers    each of them          multiply    the A of stage s is in order
//   panel_full[e]  1 + bytes              load activations      multiply    a panel of A is there
//   panel_empty[e] warps that multiply    each of them          loads       its wgmma have read it
//
// `ready` is for an A that warps of the kernel expand, or put in order where it lies. A panel is a quarter of
// a k-tile of A from a pass: of many rows this makes a finer ring.
#pragma once

#include <type_traits>

#include "kernel/common/rings.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/list.h"
#include "kernel/sm90/plan.h"

namespace dualgemm::sm90 {

// A panel is 64 places of K of A in 16 bits: rows of 128 bytes in the 128-byte swizzle.
template <class Traits>
inline constexpr int32_t kPanelBytes = Traits::kPlan.tile.m* kPanelK * 2;

// The sums of a CTA that lanes exchange, of each k group and of each product (exchange.cuh).
template <class Traits>
struct ExchangedSums {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kRows = kPlan.consumers.exchange_rows;
  static constexpr int kPitch = kPlan.tile.n + kExchangePadding;

  alignas(16) float sum[kPlan.consumers.k_groups][kPlan.mma.accumulators][kRows][kPitch];
};

// The results of 32 rows of each column group, in two places in turn (staged.cuh).
template <class Traits>
struct StagedResults {
  static constexpr ConsumerPlan kPlan = Traits::kPlan.consumers;
  static constexpr int kRows = Traits::kPlan.tile.m < 32 ? Traits::kPlan.tile.m : 32;
  // Eight rows of 16 bytes this far apart lie in all banks once.
  static constexpr int kPitch = kPlan.columns * 2 + 16;

  alignas(16) uint8_t bytes[kPlan.column_groups][2][kRows][kPitch];
};

// The ring of A by panels, if there is one. It comes first, so that its panels start at a multiple of 1024
// bytes, and the rings behind them too.
template <class Traits, bool kThere = (Traits::kPlan.expand.stages > 0)>
struct Panels {
  uint8_t panel[Traits::kPlan.expand.stages][kPanelBytes<Traits>];
};
template <class Traits>
struct Panels<Traits, false> {};

template <class Traits>
struct SharedStorage : Panels<Traits> {
  static constexpr Plan kPlan = Traits::kPlan;
  template <class T, bool kThere>
  using If = std::conditional_t<kThere, T, Nothing>;
  template <int32_t kCount>
  using Barriers = If<uint64_t[kCount > 0 ? kCount : 1], (kCount > 0)>;
  using Results = std::conditional_t<Traits::kStaged, StagedResults<Traits>, ExchangedSums<Traits>>;

  Rings<Traits> rings;
  Barriers<kPlan.expand.stages> panel_full, panel_empty;
  Barriers<kPlan.expand.warps == 0 ? 0 : kPlan.operands.stages> ready;
  If<Results, !Traits::kSumsInRings> results;
  If<GroupTable<kPlan.tile.m>, kPlan.tile.grouped> groups;
  [[no_unique_address]] typename Traits::Output::Shared output;

  DUALGEMM_DEVICE ExchangedSums<Traits>& exchanged() {
    if constexpr (Traits::kSumsInRings) {
      static_assert(sizeof(ExchangedSums<Traits>) <= kPlan.ring_bytes());
      return *reinterpret_cast<ExchangedSums<Traits>*>(this);
    } else {
      return results;
    }
  }
};

}  // namespace dualgemm::sm90
