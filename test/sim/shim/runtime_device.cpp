// runtime_device.cpp -- the one device: selection, attributes, properties, limits and synchronisation.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "sim/shim/device.h"
#include "sim/shim/state.h"

namespace sim::shim {
namespace {

// The memory system's constants are facts/b200's: 7680-bit bus, 3996 MHz memory clock, 1965 MHz SM clock.
constexpr int kSmClockKhz = 1965000, kMemoryClockKhz = 3996000, kMemoryBusBits = 7680;
constexpr int kL2PersistingBytes = Machine::kL2Bytes / 16 * 10;
constexpr int kAccessWindowBytes = 128 << 20;

}  // namespace

int device_attribute(int attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: return 10;
    case cudaDevAttrComputeCapabilityMinor: return 0;
    case cudaDevAttrMultiProcessorCount: return Machine::kSms;
    case cudaDevAttrWarpSize: return Machine::kWarpSize;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return Machine::kMaxThreadsPerSm;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return Machine::kRegistersPerSm;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 48 * 1024;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return Machine::kMaxSmemPerBlockOptin;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return Machine::kSmemPerSm;
    case cudaDevAttrReservedSharedMemoryPerBlock: return Machine::kReservedSmemPerBlock;
    case cudaDevAttrTotalConstantMemory: return 64 * 1024;
    case cudaDevAttrL2CacheSize: return Machine::kL2Bytes;
    case cudaDevAttrMaxPersistingL2CacheSize: return kL2PersistingBytes;
    case cudaDevAttrMaxAccessPolicyWindowSize: return kAccessWindowBytes;
    case cudaDevAttrClockRate: return kSmClockKhz;
    case cudaDevAttrMemoryClockRate: return kMemoryClockKhz;
    case cudaDevAttrGlobalMemoryBusWidth: return kMemoryBusBits;
    case cudaDevAttrMaxPitch: return 2147483647;
    case cudaDevAttrTextureAlignment: return 512;
    case cudaDevAttrTexturePitchAlignment: return 32;
    case cudaDevAttrAsyncEngineCount: return 4;
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

void require_device(int device) {
  if (device != 0)
    fail(cudaErrorInvalidDevice, "device " + std::to_string(device) + "; there is one, device 0");
}

}  // namespace sim::shim

using sim::Machine;
using sim::shim::call;
using sim::shim::device_attribute;
using sim::shim::fail;
using sim::shim::require;
using sim::shim::require_device;
using sim::shim::Runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](Runtime&) {
    require(count, "no place for the count");
    *count = 1;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](Runtime&) {
    require(device, "no place for the device");
    *device = 0;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](Runtime&) { require_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return call("cudaInitDevice", [&](Runtime&) { require_device(device); });
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return call("cudaSetDeviceFlags", [](Runtime&) {});  // how the host waits: it never does
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](Runtime&) {
    require(value, "no place for the value");
    require_device(device);
    *value = device_attribute(attribute);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return call("cudaGetDeviceProperties", [&](Runtime&) {
    require(p, "no place for the properties");
    require_device(device);
    *p = {};
    std::strcpy(p->name, sim::shim::kDeviceName);
    p->totalGlobalMem = sim::shim::kDeviceMemoryBytes;
    p->major = device_attribute(cudaDevAttrComputeCapabilityMajor);
    p->minor = device_attribute(cudaDevAttrComputeCapabilityMinor);
    p->multiProcessorCount = Machine::kSms;
    p->warpSize = Machine::kWarpSize;
    p->maxThreadsPerBlock = device_attribute(cudaDevAttrMaxThreadsPerBlock);
    p->maxThreadsPerMultiProcessor = Machine::kMaxThreadsPerSm;
    p->maxBlocksPerMultiProcessor = device_attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    for (int i = 0; i < 3; ++i) {
      p->maxThreadsDim[i] = device_attribute(cudaDevAttrMaxBlockDimX + i);
      p->maxGridSize[i] = device_attribute(cudaDevAttrMaxGridDimX + i);
    }
    p->sharedMemPerBlock = device_attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    p->sharedMemPerBlockOptin = Machine::kMaxSmemPerBlockOptin;
    p->sharedMemPerMultiprocessor = Machine::kSmemPerSm;
    p->reservedSharedMemPerBlock = Machine::kReservedSmemPerBlock;
    p->regsPerBlock = p->regsPerMultiprocessor = Machine::kRegistersPerSm;
    p->totalConstMem = device_attribute(cudaDevAttrTotalConstantMemory);
    p->memPitch = device_attribute(cudaDevAttrMaxPitch);
    p->textureAlignment = device_attribute(cudaDevAttrTextureAlignment);
    p->texturePitchAlignment = device_attribute(cudaDevAttrTexturePitchAlignment);
    p->l2CacheSize = Machine::kL2Bytes;
    p->persistingL2CacheMaxSize = device_attribute(cudaDevAttrMaxPersistingL2CacheSize);
    p->accessPolicyMaxWindowSize = device_attribute(cudaDevAttrMaxAccessPolicyWindowSize);
    p->memoryBusWidth = device_attribute(cudaDevAttrGlobalMemoryBusWidth);
    p->asyncEngineCount = device_attribute(cudaDevAttrAsyncEngineCount);
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
    runtime.order.host_waits(runtime, "cudaDeviceSynchronize", runtime.order.everything(runtime));
  });
}

// Frees every allocation and module. Streams and events hold nothing of the device and stay. A faulted device
// stays faulted: CUDA asks for a new process then.
cudaError_t cudaDeviceReset() {
  return call("cudaDeviceReset", [](Runtime& runtime) {
    runtime.streams.forbid_during_capture("cudaDeviceReset");
    runtime.registry.unload_all();
    for (const auto& [address, block] : runtime.host_blocks)
      if (block.owner == sim::shim::HostBlock::Owner::kRuntime) std::free(reinterpret_cast<void*>(address));
    runtime.host_blocks.clear();
    runtime.memory = sim::GlobalMemory{};
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
  return call("cudaDeviceCanAccessPeer", [&](Runtime&) {
    require(can, "no place for the answer");
    require_device(device);
    require_device(peer);
    *can = 0;
  });
}

}  // extern "C"
