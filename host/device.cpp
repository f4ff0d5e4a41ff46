// device.cpp -- see device.h.

#include "host/device.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <mutex>

#include "host/cuda_error.h"
#include "host/device_description.h"
#include "host/status.h"
#include "host/text.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

// Remembers which instances were loaded. Loading one again does no harm: those beyond its size are loaded by
// each launch. After cudaDeviceReset what counts stays true: the attribute survives, and the code loads when
// it is used, in a capture as well (an H200, driver 580; CUDA documents neither).
class Loaded {
 public:
  bool has(int32_t index) const {
    return index < kInstances && (words_[word(index)].load(std::memory_order_acquire) & bit(index)) != 0;
  }
  void add(int32_t index) {
    if (index < kInstances) words_[word(index)].fetch_or(bit(index), std::memory_order_release);
  }

 private:
  static constexpr int32_t kInstances = 512;
  static size_t word(int32_t index) { return static_cast<size_t>(index) / 64; }
  static uint64_t bit(int32_t index) { return uint64_t{1} << index % 64; }
  std::array<std::atomic<uint64_t>, kInstances / 64> words_{};
};

// What is known of a device, once it has been asked. It remembers neither a failure nor half an answer.
class Description {
 public:
  dualgemm_status_t get(int ordinal, dualgemm_device_t* device);

 private:
  std::mutex mutex_;
  std::atomic<bool> complete_{false};
  dualgemm_device_t device_{};
};

struct DeviceState {
  Description description;
  Loaded loaded;
};

// Constant-initialised like everything in the library, so that a call from a static constructor finds it
// ready.
constexpr int kMaxDevices = 64;
constinit std::array<DeviceState, kMaxDevices> device_states;

dualgemm_status_t Description::get(int ordinal, dualgemm_device_t* device) {
  if (complete_.load(std::memory_order_acquire)) {
    *device = device_;
    return DUALGEMM_STATUS_SUCCESS;
  }
  const std::lock_guard lock(mutex_);
  if (!complete_.load(std::memory_order_relaxed)) {
    bool complete = true;
    if (auto status = describe_device(ordinal, &device_, &complete)) return status;
    complete_.store(complete, std::memory_order_release);
  }
  *device = device_;
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t fail_architecture(const dualgemm_device_t& device) {
  Text<64> served;
  for (const Architecture& architecture : kArchitectures)
    if (built_for(architecture.arch)) served.add_member(architecture.capability);
  const int name_length = static_cast<int>(strnlen(device.name, sizeof device.name));
  return fail(DUALGEMM_STATUS_ARCH_MISMATCH,
              "cc_major=%" PRId32 ", cc_minor=%" PRId32 ": device %" PRId32
              " (%.*s), but the library is built for compute capability %s",
              device.cc_major, device.cc_minor, device.ordinal, name_length ? name_length : 7,
              name_length ? device.name : "unnamed", served.get());
}

}  // namespace

bool built_for(Arch arch) {
  const Instances of_arch = instances(arch);
  return of_arch.begin() != of_arch.end();
}

const Architecture* served_architecture(const dualgemm_device_t& device) {
  for (const Architecture& a : kArchitectures)
    if (device.cc_major == a.cc_major && device.cc_minor >= a.cc_minor_first &&
        device.cc_minor <= a.cc_minor_last)
      return built_for(a.arch) ? &a : nullptr;
  return nullptr;
}

dualgemm_status_t check_device(const dualgemm_device_t& device) {
  // Products of numbers of SMs stay within 31 bits.
  constexpr int32_t kMostSms = 65535;
  if (device.sm_count < 1 || device.sm_count > kMostSms)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "sm_count=%" PRId32 ": must be in [1, %" PRId32 "]",
                device.sm_count, kMostSms);
  if (device.clusters_of_2 < -1 || device.clusters_of_4 < -1)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "clusters_of_2=%" PRId32 ", clusters_of_4=%" PRId32 ": must be at least -1, which is none",
                device.clusters_of_2, device.clusters_of_4);
  if (!served_architecture(device)) return fail_architecture(device);
  // By CUDA's minor-version compatibility machine code of toolkit x.y runs on every driver of x or newer.
  constexpr int kDriverNeeded = CUDART_VERSION / 1000 * 1000;
  if (device.driver_version < kDriverNeeded) return fail_driver_too_old(device.driver_version);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t query_current_device(dualgemm_device_t* device) {
  int ordinal = 0;
  if (const cudaError_t error = cudaGetDevice(&ordinal)) return fail_cuda(error, "cudaGetDevice");
  if (ordinal >= kMaxDevices)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "ordinal=%d: must be below %d", ordinal, kMaxDevices);
  return device_states[static_cast<size_t>(ordinal)].description.get(ordinal, device);
}

cudaError_t allow_shared_memory(const void* kernel, int32_t bytes) {
  // Setting the attribute makes the runtime load the function, which it must not put off until a stream
  // capture.
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

dualgemm_status_t load_kernel(const void* kernel, int32_t smem_bytes) {
  const cudaError_t error = allow_shared_memory(kernel, smem_bytes);
  return error == cudaSuccess ? DUALGEMM_STATUS_SUCCESS : fail_cuda(error, "cudaFuncSetAttribute");
}

dualgemm_status_t load_instance(const Instance& instance) {
  if (instance.plan.prepared_a())
    for (const PrepareKernel kernel : kPrepareKernels[instance.plan.packed_a()])
      if (auto status = load_kernel(reinterpret_cast<const void*>(kernel), 0)) return status;
  return load_kernel(reinterpret_cast<const void*>(instance.kernel), instance.smem_bytes);
}

dualgemm_status_t load_once(const dualgemm_device_t& device, int32_t index) {
  Loaded& loaded = device_states[static_cast<size_t>(device.ordinal)].loaded;
  if (loaded.has(index)) return DUALGEMM_STATUS_SUCCESS;
  if (auto status = load_instance(instance(index))) return status;
  loaded.add(index);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t load_all(const dualgemm_device_t& device) {
  const Arch arch = served_architecture(device)->arch;
  for (int32_t i = 0; i < instance_count(); ++i)
    if (instance(i).plan.arch == arch)
      if (auto status = load_once(device, i)) return status;
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
