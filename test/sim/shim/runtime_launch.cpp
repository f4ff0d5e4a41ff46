// runtime_launch.cpp -- launching kernels, function attributes and occupancy. The runtime checks what depends
// on its own state (the opted-in shared memory, non-portable clusters, co-residency of cooperative grids);
// every rule of the machine itself is sim::launch's.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/shim/held.h"
#include "sim/shim/judging.h"
#include "sim/shim/launch_call.h"
#include "sim/text.h"

namespace sim::shim {
namespace {

constexpr int kDefaultSmemPerBlock = 48 * 1024;
constexpr int kMaxThreadsPerBlock = 1024;
// PTX registers are virtual; exec/occupancy.cpp assumes the same number.
constexpr int kAssumedRegisters = 64;
constexpr unsigned kPortableClusterSize = 8, kMaxClusterSize = 16;

Dim3 dim(const dim3& d) { return {d.x, d.y, d.z}; }

uint64_t volume(const Dim3& d) { return uint64_t{d.x} * d.y * d.z; }
bool given(const std::array<uint32_t, 3>& d) { return d[0] != 0; }

int max_threads(const KernelInfo& info) {
  const auto& limit = given(info.req_ntid) ? info.req_ntid : info.max_ntid;
  if (!given(limit)) return kMaxThreadsPerBlock;
  return static_cast<int>(limit[0] * std::max(limit[1], 1u) * std::max(limit[2], 1u));
}

int max_dynamic_smem(const FunctionAttributes& attributes, const KernelInfo& info) {
  if (attributes.max_dynamic_smem >= 0) return attributes.max_dynamic_smem;
  return std::max(0, kDefaultSmemPerBlock - static_cast<int>(info.static_smem));
}

// Returns what the program set on the current device.
FunctionAttributes& attributes_of(Kernel& kernel) { return kernel.attributes[current_device()]; }

const KernelInfo& info_of(Runtime& runtime, const Kernel& kernel) {
  return runtime.registry.info(kernel, runtime.memory, current_device());
}

void check(const Machine& machine, const LaunchRequest& request, const KernelInfo& info) {
  const LaunchConfig& config = request.config;
  const FunctionAttributes& attributes = attributes_of(*request.kernel);
  const auto say = [&](const std::string& why) {
    return "kernel " + short_name(readable(info.name)) + ": " + why;
  };
  if (volume(config.grid) == 0 || volume(config.block) == 0)
    fail(cudaErrorInvalidConfiguration, say("the grid or the block is empty"));
  if (volume(config.block) > kMaxThreadsPerBlock)
    fail(cudaErrorInvalidConfiguration, say(std::to_string(volume(config.block)) + " threads in a block"));

  const int smem_limit = max_dynamic_smem(attributes, info);
  if (config.dynamic_smem > static_cast<size_t>(smem_limit))
    fail(cudaErrorInvalidValue,
         say(std::to_string(config.dynamic_smem) + " bytes of dynamic shared memory, the function allows " +
             std::to_string(smem_limit) + " (cudaFuncAttributeMaxDynamicSharedMemorySize)"));

  const uint64_t cluster = volume(config.cluster);
  if (info.explicit_cluster && !given(info.req_cluster) && !request.cluster_given)
    fail(cudaErrorInvalidClusterSize, say("needs the cluster dimension launch attribute"));
  if (cluster == 0 || cluster > kMaxClusterSize ||
      (cluster > kPortableClusterSize && !attributes.non_portable_cluster))
    fail(cudaErrorInvalidClusterSize,
         say("a cluster of " + std::to_string(cluster) +
             " blocks; more than 8 need cudaFuncAttributeNonPortableClusterSizeAllowed, "
             "more than 16 do not exist"));
  if (request.cooperative) {
    const int per_sm =
        max_active_blocks_per_sm(machine, info, static_cast<int>(volume(config.block)), config.dynamic_smem);
    if (volume(config.grid) > static_cast<uint64_t>(per_sm) * static_cast<uint64_t>(machine.sms))
      fail(cudaErrorCooperativeLaunchTooLarge, say("the cooperative grid does not fit the machine at once"));
  }
}

// The runtime refuses a launch whose clusters can run nowhere on the machine; a call for their occupancy
// returns 0.
void check_room(const Machine& machine, const LaunchRequest& request, const KernelInfo& info) {
  const uint64_t cluster = volume(request.config.cluster);
  if (cluster > 1 && max_active_clusters(machine, info, request.config) == 0)
    fail(cudaErrorInvalidClusterSize, "kernel " + short_name(readable(info.name)) + ": no cluster of " +
                                          std::to_string(cluster) + " blocks has room on the " +
                                          machine.name);
}

// Returns what a grid on the device may touch.
Reach reach_of(const Runtime& runtime, int device) {
  Reach reach{device, {}};
  for (const auto& [user, peer] : runtime.peers)
    if (user == device) reach.peers.push_back(peer);
  return reach;
}

void run(Runtime& runtime, const Kernel& kernel, const LaunchConfig& config, void* const* args) {
  const int device = runtime.order.current->device;
  const Module& module = runtime.registry.module(kernel, runtime.memory, device);
  std::unique_ptr<Launch> launch;
  try {
    launch = std::make_unique<Launch>(module, kernel.name, config, args, runtime.memory, runtime.machine);
  } catch (const Fault& fault) {
    fail_launch(runtime, fault, false);
  }
  launch->reach = reach_of(runtime, device);
  launch->work = runtime.order.announce(runtime, HostWork::Kind::kLaunch, {}, kernel.name);
  hold(runtime, std::move(launch));
}

// Holds parameter values that outlive the call that passed them, for graph nodes.
struct OwnedArguments {
  explicit OwnedArguments(const KernelInfo& info, void** args) {
    for (size_t i = 0; i < info.params.size(); ++i) {
      const auto* from = static_cast<const uint8_t*>(args[i]);
      values.emplace_back(from, from + info.params[i].size);
    }
    for (auto& value : values) pointers.push_back(value.data());
  }
  std::vector<std::vector<uint8_t>> values;
  std::vector<void*> pointers;
};

}  // namespace

LaunchRequest read_request(Runtime& runtime, const cudaLaunchConfig_t& config, const void* function) {
  LaunchRequest request;
  request.kernel = &runtime.registry.kernel(function);
  request.config.grid = dim(config.gridDim);
  request.config.block = dim(config.blockDim);
  request.config.dynamic_smem = config.dynamicSmemBytes;
  require(config.numAttrs == 0 || config.attrs, "launch attributes counted but not given");
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttributeValue& value = config.attrs[i].val;
    switch (config.attrs[i].id) {
      case cudaLaunchAttributeClusterDimension:
        request.config.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
        request.cluster_given = true;
        break;
      case cudaLaunchAttributeCooperative: request.cooperative = value.cooperative != 0; break;
      case cudaLaunchAttributeProgrammaticEvent:
        request.events.push_back(value.programmaticEvent.event);
        break;
      case cudaLaunchAttributeLaunchCompletionEvent:
        request.events.push_back(value.launchCompletionEvent.event);
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        request.programmatic = value.programmaticStreamSerializationAllowed != 0;
        break;
      // These only permit or suggest something. A GPU may ignore them, and so does the simulator.
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomainMap:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributePreferredClusterDimension:
      case cudaLaunchAttributePreferredSharedMemoryCarveout: break;
      default:
        fail(cudaErrorNotSupported,
             "launch attribute " + std::to_string(config.attrs[i].id) + " is not supported");
    }
  }
  const auto& required = info_of(runtime, *request.kernel).req_cluster;
  if (given(required) && !request.cluster_given)
    request.config.cluster = {required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
  return request;
}

void launch_kernel(Runtime& runtime, const LaunchRequest& request, void** args, cudaStream_t stream) {
  const Kernel& kernel = *request.kernel;
  Stream& target = runtime.streams.find(stream);
  if (target.device != current_device())
    fail(cudaErrorInvalidResourceHandle, "the stream belongs to device " + std::to_string(target.device) +
                                             ", the current device is " + std::to_string(current_device()));
  const KernelInfo& info = info_of(runtime, kernel);
  try {
    check(runtime.machine, request, info);
    check_room(runtime.machine, request, info);
  } catch (const Failure& failure) {
    judge_fault(runtime, FaultKind::kLaunch, failure.what());
    throw;
  }
  require(info.params.empty() || args, "the kernel takes parameters and the launch passes none");
  Task task{cudaGraphNodeTypeKernel, kernel.name.c_str(), {}, request.programmatic};
  if (target.capture) {
    auto owned = std::make_shared<const OwnedArguments>(info, args);
    task.work = [&kernel, owned, config = request.config](Runtime& r) {
      run(r, kernel, config, owned->pointers.data());
    };
  } else {
    task.work = [&](Runtime& r) { run(r, kernel, request.config, args); };
  }
  submit(runtime, stream, std::move(task));
  for (cudaEvent_t event : request.events)
    runtime.streams.record_event(target, runtime.streams.find_event(event),
                                 runtime.order.before(runtime, target));
}

}  // namespace sim::shim

