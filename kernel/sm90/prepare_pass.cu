#include "kernel/sm90/prepare_pass.cuh"

namespace dualgemm {

constinit const PrepareKernel kPrepareKernels[2][2] = {
    {&sm90::prepare_kernel<false, false>, &sm90::prepare_kernel<false, true>},
    {&sm90::prepare_kernel<true, false>, &sm90::prepare_kernel<true, true>}};

}  // namespace dualgemm
