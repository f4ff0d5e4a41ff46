// instances.cu -- the kernels that exist: one line per instance, and the table through which host/ sees them.
#include "kernel/instances.h"

#include "kernel/dual_gemm.cuh"

namespace dualgemm {

namespace {

template <class Cfg>
constexpr Instance instance(const char* name, const void* kernel) {
  return {name,
          kernel,
          Cfg::kC,
          Cfg::kCtaGroup,
          Cfg::kTileM,
          Cfg::kTileN,
          Cfg::kTileK,
          Cfg::kStages,
          Cfg::kAccStages,
          Cfg::kMmaN,
          Cfg::kOneMma ? 1 : 2,
          Cfg::kThreads,
          static_cast<int32_t>(sizeof(SharedStorage<Cfg>)),
          TmemMap<Cfg>::kAllocColumns};
}

using M128N64Fp16 = Config<64, CType::kFp16>;
using M128N64Bf16 = Config<64, CType::kBf16>;
using M128N128Fp16 = Config<128, CType::kFp16>;
using M128N128Bf16 = Config<128, CType::kBf16>;

}  // namespace

template __global__ void dual_gemm_kernel<M128N64Fp16>(const __grid_constant__ Params);
template __global__ void dual_gemm_kernel<M128N64Bf16>(const __grid_constant__ Params);
template __global__ void dual_gemm_kernel<M128N128Fp16>(const __grid_constant__ Params);
template __global__ void dual_gemm_kernel<M128N128Bf16>(const __grid_constant__ Params);

const Instance kInstances[kInstanceCount] = {
    instance<M128N64Fp16>("m128n64k256_fp16", reinterpret_cast<const void*>(&dual_gemm_kernel<M128N64Fp16>)),
    instance<M128N64Bf16>("m128n64k256_bf16", reinterpret_cast<const void*>(&dual_gemm_kernel<M128N64Bf16>)),
    instance<M128N128Fp16>("m128n128k256_fp16",
                           reinterpret_cast<const void*>(&dual_gemm_kernel<M128N128Fp16>)),
    instance<M128N128Bf16>("m128n128k256_bf16",
                           reinterpret_cast<const void*>(&dual_gemm_kernel<M128N128Bf16>)),
};

}  // namespace dualgemm
