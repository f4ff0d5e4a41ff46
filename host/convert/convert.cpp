// convert.cpp -- the exported functions that move factors and quantise on the device: rules, parameters of
// the kernel, launch. Their twins on the host are in convert_host.cpp.

#include "host/convert/convert.h"

#include <cuda_runtime_api.h>

#include "host/common/cuda_error.h"
#include "host/common/device.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/convert/bands.h"
#include "host/convert/conversion.h"
#include "kernel/convert/moe_params.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

// Returns whether rows begin at multiples of 16 bytes.
bool is_wide(const Tensor& linear) {
  return (reinterpret_cast<uintptr_t>(linear.base) | static_cast<uintptr_t>(linear.pitch) |
          static_cast<uintptr_t>(linear.shared_stride())) %
             16 ==
         0;
}

dualgemm_status_t move_factors(const dualgemm_sf_args_t* args, bool to_atoms, cudaStream_t stream) {
  FactorConversion conversion;
  if (auto status = validate(args, to_atoms, &conversion)) return status;
  if (conversion.empty) return kOk;
  const CudaErrorScope errors;
  int32_t sms;
  if (auto status = query_sms(&sms)) return status;
  const BandLaunch launch =
      band_launch(conversion.rows, conversion.tiles_of_band, conversion.args.flags, sms, stream);
  const Tensor &linear = conversion.linear, &atoms = conversion.atoms;
  FactorParams params{};
  params.rows = band_params(conversion.rows, conversion.tiles_of_band);
  params.linear = static_cast<uint8_t*>(const_cast<void*>(linear.base));
  params.pitch = linear.pitch;
  params.stride = linear.shared_stride();
  params.atoms = static_cast<uint8_t*>(const_cast<void*>(atoms.base));
  params.atom_stride = atoms.shared_stride();
  params.blocks = conversion.args.k / kSfBlock;
  params.wide = is_wide(linear) ? 1 : 0;
  const auto& kernels = to_atoms ? kSwizzleKernels : kUnswizzleKernels;
  return launch_bands(launch, kernels[conversion.rows.grouped()], params, kFactorCtas);
}

QuantizeParams quantize_params(const Quantization& quantization, int32_t tiles_of_band) {
  const dualgemm_quantize_args_t& args = quantization.args;
  QuantizeParams params{};
  params.rows = band_params(quantization.rows, tiles_of_band);
  params.x = args.x;
  params.x_pitch = quantization.x.pitch;
  params.x_stride = quantization.x.shared_stride();
  params.q = static_cast<uint8_t*>(args.q);
  params.q_pitch = quantization.q.bytes(quantization.q.pitch);
  params.q_stride = quantization.q.bytes(quantization.q.shared_stride());
  params.factors = static_cast<uint8_t*>(args.sf);
  params.factor_stride = quantization.sf.shared_stride();
  params.k = args.k;
  params.scale = args.global_scale;
  params.scale_dev = args.global_scale_dev;
  params.scale_stride = quantization.global_scale_dev.shared_stride();
  params.tensor_scales = args.tensor_scales;
  params.row_scale = args.row_scale;
  params.row_scale_stride = quantization.row_scale.shared_stride();
  params.row_index = args.row_index;
  params.x_rows = args.x_rows;
  return params;
}

const QuantizeKernels& kernels_of(const Quantization& quantization) {
  if (quantization.in_fp8())
    return quantization.has_short_rows() ? kQuantizeShortFp8Kernels : kQuantizeFp8Kernels;
  return quantization.args.scale_mode == DUALGEMM_SCALE_ROW ? kQuantizeRowsKernels : kQuantizeKernels;
}

dualgemm_status_t quantize(const dualgemm_quantize_args_t* user_args, cudaStream_t stream) {
  Quantization quantization;
  if (auto status = validate(user_args, &quantization)) return status;
  if (quantization.empty) return kOk;
  const dualgemm_quantize_args_t& args = quantization.args;
  const CudaErrorScope errors;
  int32_t sms;
  if (auto status = query_sms(&sms)) return status;
  const auto launch = [&](const QuantizeKernels& kernels, int32_t tiles_of_band) {
    return launch_bands(band_launch(quantization.rows, tiles_of_band, args.flags, sms, stream),
                        kernels[quantization.rows.grouped()][args.x_dtype],
                        quantize_params(quantization, tiles_of_band), kQuantizeCtas);
  };
  if (args.scale_mode == DUALGEMM_SCALE_TENSOR) {
    if (const cudaError_t error =
            cudaMemsetAsync(args.tensor_scales + kLargest, 0, sizeof *args.tensor_scales, stream))
      return fail_launch(error, "cudaMemsetAsync", stream);
    if (auto status = launch(kLargestKernels, quantization.tiles_of_search)) return status;
  }
  return launch(kernels_of(quantization), quantization.tiles_of_band);
}

template <class Params>
dualgemm_status_t load(void (*kernel)(Params)) {
  return load_kernel(reinterpret_cast<const void*>(kernel), 0);
}

}  // namespace

dualgemm_status_t load_conversions() {
  for (const auto* kernels : {&kSwizzleKernels, &kUnswizzleKernels})
    for (const FactorKernel kernel : *kernels)
      if (auto status = load(kernel)) return status;
  for (const auto* kernels : {&kLargestKernels, &kQuantizeKernels, &kQuantizeRowsKernels,
                              &kQuantizeFp8Kernels, &kQuantizeShortFp8Kernels})
    for (const auto& of_type : *kernels)
      for (const QuantizeKernel kernel : of_type)
        if (auto status = load(kernel)) return status;
  for (const auto& of_c : kCombineKernels)
    for (const CombineKernel kernel : of_c)
      if (auto status = load(kernel)) return status;
  if (auto status = load(kMxfp4Kernel)) return status;
  if (auto status = load(kGatherKernel)) return status;
  return load(kPermuteKernel);
}

}  // namespace dualgemm

using namespace dualgemm;

void dualgemm_sf_args_init_sized(dualgemm_sf_args_t* args, size_t struct_size) noexcept {
  init_structure(args, struct_size, default_sf_args());
}

void dualgemm_quantize_args_init_sized(dualgemm_quantize_args_t* args, size_t struct_size) noexcept {
  init_structure(args, struct_size, default_quantize_args());
}

dualgemm_status_t dualgemm_sf_swizzle(const dualgemm_sf_args_t* args, dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return move_factors(args, true, stream);
}

dualgemm_status_t dualgemm_sf_unswizzle(const dualgemm_sf_args_t* args, dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return move_factors(args, false, stream);
}

dualgemm_status_t dualgemm_quantize(const dualgemm_quantize_args_t* args, dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return quantize(args, stream);
}
