// roles.cuh -- which warp does what. A warp can read only the quarter of tensor memory that its index modulo
// 4 names (PTX ISA 9.0, 9.7.16.8.1), so four warps make an epilogue; eight halve its time, which four spend
// waiting for ex2 and rcp.
#pragma once

#include "ptx/common.cuh"

namespace dualgemm {

enum class Role {
  kEpilogue,         // warps 0-7: tensor memory -> SwiGLU -> C
  kMma,              // warp 8: copies scale factors to tensor memory and multiplies
  kLoadWeights,      // warp 9: TMA of B1, B2 and their scale factors; initialises the barriers
  kLoadActivations,  // warp 10: TMA of A and its scale factors; reads the sizes of groups
  kSetup,            // warp 11: prefetches, allocates and frees tensor memory
};

inline constexpr int kEpilogueWarps = 8;
inline constexpr int kThreads = 384;
inline constexpr int kLoadWarps = 2;  // both fill every stage, each its part

// Broadcast from lane 0, so that the compiler sees one value per warp and keeps the roles' arithmetic scalar.
DUALGEMM_DEVICE int warp_index() { return __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0); }

DUALGEMM_DEVICE Role role_of(int warp) {
  switch (warp) {
    case 8: return Role::kMma;
    case 9: return Role::kLoadWeights;
    case 10: return Role::kLoadActivations;
    case 11: return Role::kSetup;
    default: return Role::kEpilogue;
  }
}

// What an epilogue warp reads: 32 lanes of tensor memory, and one of two halves of the columns.
struct EpilogueWarp {
  int quarter, half;
  DUALGEMM_DEVICE explicit EpilogueWarp(int warp) : quarter(warp % 4), half(warp / 4) {}
  DUALGEMM_DEVICE int lane() const { return quarter * 32 + static_cast<int>(threadIdx.x) % 32; }
  // In bits 16-31 of a tensor-memory address.
  DUALGEMM_DEVICE uint32_t tmem_lane() const { return static_cast<uint32_t>(quarter) << 21; }
};

}  // namespace dualgemm
