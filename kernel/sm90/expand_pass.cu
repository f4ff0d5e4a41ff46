#include "kernel/sm90/expand_pass.cuh"

namespace dualgemm {

constinit const ExpandKernel kExpandKernels[2] = {&sm90::expand_kernel<false>, &sm90::expand_kernel<true>};

}  // namespace dualgemm
