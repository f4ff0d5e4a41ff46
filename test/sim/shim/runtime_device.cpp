// runtime_device.cpp -- the devices, all alike: selection, attributes, properties, limits and
// synchronisation.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "sim/shim/device.h"
#include "sim/shim/shim.h"
#include "sim/shim/state.h"

namespace sim::shim {
namespace {

constexpr int kAccessWindowBytes = 128 << 20;

thread_local int the_current_device = 0;

[[noreturn]] void refuse_environment(const char* variable, const std::string& why) {
  std::fprintf(stderr, "simulated CUDA: %s: %s\n", variable, why.c_str());
  std::fflush(nullptr);
  std::_Exit(2);
}

}  // namespace

int current_device() { return the_current_device; }
void set_current_device(int device) { the_current_device = device; }

int device_count_from_environment() {
  const char* text = std::getenv("SIM_DEVICES");
  if (text == nullptr || *text == 0) return 1;
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  if (*end != 0 || count < 1 || count > kMaxDevices)
    refuse_environment("SIM_DEVICES",
                       "'" + std::string(text) + "' is no number from 1 to " + std::to_string(kMaxDevices));
  return static_cast<int>(count);
}

Machine machine_from_environment() {
  const char* name = std::getenv("SIM_MACHINE");
  if (name == nullptr || *name == 0) return kB200;
  try {
    return machine_named(name);
  } catch (const std::invalid_argument& error) {
    refuse_environment("SIM_MACHINE", error.what());
  }
}

std::string device_name(const Machine& machine) { return std::string("simulated ") + machine.name; }

int device_attribute(const Machine& machine, int attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: return static_cast<int>(machine.major);
    case cudaDevAttrComputeCapabilityMinor: return static_cast<int>(machine.minor);
    case cudaDevAttrMultiProcessorCount: return machine.sms;
    case cudaDevAttrWarpSize: return Machine::kWarpSize;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return machine.threads_per_sm;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return machine.ctas_per_sm;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return machine.registers_per_sm;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 48 * 1024;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return machine.smem_per_block_optin;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return machine.smem_per_sm;
    case cudaDevAttrReservedSharedMemoryPerBlock: return Machine::kReservedSmemPerBlock;
    case cudaDevAttrTotalConstantMemory: return 64 * 1024;
    case cudaDevAttrL2CacheSize: return machine.l2_bytes;
    case cudaDevAttrMaxPersistingL2CacheSize: return machine.l2_bytes / 16 * 10;
    case cudaDevAttrMaxAccessPolicyWindowSize: return kAccessWindowBytes;
    case cudaDevAttrClockRate: return machine.sm_clock_khz;
    case cudaDevAttrMemoryClockRate: return machine.memory_clock_khz;
    case cudaDevAttrGlobalMemoryBusWidth: return machine.memory_bus_bits;
    case cudaDevAttrMaxPitch: return 2147483647;
    case cudaDevAttrTextureAlignment: return 512;
    case cudaDevAttrTexturePitchAlignment: return 32;
    case cudaDevAttrAsyncEngineCount: return machine.copy_engines;
    case cudaDevAttrMemSyncDomainCount: return 4;
    case cudaDevAttrClusterLaunch:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrMemoryPoolsSupported: return 1;
    case cudaDevAttrComputeMode:
    case cudaDevAttrIntegrated:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrTccDriver:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrDirectManagedMemAccessFromHost:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrMultiGpuBoardGroupID:
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId: return 0;
    default:
      fail(cudaErrorInvalidValue, "device attribute " + std::to_string(attribute) + " is not simulated");
  }
}

void require_device(const Runtime& runtime, int device) {
  if (device >= 0 && device < runtime.device_count) return;
  const int last = runtime.device_count - 1;
  fail(cudaErrorInvalidDevice,
       "device " + std::to_string(device) +
           (last == 0 ? "; there is one, device 0" : "; there are devices 0 to " + std::to_string(last)));
}

// The context of a device ends when its work has ended.
void reset_device(Runtime& runtime, int device) {
  runtime.order.host_waits(runtime, "cudaDeviceReset", runtime.order.everything(runtime, device));
  runtime.registry.unload(device);
  runtime.streams.destroy_all_of(device);
  std::erase_if(runtime.peers,
                [&](const auto& pair) { return pair.first == device || pair.second == device; });
  std::erase_if(runtime.host_blocks, [&](const auto& entry) {
    const auto& [address, block] = entry;
    if (block.device != device) return false;
    runtime.memory.release(reinterpret_cast<void*>(address));
    if (block.owner == HostBlock::Owner::kRuntime) std::free(reinterpret_cast<void*>(address));
    return true;
  });
  runtime.memory.release_all_of(device);
}

void set_machine(const Machine& machine) {
  std::lock_guard lock(runtime().mutex);
  for (int device = 0; device < runtime().device_count; ++device) reset_device(runtime(), device);
  runtime().registry.unload_all();
  runtime().machine = machine;
}

