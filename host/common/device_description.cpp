// device_description.cpp -- see device_description.h.

#include "host/common/device_description.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "host/common/cuda_error.h"
#include "host/common/device.h"
#include "host/common/driver_function.h"
#include "host/common/status.h"
#include "kernel/instance.h"

namespace dualgemm {
namespace {

// The structures and enumerators of CUDA's runtime are those of its major version. If a program was linked
// with another major version of the runtime than that of the build, the runtime would read structures
// differently than this library writes them, and no CUDA error says so. So the version of the runtime is
// asked for before any call that passes more than a number.
dualgemm_status_t check_runtime() {
  int version = 0;
  if (const cudaError_t error = cudaRuntimeGetVersion(&version))
    return fail_cuda(error, "cudaRuntimeGetVersion");
  if (version / 1000 == CUDART_VERSION / 1000) return DUALGEMM_STATUS_SUCCESS;
  return fail(
      DUALGEMM_STATUS_RUNTIME_MISMATCH,
      "runtime_version=%d: the program has the CUDA runtime of %d.%d, the library is built with CUDA %d.%d; "
      "link it with a libcudart of CUDA %d",
      version, version / 1000, version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
      CUDART_VERSION / 1000);
}

// Reads the numbers one at a time, through no structure of CUDA's.
dualgemm_status_t read_numbers(int ordinal, dualgemm_device_t* device) {
  const struct {
    cudaDeviceAttr attribute;
    int32_t* number;
  } numbers[] = {{cudaDevAttrComputeCapabilityMajor, &device->cc_major},
                 {cudaDevAttrComputeCapabilityMinor, &device->cc_minor},
                 {cudaDevAttrMultiProcessorCount, &device->sm_count}};
  for (const auto& [attribute, number] : numbers)
    if (const cudaError_t error = cudaDeviceGetAttribute(number, attribute, ordinal))
      return fail_cuda(error, "cudaDeviceGetAttribute");
  if (const cudaError_t error = cudaDriverGetVersion(&device->driver_version))
    return fail_cuda(error, "cudaDriverGetVersion");
  return DUALGEMM_STATUS_SUCCESS;
}

// The choice does without it where the device does not tell it.
void read_memory(int ordinal, dualgemm_device_t* device) {
  int khz = 0, bits = 0;
  if (cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, ordinal) == cudaSuccess &&
      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, ordinal) == cudaSuccess)
    device->memory_gb_s = static_cast<int32_t>(int64_t{khz} * 2 * bits / 8 / 1'000'000);
}

constinit DriverFunction get_device{"cuDeviceGet", 2000}, get_name{"cuDeviceGetName", 2000};

// Messages and tuning files have the name; where the driver does not tell it, it stays empty.
void read_name(int ordinal, dualgemm_device_t* device) {
  const UnreportedErrors unreported;
  PFN_cuDeviceGet_v2000 get = nullptr;
  PFN_cuDeviceGetName_v2000 name = nullptr;
  CUdevice handle = 0;
  if (get_device.find(&get) || get_name.find(&name) || get(&handle, ordinal) != CUDA_SUCCESS ||
      name(device->name, sizeof device->name, handle) != CUDA_SUCCESS)
    device->name[0] = '\0';
}

// Returns the instance with the most shared memory; among equal ones the first, which has the least code to
// load. Returns null where no instance has clusters, so that there is nothing to count.
const Instance* largest_for_clusters(Arch arch) {
  const Instance* largest = nullptr;
  bool clusters = false;
  for (const Instance& instance : instances(arch)) {
    clusters = clusters || instance.plan.cluster_size() > 1;
    if (!largest || instance.smem_bytes > largest->smem_bytes) largest = &instance;
  }
  return clusters ? largest : nullptr;
}

// Counts the clusters of `size` CTAs of this instance, which has been loaded, that run at once with its
// shared memory. The instance's own clusters may have another size.
cudaError_t count_clusters(const Instance& instance, int32_t size, int* count) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(size));
  config.blockDim = dim3(static_cast<unsigned>(instance.plan.threads));
  config.dynamicSmemBytes = static_cast<size_t>(instance.smem_bytes);
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaOccupancyMaxActiveClusters(count, reinterpret_cast<const void*>(instance.kernel), &config);
}

// These errors are no answer about clusters: memory has run out, there is no code for the device, or a
// stream of the program is being captured, which forbids to ask.
bool is_answer(cudaError_t error) {
  const bool capture =
      error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
  return !capture && error != cudaErrorMemoryAllocation && error != cudaErrorNoKernelImageForDevice &&
         error != cudaErrorInvalidKernelImage && error != cudaErrorInvalidDeviceFunction;
}

// A count of 0 is an answer, and so is an error of a device that cannot count: the number becomes -1, and no
// clusters of that size are chosen. An error here makes nothing else fail, unless the context has failed.
// *complete becomes false if the device has to be asked again.
dualgemm_status_t read_clusters(dualgemm_device_t* device, bool* complete) {
  const Instance* const largest = largest_for_clusters(served_architecture(*device)->arch);
  if (!largest) return DUALGEMM_STATUS_SUCCESS;
  const cudaError_t loaded =
      allow_shared_memory(reinterpret_cast<const void*>(largest->kernel), largest->smem_bytes);
  const struct {
    int32_t size;
    int32_t* clusters;
  } kinds[] = {{2, &device->clusters_of_2}, {4, &device->clusters_of_4}};
  for (const auto& [size, clusters] : kinds) {
    int count = 0;
    const cudaError_t error = loaded != cudaSuccess ? loaded : count_clusters(*largest, size, &count);
    if (ends_context(error))
      return fail_cuda(error,
                       loaded != cudaSuccess ? "cudaFuncSetAttribute" : "cudaOccupancyMaxActiveClusters");
    *clusters = error == cudaSuccess && count > 0 ? count : -1;
    *complete = *complete && is_answer(error);
  }
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace

dualgemm_status_t describe_device(int ordinal, dualgemm_device_t* device, bool* complete) {
  if (auto status = check_runtime()) return status;
  *device = {};
  device->struct_size = sizeof *device;
  device->ordinal = ordinal;
  if (auto status = read_numbers(ordinal, device)) return status;
  read_name(ordinal, device);
  read_memory(ordinal, device);
  {
    const UnreportedErrors unreported;
    if (check_device(*device) != DUALGEMM_STATUS_SUCCESS)  // no kernel runs there: nothing to ask about
      return DUALGEMM_STATUS_SUCCESS;
  }
  return read_clusters(device, complete);
}

}  // namespace dualgemm
