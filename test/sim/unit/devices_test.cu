// devices_test.cu -- several simulated devices: what belongs to which, and what is ordered between them. The
// answers that CUDA does not document are those of two H200s (driver 580.159, CUDA 13.0).
#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "sim/judge/judge.h"
#include "sim/shim/shim.h"
#include "sim/unit/host_work.hpp"
#include "support/catch.hpp"
#include "support/device_memory.h"

namespace {

using dualgemm_test::DeviceArray;

__device__ int variable = 7;

__global__ void one(int* out) { out[0] = 1; }
__global__ void other(int* out) { out[1] = 2; }
__global__ void take_variable(int* out) { out[0] = variable; }
__global__ void take_shared(int* out) {
  extern __shared__ int shared[];
  shared[0] = 5;
  out[0] = shared[0];
}

// Two devices, of which the first is current, until the end of a test.
struct TwoDevices {
  TwoDevices() { sim::shim::set_device_count(2); }
  ~TwoDevices() {
    sim::shim::set_device_count(1);
    sim::shim::clear_fault();
  }
};

// Makes a device current until the end of a block.
struct On {
  explicit On(int device) {
    REQUIRE(cudaGetDevice(&before) == cudaSuccess);
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
  }
  ~On() { cudaSetDevice(before); }
  int before = 0;
};

int* allocate_on(int device) {
  const On current(device);
  int* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 64) == cudaSuccess);
  REQUIRE(cudaMemset(memory, 0, 64) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return memory;
}

int value_at(const int* memory) {
  int value = -1;
  REQUIRE(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDefault) == cudaSuccess);
  return value;
}

int smem_limit(const void* kernel) {
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess);
  return attributes.maxDynamicSharedSizeBytes;
}

int smem_limit_on(int device) {
  const On current(device);
  return smem_limit(reinterpret_cast<const void*>(take_shared));
}

void allow_smem(int bytes) {
  REQUIRE(cudaFuncSetAttribute(take_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) ==
          cudaSuccess);
}

bool loaded_on(int device, const std::string& name) {
  const std::vector<std::string> names = sim::shim::loaded_kernels(device);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& loaded) { return loaded.find(name) != std::string::npos; });
}

}  // namespace

TEST_CASE("there is one device unless more are asked for", "[devices]") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 1);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  const TwoDevices two;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST_CASE("the current device is a thread's own, and 0 at its start", "[devices]") {
  const TwoDevices two;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  int here = -1, there = -1;
  std::thread([&] { cudaGetDevice(&there); }).join();
  REQUIRE(cudaGetDevice(&here) == cudaSuccess);
  CHECK(here == 1);
  CHECK(there == 0);
}

TEST_CASE("memory belongs to the device that was current when it was allocated", "[devices]") {
  const TwoDevices two;
  for (const int device : {0, 1}) {
    size_t free_before = 0, free_after = 0, total = 0;
    const On current(device);
    REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
    const int* memory = allocate_on(device);
    allocate_on(1 - device);
    cudaPointerAttributes attributes{};
    REQUIRE(cudaPointerGetAttributes(&attributes, memory) == cudaSuccess);
    CHECK(attributes.device == device);
    REQUIRE(cudaMemGetInfo(&free_after, &total) == cudaSuccess);
    CHECK(free_before - free_after == 64);
  }
}

