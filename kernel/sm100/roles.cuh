// roles.cuh -- which warp does what: the kernel is warp-specialized. A warp can read only the quarter of
// tensor memory that its index modulo 4 names (PTX ISA 9.0, 9.7.16.8.1), so an epilogue has a multiple of
// four warps. These come first, and each of the other roles has one warp.
#pragma once

#include "kernel/sm100/plan.h"
#include "ptx/common.cuh"

namespace dualgemm::sm100 {

enum class Role {
  kMma,              // copies scale factors to tensor memory and multiplies
  kLoadWeights,      // TMA of B1, B2 and their scale factors; initialises the barriers
  kLoadActivations,  // TMA of A and its scale factors; reads the sizes of groups
  kSetup,            // prefetches, allocates and frees tensor memory
  kEpilogue,         // tensor memory -> scaling -> activation -> C
};
static_assert(static_cast<int>(Role::kEpilogue) == kOtherWarps, "every role but the epilogue is one warp");

// The index is broadcast from lane 0, so that the compiler sees one value per warp and keeps the roles'
// arithmetic scalar.
DUALGEMM_DEVICE int warp_index() { return __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0); }

template <class Traits>
DUALGEMM_DEVICE Role role_of(int warp) {
  switch (warp - Traits::kPlan.epilogue.warps) {
    case 0: return Role::kMma;
    case 1: return Role::kLoadWeights;
    case 2: return Role::kLoadActivations;
    case 3: return Role::kSetup;
    default: return Role::kEpilogue;
  }
}

// An epilogue warp reads 32 lanes of tensor memory, and one half of their accumulator columns.
struct EpilogueWarp {
  int quarter, half;
  DUALGEMM_DEVICE explicit EpilogueWarp(int warp) : quarter(warp % 4), half(warp / 4) {}
  DUALGEMM_DEVICE bool first() const { return quarter == 0 && half == 0; }
  DUALGEMM_DEVICE int first_lane() const { return quarter * 32; }
  DUALGEMM_DEVICE int lane() const { return first_lane() + static_cast<int>(threadIdx.x) % 32; }
  // Returns the number of this thread among those of the epilogue.
  DUALGEMM_DEVICE int thread() const { return half * 128 + lane(); }
  // Returns the first lane of the warp, in bits 16-31, where a tensor-memory address has its lane.
  DUALGEMM_DEVICE uint32_t tmem_lane() const { return static_cast<uint32_t>(quarter) << 21; }
};

}  // namespace dualgemm::sm100