using namespace sim::shim;

namespace {

cudaError_t launch_plain(const char* function, const void* kernel, dim3 grid, dim3 block, void** args,
                         size_t smem, cudaStream_t stream, bool cooperative) {
  return call(function, [&](Runtime& runtime) {
    cudaLaunchConfig_t config{grid, block, smem, stream, nullptr, 0};
    sim::shim::LaunchRequest request = sim::shim::read_request(runtime, config, kernel);
    request.cooperative = cooperative;
    sim::shim::launch_kernel(runtime, request, args, stream);
  });
}

// Keeps what <<<...>>> says between the push before the stub is called and the pop inside it.
struct CallConfiguration {
  dim3 grid, block;
  size_t smem;
  cudaStream_t stream;
};
std::vector<CallConfiguration>& pushed() {
  thread_local std::vector<CallConfiguration> stack;
  return stack;
}

void set_attribute(Runtime& runtime, const void* function, cudaFuncAttribute attribute, int value) {
  Kernel& kernel = runtime.registry.kernel(function);
  sim::shim::FunctionAttributes& attributes = sim::shim::attributes_of(kernel);
  const sim::KernelInfo& info = sim::shim::info_of(runtime, kernel);
  const int limit = runtime.machine.smem_per_block_optin;
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || static_cast<size_t>(value) + info.static_smem > static_cast<size_t>(limit))
        fail(cudaErrorInvalidValue, "kernel " + sim::short_name(sim::readable(info.name)) + ": " +
                                        std::to_string(value) + " dynamic and " +
                                        std::to_string(info.static_smem) +
                                        " static bytes of shared memory exceed " + std::to_string(limit));
      attributes.max_dynamic_smem = value;
      break;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      require(value >= -1 && value <= 100, "the shared memory carveout is a percentage or -1");
      attributes.smem_carveout = value;
      break;
    case cudaFuncAttributeNonPortableClusterSizeAllowed: attributes.non_portable_cluster = value != 0; break;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      require(
          value >= cudaClusterSchedulingPolicyDefault && value <= cudaClusterSchedulingPolicyLoadBalancing,
          "unknown cluster scheduling policy");
      attributes.cluster_policy = value;
      break;
    default:
      fail(cudaErrorNotSupported, "function attribute " + std::to_string(attribute) + " cannot be set here");
  }
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t smem, void* stream) {
  pushed().push_back({grid, block, smem, static_cast<cudaStream_t>(stream)});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* smem, void* stream) {
  return call("__cudaPopCallConfiguration", [&](Runtime&) {
    if (pushed().empty()) fail(cudaErrorMissingConfiguration, "a kernel stub was called without <<<...>>>");
    const CallConfiguration& last = pushed().back();
    *grid = last.grid;
    *block = last.block;
    *smem = last.smem;
    *static_cast<cudaStream_t*>(stream) = last.stream;
    pushed().pop_back();
  });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t smem,
                             cudaStream_t stream) {
  return launch_plain("cudaLaunchKernel", function, grid, block, args, smem, stream, false);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t smem,
                               cudaStream_t stream) {
  return launch_plain("cudaLaunchKernel", kernel, grid, block, args, smem, stream, false);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args, size_t smem,
                                        cudaStream_t stream) {
  return launch_plain("cudaLaunchCooperativeKernel", function, grid, block, args, smem, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  return call("cudaLaunchKernelExC", [&](Runtime& runtime) {
    require(config, "no launch configuration");
    sim::shim::launch_kernel(runtime, sim::shim::read_request(runtime, *config, function), args,
                             config->stream);
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return call("cudaGetKernel", [&](Runtime& runtime) {
    require(kernel, "no place for the kernel");
    *kernel = reinterpret_cast<cudaKernel_t>(&runtime.registry.kernel(function));
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* handle, const void* function) {
  return call("cudaGetFuncBySymbol", [&](Runtime& runtime) {
    require(handle, "no place for the function");
    *handle = reinterpret_cast<cudaFunction_t>(&runtime.registry.kernel(function));
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return call("cudaFuncGetName", [&](Runtime& runtime) {
    require(name, "no place for the name");
    *name = runtime.registry.kernel(function).name.c_str();
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute",
              [&](Runtime& runtime) { set_attribute(runtime, function, attribute, value); });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return call("cudaFuncSetCacheConfig", [&](Runtime& runtime) { runtime.registry.kernel(function); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return call("cudaFuncGetAttributes", [&](Runtime& runtime) {
    require(attributes, "no place for the attributes");
    Kernel& kernel = runtime.registry.kernel(function);
    const sim::shim::FunctionAttributes& set = sim::shim::attributes_of(kernel);
    const sim::KernelInfo& info = sim::shim::info_of(runtime, kernel);
    *attributes = {};
    attributes->sharedSizeBytes = info.static_smem;
    attributes->maxThreadsPerBlock = sim::shim::max_threads(info);
    attributes->numRegs = sim::shim::kAssumedRegisters;
    attributes->ptxVersion = attributes->binaryVersion = static_cast<int>(runtime.machine.arch());
    attributes->maxDynamicSharedSizeBytes = sim::shim::max_dynamic_smem(set, info);
    attributes->preferredShmemCarveout = set.smem_carveout;
    attributes->clusterDimMustBeSet = info.explicit_cluster;
    attributes->requiredClusterWidth = static_cast<int>(info.req_cluster[0]);
    attributes->requiredClusterHeight = static_cast<int>(info.req_cluster[1]);
    attributes->requiredClusterDepth = static_cast<int>(info.req_cluster[2]);
    attributes->clusterSchedulingPolicyPreference = set.cluster_policy;
    attributes->nonPortableClusterSizeAllowed = set.non_portable_cluster;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int threads, size_t smem, unsigned) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Runtime& runtime) {
    require(blocks && threads > 0, "no place for the answer, or no threads");
    Kernel& kernel = runtime.registry.kernel(function);
    const sim::KernelInfo& info = sim::shim::info_of(runtime, kernel);
    const int smem_limit = sim::shim::max_dynamic_smem(sim::shim::attributes_of(kernel), info);
    const bool launchable =
        threads <= sim::shim::max_threads(info) && smem <= static_cast<size_t>(smem_limit);
    *blocks = launchable ? sim::max_active_blocks_per_sm(runtime.machine, info, threads, smem) : 0;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          size_t smem) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, smem, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* smem, const void* function, int blocks, int) {
  return call("cudaOccupancyAvailableDynamicSMemPerBlock", [&](Runtime& runtime) {
    require(smem && blocks > 0, "no place for the answer, or no blocks");
    const sim::KernelInfo& info = sim::shim::info_of(runtime, runtime.registry.kernel(function));
    // Each block gets whole units of the hardware's 128-byte granularity, less its reserved part.
    const sim::Machine& machine = runtime.machine;
    const int share = machine.smem_per_sm / blocks / 128 * 128 - machine.kReservedSmemPerBlock;
    const int usable = std::min(share, machine.smem_per_block_optin) - static_cast<int>(info.static_smem);
    *smem = static_cast<size_t>(std::max(usable, 0));
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  return call("cudaOccupancyMaxActiveClusters", [&](Runtime& runtime) {
    require(clusters && config, "no place for the answer, or no launch configuration");
    const auto request = sim::shim::read_request(runtime, *config, function);
    const sim::KernelInfo& info = sim::shim::info_of(runtime, *request.kernel);
    sim::shim::check(runtime.machine, request, info);
    *clusters = sim::max_active_clusters(runtime.machine, info, request.config);
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  return call("cudaOccupancyMaxPotentialClusterSize", [&](Runtime& runtime) {
    require(size && config, "no place for the answer, or no launch configuration");
    auto request = sim::shim::read_request(runtime, *config, function);
    const sim::KernelInfo& info = sim::shim::info_of(runtime, *request.kernel);
    const unsigned largest = sim::shim::attributes_of(*request.kernel).non_portable_cluster
                                 ? sim::shim::kMaxClusterSize
                                 : sim::shim::kPortableClusterSize;
    *size = 0;
    for (unsigned candidate = largest; candidate >= 1 && *size == 0; candidate /= 2) {
      request.config.cluster = {candidate, 1, 1};
      if (sim::max_active_clusters(runtime.machine, info, request.config) > 0)
        *size = static_cast<int>(candidate);
    }
  });
}

}  // extern "C"

SIM_PER_THREAD_STREAM(cudaLaunchKernel);
SIM_PER_THREAD_STREAM(cudaLaunchKernelExC);
SIM_PER_THREAD_STREAM(cudaLaunchCooperativeKernel);
extern "C" cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t)
    __attribute__((alias("__cudaLaunchKernel")));
