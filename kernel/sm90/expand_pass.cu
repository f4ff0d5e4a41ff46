#include "kernel/sm90/expand_pass.cuh"

namespace dualgemm {

constinit const ExpandKernel kExpandKernels[2][2] = {
    {&sm90::expand_kernel<false, false>, &sm90::expand_kernel<false, true>},
    {&sm90::expand_kernel<true, false>, &sm90::expand_kernel<true, true>}};

}  // namespace dualgemm
