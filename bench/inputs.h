// inputs.h -- the operands of one launch on the device, laid out as the public header says, and what the
// verification needs to know of them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "dualgemm.h"
#include "random_operands.h"
#include "shapes.h"
#include "test/ref/dual_gemm.h"
#include "test/support/device_memory.h"
#include "test/support/rng.h"

namespace bench {

using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;
using dualgemm_test::Rng;

// A problem begins here, and has these alphas.
struct Place {
  int64_t row;      // its first row in A and C, counted over all problems
  size_t sfa, sfc;  // the bytes of SFA and SFC where its scale factors begin
  float alpha1, alpha2;
};

// This is one row of an operand, with its scale factors laid out as those of a tensor of one row; of an A of
// 16 bits or in FP8 there are none, and its codes are its elements. A row of weights in MXFP4 has an
// exponent, and a row of an A in FP8 a factor, which is no part of the operand.
struct Row {
  std::vector<uint8_t> codes, scales;
  ref::Elements elements = ref::Elements::kNvfp4;
  int16_t exponent = 0;
  float factor = 1;
  ref::Operand operand() const {
    return {codes.data(), static_cast<int64_t>(codes.size()), scales.data(), 1, elements, &exponent};
  }
};

// Returns the bytes of workspace that any instance could make use of on the current device, most of which
// choose to use none: on Hopper those for A in 16 bits, elsewhere 0.
size_t workspace_bytes(const Shape& shape, const Epilogue& epilogue);

class InputSet {
 public:
  // One launch after the other may have the same workspace. Without an A the arguments have none; whoever
  // gives a launch one calls expect_a.
  InputSet(const Shape& shape, const Epilogue& epilogue, const DeviceArray<uint8_t>& workspace, Rng& random,
           bool with_a = true);

  // Has the same operands as `other` at addresses of its own, and no host copy of them.
  explicit InputSet(const InputSet& other);

  // Returns the arguments for the library, with a C of rows() x N, and its scale factors, if it has any: a
  // single problem has no alphas on the device, others have their own each.
  const dualgemm_args_t& args() const { return args_; }
  const Place& place(int32_t problem) const { return places_[problem]; }  // the last: the end of all
  int64_t rows() const { return rows_; }  // that A and C have room for, of all problems
  size_t c_bytes() const { return c_.size(); }
  size_t sfc_bytes() const { return sfc_.size(); }  // 0 where C has no factors
  int32_t room(int32_t problem) const { return shape_.offsets() ? shape_.rows(problem) : shape_.m; }

  // From now on the rows of A are those of these elements and scale factors, which lie where the shape places
  // them, and A * B1^T of problem 0 is multiplied by alpha1, in place of its own alphas.
  void expect_a(dualgemm_dtype_t a_dtype, std::vector<uint8_t> codes, std::vector<uint8_t> scales,
                float alpha1);

  // Returns row `row` of A of `problem`, and row `row` of its B1 (side 0) or, of two products, B2 (side 1).
  Row row_of_a(int32_t problem, int32_t row) const;
  Row row_of_b(int side, int32_t problem, int32_t row) const;

 private:
  // Gives the arguments the addresses.
  void bind();

  Shape shape_;
  std::vector<Place> places_;
  int64_t rows_;
  std::vector<uint8_t> codes_[3], scales_[3];  // A, B1, B2; of one product no B2
  DeviceArray<uint8_t> a_, b1_, b2_, sfa_, sfb1_, sfb2_;
  DeviceArray<float> a_row_factors_;
  DeviceArray<int16_t> b1_row_exponents_, b2_row_exponents_;
  DeviceArray<uint8_t> c_, sfc_;
  DeviceArray<float> alphas_;
  DeviceArray<int32_t> group_rows_;
  dualgemm_args_t args_;
};

// Returns the bytes of one set.
double set_bytes(const Shape& shape, const Epilogue& epilogue);

// Returns how many sets of so many bytes and operations there are: `wanted`, as long as they take less than
// 16 GB, which is 100 times the L2 of a B200, and their launches about 10 ms at one PFLOP/s; two are always
// needed for operands to be cold.
int sets_that_fit(double bytes, double flops, int wanted);

// Returns how many a launch of this shape gets.
int input_sets_of(const Shape& shape, int wanted, const Epilogue& epilogue = DUALGEMM_DTYPE_FP16);

}  // namespace bench
