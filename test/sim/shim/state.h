// state.h -- the one process-wide state of the simulated runtime and the frame in which every API function
// runs: take the lock, refuse when the device has faulted, turn exceptions into error codes. The state is
// built on first use and never destroyed, because programs register their objects before, and unregister them
// after, the lifetime of the static objects of this library.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/launch.h"
#include "sim/shim/device.h"
#include "sim/shim/host_order.h"
#include "sim/shim/registry.h"
#include "sim/shim/stream.h"

namespace sim {
class Judge;
}

namespace sim::shim {

// A failure is a failed call: the code to return and, for stderr, why. Sticky failures break the device for
// good.
class Failure : public std::runtime_error {
 public:
  Failure(cudaError_t code, const std::string& why, bool sticky = false)
      : std::runtime_error(why), code_(code), sticky_(sticky) {}
  cudaError_t code() const { return code_; }
  bool sticky() const { return sticky_; }

 private:
  cudaError_t code_;
  bool sticky_;
};

[[noreturn]] void fail(cudaError_t code, const std::string& why);
// The commonest check: fails with cudaErrorInvalidValue unless `holds`.
void require(bool holds, const char* why);

// Host memory that the device may use: cudaMallocHost, cudaHostRegister, cudaMallocManaged.
struct HostBlock {
  enum class Owner { kRuntime, kProgram };
  size_t size;
  cudaMemoryType type;  // cudaMemoryTypeHost or cudaMemoryTypeManaged
  Owner owner;
  unsigned flags;
  int device;  // that was current
};

struct Runtime {
  std::recursive_mutex mutex;                    // recursive: a host function in a stream may call back
  Machine machine = machine_from_environment();  // every device is one
  int device_count = device_count_from_environment();
  std::set<std::pair<int, int>> peers;  // a device, and another one to whose memory it was given access
  GlobalMemory memory;
  Registry registry;
  Streams streams;
  std::map<uint64_t, HostBlock> host_blocks;  // by address
  cudaError_t sticky = cudaSuccess;           // of all devices: so an H200 answers after a fault on another
  std::string fault_text;
  LaunchOptions launch_options;
  HostOrder order;
  std::vector<std::unique_ptr<Launch>> held;  // held.h
  uint64_t allocations = 0;                   // made so far: they are numbered
  Judge* judge = nullptr;
  bool environment_read = false;  // it is asked once, by the first work
  Observers watchers;             // the judge and the observer of a test together
  LaunchStats launch_stats;

  // May a device use memory of `owner`?
  bool reaches(int device, int owner) const {
    return owner == kNoDevice || owner == device || peers.contains({device, owner});
  }
};

Runtime& runtime();

// Records the failure in flight (last error, sticky error, fault text), prints it once and returns its code.
cudaError_t record_failure(Runtime& runtime, const char* function);
cudaError_t refuse_after_fault(const Runtime& runtime);

template <class Body>
cudaError_t call(const char* function, Body&& body) noexcept {
  Runtime& r = runtime();
  std::lock_guard lock(r.mutex);
  if (r.sticky != cudaSuccess) return refuse_after_fault(r);
  try {
    body(r);
    return cudaSuccess;
  } catch (...) {
    return record_failure(r, function);
  }
}

// Runs a stream operation now, in call order, which is one legal schedule of any set of streams; only
// launches may be held by the schedule (held.h). If the stream is being captured, the operation becomes a
// node. Returns what work that waits for this one comes after.
Frontier submit(Runtime& runtime, cudaStream_t stream, Task task);
// Does the same with a copy between the memories of two devices that goes into the null stream: it comes
// after all work of both, and all their later work comes after it.
Frontier submit_between(Runtime& runtime, int one, int other, Task task);
// Does the work of `task` after `after`; returns what later work must come after.
Frontier perform(Runtime& runtime, const Task& task, Frontier after);

// Programs compiled with --default-stream per-thread call these names. They share the bodies: with eager
// execution the two default streams differ only in the implicit-capture rule, in which this runtime follows
// the legacy stream.
#define SIM_PER_THREAD_STREAM(function) \
  extern "C" decltype(function) function##_ptsz __attribute__((alias(#function)))
#define SIM_PER_THREAD_DEFAULT(function) \
  extern "C" decltype(function) function##_ptds __attribute__((alias(#function)))

}  // namespace sim::shim
