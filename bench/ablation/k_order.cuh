// k_order.cuh -- a main loop that starts elsewhere along K in each CTA, so that CTAs that run at the same
// time ask for different bytes. It is for kernels of one CTA per tile and one k-tile per scale stage.
#pragma once

#include "kernel/common/k_loop.cuh"

namespace bench {

template <class Traits>
struct RotatedLoop : dualgemm::KLoop<Traits> {
  using Base = dualgemm::KLoop<Traits>;
  int32_t start;  // of the first k-tile, counted from the first of the range

  DUALGEMM_DEVICE RotatedLoop(int32_t k_tiles, uint32_t slice)
      : Base(k_tiles, slice), start(static_cast<int32_t>(blockIdx.x % static_cast<uint32_t>(k_tiles))) {
    static_assert(
        Traits::kPlan.scales.k_tiles == 1 && Traits::kPlan.cluster_size() == 1,
        "the k-tiles of a scale stage are neighbours, and the CTAs of a cluster run through K together");
  }
  DUALGEMM_DEVICE dualgemm::KTile operator[](int32_t i) const {
    const int32_t offset = i + start;
    return {this->range.first + (offset >= this->length() ? offset - this->length() : offset)};
  }
};

}  // namespace bench
