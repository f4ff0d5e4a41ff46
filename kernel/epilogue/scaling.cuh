// scaling.cuh -- from accumulators to the gate and up of the activation, in a plain and in a general
// epilogue:
//
//   plain     g = alpha1 acc1                           u = alpha2 acc2
//   general   g = (alpha1 s[row]) acc1 + bias1[column]  u = (alpha2 s[row]) acc2 + bias2[column]
//
// One product has no u.
#pragma once

#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/params.h"

namespace dualgemm {

// Holds the alphas of a problem: those that the host passed times those that lie on the device.
struct Alphas {
  float alpha1, alpha2;

  DUALGEMM_DEVICE Alphas(const Params& p, const Tile& tile) {
    const int64_t index = tile.problem * p.alpha_stride;
    alpha1 = p.alpha1_dev ? p.alpha1 * p.alpha1_dev[index] : p.alpha1;
    alpha2 = p.alpha2_dev ? p.alpha2 * p.alpha2_dev[index] : p.alpha2;
  }
  DUALGEMM_DEVICE TwoFloats gate(TwoFloats acc1) const { return {alpha1 * acc1.first, alpha1 * acc1.second}; }
  DUALGEMM_DEVICE TwoFloats up(TwoFloats acc2) const { return {alpha2 * acc2.first, alpha2 * acc2.second}; }
};

// Reads a vector with a number for each row or each column of C, in fp32 or bf16, from a lane's first element
// on. A launch may have no such vector.
class Vector {
 public:
  DUALGEMM_DEVICE Vector(const void* start, CType type, int64_t first, int count)
      : first_(start ? static_cast<const char*>(start) + first * (type == CType::kBf16 ? 2 : 4) : nullptr),
        count_(count),
        bf16_(type == CType::kBf16) {}
  DUALGEMM_DEVICE bool given() const { return first_ != nullptr; }
  // Numbers beyond C are not read, and no result depends on them.
  DUALGEMM_DEVICE float operator[](int i) const {
    if (i >= count_) return 0.0f;
    if (!bf16_) return static_cast<const float*>(static_cast<const void*>(first_))[i];
    const auto* const values = static_cast<const uint16_t*>(static_cast<const void*>(first_));
    return __uint_as_float(static_cast<uint32_t>(values[i]) << 16);
  }

 private:
  const char* first_;
  int count_;
  bool bf16_;
};

}  // namespace dualgemm