TEST_CASE("a kernel reaches another device's memory with peer access alone", "[devices]") {
  const TwoDevices two;
  int* const far = allocate_on(1);
  SECTION("without it the access is a fault that names both devices") {
    one<<<1, 1>>>(far);
    CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
    const std::string text = sim::shim::last_fault_text();
    CHECK_THAT(text, dualgemm_test::contains("memory of device 1"));
    CHECK_THAT(text, dualgemm_test::contains("runs on device 0"));
    // The fault breaks every device of the process.
    CHECK(cudaSetDevice(1) == cudaErrorIllegalAddress);
  }
  SECTION("with it the store arrives") {
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    one<<<1, 1>>>(far);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(value_at(far) == 1);
  }
  SECTION("it has one direction") {
    int* const near = allocate_on(0);
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    const On current(1);
    one<<<1, 1>>>(near);
    CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
  }
  SECTION("it ends") {
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    REQUIRE(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
    one<<<1, 1>>>(far);
    CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
  }
  SECTION("pinned memory is everybody's") {
    int* pinned = nullptr;
    REQUIRE(cudaMallocHost(&pinned, 64) == cudaSuccess);
    const On current(1);
    one<<<1, 1>>>(pinned);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(pinned[0] == 1);
  }
}

TEST_CASE("peer access is given once, to another device", "[devices]") {
  const TwoDevices two;
  int can = -1;
  REQUIRE(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
  CHECK(can == 1);
  REQUIRE(cudaDeviceCanAccessPeer(&can, 0, 0) == cudaSuccess);
  CHECK(can == 0);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceEnablePeerAccess(2, 0) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceEnablePeerAccess(1, 1) == cudaErrorInvalidValue);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  cudaGetLastError();
}

TEST_CASE("copies reach every device, fills those that the stream's device reaches", "[devices]") {
  const TwoDevices two;
  int* const near = allocate_on(0);
  int* const far = allocate_on(1);
  one<<<1, 1>>>(near);
  SECTION("copies") {
    switch (GENERATE(0, 1, 2, 3)) {
      case 0: CHECK(cudaMemcpy(far, near, 64, cudaMemcpyDefault) == cudaSuccess); break;
      case 1: CHECK(cudaMemcpyPeer(far, 1, near, 0, 64) == cudaSuccess); break;
      case 2: CHECK(cudaMemcpyPeerAsync(far, 1, near, 0, 64, nullptr) == cudaSuccess); break;
      default: CHECK(cudaMemcpyAsync(far, near, 64, cudaMemcpyDeviceToDevice, nullptr) == cudaSuccess);
    }
    CHECK(value_at(far) == 1);
  }
  SECTION("a copy of peers names devices that exist, and their memory") {
    int local = 0;
    CHECK(cudaMemcpyPeer(far, 2, near, 0, 64) == cudaErrorInvalidDevice);
    CHECK(cudaMemcpyPeer(&local, 1, near, 0, 4) == cudaErrorInvalidValue);
  }
  SECTION("fills") {
    CHECK(cudaMemset(far, 0, 64) == cudaErrorInvalidValue);
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    CHECK(cudaMemset(far, 0, 64) == cudaSuccess);
  }
  SECTION("fills by a stream of the other device") {
    const On current(1);
    const Stream stream;
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaMemsetAsync(far, 0, 64, stream) == cudaSuccess);
    CHECK(cudaMemsetAsync(near, 0, 64, stream) == cudaErrorInvalidValue);
  }
  cudaGetLastError();
}

// CUDA documents that such a launch fails. (An H200's driver runs it on the stream's device.)
TEST_CASE("a kernel is launched into a stream of the current device", "[devices]") {
  const TwoDevices two;
  int* const near = allocate_on(0);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const Stream far;
  int device = -1;
  REQUIRE(cudaStreamGetDevice(far, &device) == cudaSuccess);
  CHECK(device == 1);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  one<<<1, 1, 0, far>>>(near);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(value_at(near) == 0);
  REQUIRE(cudaStreamGetDevice(nullptr, &device) == cudaSuccess);
  CHECK(device == 0);
}

TEST_CASE("an event is recorded in streams of its device, and waited for in any", "[devices]") {
  const TwoDevices two;
  const Stream near;
  const Event near_event;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const Stream far;
  cudaEvent_t timed[2];
  REQUIRE(cudaEventCreate(&timed[1]) == cudaSuccess);
  CHECK(cudaEventRecord(near_event, far) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(timed[1], near) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaEventCreate(&timed[0]) == cudaSuccess);
  CHECK(cudaEventRecord(near_event, near) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(far, near_event, 0) == cudaSuccess);
  CHECK(cudaEventRecord(timed[0], near) == cudaSuccess);
  CHECK(cudaEventRecord(timed[1], far) == cudaSuccess);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, timed[0], timed[1]) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("device variables, loaded kernels and function attributes are a device's own", "[devices]") {
  const TwoDevices two;
  int* const out[] = {allocate_on(0), allocate_on(1)};
  const int set = 100;
  REQUIRE(cudaMemcpyToSymbol(variable, &set, sizeof set) == cudaSuccess);
  allow_smem(100000);
  CHECK(smem_limit_on(0) == 100000);
  CHECK_FALSE(loaded_on(1, "take_shared"));
  CHECK(smem_limit_on(1) == 48 * 1024);
  CHECK(loaded_on(1, "take_shared"));
  for (const int device : {0, 1}) {
    const On current(device);
    take_variable<<<1, 1>>>(out[device]);
    CHECK(value_at(out[device]) == (device == 0 ? set : 7));
  }
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  take_shared<<<1, 1, 100000>>>(out[1]);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
}

