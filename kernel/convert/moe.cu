#include "kernel/convert/moe.cuh"

namespace dualgemm {

constinit const PermuteKernel kPermuteKernel = &convert::permute_kernel;
constinit const GatherKernel kGatherKernel = &convert::gather_kernel;

#define KERNELS(c)                                                                          \
  {                                                                                         \
    &convert::combine_kernel<c, convert::Bf16>, &convert::combine_kernel<c, convert::Fp16>, \
        &convert::combine_kernel<c, convert::Fp32>,                                         \
  }
constinit const CombineKernel kCombineKernels[3][3] = {KERNELS(convert::Bf16), KERNELS(convert::Fp16),
                                                       KERNELS(convert::Fp32)};
#undef KERNELS

}  // namespace dualgemm
