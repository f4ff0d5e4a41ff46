// device_memory.h -- the one owner of device memory: in the tests, in the benchmark and in the programs that
// run on a Hopper GPU. The CUDA runtime underneath is the real one or the simulator's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace dualgemm_test {

// Throws std::runtime_error that says what failed, and how.
inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// This is device memory of exactly this many values, freed with the object. For none there is no allocation.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    if (count != 0) check_cuda(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
  }
  DeviceArray(size_t count, int byte) : DeviceArray(count) { fill(byte); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }
  // The copy comes after everything that the device was given to do.
  DeviceArray(const DeviceArray& other) : DeviceArray(other.count_) {
    if (count_ != 0)
      check_cuda(cudaMemcpy(data_, other.data_, count_ * sizeof(T), cudaMemcpyDeviceToDevice), "copy");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t size() const { return count_; }

  void fill(int byte) {
    if (count_ != 0) check_cuda(cudaMemset(data_, byte, count_ * sizeof(T)), "cudaMemset");
  }
  void upload(const std::vector<T>& values) {
    if (values.size() > count_) throw std::logic_error("upload: more values than there is room for");
    if (values.empty()) return;
    check_cuda(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  // The copy comes after everything that the device was given to do.
  std::vector<T> host() const {
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> values(count_);
    if (count_ != 0)
      check_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

// Every byte of this one is defined from the start.
template <class T, int kByte>
class FilledArray : public DeviceArray<T> {
 public:
  explicit FilledArray(size_t count, int byte = kByte) : DeviceArray<T>(count, byte) {}
  explicit FilledArray(const std::vector<T>& values) : DeviceArray<T>(values) {}
};

}  // namespace dualgemm_test
