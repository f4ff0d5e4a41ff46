// inputs.h -- the operands of one launch on the device, laid out as the public header says, and what the
// verification needs to know of them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "dualgemm.h"
#include "shapes.h"

namespace bench {

// Throws std::runtime_error unless `error` is cudaSuccess.
void cuda(cudaError_t error, const char* what);

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = state_;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
  }

 private:
  uint64_t state_;
};

class Buffer {
 public:
  explicit Buffer(size_t bytes) { cuda(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  template <class T>
  explicit Buffer(const std::vector<T>& from) : Buffer(from.size() * sizeof(T)) {
    cuda(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Where a problem begins, and its factors.
struct Place {
  int64_t row;  // its first row in A and C, counted over all problems
  size_t sfa;   // the byte of SFA where its scale factors begin
  float alpha1, alpha2;
};

class InputSet {
 public:
  InputSet(const Shape& shape, dualgemm_dtype_t dtype, Random& random);

  // For the library, with a C of rows() x N: a single problem has no factors, others have their own each.
  const dualgemm_args_t& args() const { return args_; }
  const Place& place(int32_t problem) const { return places_[problem]; }  // the last: the end of all
  int64_t rows() const { return rows_; }  // that A and C have room for, of all problems

  // On the device they stay.
  void forget_host_copy();

  // Row `row` of A of `problem`, and row `row` of its B1 (side 0) or B2 (side 1), as numbers.
  std::vector<float> row_of_a(int32_t problem, int32_t row) const;
  std::vector<float> row_of_b(int side, int32_t problem, int32_t row) const;

 private:
  Shape shape_;
  std::vector<Place> places_;
  int64_t rows_;
  std::vector<uint8_t> codes_[3], scales_[3];  // A, B1, B2
  Buffer a_, b1_, b2_, sfa_, sfb1_, sfb2_, c_, alphas_, group_rows_;
  dualgemm_args_t args_;
};

// How many sets a launch of this shape gets: `wanted`, as long as they take less than 16 GB. That much is 100
// times the L2 of a B200, and two are always needed for operands to be cold.
int input_sets_of(const Shape& shape, int wanted);

}  // namespace bench
