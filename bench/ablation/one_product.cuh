// one_product.cuh -- the mma of a kernel for compute capability 10.x that multiplies with one of B1 and B2 at
// a time (product_loop.cuh). It is for one CTA per tile and without swap A/B.
#pragma once

#include "bench/ablation/product_loop.cuh"
#include "kernel/sm100/traits.cuh"

namespace bench {

using dualgemm::Plan;
using dualgemm::sm100::Options;
using dualgemm::sm100::Products;

// A tile has two products. Each k-tile serves one of them, by one mma for each step.
inline constexpr Products kOneAfterOther{.accumulators = 2, .together = 1, .per_step = 1};

template <class Traits>
struct OneProduct {
  static constexpr Plan kPlan = Traits::kPlan;
  static_assert(!kPlan.mma.swap_ab && kPlan.tile.split_k == 1, "one product at a time: for one CTA");

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

}  // namespace bench
