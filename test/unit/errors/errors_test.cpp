// errors_test.cpp -- what becomes of errors of the CUDA runtime that a GPU gives on a bad day only: the stub
// of the runtime gives each of them in each call where it may come.

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "host/include/dualgemm.h"
#include "support/catch.hpp"
#include "support/stub/cuda.h"
#include "unit/host/arguments.h"

using namespace dualgemm_test;

namespace {

dualgemm_status_t launch() {
  const dualgemm_args_t args = valid_args();
  return dualgemm_launch_ex(&args, nullptr);
}

dualgemm_status_t swizzle() {
  dualgemm_sf_args_t args;
  dualgemm_sf_args_init(&args);
  args.rows = 128;
  args.k = 256;
  args.src = address(0x1'0000'0000);
  args.dst = address(0x2'0000'0000);
  return dualgemm_sf_swizzle(&args, nullptr);
}

dualgemm_status_t fill() {
  dualgemm_args_t args = valid_args();
  args.k = 0;
  return dualgemm_launch_ex(&args, nullptr);
}

// A function of the runtime, and a function of the library that calls it each time, or until it succeeds.
struct Call {
  const char* function;
  dualgemm_status_t (*call)();
  bool once = false;
};

dualgemm_device_t current_device() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  CHECK(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS);
  return device;
}

// Those that are called once come first, before anything succeeds; each test has a device of its own.
const std::vector<Call> kCalls = {
    {"cudaRuntimeGetVersion", launch, true},
    {"cudaDeviceGetAttribute", launch, true},
    {"cudaDriverGetVersion", launch, true},
    {"cudaGetDevice", launch},
    {"cudaLaunchKernelExC", launch},
    {"cudaGetDevice", swizzle},
    {"cudaLaunchKernelExC", swizzle},
    {"cudaFuncSetAttribute", [] { return dualgemm_init(); }, true},
    {"cudaMemset2DAsync", fill},
};

// Makes each of these calls fail with the error, and expects the status and a text that ends so; after that
// the same call succeeds, and leaves no error behind.
void check(cudaError_t error, int device, dualgemm_status_t status,
           const std::function<void(const std::string& text, const Call& call)>& check_text) {
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  for (const Call& call : kCalls) {
    stub_fail(call.function, error);
    INFO(call.function << ": " << error);
    CHECK(call.call() == status);
    const std::string text = dualgemm_last_error();
    INFO(text);
    check_text(text, call);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    if (!call.once) CHECK(call.call() == DUALGEMM_STATUS_SUCCESS);
  }
  CHECK(launch() == DUALGEMM_STATUS_SUCCESS);
  CHECK(std::string(dualgemm_last_error()).empty());
}

bool begins(const std::string& text, const std::string& part) { return text.find(part) == 0; }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a program without code for the device is ARCH_MISMATCH", "[errors]") {
  int device = 1;
  for (const cudaError_t error :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidKernelImage, cudaErrorInvalidDeviceFunction}) {
    check(error, device, DUALGEMM_STATUS_ARCH_MISMATCH, [&](const std::string& text, const Call&) {
      const std::string number = std::to_string(static_cast<int>(error));
      CHECK(text.find("cc_major=10, cc_minor=0: this program has no kernel for device " +
                      std::to_string(device) + ": ") == 0);
      CHECK(contains(text, "(" + number + ")"));
    });
    ++device;
  }
  CHECK(dualgemm_last_cuda_error() == 0);
}

TEST_CASE("no device is NO_DEVICE", "[errors]") {
  check(cudaErrorNoDevice, 10, DUALGEMM_STATUS_NO_DEVICE, [](const std::string& text, const Call&) {
    CHECK(contains(text, ": cudaErrorNoDevice (100): there is no CUDA device"));
  });
}

