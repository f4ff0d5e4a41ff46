// launch.cpp -- the CUDA runtime calls. State is kept per device ordinal, never per process: an attribute set
// while one device is current says nothing about the next one. What failed is not remembered, so a later call
// may succeed.

#include "host/launch.h"

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <mutex>

#include "host/status.h"

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

constexpr int kMaxDevices = 64;
std::array<DeviceState, kMaxDevices> device_states;

dualgemm_status_t describe(int ordinal, dualgemm_device_t* device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal))
    return fail_cuda(error, "cudaGetDeviceProperties");
  int driver_version = 0;
  if (const cudaError_t error = cudaDriverGetVersion(&driver_version))
    return fail_cuda(error, "cudaDriverGetVersion");

  *device = {properties.major, properties.minor, properties.multiProcessorCount, driver_version, ordinal, ""};
  std::memcpy(device->name, properties.name, sizeof device->name - 1);
  return DUALGEMM_STATUS_SUCCESS;
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

dualgemm_status_t load_kernels(int32_t ordinal) {
  return device_states[static_cast<size_t>(ordinal)].loaded.run([] {
    // Setting the attribute makes the runtime load the function, which it must not put off until a stream
    // capture.
    for (const Instance& instance : kInstances) {
      const cudaError_t error = cudaFuncSetAttribute(
          instance.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, instance.smem_bytes);
      if (error != cudaSuccess) return fail_cuda(error, "cudaFuncSetAttribute");
    }
    return DUALGEMM_STATUS_SUCCESS;
  });
}

dualgemm_status_t launch_kernel(const Instance& instance, const Params& params, int64_t ctas,
                                cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(static_cast<unsigned>(instance.threads));
  config.dynamicSmemBytes = static_cast<size_t>(instance.smem_bytes);
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(instance.cta_group * instance.split_k), 1, 1};
  config.attrs = &cluster;
  config.numAttrs = instance.cta_group * instance.split_k > 1 ? 1 : 0;
  void* arguments[] = {const_cast<Params*>(&params)};
  const cudaError_t error = cudaLaunchKernelExC(&config, instance.kernel, arguments);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_cuda(error, instance.name);
}

dualgemm_status_t launch_zero_fill(const Problem& problem, cudaStream_t stream) {
  constexpr size_t kElemBytes = 2;  // both output types
  const dualgemm_args_t& args = problem.args;
  const cudaError_t error =
      cudaMemset2DAsync(args.c, static_cast<size_t>(args.ldc) * kElemBytes, 0,
                        static_cast<size_t>(args.n) * kElemBytes, static_cast<size_t>(args.m), stream);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_cuda(error, "cudaMemset2DAsync");
}

}  // namespace dualgemm
