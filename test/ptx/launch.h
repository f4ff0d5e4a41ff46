// launch.h -- what the tests of the wrappers share: device memory, launches that may end in a fault, tensor
// maps and data in which every misplaced word shows.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/shim/shim.h"
#include "support/catch.hpp"

namespace wrappers {

inline constexpr uint32_t kUntouched = 0xA5A5A5A5;

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : n_(n) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T)) == cudaSuccess);
    REQUIRE(cudaMemset(data_, 0xA5, n * sizeof(T)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    REQUIRE(cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(n_);
    REQUIRE(cudaMemcpy(values.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t n_;
};

struct Outcome {
  cudaError_t error;
  std::string explanation;  // the simulator's, of a fault
};

// A fault leaves the device usable for the next launch.
template <class... Parameters>
Outcome run_blocks(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                   const std::type_identity_t<Parameters>&... arguments) {
  void* pointers[] = {const_cast<std::remove_const_t<Parameters>*>(&arguments)...};  // the launch only reads
  cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads),
                                       pointers, 0, nullptr);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  const Outcome outcome{error, sim::shim::last_fault_text()};
  if (error != cudaSuccess) sim::shim::clear_fault();
  return outcome;
}

template <class... Parameters>
Outcome run(void (*kernel)(Parameters...), unsigned threads,
            const std::type_identity_t<Parameters>&... arguments) {
  return run_blocks(kernel, 1, threads, arguments...);
}

inline void require_end(const Outcome& outcome) {
  INFO(outcome.explanation);
  REQUIRE(outcome.error == cudaSuccess);
}

template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned threads,
            const std::type_identity_t<Parameters>&... arguments) {
  require_end(run(kernel, threads, arguments...));
}

// That a phase is open shows in that a wait for it never ends, which the simulator proves and reports.
inline void check_waits_forever(const Outcome& outcome, const std::string& phase) {
  CHECK(outcome.error == cudaErrorLaunchTimeout);
  CHECK_THAT(outcome.explanation, dualgemm_test::contains("deadlock"));
  CHECK_THAT(outcome.explanation, dualgemm_test::contains(phase));
}

// A map of `rows` rows of `words` 32-bit elements, `pitch_words` apart.
inline CUtensorMap map_words(const void* base, uint64_t words, uint64_t rows, uint64_t pitch_words,
                             uint32_t box_words, uint32_t box_rows,
                             CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                           &found) == cudaSuccess);
  REQUIRE(found == cudaDriverEntryPointSuccess);
  const auto encode = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
  const cuuint64_t dims[] = {words, rows}, pitch[] = {4 * pitch_words};
  const cuuint32_t box[] = {box_words, box_rows}, steps[] = {1, 1};
  CUtensorMap map;
  REQUIRE(encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, const_cast<void*>(base), dims, pitch, box, steps,
                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

// Distinct words of all bit patterns, so that a word in the wrong place shows: every step can be undone.
inline std::vector<uint32_t> distinct_words(size_t n) {
  std::vector<uint32_t> words(n);
  for (size_t i = 0; i < n; ++i) {
    uint32_t word = 0x9E3779B1u * static_cast<uint32_t>(i + 1);
    word = 0x2C1B3C6Du * (word ^ word >> 15);
    words[i] = word ^ word >> 16;
  }
  return words;
}

}  // namespace wrappers
