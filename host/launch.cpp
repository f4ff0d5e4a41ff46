// launch.cpp -- the CUDA runtime calls. State is kept per device ordinal, never per process: an attribute set
// while one device is current says nothing about the next one. What failed is not remembered, so a later call
// may succeed.

#include "host/launch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <mutex>

#include "host/sf_layout.h"
#include "host/status.h"
#include "host/tensor_map.h"

namespace dualgemm {
namespace {

// Runs its work once, like std::call_once, but a failure leaves it to be tried again.
class Once {
 public:
  template <typename Work>
  dualgemm_status_t run(Work work) {
    if (done_.load(std::memory_order_acquire)) return DUALGEMM_STATUS_SUCCESS;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return DUALGEMM_STATUS_SUCCESS;
    const dualgemm_status_t status = work();
    if (status == DUALGEMM_STATUS_SUCCESS) done_.store(true, std::memory_order_release);
    return status;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_{false};
};

struct DeviceState {
  Once described, loaded;
  dualgemm_device_t device{};
};

int32_t cluster_size(const Instance& instance) { return instance.cta_group * instance.split_k; }

cudaLaunchAttribute cluster_attribute(const Instance& instance) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster_size(instance)), 1, 1};
  return attribute;
}

cudaLaunchConfig_t plain_config(const Instance& instance, int64_t ctas) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(static_cast<unsigned>(instance.threads));
  config.dynamicSmemBytes = static_cast<size_t>(instance.smem_bytes);
  return config;
}

constexpr int kMaxDevices = 64;
std::array<DeviceState, kMaxDevices> device_states;

// Clusters of `size` CTAs that run at once: of the instance that leaves the least room for others.
dualgemm_status_t count_clusters(int32_t size, int32_t* clusters) {
  const Instance* largest = nullptr;
  for (const Instance& instance : kInstances)
    if (cluster_size(instance) == size && (!largest || instance.smem_bytes > largest->smem_bytes))
      largest = &instance;
  if (!largest) return DUALGEMM_STATUS_SUCCESS;
  if (auto status = load_instance(*largest)) return status;

  cudaLaunchAttribute cluster = cluster_attribute(*largest);
  cudaLaunchConfig_t config = plain_config(*largest, size);
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  if (const cudaError_t error = cudaOccupancyMaxActiveClusters(&count, largest->kernel, &config))
    return fail_cuda(error, "cudaOccupancyMaxActiveClusters");
  *clusters = count;
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t describe(int ordinal, dualgemm_device_t* device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal))
    return fail_cuda(error, "cudaGetDeviceProperties");
  int driver_version = 0;
  if (const cudaError_t error = cudaDriverGetVersion(&driver_version))
    return fail_cuda(error, "cudaDriverGetVersion");

  *device = {};
  device->cc_major = properties.major;
  device->cc_minor = properties.minor;
  device->sm_count = properties.multiProcessorCount;
  device->driver_version = driver_version;
  device->ordinal = ordinal;
  std::memcpy(device->name, properties.name, sizeof device->name - 1);
  if (validate_device(*device) != DUALGEMM_STATUS_SUCCESS) {  // no kernel runs there: nothing to ask about
    clear_last_error();
    return DUALGEMM_STATUS_SUCCESS;
  }
  if (auto status = count_clusters(2, &device->clusters_of_2)) return status;
  return count_clusters(4, &device->clusters_of_4);
}

}  // namespace

