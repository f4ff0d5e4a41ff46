// instances.cu -- the kernels that exist: one line per instance, and the table through which host/ sees them.
#include "kernel/instances.h"

#include "kernel/dual_gemm.cuh"

namespace dualgemm {

namespace {

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
          Cfg::kStages,
          Cfg::kAccStages,
          Cfg::kMmaN,
          Cfg::kOneMma ? 1 : 2,
          kThreads,
          static_cast<int32_t>(sizeof(SharedStorage<Cfg>)),
          TmemMap<Cfg>::kAllocColumns};
}

constexpr CType kFp16 = CType::kFp16, kBf16 = CType::kBf16;

}  // namespace

const Instance kInstances[kInstanceCount] = {
    instance<Config<64, 128, 1, kFp16>>("m64n128k256_fp16"),
    instance<Config<64, 128, 1, kBf16>>("m64n128k256_bf16"),
    instance<Config<64, 128, 2, kFp16>>("m64n128k256s2_fp16"),
    instance<Config<64, 128, 2, kBf16>>("m64n128k256s2_bf16"),
    instance<Config<64, 128, 4, kFp16>>("m64n128k256s4_fp16"),
    instance<Config<64, 128, 4, kBf16>>("m64n128k256s4_bf16"),
    instance<Config<128, 64, 1, kFp16>>("m128n64k256_fp16"),
    instance<Config<128, 64, 1, kBf16>>("m128n64k256_bf16"),
    instance<Config<128, 64, 2, kFp16>>("m128n64k256s2_fp16"),
    instance<Config<128, 64, 2, kBf16>>("m128n64k256s2_bf16"),
    instance<Config<128, 128, 1, kFp16>>("m128n128k256_fp16"),
    instance<Config<128, 128, 1, kBf16>>("m128n128k256_bf16"),
    instance<Config<256, 64, 1, kFp16>>("m256n64k256_fp16"),
    instance<Config<256, 64, 1, kBf16>>("m256n64k256_bf16"),
    instance<Config<256, 128, 1, kFp16>>("m256n128k256_fp16"),
    instance<Config<256, 128, 1, kBf16>>("m256n128k256_bf16"),
    instance<Config<256, 128, 2, kFp16>>("m256n128k256s2_fp16"),
    instance<Config<256, 128, 2, kBf16>>("m256n128k256s2_bf16"),
};

}  // namespace dualgemm