TEST_CASE("a driver that is too old is DRIVER_TOO_OLD, by its version", "[errors]") {
  check(cudaErrorInsufficientDriver, 11, DUALGEMM_STATUS_DRIVER_TOO_OLD,
        [](const std::string& text, const Call&) {
          CHECK(text.find("driver_version=" + std::to_string(CUDART_VERSION) + ": supports CUDA ") == 0);
        });
}

TEST_CASE("any other error is CUDA_ERROR, with its number", "[errors]") {
  check(cudaErrorMemoryAllocation, 12, DUALGEMM_STATUS_CUDA_ERROR,
        [](const std::string& text, const Call& call) {
          CHECK(contains(text, "(" + std::to_string(cudaErrorMemoryAllocation) + ")"));
          CHECK(dualgemm_last_cuda_error() == cudaErrorMemoryAllocation);
          const bool by_name = std::string(call.function) == "cudaLaunchKernelExC" && call.call == launch;
          CHECK(contains(text, by_name ? "k256_bf16" : call.function));
        });
}

// Devices 20 and up.
TEST_CASE("where clusters cannot be counted there are none, and nothing else fails", "[errors]") {
  struct Probe {
    const char* function;
    cudaError_t error;
    int32_t of_2, of_4;  // while the next call of the function fails
    bool remembered;
  };
  // The first question is about clusters of two. What says nothing of clusters is asked again.
  const Probe probes[] = {
      {"cudaOccupancyMaxActiveClusters", cudaErrorInvalidClusterSize, -1, 34, true},
      {"cudaOccupancyMaxActiveClusters", cudaErrorNotSupported, -1, 34, true},
      {"cudaOccupancyMaxActiveClusters", cudaErrorInvalidConfiguration, -1, 34, true},
      {"cudaOccupancyMaxActiveClusters", cudaErrorMemoryAllocation, -1, 34, false},
      {"cudaOccupancyMaxActiveClusters", cudaErrorStreamCaptureUnsupported, -1, 34, false},
      {"cudaFuncSetAttribute", cudaErrorStreamCaptureImplicit, -1, -1, false},
      {"cudaFuncSetAttribute", cudaErrorMemoryAllocation, -1, -1, false},
      {"cudaFuncSetAttribute", cudaErrorNoKernelImageForDevice, -1, -1, false},
      {"cudaFuncSetAttribute", cudaErrorInvalidValue, -1, -1, true},
  };
  int device = 20;
  for (const Probe& probe : probes) {
    CAPTURE(probe.function, probe.error);
    REQUIRE(cudaSetDevice(device++) == cudaSuccess);
    const int before = dualgemm_last_cuda_error();
    stub_fail(probe.function, probe.error);
    const dualgemm_device_t found = current_device();
    CHECK(found.clusters_of_2 == probe.of_2);
    CHECK(found.clusters_of_4 == probe.of_4);
    CHECK(found.sm_count == 148);
    CHECK(std::string(dualgemm_last_error()).empty());
    CHECK(dualgemm_last_cuda_error() == before);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    const dualgemm_device_t again = current_device();
    CHECK(again.clusters_of_2 == (probe.remembered ? probe.of_2 : 74));
    CHECK(again.clusters_of_4 == (probe.remembered ? probe.of_4 : 34));
  }
}

TEST_CASE("a launch where clusters cannot be counted has none", "[errors]") {
  dualgemm_args_t args = valid_args();
  args.m = 300;
  args.n = args.k = 512;  // for which a B200 takes pairs
  REQUIRE(cudaSetDevice(30) == cudaSuccess);
  REQUIRE(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS);
  CHECK(dualgemm_test::stub_work().cluster == 2);
  REQUIRE(cudaSetDevice(31) == cudaSuccess);
  stub_fail("cudaOccupancyMaxActiveClusters", cudaErrorInvalidClusterSize);
  REQUIRE(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS);
  CHECK(dualgemm_test::stub_work().cluster == 1);
}

