// host.h -- the host side of the fixtures: device arrays, tensor maps, and what a run came to.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "defects/defects.h"

namespace defects {

// Device memory of n values, freed with the object.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n, int byte = 0) : n_(n) {
    cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T));
    cudaMemset(data_, byte, n * sizeof(T));
  }
  explicit DeviceArray(const std::vector<T>& values) : n_(values.size()) {
    cudaMalloc(reinterpret_cast<void**>(&data_), n_ * sizeof(T));
    cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  // Zeros when the device has faulted.
  std::vector<T> host() const {
    std::vector<T> values(n_);
    cudaMemcpy(values.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t n_;
};

// Waits for the device; right(i) is the value that out[i] should have.
template <class T, class Right>
Outcome outcome(const DeviceArray<T>& out, Right right) {
  Outcome result{cudaDeviceSynchronize(), true};
  const std::vector<T> values = out.host();
  for (size_t i = 0; i < values.size(); ++i) result.right = result.right && values[i] == right(i);
  return result;
}

// run(d) with the defect as a constant, so that it can choose a kernel.
template <class Type, class Run, int... defects>
Outcome run_one(Type defect, Run run, std::integer_sequence<int, defects...>) {
  Outcome result{cudaErrorInvalidValue, false};
  const auto try_one = [&](auto constant) {
    if (defect == decltype(constant)::value) result = run(constant);
  };
  (try_one(std::integral_constant<Type, static_cast<Type>(defects)>()), ...);
  return result;
}

// Defines the subject of this name: run<d>() runs its kernel with defect d.
#define DEFECTS_SUBJECT(Type, subject, run)                                 \
  Outcome subject(Type defect) {                                            \
    return run_one(                                                         \
        defect, [](auto d) { return run<decltype(d)::value>(); },           \
        std::make_integer_sequence<int, static_cast<int>(Type::kCount)>()); \
  }

// A map over rows of `width` bytes, loaded or stored in boxes.
inline CUtensorMap byte_map(void* base, uint64_t width, uint64_t rows, uint32_t box_width, uint32_t box_rows,
                            CUtensorMapSwizzle swizzle) {
  CUtensorMap map;
  const cuuint64_t dims[2] = {width, rows}, strides[1] = {width};
  const cuuint32_t box[2] = {box_width, box_rows}, steps[2] = {1, 1};
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, base, dims, strides, box, steps,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

inline std::vector<uint32_t> counting(size_t n) {
  std::vector<uint32_t> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<uint32_t>(1000 + i);
  return values;
}

}  // namespace defects
