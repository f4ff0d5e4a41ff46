// nvml.cpp -- see nvml.h. The few declarations are those of nvml.h of the CUDA toolkit, whose interface is
// kept from release to release.
#include "nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace bench {
namespace {

using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0;
enum Clock { kSm = 1, kMemory = 2 };

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Returns what a function of this type says of one clock.
std::optional<unsigned> clock_of(void* library, const char* name, Device device, Clock clock) {
  const auto ask = find<int(Device, int, unsigned*)>(library, name);
  unsigned mhz = 0;
  if (ask == nullptr || ask(device, clock, &mhz) != kSuccess) return {};
  return mhz;
}

// Returns a library that is initialised and stays so, or null.
void* library() {
  static void* const loaded = [] {
    void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto init = handle ? find<int()>(handle, "nvmlInit_v2") : nullptr;
    return init != nullptr && init() == kSuccess ? handle : nullptr;
  }();
  return loaded;
}

// CUDA and this library number devices differently; both know their place on the bus.
bool find_device(void* from, int ordinal, Device* device) {
  char place[32] = {};
  if (cudaDeviceGetPCIBusId(place, sizeof place, ordinal) != cudaSuccess) return false;
  const auto by_place = find<int(const char*, Device*)>(from, "nvmlDeviceGetHandleByPciBusId_v2");
  return by_place != nullptr && by_place(place, device) == kSuccess;
}

}  // namespace

GpuState gpu_state(int ordinal) {
  GpuState state;
  void* const from = library();
  if (from == nullptr) return state;
  char driver[80] = {};
  const auto version = find<int(char*, unsigned)>(from, "nvmlSystemGetDriverVersion");
  if (version != nullptr && version(driver, sizeof driver) == kSuccess) state.driver = driver;
  Device device = nullptr;
  if (!find_device(from, ordinal, &device)) return state;
  state.sm_mhz = clock_of(from, "nvmlDeviceGetClockInfo", device, kSm);
  state.memory_mhz = clock_of(from, "nvmlDeviceGetClockInfo", device, kMemory);
  state.sm_most_mhz = clock_of(from, "nvmlDeviceGetMaxClockInfo", device, kSm);
  state.memory_most_mhz = clock_of(from, "nvmlDeviceGetMaxClockInfo", device, kMemory);
  const auto power = find<int(Device, unsigned*)>(from, "nvmlDeviceGetEnforcedPowerLimit");
  unsigned milliwatts = 0;
  if (power != nullptr && power(device, &milliwatts) == kSuccess) state.power_limit_w = milliwatts * 1e-3;
  return state;
}

// nvml.h, nvmlDeviceGetViolationStatus and nvmlViolationTime_t: a time stamp in microseconds, the time that a
// policy held the clocks down in nanoseconds; policy 0 is that of power.
std::optional<PowerReading> power_reading(int ordinal) {
  struct {
    unsigned long long reference_us, violation_ns;
  } status = {};
  void* const from = library();
  Device device = nullptr;
  if (from == nullptr || !find_device(from, ordinal, &device)) return {};
  constexpr int kPowerPolicy = 0;
  const auto ask = find<int(Device, int, void*)>(from, "nvmlDeviceGetViolationStatus");
  if (ask == nullptr || ask(device, kPowerPolicy, &status) != kSuccess) return {};
  return PowerReading{status.reference_us, status.violation_ns};
}

std::optional<double> power_limited_share(const std::optional<PowerReading>& before,
                                          const std::optional<PowerReading>& after) {
  if (!before || !after || after->at_us <= before->at_us) return {};
  const double limited_us = static_cast<double>(after->limited_ns - before->limited_ns) * 1e-3;
  return limited_us / static_cast<double>(after->at_us - before->at_us);
}

}  // namespace bench
