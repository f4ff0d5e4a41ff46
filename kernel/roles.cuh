// roles.cuh -- which warp does what. The epilogue has warps 0-3 because a warp can read only the quarter of
// tensor memory that its index names (PTX ISA 9.0, 9.7.16.8.1): quarter and index are then the same number.
#pragma once

#include "ptx/common.cuh"

namespace dualgemm {

enum class Role {
  kEpilogue,      // warps 0-3: tensor memory -> SwiGLU -> C
  kMma,           // warp 4: copies scale factors to tensor memory and multiplies, one thread
  kLoadOperands,  // warp 5: TMA of A, B1, B2, one thread
  kLoadScales,    // warp 6: TMA of SFA, SFB1, SFB2, one thread
  kSetup,         // warp 7: prefetches tensor maps, allocates and frees tensor memory
};

inline constexpr int kEpilogueWarps = 4;
inline constexpr int kLoadWarps = 2;  // both fill every stage, each its part

DUALGEMM_DEVICE Role role_of(int warp) {
  switch (warp) {
    case 4: return Role::kMma;
    case 5: return Role::kLoadOperands;
    case 6: return Role::kLoadScales;
    case 7: return Role::kSetup;
    default: return Role::kEpilogue;
  }
}

}  // namespace dualgemm
