// cta_pair.cuh -- where a CTA stands in its pair, and the few instructions whose form depends on that. With
// one CTA per tile everything here is local; the roles are written once for both.
#pragma once

#include "kernel/config.h"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tma.cuh"

namespace dualgemm {

template <class Cfg>
struct CtaPair {
  static constexpr bool kPaired = Cfg::kCtaGroup == 2;
  uint32_t rank;  // 0: leads; always 0 without a pair

  DUALGEMM_DEVICE static CtaPair self() { return {kPaired ? ptx::cluster_ctarank() & 1 : 0}; }
  DUALGEMM_DEVICE bool leads() const { return !kPaired || rank == 0; }

  // Both CTAs, as bits of cluster ranks.
  DUALGEMM_DEVICE static uint16_t both() {
    return static_cast<uint16_t>(3u << (ptx::cluster_ctarank() & ~1u));
  }

  // A box into this CTA, counted on the leader's barrier.
  DUALGEMM_DEVICE static void load(void* dst, const CUtensorMap& map, int32_t inner, int32_t outer,
                                   uint64_t& full) {
    if constexpr (kPaired)
      ptx::cp_async_bulk_tensor_2d_pair(dst, &map, inner, outer, ptx::even_cta_address(ptx::smem_u32(&full)));
    else ptx::cp_async_bulk_tensor_2d(dst, &map, inner, outer, &full);
  }
  // A box into both CTAs.
  DUALGEMM_DEVICE static void load_to_both(void* dst, const CUtensorMap& map, int32_t inner, int32_t outer,
                                           uint64_t& full) {
    ptx::cp_async_bulk_tensor_2d_pair_multicast(dst, &map, inner, outer,
                                                ptx::even_cta_address(ptx::smem_u32(&full)), both());
  }
  // The completion of all earlier mma and copies of this thread arrives on `mbar` of every CTA they worked
  // for.
  DUALGEMM_DEVICE static void commit(uint64_t& mbar) {
    if constexpr (kPaired) ptx::tcgen05_commit_multicast(&mbar, both());
    else ptx::tcgen05_commit<Cfg::kCtaGroup>(&mbar);
  }
  // Arrives on the leader's barrier. Across CTAs relaxed is enough: what it orders are reads of tensor
  // memory, by the tcgen05 fences on both sides.
  DUALGEMM_DEVICE static void arrive_at_leader(uint64_t& mbar) {
    if constexpr (kPaired) ptx::mbarrier_arrive_relaxed_cluster(ptx::even_cta_address(ptx::smem_u32(&mbar)));
    else ptx::mbarrier_arrive(&mbar);
  }
};

}  // namespace dualgemm
