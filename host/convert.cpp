// convert.cpp -- the exported functions that move factors and quantise on the device: rules, parameters of
// the kernel, launch. Their twins on the host are in convert_host.cpp.

#include "host/convert.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "host/conversion.h"
#include "host/cuda_error.h"
#include "host/device.h"
#include "host/status.h"
#include "host/structure.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

template <class Params>
using Kernel = void (*)(Params);

// What all launches of a call share.
struct Launch {
  cudaStream_t stream;
  bool programmatic;
  int32_t sms;
  int64_t tiles;
};

// The device has to be one that the library is built for.
dualgemm_status_t describe_launch(const Rows& rows, int32_t tiles_of_band, uint32_t flags,
                                  cudaStream_t stream, Launch* launch) {
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  if (auto status = check_device(device)) return status;
  *launch = {stream, (flags & DUALGEMM_FLAG_PDL) != 0, device.sm_count,
             rows.most_blocks() * rows.matrices() * tiles_of_band};
  return kOk;
}

// CTAs take tile after tile: there are no more than run at once.
template <class Params>
dualgemm_status_t launch_kernel(const Launch& launch, Kernel<Params> kernel, Params params,
                                int32_t ctas_of_sm) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>(launch.tiles, launch.sms * ctas_of_sm)));
  config.blockDim = dim3(kConvertThreads);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = launch.programmatic ? 1 : 0;
  void* arguments[] = {&params};
  const cudaError_t error = cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments);
  return error == cudaSuccess ? kOk : fail_launch(error, "cudaLaunchKernelExC", launch.stream);
}

BandParams band_params(const Rows& rows, int32_t tiles_of_band) {
  return {rows.m,          static_cast<int32_t>(sf_row_blocks(rows.m)),
          tiles_of_band,   rows.problems,
          rows.group_rows, rows.offsets() ? 1 : 0};
}

// Rows begin at multiples of 16 bytes.
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
  Launch launch;
  if (auto status =
          describe_launch(conversion.rows, conversion.tiles_of_band, conversion.args.flags, stream, &launch))
    return status;
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
  return launch_kernel(launch, kernels[conversion.rows.grouped()], params, kFactorCtas);
}

QuantizeParams quantize_params(const Quantization& quantization) {
  const dualgemm_quantize_args_t& args = quantization.args;
  QuantizeParams params{};
  params.rows = band_params(quantization.rows, quantization.tiles_of_band);
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
  return params;
}

dualgemm_status_t quantize(const dualgemm_quantize_args_t* user_args, cudaStream_t stream) {
  Quantization quantization;
  if (auto status = validate(user_args, &quantization)) return status;
  if (quantization.empty) return kOk;
  const dualgemm_quantize_args_t& args = quantization.args;
  const CudaErrorScope errors;
  Launch launch;
  if (auto status =
          describe_launch(quantization.rows, quantization.tiles_of_band, args.flags, stream, &launch))
    return status;
  const QuantizeParams params = quantize_params(quantization);
  const bool grouped = quantization.rows.grouped();
  if (args.scale_mode == DUALGEMM_SCALE_ROW)
    return launch_kernel(launch, kQuantizeRowsKernels[grouped][args.x_dtype], params, kQuantizeCtas);
  if (args.scale_mode == DUALGEMM_SCALE_TENSOR) {
    if (const cudaError_t error =
            cudaMemsetAsync(args.tensor_scales + kLargest, 0, sizeof *args.tensor_scales, stream))
      return fail_launch(error, "cudaMemsetAsync", stream);
    if (auto status = launch_kernel(launch, kLargestKernels[grouped][args.x_dtype], params, kQuantizeCtas))
      return status;
  }
  return launch_kernel(launch, kQuantizeKernels[grouped][args.x_dtype], params, kQuantizeCtas);
}

template <class Params>
dualgemm_status_t load(Kernel<Params> kernel) {
  return load_kernel(reinterpret_cast<const void*>(kernel), 0);
}

}  // namespace

dualgemm_status_t load_conversions() {
  for (const auto* kernels : {&kSwizzleKernels, &kUnswizzleKernels})
    for (const FactorKernel kernel : *kernels)
      if (auto status = load(kernel)) return status;
  for (const auto* kernels : {&kLargestKernels, &kQuantizeKernels, &kQuantizeRowsKernels})
    for (const auto& of_type : *kernels)
      for (const QuantizeKernel kernel : of_type)
        if (auto status = load(kernel)) return status;
  return kOk;
}

dualgemm_status_t launch_preparation(const Problem& problem, const Machine& machine, cudaStream_t stream) {
  const dualgemm_args_t& args = problem.args;
  const Tensor &a = problem.inputs[kA], &sfa = problem.inputs[kSfa];
  const Rows rows{args.m, problem.problems, args.group_mode, args.group_rows};
  const auto pieces = static_cast<int32_t>(ceil_div(args.k, kPreparePiece) * (kSfAtomRows / kPrepareRows));
  PrepareParams params{};
  params.rows = band_params(rows, pieces);
  params.a = static_cast<const uint8_t*>(a.base);
  params.a_pitch = a.bytes(a.pitch);
  params.a_stride = a.bytes(a.shared_stride());
  params.factors = static_cast<const uint8_t*>(sfa.base);
  params.factor_stride = sfa.shared_stride();
  params.prepared_a = static_cast<uint16_t*>(args.workspace);
  params.pitch = prepared_pitch(problem);
  params.stride = a.rows * params.pitch;
  params.k = args.k;
  const Launch launch{stream, (args.flags & DUALGEMM_FLAG_PDL) != 0, machine.sms,
                      rows.most_blocks() * rows.matrices() * pieces};
  const int32_t ctas_of_sm = machine.limited ? 1 : kPrepareCtas;
  return launch_kernel(launch, kPrepareKernels[problem.packed_a()][problem.grouped()], params, ctas_of_sm);
}

}  // namespace dualgemm

using namespace dualgemm;

void dualgemm_sf_args_init_sized(dualgemm_sf_args_t* args, size_t struct_size) noexcept {
  const dualgemm_sf_args_t defaults = default_sf_args();
  init_structure(args, struct_size, &defaults, sizeof defaults);
}

void dualgemm_quantize_args_init_sized(dualgemm_quantize_args_t* args, size_t struct_size) noexcept {
  const dualgemm_quantize_args_t defaults = default_quantize_args();
  init_structure(args, struct_size, &defaults, sizeof defaults);
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