dualgemm_status_t fail_cuda(cudaError_t error, const char* call) {
  if (error == cudaErrorInsufficientDriver) {
    // The runtime says the same when there is no driver at all; the version tells the two apart.
    int driver_version = 0;
    if (cudaDriverGetVersion(&driver_version) == cudaSuccess && driver_version > 0)
      return fail(DUALGEMM_STATUS_DRIVER_TOO_OLD,
                  "driver supports CUDA %d.%d; the library is built with CUDA %d.%d", driver_version / 1000,
                  driver_version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return fail(DUALGEMM_STATUS_NO_DEVICE, "%s: there is no CUDA driver", call);
  }
  if (error == cudaErrorNoDevice) return fail(DUALGEMM_STATUS_NO_DEVICE, "%s: there is no CUDA device", call);
  set_last_cuda_error(error);
  return fail(DUALGEMM_STATUS_CUDA_ERROR, "%s: %s (%d): %s", call, cudaGetErrorName(error),
              static_cast<int>(error), cudaGetErrorString(error));
}

dualgemm_status_t query_current_device(dualgemm_device_t* device) {
  int ordinal = 0;
  if (const cudaError_t error = cudaGetDevice(&ordinal)) return fail_cuda(error, "cudaGetDevice");
  if (ordinal >= kMaxDevices)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "device %d: only the first %d devices are supported", ordinal,
                kMaxDevices);
  DeviceState& state = device_states[static_cast<size_t>(ordinal)];
  if (auto status = state.described.run([&] { return describe(ordinal, &state.device); })) return status;
  *device = state.device;
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t load_instance(const Instance& instance) {
  // Setting the attribute makes the runtime load the function, which it must not put off until a stream
  // capture.
  const cudaError_t error =
      cudaFuncSetAttribute(instance.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, instance.smem_bytes);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_cuda(error, "cudaFuncSetAttribute");
}

dualgemm_status_t load_kernels(int32_t ordinal) {
  return device_states[static_cast<size_t>(ordinal)].loaded.run([] {
    for (const Instance& instance : kInstances)
      if (auto status = load_instance(instance)) return status;
    return DUALGEMM_STATUS_SUCCESS;
  });
}

Machine machine_of(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  const int32_t sms = args.max_sms > 0 ? std::min(args.max_sms, device.sm_count) : device.sm_count;
  return {sms, device.clusters_of_2, device.clusters_of_4};
}

int64_t grid_size(const Problem& problem, const Instance& instance, const Machine& machine) {
  const int64_t tiles = tile_bound(problem, instance);
  const int64_t at_once = std::max(1, clusters_at_once(machine, cluster_size(instance)));
  return (instance.split_k > 1 ? tiles : std::min(tiles, at_once)) * cluster_size(instance);
}

dualgemm_status_t make_params(const Problem& problem, const Instance& instance, Params* params) {
  const dualgemm_args_t& args = problem.args;
  constexpr uint32_t kEarlyWeights = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  *params = {};
  if (auto status = encode_tensor_maps(problem, instance, params)) return status;
  params->c = args.c;
  params->ldc = args.ldc;
  params->c_stride = problem.group_offsets() ? 0 : args.batch_stride_c;
  params->alpha1_dev = args.alpha1_dev;
  params->alpha2_dev = args.alpha2_dev;
  params->alpha_stride = args.alpha_stride;
  params->alpha1 = args.alpha1;
  params->alpha2 = args.alpha2;
  params->m = args.m;
  params->n = args.n;
  params->k = args.k;
  params->m_tiles = static_cast<int32_t>(ceil_div(args.m, instance.tile_m));
  params->n_tiles = static_cast<int32_t>(ceil_div(args.n, instance.tile_n));
  params->k_tiles = static_cast<int32_t>(ceil_div(args.k, instance.tile_k));
  params->problems = problem.problems;
  params->group_rows = args.group_rows;
  params->group_offsets = problem.group_offsets() ? 1 : 0;
  params->static_weights = (args.flags & kEarlyWeights) == kEarlyWeights ? 1 : 0;
  return DUALGEMM_STATUS_SUCCESS;
}

void make_launch_config(const Problem& problem, const Instance& instance, int64_t ctas, cudaStream_t stream,
                        LaunchConfig* launch) {
  unsigned count = 0;
  if (cluster_size(instance) > 1) launch->attributes[count++] = cluster_attribute(instance);
  if (problem.args.flags & DUALGEMM_FLAG_PDL) {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    launch->attributes[count++] = early;
  }
  launch->config = plain_config(instance, ctas);
  launch->config.stream = stream;
  launch->config.attrs = launch->attributes;
  launch->config.numAttrs = count;
}

dualgemm_status_t launch_instance(const Problem& problem, const Instance& instance,
                                  const dualgemm_device_t& device, cudaStream_t stream) {
  Params params;
  if (auto status = make_params(problem, instance, &params)) return status;
  LaunchConfig launch;
  make_launch_config(problem, instance, grid_size(problem, instance, machine_of(problem.args, device)),
                     stream, &launch);
  void* arguments[] = {&params};
  const cudaError_t error = cudaLaunchKernelExC(&launch.config, instance.kernel, arguments);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_cuda(error, instance.name);
}

dualgemm_status_t launch_zero_fill(const Problem& problem, cudaStream_t stream) {
  constexpr size_t kElemBytes = 2;  // both output types
  const dualgemm_args_t& args = problem.args;
  const auto pitch = static_cast<size_t>(args.ldc) * kElemBytes;
  const auto width = static_cast<size_t>(args.n) * kElemBytes;
  const auto rows = static_cast<size_t>(args.m);
  // Problems without a gap between them are rows of one.
  const bool compact = args.batch_stride_c == args.m * args.ldc;
  const int32_t fills = compact ? 1 : problem.a_problems;
  const size_t rows_per_fill = compact ? rows * static_cast<size_t>(problem.a_problems) : rows;
  for (int32_t i = 0; i < fills; ++i) {
    auto* const c = static_cast<unsigned char*>(args.c) + i * args.batch_stride_c * int64_t{kElemBytes};
    if (const cudaError_t error = cudaMemset2DAsync(c, pitch, 0, width, rows_per_fill, stream))
      return fail_cuda(error, "cudaMemset2DAsync");
  }
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
