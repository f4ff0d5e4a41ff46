// launch_test.cpp -- what a launch does with the CUDA runtime apart from running a kernel: the device it
// finds, the zero fill of K == 0, and the error state it leaves to its caller. The tests need a runtime with
// a device of compute capability 10.x, which the simulated one is.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "host/dualgemm.h"
#include "support/catch.hpp"

TEST_CASE("the current device is described as the runtime describes it", "[host][launch]") {
  dualgemm_device_t device;
  REQUIRE(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS);
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(device.cc_major == properties.major);
  CHECK(device.cc_minor == properties.minor);
  CHECK(device.sm_count == properties.multiProcessorCount);
  CHECK(device.ordinal == 0);
  CHECK(std::string(device.name) == properties.name);
  int driver_version = 0;
  REQUIRE(cudaDriverGetVersion(&driver_version) == cudaSuccess);
  CHECK(device.driver_version == driver_version);
  // The GPCs of the simulated B200 have 20, 20, 20, 18, 18, 18, 18, 10 and 6 SMs: 74 pairs, 34 times four.
  CHECK(device.clusters_of_2 == 74);
  CHECK(device.clusters_of_4 == 34);
  CHECK(dualgemm_current_device(nullptr) == DUALGEMM_STATUS_NULL_POINTER);
}

TEST_CASE("kernels load once, from any number of threads", "[host][launch]") {
  std::vector<dualgemm_status_t> statuses(4, DUALGEMM_STATUS_INTERNAL);
  std::vector<std::thread> threads;
  for (dualgemm_status_t& status : statuses) threads.emplace_back([&status] { status = dualgemm_init(); });
  for (std::thread& thread : threads) thread.join();
  for (const dualgemm_status_t status : statuses) CHECK(status == DUALGEMM_STATUS_SUCCESS);
}

TEST_CASE("K == 0 fills the columns of C with zeros and leaves what lies between rows", "[host][launch]") {
  const int32_t m = 5, n = 24, ldc = 40;
  const size_t bytes = static_cast<size_t>(m) * ldc * 2;
  void* c = nullptr;
  REQUIRE(cudaMalloc(&c, bytes) == cudaSuccess);
  REQUIRE(cudaMemset(c, 0xAA, bytes) == cudaSuccess);

  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m;
  args.n = n;
  args.c = c;
  args.ldc = ldc;
  const dualgemm_status_t status = dualgemm_launch_ex(&args, nullptr);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);

  std::vector<uint8_t> host(bytes);
  REQUIRE(cudaMemcpy(host.data(), c, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (size_t i = 0; i < bytes; ++i) {
    const bool inside = static_cast<int32_t>(i / 2) % ldc < n;
    REQUIRE(host[i] == (inside ? 0x00 : 0xAA));
  }
  CHECK(cudaFree(c) == cudaSuccess);
}

TEST_CASE("K == 0 fills every problem of a batch and leaves what lies between", "[host][launch][batch]") {
  const int32_t m = 5, n = 24, ldc = 40, batch = 3;
  for (const int64_t stride : {0, 184, 200, 264}) {
    const int64_t elements = stride == 0 ? m * ldc : stride;
    const auto bytes = static_cast<size_t>(batch * elements + 64) * 2;
    void* c = nullptr;
    REQUIRE(cudaMalloc(&c, bytes) == cudaSuccess);
    REQUIRE(cudaMemset(c, 0xAA, bytes) == cudaSuccess);
    dualgemm_args_t args;
    dualgemm_args_init(&args);
    args.m = m;
    args.n = n;
    args.batch = batch;
    args.c = c;
    args.ldc = ldc;
    args.batch_stride_c = stride;
    const dualgemm_status_t status = dualgemm_launch_ex(&args, nullptr);
    INFO(dualgemm_last_error());
    REQUIRE(status == DUALGEMM_STATUS_SUCCESS);

    std::vector<uint8_t> expected(bytes, 0xAA), host(bytes);
    for (int64_t problem = 0; problem < batch; ++problem)
      for (int64_t row = 0; row < m; ++row)
        for (int64_t column = 0; column < n; ++column)
          for (int64_t byte = 0; byte < 2; ++byte)
            expected[static_cast<size_t>((problem * elements + row * ldc + column) * 2 + byte)] = 0;
    REQUIRE(cudaMemcpy(host.data(), c, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    INFO("stride " << stride);
    CHECK(host == expected);
    CHECK(cudaFree(c) == cudaSuccess);
  }
}

TEST_CASE("an error that was pending before a call is still pending after it", "[host][launch]") {
  cudaGetLastError();
  REQUIRE(cudaSetDevice(-1) != cudaSuccess);
  const cudaError_t pending = cudaPeekAtLastError();
  REQUIRE(pending != cudaSuccess);
  CHECK(dualgemm_init() == DUALGEMM_STATUS_SUCCESS);
  CHECK(cudaPeekAtLastError() == pending);
  cudaGetLastError();
  CHECK(dualgemm_init() == DUALGEMM_STATUS_SUCCESS);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
