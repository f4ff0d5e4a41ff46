// device.cpp -- see device.h.

#include "host/common/device.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <mutex>

#include "host/common/cuda_error.h"
#include "host/common/device_description.h"
#include "host/common/status.h"
#include "host/common/text.h"
#include "kernel/instance.h"

namespace dualgemm {
namespace {

// What is known of a device once it has been asked. Neither a failure nor an incomplete answer is remembered.
class Description {
 public:
  dualgemm_status_t get(int ordinal, dualgemm_device_t* device);

 private:
  std::mutex mutex_;
  std::atomic<bool> complete_{false};
  dualgemm_device_t device_{};
};

// Constant-initialised like everything in the library, so that a call from a static constructor finds it
// ready.
constinit std::array<Description, kMaxDevices> descriptions;

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

// The answers are kept, since every launch asks this, and an architecture's first instance may be far down
// the table.
bool built_for(Arch arch) {
  static const uint32_t architectures = [] {
    uint32_t bits = 0;
    for (const Instance& instance : instances()) bits |= 1u << static_cast<int>(instance.plan.arch);
    return bits;
  }();
  return (architectures >> static_cast<int>(arch) & 1) != 0;
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
  return descriptions[static_cast<size_t>(ordinal)].get(ordinal, device);
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

}  // namespace dualgemm
