// instance_of.cuh -- the entry of a table of instances (instances.h) for one Config, and with it the kernel
// itself.
#pragma once

#include "kernel/dual_gemm.cuh"
#include "kernel/instances.h"

namespace dualgemm {

template <class Cfg>
constexpr Instance instance_of(const char* name) {
  return {name,
          reinterpret_cast<const void*>(&dual_gemm_kernel<Cfg>),
          Cfg::kC,
          Cfg::kCtaGroup,
          Cfg::kTileM,
          Cfg::kTileN,
          Cfg::kTileK,
          Cfg::kSplitK,
          Cfg::kABoxRows,
          Cfg::kBBoxRows,
          Cfg::kSfbBlocks,
          Cfg::kStages,
          Cfg::kScaleStages,
          Cfg::kScaleKTiles,
          Cfg::kAccStages,
          Cfg::kOverlapped,
          Cfg::kGrouped,
          Cfg::kMmaN,
          Cfg::kPasses * (Cfg::kOneMma ? 1 : Cfg::kPassProducts),
          kThreads,
          static_cast<int32_t>(sizeof(SharedStorage<Cfg>)),
          TmemMap<Cfg>::kAllocColumns};
}

}  // namespace dualgemm
