// shared_storage.cuh -- the shared memory of one CTA. Its size is the dynamic shared memory of a launch. The
// barriers of the ring that TMA fills are described in common/rings.cuh. Each warp that multiplies arrives on
// `empty` when it has loaded to registers what it needs of a stage and its wgmma have read the A in it. There
// are two more sets of barriers, `ready` and the two of panels, and a kernel has at most one of these sets:
//
//   barrier        count                  arrives               who waits   meaning
//   ready[s]       warps that prepare A   each of them          multiply    the A of stage s is prepared
//   panel_full[e]  1 + bytes              load activations      multiply    a panel of A is there
//   panel_empty[e] warps that multiply    each of them          loads       its wgmma have read it
//
// With split-K there is one more, sums_full, which counts 1 and the bytes of the sums of others (reduce.cuh).
// `ready` is for an A that warps of the kernel prepare where it lies. A panel is a quarter of a k-tile of an
// A from a pass; such small pieces make a finer ring where A has many rows.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernel/common/rings.cuh"
#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/list.h"
#include "kernel/sm90/mxfp4.cuh"
#include "kernel/sm90/plan.h"

namespace dualgemm::sm90 {

// A panel has 64 places of K of an A in 16 bits, or 128 elements in FP8, as rows of 128 bytes in the 128-byte
// swizzle.
template <class Traits>
inline constexpr int32_t kPanelBytes = Traits::kPlan.tile.m* kBoxRowBytes;

// Says which shares of a tile each CTA finishes if K is split, and what it receives for that (reduce.cuh).
template <class Traits>
struct Reduction {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kSlices = kPlan.tile.split_k, kGroups = kPlan.consumers.k_groups;
  static constexpr int kParts = kSlices * kGroups, kSenders = kParts - 1;
  static constexpr int kShares = kPlan.tile.m / kPlan.consumers.share_rows;
  static constexpr int kMostShares = (kShares + kSlices - 1) / kSlices;  // of one CTA
  static constexpr int kBlocks = kPlan.consumers.share_rows / 8;         // of eight rows, of a share
  static constexpr int kLoops = kPlan.mma.main_loops();
  static constexpr int kWarps = kWarpgroupWarps * kPlan.consumers.column_groups;  // that finish a share
  static constexpr bool kThere = kSlices > 1;
  // Only received sums of tiles of up to 16 rows have memory of their own.
  static constexpr bool kInRings = kThere && kPlan.tile.m > 16;

  DUALGEMM_HOST_DEVICE static constexpr int owner(int share) { return share * kSlices / kShares; }
  // Returns whether the CTA of a slice finishes a row of the tile.
  DUALGEMM_HOST_DEVICE static constexpr bool finishes(int slice, int row) {
    return owner(row / kPlan.consumers.share_rows) == slice;
  }
  // Returns the first share of a CTA. The shares of the next CTA follow those of this one.
  DUALGEMM_HOST_DEVICE static constexpr int first_share(int slice) {
    return (slice * kShares + kSlices - 1) / kSlices;
  }
  DUALGEMM_HOST_DEVICE static constexpr int shares_of(int slice) {
    return first_share(slice + 1) - first_share(slice);
  }
  // Parts are numbered by slice, then by k group. Those that send sums to an owner are numbered without its
  // own.
  DUALGEMM_HOST_DEVICE static constexpr int part(int slice, int k_group) { return slice * kGroups + k_group; }
  DUALGEMM_HOST_DEVICE static constexpr int sender(int of, int owner) {
    return of < part(owner, 0) ? of : of - 1;
  }
  DUALGEMM_HOST_DEVICE static constexpr uint32_t received_bytes(int slice) {
    return static_cast<uint32_t>(kSenders * shares_of(slice) * kBlocks * kLoops * kWarps * 32 * 16);
  }
};

template <class Traits>
struct ReceivedSums {
  using R = Reduction<Traits>;
  alignas(16) float sum[R::kSenders][R::kMostShares * R::kBlocks][R::kLoops][R::kWarps][32][4];
};

// Holds the sums of some rows of a tile, for each product, on the way from the lanes that computed them to
// the lanes that finish them (exchange.cuh).
template <class Traits>
struct ExchangedSums {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kRows = std::min(kPlan.consumers.share_rows, kPlan.consumers.exchanged_rows);
  static constexpr int kPitch = kPlan.tile.n + kExchangePadding;

  alignas(16) float sum[kPlan.mma.accumulators][kRows][kPitch];
};

// The results of up to 32 rows for each column group, in two places that are used in turn (staged.cuh).
template <class Traits>
struct StagedResults {
  static constexpr ConsumerPlan kPlan = Traits::kPlan.consumers;
  static constexpr int kRows = std::min(kPlan.share_rows, 32);
  // 16 bytes in each of eight rows that are so far apart lie in different banks.
  static constexpr int kPitch = kPlan.columns * 2 + 16;

  alignas(16) uint8_t bytes[kPlan.column_groups][2][kRows][kPitch];
};

// The ring of A by panels, if there is one. It comes first, so that its panels start at multiples of 1024
// bytes, and so do the rings, which follow it.
template <class Traits, bool kThere = (Traits::kPlan.a16.stages > 0)>
struct Panels {
  uint8_t panel[Traits::kPlan.a16.stages][kPanelBytes<Traits>];
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
  using R = Reduction<Traits>;
  // With split-K a CTA has one tile. When that tile has been multiplied, these members may lie where the
  // rings were.
  struct AfterRings {
    If<ReceivedSums<Traits>, R::kInRings> received;
    Results results;
  };

  Rings<Traits> rings;
  Barriers<kPlan.a16.stages> panel_full, panel_empty;
  Barriers<kPlan.a16.warps == 0 ? 0 : kPlan.operands.stages> ready;
  Barriers<R::kThere ? 1 : 0>
      sums_full;  // count: 1 + the bytes of the sums that this CTA receives (reduce.cuh)
  If<ReceivedSums<Traits>, R::kThere && !R::kInRings> received_apart;
  If<Results, !R::kThere> results_apart;
  If<GroupTable<kPlan.tile.m>, kPlan.tile.grouped> groups;
  If<MagnitudeTable, kPlan.mxfp4_b()> magnitudes;
  [[no_unique_address]] typename Traits::Output::Shared output;

  DUALGEMM_DEVICE ReceivedSums<Traits>& received() {
    if constexpr (R::kInRings) return after_rings().received;
    else return received_apart;
  }
  DUALGEMM_DEVICE Results& results() {
    if constexpr (R::kThere) return after_rings().results;
    else return results_apart;
  }

 private:
  DUALGEMM_DEVICE AfterRings& after_rings() {
    static_assert(sizeof(AfterRings) <= kPlan.ring_bytes());
    return *reinterpret_cast<AfterRings*>(this);
  }
};

}  // namespace dualgemm::sm90
