// launch.cpp -- see launch.h.

#include "host/launch/launch.h"

#include "host/common/cuda_error.h"
#include "host/common/status.h"
#include "host/launch/load.h"
#include "host/launch/prepare_a.h"
#include "host/launch/tensor_map.h"

namespace dualgemm {
namespace {

// Returns where a tensor starts, which is null if the launch does not have it.
template <class Element>
Element* start_of(const Tensor& t) {
  return static_cast<Element*>(const_cast<void*>(t.base));
}
Matrix matrix_of(const Tensor& t) { return {start_of<void>(t), t.pitch, t.shared_stride()}; }

GeneralParams general_params(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  const Tensor *const in = problem.inputs, *const out = problem.outputs;
  GeneralParams general{};
  general.row_scale = start_of<const float>(in[kARowScale]);
  general.row_scale_stride = in[kARowScale].shared_stride();
  general.c_row_scale = start_of<const float>(in[kCRowScale]);
  general.c_row_scale_stride = in[kCRowScale].shared_stride();
  general.bias1 = in[kBias1].base;
  general.bias2 = in[kBias2].base;
  general.bias_stride = in[kBias1].shared_stride();
  general.bias_type = args.bias_dtype;
  general.activation = problem.products == 1 ? args.linear_activation : args.activation;
  general.exact = (args.flags & DUALGEMM_FLAG_EXACT_ACT) != 0 ? 1 : 0;
  general.swiglu_alpha = args.swiglu_alpha;
  general.swiglu_beta = args.swiglu_beta;
  general.swiglu_limit = args.swiglu_limit;
  general.situ_gate = args.situ_gate;
  general.situ_up = args.situ_up;
  general.situ_gate_reciprocal = 1 / args.situ_gate;
  general.situ_up_reciprocal = 1 / args.situ_up;
  general.d1 = matrix_of(out[kD1]);
  general.d2 = matrix_of(out[kD2]);
  general.d_type = args.d_dtype;
  general.amax = start_of<float>(out[kAmax]);
  general.encode = args.c_global_scale;
  general.encode_dev = start_of<const float>(in[kCGlobalScale]);
  general.encode_stride = in[kCGlobalScale].shared_stride();
  general.sfc = start_of<void>(out[kSfc]);
  general.sfc_stride = out[kSfc].shared_stride();
  general.c_add = in[kCAdd].base;
  general.c_add_ld = in[kCAdd].pitch;
  general.c_add_stride = in[kCAdd].shared_stride();
  return general;
}

dualgemm_status_t fill_with_zeros(const Tensor& t, cudaStream_t stream) {
  // Problems without a gap between them are filled as if they were the rows of one problem.
  const bool without_gaps = t.stride == t.rows * t.pitch;
  const int32_t fills = without_gaps ? 1 : t.problems;
  const auto rows = static_cast<size_t>(without_gaps ? t.rows * t.problems : t.rows);
  auto* const first = static_cast<unsigned char*>(const_cast<void*>(t.base));
  for (int32_t i = 0; i < fills; ++i)
    if (const cudaError_t error =
            cudaMemset2DAsync(first + i * t.bytes(t.stride), static_cast<size_t>(t.bytes(t.pitch)), 0,
                              static_cast<size_t>(t.bytes(t.row_elements)), rows, stream))
      return fail_launch(error, "cudaMemset2DAsync", stream);
  return DUALGEMM_STATUS_SUCCESS;
}

// Adds what the CTAs of a launch with stream-K have to know of each other.
void add_shares(const Problem& problem, const Plan& plan, int64_t ctas, Params* params) {
  if (!plan.tile.stream_k) return;
  const StreamSpace space = stream_space(problem, plan);
  auto* const workspace = static_cast<uint8_t*>(problem.args.workspace);
  params->shares = shares_for(static_cast<uint32_t>(tile_bound(problem, plan.tile)),
                              static_cast<uint32_t>(params->k_tiles), static_cast<uint32_t>(ctas));
  params->parts_there = reinterpret_cast<uint32_t*>(workspace + space.counts_begin);
  params->part_sums = reinterpret_cast<float*>(workspace + space.sums_begin);
}

}  // namespace

dualgemm_status_t make_params(const Problem& problem, const Instance& instance, Params* params) {
  const dualgemm_args_t& args = problem.args;
  const Tensor* const in = problem.inputs;
  const TilePlan& tile = instance.plan.tile;
  *params = {};
  if (auto status = encode_tensor_maps(problem, instance.plan, params)) return status;
  params->c = matrix_of(problem.outputs[kC]);
  params->alpha1_dev = start_of<const float>(in[kAlpha1]);
  params->alpha2_dev = start_of<const float>(in[kAlpha2]);
  params->alpha_stride = in[kAlpha1].shared_stride();
  params->alpha1 = args.alpha1;
  params->alpha2 = args.alpha2;
  params->m = args.m;
  params->n = args.n;
  params->k = args.k;
  params->m_tiles = static_cast<int32_t>(m_tiles(tile, args.m));
  params->n_tiles = static_cast<int32_t>(n_tiles(tile, args.n));
  params->k_tiles = static_cast<int32_t>(k_tiles(tile, args.k));
  params->problems = problem.problems;
  params->c_type = args.c_dtype;
  params->group_rows = start_of<const int32_t>(in[kRowsOfGroups]);
  params->group_offsets = problem.group_offsets() ? 1 : 0;
  // Without PDL nothing that precedes the kernel still runs, except perhaps the launch's own pass over A.
  params->static_weights =
      (args.flags & DUALGEMM_FLAG_PDL) == 0 || (args.flags & DUALGEMM_FLAG_STATIC_WEIGHTS) != 0;
  params->general = general_params(problem);
  params->b1_row_exponent = start_of<const int16_t>(in[kB1RowExponent]);
  params->b2_row_exponent = start_of<const int16_t>(in[kB2RowExponent]);
  // One stride is for both, of which either may be absent.
  params->b_row_exponent_stride =
      in[in[kB1RowExponent].given() ? kB1RowExponent : kB2RowExponent].shared_stride();
  return DUALGEMM_STATUS_SUCCESS;
}

void make_launch_config(const Problem& problem, const Instance& instance, const Machine& machine,
                        int64_t ctas, cudaStream_t stream, LaunchConfig* launch) {
  unsigned count = 0;
  if (const int32_t cluster = instance.plan.cluster_size(); cluster > 1) {
    cudaLaunchAttribute& attribute = launch->attributes[count++] = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  }
  if (starts_early(problem, instance.plan, machine)) {
    cudaLaunchAttribute& attribute = launch->attributes[count++] = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  launch->config = {};
  launch->config.gridDim = dim3(static_cast<unsigned>(ctas));
  launch->config.blockDim = dim3(static_cast<unsigned>(instance.plan.threads));
  launch->config.dynamicSmemBytes = static_cast<size_t>(smem_bytes_of_launch(instance, ctas, machine));
  launch->config.stream = stream;
  launch->config.attrs = launch->attributes;
  launch->config.numAttrs = count;
}

dualgemm_status_t launch_instance(const Problem& problem, const Instance& instance,
                                  const dualgemm_device_t& device, cudaStream_t stream) {
  const Machine machine = machine_of(problem.args, device);
  Params params;
  if (auto status = make_params(problem, instance, &params)) return status;
  if (auto status = prepare_a(problem, instance.plan, machine, stream)) return status;
  const int64_t ctas = grid_size(problem, instance.plan, machine);
  add_shares(problem, instance.plan, ctas, &params);
  LaunchConfig launch;
  make_launch_config(problem, instance, machine, ctas, stream, &launch);
  void* arguments[] = {&params};
  const cudaError_t error =
      cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void*>(instance.kernel), arguments);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_launch(error, instance.name, stream);
}

// The sum of no products is 0, and the bytes of 0 are zero in every type of an output. So this is right for K
// == 0 if f(0) * h(0) = 0, which is true of all activations of the interface. Biases are refused with K == 0.
// The largest |C| is 0, and to 0 *amax_out need not be raised.
dualgemm_status_t launch_zero_fill(const Problem& problem, cudaStream_t stream) {
  for (const Tensor& output : problem.written_outputs())
    if (output.base != problem.args.amax_out)
      if (auto status = fill_with_zeros(output, stream)) return status;
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
