// one_product.cuh -- the parts of a kernel that multiplies with one of B1 and B2 at a time: first A * B1^T
// over all of K and then A * B2^T, from the start of K again; or the first alone, as one of two GEMMs. They
// are for one CTA per tile and without swap A/B.
#pragma once

#include "kernel/epilogue/epilogue.cuh"
#include "kernel/sm100/traits.cuh"

namespace bench {

using dualgemm::Plan;
using dualgemm::sm100::Options;
using dualgemm::sm100::Products;

// A tile has two products, or one of them. Each k-tile serves one product, by one mma for each step.
inline constexpr Products kOneAfterOther{.accumulators = 2, .together = 1, .per_step = 1};
inline constexpr Products kFirstOnly{.accumulators = 1, .together = 1, .per_step = 1};

struct KTileOfProduct : dualgemm::KTile {
  int32_t product;
};

// Every product takes all of K before the next begins.
template <class Traits>
struct ProductLoop : dualgemm::KLoop<Traits> {
  using Base = dualgemm::KLoop<Traits>;
  using Base::Base;
  static_assert(Traits::kPlan.mma.products == 1 && Traits::kPlan.mma.cta_group == 1 &&
                    !Traits::kPlan.mma.swap_ab && Traits::kPlan.tile.split_k == 1,
                "one product at a time: for one CTA");
  // A tile has a main loop over K for each product.
  static constexpr int32_t kMainLoops = Traits::kPlan.mma.accumulators;

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

template <class Traits>
struct OneProduct {
  static constexpr Plan kPlan = Traits::kPlan;

  DUALGEMM_DEVICE static void issue(dualgemm::sm100::TmemMap<Traits> tmem, const dualgemm::sm100::MmaStep& x,
                                    const KTileOfProduct& k) {
    using dualgemm::ptx::advance;
    const int step = x.step * (dualgemm::sm100::kMmaK / 2);
    dualgemm::ptx::tcgen05_mma_mxf4nvf4_block16<kPlan.mma.cta_group>(
        k.product == 0 ? tmem.acc1(x.acc) : tmem.acc2(x.acc), advance(x.stage, step),
        advance(x.stage, kPlan.operands.a_bytes + step),
        dualgemm::ptx::mxf4nvf4_instruction_descriptor(kPlan.mma.m, kPlan.mma.n),
        tmem.sfa(x.window, x.window_step), tmem.sfb(x.window, x.window_step, 0) + x.sf_offset, x.accumulate);
  }
};

// This activation leaves C = alpha1 * A * B1^T as it is.
struct Identity {
  DUALGEMM_DEVICE explicit Identity(const dualgemm::Params&) {}
  DUALGEMM_DEVICE dualgemm::TwoFloats gate(dualgemm::TwoFloats g) const { return g; }
  // The second product is not there, and this never looks at it.
  DUALGEMM_DEVICE dualgemm::TwoFloats up(dualgemm::TwoFloats) const { return {1.0f, 1.0f}; }
};

}  // namespace bench
