// launch_test.cpp -- what a launch does with the CUDA runtime apart from running a kernel: the device it
// finds, the zero fill of K == 0, and the error state it leaves to its caller. The tests need a runtime with
// a device of compute capability 10.x, which the simulated one is.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace launch_test {

TEST_CASE("the current device is described as the runtime describes it", "[host][launch]") {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
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

// An output of a batch on the device, filled with 0xAA, and what it is to hold after a launch.
class Filled {
 public:
  // Rows of `row` bytes that lie `pitch` bytes apart, of which each problem has `rows`, `stride` bytes apart.
  Filled(int64_t problems, int64_t stride, int64_t rows, int64_t pitch, int64_t row)
      : expected_(static_cast<size_t>(problems * stride + 64), 0xAA) {
    REQUIRE(cudaMalloc(&device_, expected_.size()) == cudaSuccess);
    REQUIRE(cudaMemset(device_, 0xAA, expected_.size()) == cudaSuccess);
    for (int64_t p = 0; p < problems; ++p)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < row; ++i) expected_[static_cast<size_t>(p * stride + r * pitch + i)] = 0;
  }
  Filled(const Filled&) = delete;
  Filled& operator=(const Filled&) = delete;
  ~Filled() { cudaFree(device_); }
  void* device() const { return device_; }
  bool as_expected() const {
    std::vector<uint8_t> host(expected_.size());
    REQUIRE(cudaMemcpy(host.data(), device_, host.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host == expected_;
  }

 private:
  std::vector<uint8_t> expected_;
  void* device_ = nullptr;
};

TEST_CASE("K == 0 fills the columns of C with zeros, in every problem, and leaves what lies between",
          "[host][launch][batch]") {
  const int32_t m = 5, n = 24, ldc = 40, batch = GENERATE(0, 3);
  const int64_t stride = batch == 0 ? 0 : GENERATE(0, 184, 200, 264);
  CAPTURE(batch, stride);
  const Filled c(std::max(batch, 1), 2 * (stride == 0 ? m * ldc : stride), m, 2 * ldc, 2 * n);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = m, args.n = n, args.batch = batch;
  args.c = c.device(), args.ldc = ldc, args.batch_stride_c = stride;
  const dualgemm_status_t status = dualgemm_launch_ex(&args, nullptr);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  CHECK(c.as_expected());
}

TEST_CASE("K == 0 fills every output, scale factors whole, and leaves the largest |C|",
          "[host][launch][batch]") {
  constexpr int32_t m = 130, n = 176, batch = 3;
  constexpr int64_t sf_bytes = 2 * 3 * 512;  // 2 bands of 128 rows, 3 atoms along N
  REQUIRE(dualgemm_sf_size(m, n) == sf_bytes);
  for (const int64_t gap : {0, 16}) {
    const int64_t stride_c = m * 96 + gap, stride_sfc = sf_bytes + gap, stride_d1 = m * 400 + gap,
                  stride_d2 = m * 352 + gap;
    const Filled c(batch, stride_c, m, 96, 88), sfc(batch, stride_sfc, 1, 0, sf_bytes),
        d1(batch, stride_d1, m, 400, 352), d2(batch, stride_d2, m, 352, 352), amax(1, 0, 0, 0, 0);
    dualgemm_args_t args;
    dualgemm_args_init(&args);
    args.m = m;
    args.n = n;
    args.batch = batch;
    args.c_dtype = DUALGEMM_DTYPE_NVFP4;
    args.activation = DUALGEMM_ACTIVATION_GLU;  // sigmoid(0) is no zero
    args.c = c.device();
    args.ldc = 192;
    args.batch_stride_c = 2 * stride_c;
    args.sfc = sfc.device();
    args.batch_stride_sfc = stride_sfc;
    args.d1 = d1.device();
    args.ldd1 = 200;
    args.batch_stride_d1 = stride_d1 / 2;
    args.d2 = d2.device();
    args.batch_stride_d2 = stride_d2 / 2;
    args.amax_out = static_cast<float*>(amax.device());
    const dualgemm_status_t status = dualgemm_launch_ex(&args, nullptr);
    INFO(dualgemm_last_error());
    REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
    INFO("gap " << gap);
    CHECK(c.as_expected());
    CHECK(sfc.as_expected());
    CHECK(d1.as_expected());
    CHECK(d2.as_expected());
    CHECK(amax.as_expected());
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

}  // namespace launch_test
