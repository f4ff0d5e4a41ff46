// device.cuh -- device memory and launches for the cases: every CUDA error becomes an exception that says
// where, and every buffer starts with defined contents.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/h200/record.h"

namespace h200 {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error));
}

template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count, int fill = 0) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    check(cudaMemset(data_, fill, count * sizeof(T)), "cudaMemset");
  }
  explicit Buffer(const std::vector<T>& values) : count_(values.size()) {
    check(cudaMalloc(&data_, count_ * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> host() const {
    check(cudaDeviceSynchronize(), "kernel");
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

struct Shape {
  dim3 grid, block;
  size_t smem = 0;
  dim3 cluster = {1, 1, 1};
};

template <class... Params, class... Args>
void launch(const Shape& shape, void (*kernel)(Params...), Args... args) {
  if (shape.smem > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shape.smem)),
          "cudaFuncSetAttribute");
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = shape.cluster.x;
  attribute.val.clusterDim.y = shape.cluster.y;
  attribute.val.clusterDim.z = shape.cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.smem;
  config.attrs = &attribute;
  config.numAttrs = shape.cluster.x * shape.cluster.y * shape.cluster.z > 1 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), "launch");
  check(cudaDeviceSynchronize(), "kernel");
}

// xorshift64*: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x1234567) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  uint32_t below(uint32_t limit) { return uint32_t((next() >> 32) % limit); }
  int between(int low, int high) { return low + int(below(uint32_t(high - low + 1))); }

 private:
  uint64_t state_;
};

}  // namespace h200
