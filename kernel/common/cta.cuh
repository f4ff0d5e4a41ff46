// cta.cuh -- where a CTA stands in its cluster, and the copies whose form depends on that. A cluster is
// split_k CTAs or pairs of CTAs, each with its slice of K: ranks 2 s and 2 s + 1 are the pair of slice s, or
// rank s is its only CTA. With one CTA per tile everything here is local. So each role is written once for
// all these cases.
#pragma once

#include "ptx/mbarrier.cuh"
#include "ptx/tma.cuh"

namespace dualgemm {

template <class Traits>
struct Cta {
  static constexpr int32_t kGroup = Traits::kPlan.mma.cta_group;
  static constexpr bool kPaired = kGroup == 2;
  uint32_t rank;   // in the pair; 0 leads, and is the only one without a pair
  uint32_t slice;  // of K

  DUALGEMM_DEVICE static Cta self() {
    if constexpr (Traits::kPlan.cluster_size() == 1) return {0, 0};
    const uint32_t rank = ptx::cluster_ctarank();
    // Without split-K the slice is written as the constant 0: the compiler does not know that rank / kGroup
    // is 0 there, and would carry it in a register of each lane.
    return {rank % kGroup, Traits::kPlan.tile.split_k == 1 ? 0 : rank / kGroup};
  }
  DUALGEMM_DEVICE bool leads() const { return rank == 0; }

  // Returns both CTAs of the pair, as bits of cluster ranks.
  DUALGEMM_DEVICE uint16_t both() const { return static_cast<uint16_t>(3u << (2 * slice)); }

  // Copies a box of an operand, or of scale factors, into this CTA; its bytes count on the leader's barrier.
  DUALGEMM_DEVICE void load(void* dst, const CUtensorMap& map, ptx::Coordinates3 at, uint64_t& full,
                            uint64_t policy) const {
    if constexpr (kPaired)
      ptx::cp_async_bulk_tensor_3d_pair(dst, &map, at, ptx::even_cta_address(ptx::smem_u32(&full)), policy);
    else ptx::cp_async_bulk_tensor_3d(dst, &map, at, &full, policy);
  }
  DUALGEMM_DEVICE void load(void* dst, const CUtensorMap& map, ptx::Coordinates4 at, uint64_t& full,
                            uint64_t policy) const {
    if constexpr (kPaired)
      ptx::cp_async_bulk_tensor_4d_pair(dst, &map, at, ptx::even_cta_address(ptx::smem_u32(&full)), policy);
    else ptx::cp_async_bulk_tensor_4d(dst, &map, at, &full, policy);
  }
  // Copies a box of scale factors into both CTAs.
  DUALGEMM_DEVICE void load_to_both(void* dst, const CUtensorMap& map, ptx::Coordinates4 at, uint64_t& full,
                                    uint64_t policy) const {
    ptx::cp_async_bulk_tensor_4d_pair_multicast(dst, &map, at, ptx::even_cta_address(ptx::smem_u32(&full)),
                                                both(), policy);
  }
};

}  // namespace dualgemm
