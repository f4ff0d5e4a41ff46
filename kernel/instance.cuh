// instance.cuh -- the entry for one Config in a table of instances (instances.h), and with it the kernel.
#pragma once

#include "kernel/dual_gemm.cuh"
#include "kernel/instances.h"

namespace dualgemm {

template <class Cfg>
constexpr Instance instance(const char* name) {
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
          Cfg::kKeepA,
          kThreads,
          static_cast<int32_t>(sizeof(SharedStorage<Cfg>)),
          TmemMap<Cfg>::kAllocColumns};
}

}  // namespace dualgemm
