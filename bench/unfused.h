// unfused.h -- what stands around a GEMM where no kernel computes the whole: operands as numbers that a GEMM
// library multiplies, and the activation of products that lie in memory. For the benchmark and its tests; the
// library has none of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "host/include/dualgemm.h"

namespace bench {

// Writes the NVFP4 elements of `rows` compact rows, with their scale factors in atoms of 128x4, as FP16 or
// BF16, either of which holds each of them exactly. k is a multiple of 32.
cudaError_t launch_dequantise(const void* codes, const void* scales, int32_t rows, int32_t k,
                              dualgemm_dtype_t dtype, void* out, cudaStream_t stream);

// The same of MXFP4 elements, which are multiplied by 2 to the exponent of their row plus `more`, too. Also
// as FP8_E4M3: as such they are exact where these products are.
cudaError_t launch_dequantise_mxfp4(const void* codes, const void* scales, const int16_t* exponents,
                                    int32_t more, int32_t rows, int32_t k, dualgemm_dtype_t dtype, void* out,
                                    cudaStream_t stream);

// Writes numbers in FP8_E4M3, times a factor, as FP16 or BF16. There are a multiple of 16 of them.
cudaError_t launch_convert_fp8(const void* from, int64_t numbers, float factor, dualgemm_dtype_t dtype,
                               void* out, cudaStream_t stream);

// Gates and ups, or of one product the gates alone.
struct Products {
  const void *gates, *ups;                                      // of one product `ups` is null
  int64_t pitch;                                                // elements from one row to the next, of both
  dualgemm_dtype_t dtype;                                       // FP16 or BF16
  const float *alpha1 = nullptr, *alpha2 = nullptr;             // of each problem, on the device; null: 1
  int32_t linear_activation = DUALGEMM_LINEAR_ACTIVATION_NONE;  // of one product
};

// Returns those of a launch with these arguments, whose gates lie left of the ups of a row.
Products products_of(const dualgemm_args_t& args, const void* products, dualgemm_dtype_t dtype);

// These are the rows of each problem, one after the other, and their columns, a multiple of 8. For groups
// `rows`, `mode` and `group_rows`, which lies on the device, are m, group_mode and group_rows of dualgemm.h.
struct Extents {
  int32_t rows, columns, problems = 1;
  dualgemm_group_mode_t mode = DUALGEMM_GROUP_NONE;
  const int32_t* group_rows = nullptr;
};

// Computes c = silu(alpha1 * gate) * (alpha2 * up), or c = linear_activation(alpha1 * gate). C is compact and
// FP16 or BF16.
cudaError_t launch_activation(const Products& products, const Extents& extents, void* c,
                              dualgemm_dtype_t c_dtype, cudaStream_t stream);

}  // namespace bench
