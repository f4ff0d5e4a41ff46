// launch.cpp -- see launch.h.

#include "host/launch.h"

#include "host/cuda_error.h"
#include "host/status.h"
#include "host/tensor_map.h"
#include "host/tiling.h"

namespace dualgemm {

dualgemm_status_t make_params(const Problem& problem, const Instance& instance, Params* params) {
  const dualgemm_args_t& args = problem.args;
  const TilePlan& tile = instance.plan.tile;
  // Without PDL nothing is read early, and STATIC_WEIGHTS changes nothing.
  constexpr uint32_t kEarlyWeights = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  *params = {};
  if (auto status = encode_tensor_maps(problem, instance.plan, params)) return status;
  params->c = args.c;
  params->ldc = problem.output.pitch;
  params->c_stride = problem.group_offsets() ? 0 : problem.output.stride;
  params->alpha1_dev = args.alpha1_dev;
  params->alpha2_dev = args.alpha2_dev;
  params->alpha_stride = args.alpha_stride;
  params->alpha1 = args.alpha1;
  params->alpha2 = args.alpha2;
  params->m = args.m;
  params->n = args.n;
  params->k = args.k;
  params->m_tiles = static_cast<int32_t>(m_tiles(tile, args.m));
  params->n_tiles = static_cast<int32_t>(n_tiles(tile, args.n));
  params->k_tiles = static_cast<int32_t>(k_tiles(tile, args.k));
  params->problems = problem.problems;
  params->group_rows = args.group_rows;
  params->group_offsets = problem.group_offsets() ? 1 : 0;
  params->static_weights = (args.flags & kEarlyWeights) == kEarlyWeights ? 1 : 0;
  return DUALGEMM_STATUS_SUCCESS;
}

void make_launch_config(const Problem& problem, const Instance& instance, int64_t ctas, cudaStream_t stream,
                        LaunchConfig* launch) {
  unsigned count = 0;
  if (const int32_t cluster = instance.plan.cluster_size(); cluster > 1) {
    cudaLaunchAttribute& attribute = launch->attributes[count++] = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  }
  if (problem.args.flags & DUALGEMM_FLAG_PDL) {
    cudaLaunchAttribute& attribute = launch->attributes[count++] = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  launch->config = {};
  launch->config.gridDim = dim3(static_cast<unsigned>(ctas));
  launch->config.blockDim = dim3(static_cast<unsigned>(instance.plan.threads));
  launch->config.dynamicSmemBytes = static_cast<size_t>(instance.smem_bytes);
  launch->config.stream = stream;
  launch->config.attrs = launch->attributes;
  launch->config.numAttrs = count;
}

dualgemm_status_t launch_instance(const Problem& problem, const Instance& instance,
                                  const dualgemm_device_t& device, cudaStream_t stream) {
  Params params;
  if (auto status = make_params(problem, instance, &params)) return status;
  LaunchConfig launch;
  const int64_t ctas = grid_size(problem, instance.plan, machine_of(problem.args, device));
  make_launch_config(problem, instance, ctas, stream, &launch);
  void* arguments[] = {&params};
  const cudaError_t error =
      cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void*>(instance.kernel), arguments);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_cuda(error, instance.name);
}

// The sum of no products is 0, and the bytes of 0 are zero in every type of C. So this is right for K == 0
// where f(0) * h(0) = 0, as for all activations of the interface.
dualgemm_status_t launch_zero_fill(const Problem& problem, cudaStream_t stream) {
  const Tensor& c = problem.output;
  // Problems without a gap between them are filled as the rows of one.
  const bool without_gaps = c.stride == c.rows * c.pitch;
  const int32_t fills = without_gaps ? 1 : c.problems;
  const auto rows = static_cast<size_t>(without_gaps ? c.rows * c.problems : c.rows);
  for (int32_t i = 0; i < fills; ++i) {
    auto* const start = static_cast<unsigned char*>(problem.args.c) + i * c.bytes(c.stride);
    if (const cudaError_t error =
            cudaMemset2DAsync(start, static_cast<size_t>(c.bytes(c.pitch)), 0,
                              static_cast<size_t>(c.bytes(c.row_elements)), rows, stream))
      return fail_cuda(error, "cudaMemset2DAsync");
  }
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
