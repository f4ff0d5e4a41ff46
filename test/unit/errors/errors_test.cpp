// errors_test.cpp -- what becomes of errors of the CUDA runtime that a GPU gives on a bad day only: the stub
// of the runtime gives each of them in each call where it may come.

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "host/dualgemm.h"
#include "stub/cuda.h"
#include "support/catch.hpp"
#include "unit/host/arguments.h"

using dualgemm_test::address;
using dualgemm_test::stub_fail;
using dualgemm_test::valid_args;

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

// Those that are called once come first, before anything succeeds; each test has a device of its own.
const std::vector<Call> kCalls = {
    {"cudaGetDeviceProperties", launch, true},
    {"cudaDriverGetVersion", launch, true},
    {"cudaFuncSetAttribute", launch, true},
    {"cudaOccupancyMaxActiveClusters", launch, true},
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
