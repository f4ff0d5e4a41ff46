#include "kernel/convert/quantize.cuh"
#include "kernel/convert/quantize_fp8.cuh"

namespace dualgemm {

#define KERNEL(name, x, ...) &convert::name<convert::x, __VA_ARGS__>
#define KERNELS(name, ...)                                     \
  {                                                            \
    {KERNEL(name, Bf16, false __VA_OPT__(, ) __VA_ARGS__),     \
     KERNEL(name, Fp16, false __VA_OPT__(, ) __VA_ARGS__),     \
     KERNEL(name, Fp32, false __VA_OPT__(, ) __VA_ARGS__)},    \
        {KERNEL(name, Bf16, true __VA_OPT__(, ) __VA_ARGS__),  \
         KERNEL(name, Fp16, true __VA_OPT__(, ) __VA_ARGS__),  \
         KERNEL(name, Fp32, true __VA_OPT__(, ) __VA_ARGS__)}, \
  }
constinit const QuantizeKernels kLargestKernels = KERNELS(largest_kernel);
constinit const QuantizeKernels kQuantizeKernels = KERNELS(quantize_kernel);
constinit const QuantizeKernels kQuantizeRowsKernels = KERNELS(quantize_rows_kernel);
constinit const QuantizeKernels kQuantizeFp8Kernels = KERNELS(quantize_fp8_kernel, 1);
constinit const QuantizeKernels kQuantizeShortFp8Kernels = KERNELS(quantize_fp8_kernel, kShortRowsOfTile);
#undef KERNELS
#undef KERNEL

}  // namespace dualgemm