void set_device_count(int count) {
  std::lock_guard lock(runtime().mutex);
  if (count < 1 || count > kMaxDevices) throw std::invalid_argument("no such number of devices");
  for (int device = count; device < runtime().device_count; ++device) reset_device(runtime(), device);
  runtime().device_count = count;
  set_current_device(0);
}

}  // namespace sim::shim

using sim::Machine;
using namespace sim::shim;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](Runtime& runtime) {
    require(count, "no place for the count");
    *count = runtime.device_count;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](Runtime&) {
    require(device, "no place for the device");
    *device = current_device();
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](Runtime& runtime) {
    require_device(runtime, device);
    sim::shim::set_current_device(device);
  });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return call("cudaInitDevice", [&](Runtime& runtime) { require_device(runtime, device); });
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return call("cudaSetDeviceFlags", [](Runtime&) {});  // the flags say how the host waits; it never does
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](Runtime& runtime) {
    require(value, "no place for the value");
    require_device(runtime, device);
    *value = device_attribute(runtime.machine, attribute);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return call("cudaGetDeviceProperties", [&](Runtime& runtime) {
    require(p, "no place for the properties");
    require_device(runtime, device);
    const Machine& machine = runtime.machine;
    const auto attribute = [&](int which) { return device_attribute(machine, which); };
    *p = {};
    std::strcpy(p->name, sim::shim::device_name(machine).c_str());
    p->totalGlobalMem = machine.memory_bytes;
    p->major = attribute(cudaDevAttrComputeCapabilityMajor);
    p->minor = attribute(cudaDevAttrComputeCapabilityMinor);
    p->multiProcessorCount = machine.sms;
    p->warpSize = Machine::kWarpSize;
    p->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
    p->maxThreadsPerMultiProcessor = machine.threads_per_sm;
    p->maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    for (int i = 0; i < 3; ++i) {
      p->maxThreadsDim[i] = attribute(cudaDevAttrMaxBlockDimX + i);
      p->maxGridSize[i] = attribute(cudaDevAttrMaxGridDimX + i);
    }
    p->sharedMemPerBlock = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    p->sharedMemPerBlockOptin = machine.smem_per_block_optin;
    p->sharedMemPerMultiprocessor = machine.smem_per_sm;
    p->reservedSharedMemPerBlock = Machine::kReservedSmemPerBlock;
    p->regsPerBlock = p->regsPerMultiprocessor = machine.registers_per_sm;
    p->totalConstMem = attribute(cudaDevAttrTotalConstantMemory);
    p->memPitch = attribute(cudaDevAttrMaxPitch);
    p->textureAlignment = attribute(cudaDevAttrTextureAlignment);
    p->texturePitchAlignment = attribute(cudaDevAttrTexturePitchAlignment);
    p->l2CacheSize = machine.l2_bytes;
    p->persistingL2CacheMaxSize = attribute(cudaDevAttrMaxPersistingL2CacheSize);
    p->accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
    p->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
    p->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
    p->clusterLaunch = p->cooperativeLaunch = p->concurrentKernels = 1;
    p->unifiedAddressing = p->managedMemory = p->concurrentManagedAccess = p->canMapHostMemory = 1;
    p->canUseHostPointerForRegisteredMem = p->hostRegisterSupported = p->memoryPoolsSupported = 1;
    p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->computePreemptionSupported = p->ECCEnabled = 1;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](Runtime& runtime) {
    runtime.streams.forbid_during_capture("cudaDeviceSynchronize");
    runtime.order.host_waits(runtime, "cudaDeviceSynchronize",
                             runtime.order.everything(runtime, current_device()));
  });
}

// A faulted device stays faulted: CUDA asks for a new process then.
cudaError_t cudaDeviceReset() {
  return call("cudaDeviceReset", [](Runtime& runtime) {
    runtime.streams.forbid_during_capture("cudaDeviceReset");
    sim::shim::reset_device(runtime, current_device());
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](Runtime&) {
    if (least) *least = 0;
    if (greatest) *greatest = sim::shim::kGreatestStreamPriority;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return call("cudaDeviceSetCacheConfig", [](Runtime&) {});  // a preference; caches are not simulated
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return call("cudaCtxResetPersistingL2Cache", [](Runtime&) {});  // caches are not simulated
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&](Runtime& runtime) {
    require(can, "no place for the answer");
    require_device(runtime, device);
    require_device(runtime, peer);
    *can = device != peer;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call("cudaDeviceEnablePeerAccess", [&](Runtime& runtime) {
    require(flags == 0, "flags other than 0");
    require_device(runtime, peer);
    if (peer == current_device()) fail(cudaErrorInvalidDevice, "a device is no peer of itself");
    if (!runtime.peers.emplace(current_device(), peer).second)
      fail(cudaErrorPeerAccessAlreadyEnabled, "the current device has access already");
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call("cudaDeviceDisablePeerAccess", [&](Runtime& runtime) {
    require_device(runtime, peer);
    if (runtime.peers.erase({current_device(), peer}) == 0)
      fail(cudaErrorPeerAccessNotEnabled, "the current device has no access");
  });
}

}  // extern "C"