TEST_CASE("a kernel that cannot be loaded fails its launch, and the next launch loads it", "[errors]") {
  REQUIRE(cudaSetDevice(32) == cudaSuccess);
  current_device();
  stub_fail("cudaFuncSetAttribute", cudaErrorMemoryAllocation);
  CHECK(launch() == DUALGEMM_STATUS_CUDA_ERROR);
  CHECK(begins(dualgemm_last_error(), "cudaFuncSetAttribute: "));
  CHECK(launch() == DUALGEMM_STATUS_SUCCESS);
}

TEST_CASE("a device whose name the driver does not tell has none", "[errors]") {
  int device = 34;
  for (const char* function : {"cuDeviceGet", "cuDeviceGetName"}) {
    REQUIRE(cudaSetDevice(device++) == cudaSuccess);
    stub_fail(function, cudaErrorInvalidValue);
    const dualgemm_device_t found = current_device();
    CHECK(std::string(found.name).empty());
    CHECK(found.clusters_of_2 == 74);
  }
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  CHECK(std::string(current_device().name) == "stub of a B200");
}

TEST_CASE("a runtime of another major version is RUNTIME_MISMATCH, before anything is asked of it",
          "[errors]") {
  struct Restored {
    ~Restored() { dualgemm_test::stub_runtime_version(CUDART_VERSION); }
  } const restored;
  constexpr int kMajor = CUDART_VERSION / 1000;
  const auto text_of = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  REQUIRE(cudaSetDevice(40) == cudaSuccess);
  for (const int version : {(kMajor - 1) * 1000 + 90, (kMajor + 1) * 1000, kMajor * 1000 - 1}) {
    dualgemm_test::stub_runtime_version(version);
    const uint64_t launches = dualgemm_test::stub_work().launches;
    dualgemm_device_t device;
    dualgemm_device_init(&device);
    const dualgemm_args_t args = valid_args();
    const std::function<dualgemm_status_t()> calls[] = {launch,
                                                        swizzle,
                                                        fill,
                                                        dualgemm_init,
                                                        [&] { return dualgemm_current_device(&device); },
                                                        [&] { return dualgemm_can_implement(&args); }};
    for (const auto& call : calls) {
      CHECK(call() == DUALGEMM_STATUS_RUNTIME_MISMATCH);
      CHECK(begins(dualgemm_last_error(), "runtime_version=" + std::to_string(version) +
                                              ": the program has the CUDA runtime of " + text_of(version) +
                                              ", the library is built with CUDA " + text_of(CUDART_VERSION) +
                                              "; "));
    }
    CHECK(device.sm_count == 0);
    CHECK(dualgemm_test::stub_work().launches == launches);
  }
  // Another minor version is as good, and asked for once.
  dualgemm_test::stub_runtime_version(kMajor * 1000 + 990);
  CHECK(launch() == DUALGEMM_STATUS_SUCCESS);
  dualgemm_test::stub_runtime_version(1000);
  CHECK(launch() == DUALGEMM_STATUS_SUCCESS);
}

