// product_loop.cuh -- the parts that kernels of every architecture share which multiply with one of B1 and B2
// at a time: first A * B1^T over all of K and then A * B2^T, from the start of K again.
#pragma once

#include "kernel/common/k_loop.cuh"
#include "kernel/common/load.cuh"
#include "kernel/epilogue/fragment.cuh"

namespace bench {

struct KTileOfProduct : dualgemm::KTile {
  int32_t product;
};

// Every product takes all of K before the next begins.
template <class Traits>
struct ProductLoop : dualgemm::KLoop<Traits> {
  using Base = dualgemm::KLoop<Traits>;
  using Base::Base;
  static_assert(Traits::kPlan.mma.products == 1 && Traits::kPlan.mma.cta_group == 1,
                "one product at a time: without pairs of CTAs");
  static constexpr int32_t kMainLoops = Traits::kPlan.mma.main_loops();

  DUALGEMM_DEVICE int32_t tiles() const { return Base::length(); }
  DUALGEMM_DEVICE int32_t length() const { return kMainLoops * tiles(); }
  DUALGEMM_DEVICE int32_t product(int32_t i) const { return kMainLoops > 1 && i >= tiles() ? 1 : 0; }
  DUALGEMM_DEVICE int32_t in_main_loop(int32_t i) const { return i - product(i) * tiles(); }
  DUALGEMM_DEVICE KTileOfProduct operator[](int32_t i) const {
    return {{this->range.first + in_main_loop(i)}, product(i)};
  }
  DUALGEMM_DEVICE bool accumulates(int32_t i) const { return in_main_loop(i) > 0; }
  DUALGEMM_DEVICE int32_t in_scale_stage(int32_t i) const { return Base::in_scale_stage(in_main_loop(i)); }
  DUALGEMM_DEVICE bool ends_scale_stage(int32_t i) const { return Base::ends_scale_stage(in_main_loop(i)); }
};

template <class Traits>
struct LoadOneWeight : dualgemm::LoadWeights<Traits> {
  using Base = dualgemm::LoadWeights<Traits>;
  using Base::Base;

  // The map is chosen, not indexed: an array whose index is known at run time only lies in local memory.
  DUALGEMM_DEVICE static const CUtensorMap* of(const CUtensorMap* const (&maps)[2], const KTileOfProduct& k) {
    return k.product == 0 ? maps[0] : maps[1];
  }
  DUALGEMM_DEVICE void load(dualgemm::Stage<Traits>& stage, uint64_t& full, const dualgemm::Tile& tile,
                            const KTileOfProduct& k) const {
    this->cta.load(stage.b[0], *of(this->b, k), this->at(tile, k), full, this->policy);
  }
  DUALGEMM_DEVICE void load_scales(dualgemm::ScaleStage<Traits>& stage, uint64_t& full,
                                   const dualgemm::Tile& tile, const KTileOfProduct& k) const {
    this->cta.load(stage.sfb[0], *of(this->sfb, k), this->scales_at(tile, k), full, this->policy);
  }
};

}  // namespace bench
