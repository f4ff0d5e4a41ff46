// scaling.cuh -- from accumulators to the gate and up of the activation: g = alpha1 acc1, u = alpha2 acc2.
// The alphas of a problem are those of the host times those that lie on the device.
#pragma once

#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/params.h"

namespace dualgemm {

struct Scaling {
  float alpha1, alpha2;

  DUALGEMM_DEVICE Scaling(const Params& p, const Tile& tile) {
    const int64_t index = tile.problem * p.alpha_stride;
    alpha1 = p.alpha1_dev ? p.alpha1 * p.alpha1_dev[index] : p.alpha1;
    alpha2 = p.alpha2_dev ? p.alpha2 * p.alpha2_dev[index] : p.alpha2;
  }
  DUALGEMM_DEVICE TwoFloats gate(TwoFloats acc1) const { return {alpha1 * acc1.first, alpha1 * acc1.second}; }
  DUALGEMM_DEVICE TwoFloats up(TwoFloats acc2) const { return {alpha2 * acc2.first, alpha2 * acc2.second}; }
};

}  // namespace dualgemm
