#include "kernel/convert/factors.cuh"

namespace dualgemm {

constinit const FactorKernel kSwizzleKernels[2] = {&convert::swizzle_kernel<false>,
                                                   &convert::swizzle_kernel<true>};
constinit const FactorKernel kUnswizzleKernels[2] = {&convert::unswizzle_kernel<false>,
                                                     &convert::unswizzle_kernel<true>};

}  // namespace dualgemm
