#include "kernel/convert/quantize.cuh"

namespace dualgemm {

#define KERNELS(name)                                                              \
  {                                                                                \
    {&convert::name<convert::Bf16, false>, &convert::name<convert::Fp16, false>,   \
     &convert::name<convert::Fp32, false>},                                        \
        {&convert::name<convert::Bf16, true>, &convert::name<convert::Fp16, true>, \
         &convert::name<convert::Fp32, true>},                                     \
  }
constinit const QuantizeKernel kLargestKernels[2][3] = KERNELS(largest_kernel);
constinit const QuantizeKernel kQuantizeKernels[2][3] = KERNELS(quantize_kernel);
constinit const QuantizeKernel kQuantizeRowsKernels[2][3] = KERNELS(quantize_rows_kernel);
#undef KERNELS

}  // namespace dualgemm