TEST_CASE("a context that had failed is told as that, and no argument is blamed", "[errors]") {
  dualgemm_args_t checked = valid_args();
  checked.flags = DUALGEMM_FLAG_CHECK_POINTERS;
  const auto check_launch = [&] { return dualgemm_launch_ex(&checked, nullptr); };
  const auto check_call = [&](const char* function, const auto& call, const char* when) {
    INFO(function);
    stub_fail(function, cudaErrorIllegalAddress);
    CHECK(call() == DUALGEMM_STATUS_CUDA_ERROR);
    const std::string text = dualgemm_last_error();
    CAPTURE(text);
    CHECK(begins(text, std::string("the CUDA context ") + when + ": cudaErrorIllegalAddress (700): "));
    for (const char* argument : {"for a:", "a=", "address", "type"}) CHECK(!contains(text, argument));
    CHECK(dualgemm_last_cuda_error() == cudaErrorIllegalAddress);
  };
  const char* const before = "had failed before this call, by work that ran earlier";
  REQUIRE(cudaSetDevice(44) == cudaSuccess);
  for (const char* function : {"cudaRuntimeGetVersion", "cudaDeviceGetAttribute", "cudaFuncSetAttribute",
                               "cudaOccupancyMaxActiveClusters"}) {
    check_call(function, launch, before);
    CHECK(contains(dualgemm_last_error(), std::string(" (as ") + function + " was told)"));
  }
  check_call("cudaGetDevice", launch, before);
  CHECK(current_device().clusters_of_2 == 74);  // of the failed context nothing was remembered
  check_call("cudaFuncSetAttribute", launch, before);
  check_call("cuTensorMapEncodeTiled", launch, before);
  check_call("cuPointerGetAttributes", check_launch, before);
  check_call(
      "cudaFuncSetAttribute", [] { return dualgemm_init(); }, before);
  REQUIRE(dualgemm_init() == DUALGEMM_STATUS_SUCCESS);
  check_call(
      "cudaFuncSetAttribute", [] { return dualgemm_init(); }, before);  // with everything loaded, too

  // A launch may be told of its own kernel, unless the error was there before.
  const char* const either = "has failed, by work that ran earlier or, if launches block, by this one";
  const auto check_work = [&](const char* when) {
    check_call("cudaLaunchKernelExC", launch, when);
    check_call("cudaLaunchKernelExC", swizzle, when);
    check_call("cudaMemset2DAsync", fill, when);
  };
  check_work(either);
  stub_fail("cudaSetDevice", cudaErrorIllegalAddress);
  REQUIRE(cudaSetDevice(44) == cudaErrorIllegalAddress);
  check_work(before);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

TEST_CASE("every error that ends a context is told as that, others are not", "[errors]") {
  REQUIRE(cudaSetDevice(45) == cudaSuccess);
  REQUIRE(launch() == DUALGEMM_STATUS_SUCCESS);
  // CUDA says of each in driver_types.h that a new process is needed, or that it was found during execution.
  for (const int error : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
    stub_fail("cuTensorMapEncodeTiled", static_cast<cudaError_t>(error));
    CHECK(launch() == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK(begins(dualgemm_last_error(), "the CUDA context had failed before this call"));
    CHECK(dualgemm_last_cuda_error() == error);
  }
  for (const int error : {1, 2, 3, 201, 400, 701, 720, 801, 900, 912}) {
    stub_fail("cuTensorMapEncodeTiled", static_cast<cudaError_t>(error));
    CHECK(launch() == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK(begins(dualgemm_last_error(),
                 "cuTensorMapEncodeTiled failed with " + std::to_string(error) + " for a"));
  }
}

TEST_CASE("a launch that fails in a stream of another device names both devices", "[errors]") {
  REQUIRE(cudaSetDevice(46) == cudaSuccess);
  const cudaStream_t far = dualgemm_test::stub_stream_of(47), near = dualgemm_test::stub_stream_of(46);
  const auto status_in = [](cudaStream_t stream, int32_t k) {
    dualgemm_args_t args = valid_args();
    args.k = k;
    return dualgemm_launch_ex(&args, stream);
  };
  for (const int32_t k : {0, 512}) {
    CAPTURE(k);
    CHECK(status_in(far, k) == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK(contains(dualgemm_last_error(), ": belongs to device 47, but device 46 is current: "));
    CHECK(begins(dualgemm_last_error(), "stream=0x"));
    CHECK(contains(dualgemm_last_error(), " (1): "));
    CHECK(dualgemm_last_cuda_error() == cudaErrorInvalidValue);
    CHECK(status_in(near, k) == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK(!contains(dualgemm_last_error(), "device"));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
}

TEST_CASE("a size of a workspace that cannot be told leaves no error behind", "[errors]") {
  REQUIRE(cudaSetDevice(48) == cudaSuccess);
  const int before = dualgemm_last_cuda_error();
  const dualgemm_args_t args = valid_args();
  size_t bytes = 1;
  stub_fail("cudaDriverGetVersion", cudaErrorMemoryAllocation);
  CHECK(dualgemm_workspace_size(&args, &bytes) == DUALGEMM_STATUS_SUCCESS);
  CHECK(bytes == 0);
  CHECK(std::string(dualgemm_last_error()).empty());
  CHECK(dualgemm_last_cuda_error() == before);
}

namespace {

struct Tried {
  dualgemm_status_t status;
  size_t bytes;
  uint64_t launches;
  std::string text;
};

Tried tried(const dualgemm_args_t& args) {
  const uint64_t before = stub_work().launches;
  size_t bytes = 77;
  const dualgemm_status_t status = dualgemm_try_launch(&args, &bytes, nullptr);
  return {status, bytes, stub_work().launches - before, dualgemm_last_error()};
}

}  // namespace

TEST_CASE("a try launches where the workspace is as large as the launch would use", "[errors]") {
  constexpr size_t kUsable = size_t{4096} * 7168 * 2;  // A in 16 bits
  dualgemm_args_t args = valid_args();
  args.m = args.n = 4096, args.k = 7168, args.c = address(uintptr_t{1} << 50);
  std::vector<Tried> tries;
  size_t usable = 0;
  const auto try_all = [&] {
    stub_h100();  // for this thread alone
    cudaSetDevice(47);
    dualgemm_workspace_size(&args, &usable);
    tries.push_back(tried(args));
    args.workspace = address(uintptr_t{1} << 52);
    for (const size_t size : {usable - 1, usable, usable + 1}) {
      args.workspace_size = size;
      tries.push_back(tried(args));
    }
    args.m = 0;
    tries.push_back(tried(args));
    args.m = 4096, args.k = 1000;
    tries.push_back(tried(args));
  };
  std::thread(try_all).join();
  REQUIRE(usable == kUsable);
  for (const size_t i : {0, 1}) {
    const size_t size = i == 0 ? 0 : kUsable - 1;
    CHECK(tries[i].status == DUALGEMM_STATUS_WORKSPACE_TOO_SMALL);
    CHECK(tries[i].bytes == kUsable);
    CHECK(tries[i].launches == 0);
    CHECK(tries[i].text == "workspace_size=" + std::to_string(size) + ": the launch would use " +
                               std::to_string(kUsable) + " bytes");
  }
  for (const size_t i : {2, 3}) {
    CHECK(tries[i].status == DUALGEMM_STATUS_SUCCESS);
    CHECK(tries[i].bytes == kUsable);
    CHECK(tries[i].launches == 2);  // the pass over A, and the kernel
    CHECK(tries[i].text.empty());
  }
  CHECK(tries[4].status == DUALGEMM_STATUS_SUCCESS);
  CHECK(tries[4].bytes == 0);
  CHECK(tries[4].launches == 0);
  CHECK(tries[5].status == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(tries[5].bytes == 77);
}

TEST_CASE("a try reports what a launch reports", "[errors]") {
  REQUIRE(cudaSetDevice(46) == cudaSuccess);
  const dualgemm_args_t args = valid_args();
  CHECK(tried(args).launches == 1);  // a B200 uses no workspace
  CHECK(tried(args).bytes == 0);
  CHECK(dualgemm_try_launch(&args, nullptr, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(std::string(dualgemm_last_error()) == "bytes=NULL: must point to a size_t");
  for (const char* function : {"cudaGetDevice", "cudaLaunchKernelExC"}) {
    stub_fail(function, cudaErrorMemoryAllocation);
    CHECK(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_CUDA_ERROR);
    const std::string said = dualgemm_last_error();
    stub_fail(function, cudaErrorMemoryAllocation);
    const Tried failed = tried(args);
    CHECK(failed.status == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK(failed.text == said);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
}
