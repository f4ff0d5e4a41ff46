// cta.cuh -- where a CTA stands in its cluster, and the few instructions whose form depends on that. A
// cluster is kSplitK CTAs or pairs, each with its part of K: ranks 2 s and 2 s + 1 are the pair of slice s,
// or rank s its only CTA. With one CTA per tile everything here is local; the roles are written once for all.
#pragma once

#include "kernel/config.h"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tma.cuh"

namespace dualgemm {

template <class Cfg>
struct Cta {
  static constexpr bool kPaired = Cfg::kCtaGroup == 2;
  uint32_t rank;   // in the pair; 0 leads, and is all there is without a pair
  uint32_t slice;  // of K

  DUALGEMM_DEVICE static Cta self() {
    if constexpr (Cfg::kClusterSize == 1) return {0, 0};
    const uint32_t rank = ptx::cluster_ctarank();
    return {rank % Cfg::kCtaGroup, rank / Cfg::kCtaGroup};
  }
  DUALGEMM_DEVICE bool leads() const { return rank == 0; }

  // Both CTAs of the pair, as bits of cluster ranks.
  DUALGEMM_DEVICE uint16_t both() const { return static_cast<uint16_t>(3u << (2 * slice)); }

  // A box into this CTA, counted on the leader's barrier.
  DUALGEMM_DEVICE void load(void* dst, const CUtensorMap& map, int32_t inner, int32_t outer,
                            uint64_t& full) const {
    if constexpr (kPaired)
      ptx::cp_async_bulk_tensor_2d_pair(dst, &map, inner, outer, ptx::even_cta_address(ptx::smem_u32(&full)));
    else ptx::cp_async_bulk_tensor_2d(dst, &map, inner, outer, &full);
  }
  // A box into both CTAs.
  DUALGEMM_DEVICE void load_to_both(void* dst, const CUtensorMap& map, int32_t inner, int32_t outer,
                                    uint64_t& full) const {
    ptx::cp_async_bulk_tensor_2d_pair_multicast(dst, &map, inner, outer,
                                                ptx::even_cta_address(ptx::smem_u32(&full)), both());
  }
  // The completion of all earlier mma and copies of this thread arrives on `mbar` of every CTA they worked
  // for.
  DUALGEMM_DEVICE void commit(uint64_t& mbar) const {
    if constexpr (kPaired) ptx::tcgen05_commit_multicast(&mbar, both());
    else ptx::tcgen05_commit<Cfg::kCtaGroup>(&mbar);
  }
  // Arrives on the leader's barrier. Across CTAs relaxed is enough: what it orders are reads of tensor
  // memory, by the tcgen05 fences on both sides.
  DUALGEMM_DEVICE void arrive_at_leader(uint64_t& mbar) const {
    if constexpr (kPaired) ptx::mbarrier_arrive_relaxed_cluster(ptx::even_cta_address(ptx::smem_u32(&mbar)));
    else ptx::mbarrier_arrive(&mbar);
  }
};

}  // namespace dualgemm
