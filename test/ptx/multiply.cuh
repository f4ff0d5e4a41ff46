// multiply.cuh -- the two mma of the multiply kernels, which have their A in common, and their products.
#pragma once

#include "ptx/descriptor.h"
#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"

namespace wrappers {

inline constexpr uint32_t kProductN = 32;  // columns of D, and rows of B, of each mma

struct Operands {
  uint64_t a, b[2];      // descriptors
  uint32_t d, sfa, sfb;  // tensor memory: D and D, SFA, SFB and SFB
  uint32_t instruction;
};

template <int kCtaGroup, dualgemm::ptx::Collector kFirst, dualgemm::ptx::Collector kSecond>
__device__ void multiply(const Operands& x, bool accumulate) {
  using namespace dualgemm::ptx;
  tcgen05_mma_mxf4nvf4_block16<kCtaGroup, kFirst>(x.d, x.a, x.b[0], x.instruction, x.sfa, x.sfb, accumulate);
  tcgen05_mma_mxf4nvf4_block16<kCtaGroup, kSecond>(x.d + kProductN, x.a, x.b[1], x.instruction, x.sfa,
                                                   x.sfb + 4, accumulate);
}

// `collector` is 0 to say nothing, 1 to let the second mma have A from the first, and 2 for the other way
// round, which is wrong.
template <int kCtaGroup>
__device__ void multiply(const Operands& x, int32_t collector, bool accumulate) {
  using enum dualgemm::ptx::Collector;
  if (collector == 0) multiply<kCtaGroup, kDefault, kDefault>(x, accumulate);
  else if (collector == 1) multiply<kCtaGroup, kFill, kLastUse>(x, accumulate);
  else multiply<kCtaGroup, kLastUse, kFill>(x, accumulate);
}

// The thread's lane of both D, from `base` on, to its row of `out`.
__device__ inline void read_products(uint32_t* row, uint32_t base, int warp) {
  for (uint32_t first = 0; first < 2 * kProductN; first += kProductN) {
    uint32_t values[kProductN];
    dualgemm::ptx::tcgen05_ld_32x32b(values, base + first + (static_cast<uint32_t>(warp) << 21));
    dualgemm::ptx::tcgen05_wait_ld();
#pragma unroll
    for (uint32_t column = 0; column < kProductN; ++column) row[first + column] = values[column];
  }
}

}  // namespace wrappers
