// device.h -- device memory that frees itself, and errors as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "dualgemm.h"

namespace checkpoint {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

inline void check(dualgemm_status_t status, const char* what) {
  if (status != DUALGEMM_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": " + dualgemm_status_name(status) + ": " +
                             dualgemm_last_error());
}

class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) : bytes_(bytes) { check(cudaMalloc(&base_, bytes), "cudaMalloc"); }
  template <typename T>
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size() * sizeof(T)) {
    check(cudaMemcpy(base_, host.data(), bytes_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : base_(other.base_), bytes_(other.bytes_) {
    other.base_ = nullptr;
  }
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() { cudaFree(base_); }

  template <typename T = void>
  T* as() const {
    return static_cast<T*>(base_);
  }
  template <typename T>
  std::vector<T> read() const {
    std::vector<T> host(bytes_ / sizeof(T));
    check(cudaMemcpy(host.data(), base_, bytes_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }

 private:
  void* base_ = nullptr;
  size_t bytes_;
};

}  // namespace checkpoint