TEST_CASE("a node of a graph runs on the device that it was captured on", "[devices]") {
  const TwoDevices two;
  int* const out = allocate_on(0);
  const Stream near;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamBeginCapture(near, cudaStreamCaptureModeGlobal) == cudaSuccess);
  one<<<1, 1, 0, near>>>(out);
  REQUIRE(cudaStreamEndCapture(near, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const Stream far;
  CHECK(cudaGraphLaunch(exec, far) == cudaSuccess);
  CHECK(value_at(out) == 1);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("a reset ends what a device holds; kernels, and attributes that were set on them, work after it",
          "[devices]") {
  const TwoDevices two;
  int* const kept = allocate_on(1);
  int* const gone = allocate_on(0);
  REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  const int set = 100;
  REQUIRE(cudaMemcpyToSymbol(variable, &set, sizeof set) == cudaSuccess);
  allow_smem(100000);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);

  REQUIRE(cudaDeviceReset() == cudaSuccess);

  CHECK_FALSE(loaded_on(0, "take_shared"));
  int value = 0;
  CHECK(cudaMemcpy(&value, gone, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemset(gone, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaFree(gone) == cudaErrorInvalidValue);
  CHECK(cudaStreamQuery(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventQuery(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  cudaGetLastError();

  int* const out = allocate_on(0);
  CHECK(smem_limit_on(0) == 100000);
  take_shared<<<1, 1, 100000>>>(out);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(value_at(out) == 5);
  take_variable<<<1, 1>>>(out);
  CHECK(value_at(out) == 7);
  CHECK(value_at(kept) == 0);
}

TEST_CASE("a kernel that uses memory from before a reset is a fault", "[devices]") {
  const TwoDevices two;
  int* const gone = allocate_on(0);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  one<<<1, 1>>>(gone);
  CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
}

TEST_CASE("work of two devices has an order where the host or an event gives it one", "[devices][judge]") {
  const TwoDevices two;
  int* const out[] = {allocate_on(0), allocate_on(1)};
  const Event event;
  Recorder record;
  // Null streams: each is ordered only with the blocking streams of its own device.
  one<<<1, 1>>>(out[0]);
  const auto then_on_the_other = [&] {
    const On current(1);
    other<<<1, 1>>>(out[1]);
    return record.ordered("one", "other");
  };
  SECTION("nothing") { CHECK_FALSE(then_on_the_other()); }
  SECTION("the host waited for the first device") {
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(then_on_the_other());
  }
  SECTION("the host waited for the second device") {
    const On current(1);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK_FALSE(then_on_the_other());
  }
  SECTION("an event") {
    REQUIRE(cudaEventRecord(event, nullptr) == cudaSuccess);
    const On current(1);
    REQUIRE(cudaStreamWaitEvent(nullptr, event, 0) == cudaSuccess);
    CHECK(then_on_the_other());
  }
  SECTION("the first device's memory is freed") {
    REQUIRE(cudaFree(out[0]) == cudaSuccess);
    CHECK(then_on_the_other());
  }
  SECTION("the second device's memory is freed") {
    REQUIRE(cudaFree(allocate_on(1)) == cudaSuccess);
    CHECK_FALSE(then_on_the_other());
  }
}

TEST_CASE("a copy between two devices in the null stream is ordered with all work of both",
          "[devices][judge]") {
  const TwoDevices two;
  int* const out[] = {allocate_on(0), allocate_on(1)};
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const Stream before, after;
  Recorder record;
  one<<<1, 1, 0, before>>>(out[1]);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  SECTION("in the null stream") {
    REQUIRE(cudaMemcpyPeer(out[1], 1, out[0], 0, 64) == cudaSuccess);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    other<<<1, 1, 0, after>>>(out[1]);
    CHECK(record.ordered("one", "cudaMemcpyPeer"));
    CHECK(record.ordered("cudaMemcpyPeer", "other"));
  }
  SECTION("in another stream") {
    const Stream near;
    REQUIRE(cudaMemcpyPeerAsync(out[1], 1, out[0], 0, 64, near) == cudaSuccess);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    other<<<1, 1, 0, after>>>(out[1]);
    CHECK_FALSE(record.ordered("one", "cudaMemcpyPeerAsync"));
    CHECK_FALSE(record.ordered("cudaMemcpyPeerAsync", "other"));
  }
}

TEST_CASE("grids of two devices that touch the same bytes without an order are a race", "[devices][judge]") {
  const TwoDevices two;
  int* const out = allocate_on(1);
  REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  const bool waits = GENERATE(false, true);
  sim::Judge judge({}, sim::shim::memory());
  sim::shim::set_judge(&judge);
  one<<<1, 1>>>(out);
  if (waits) CHECK(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  one<<<1, 1>>>(out);
  sim::shim::set_judge(nullptr);
  REQUIRE(judge.reports().size() == (waits ? 0 : 1));
  if (!waits) CHECK(judge.reports()[0].rule == "race-grids");
}
