// shapes.h -- what the benchmark runs: single problems, batches and groups, the suites it knows by name, and
// what becomes of their products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dualgemm.h"

namespace bench {

// Returns the type of the weights that an A of this type is multiplied by.
constexpr dualgemm_dtype_t b_dtype_for(dualgemm_dtype_t a_dtype) {
  return a_dtype == DUALGEMM_DTYPE_FP8_E4M3 ? DUALGEMM_DTYPE_MXFP4 : DUALGEMM_DTYPE_NVFP4;
}

struct Shape {
  int32_t m, n, k;  // m: rows of A of one problem; OFFSETS: of all groups together; MASKED: room of a group
  std::string label;
  int32_t batch = 1;
  dualgemm_group_mode_t mode = DUALGEMM_GROUP_NONE;
  std::vector<int32_t> group_rows = {};             // with a mode: how many rows each group has
  dualgemm_dtype_t a_dtype = DUALGEMM_DTYPE_NVFP4;  // the type of the weights follows from it
  int32_t products = 2;                             // of A: with B1 and B2, or with B1 alone

  int32_t problems() const { return grouped() ? static_cast<int32_t>(group_rows.size()) : batch; }
  int32_t rows(int32_t problem) const { return grouped() ? group_rows[problem] : m; }
  int64_t rows() const;  // of all problems
  bool grouped() const { return mode != DUALGEMM_GROUP_NONE; }
  bool offsets() const { return mode == DUALGEMM_GROUP_OFFSETS; }
  bool packed_a() const { return a_dtype == DUALGEMM_DTYPE_NVFP4; }  // with scale factors
  bool fp8_a() const { return a_dtype == DUALGEMM_DTYPE_FP8_E4M3; }  // with a factor for each row
  bool sixteen_bit_a() const { return !packed_a() && !fp8_a(); }
  int a_bits() const { return packed_a() ? 4 : fp8_a() ? 8 : 16; }  // of an element
  dualgemm_dtype_t b_dtype() const { return b_dtype_for(a_dtype); }
  int32_t b_block() const { return fp8_a() ? 32 : 16; }  // elements of a row of the weights with one factor
  // Returns the bytes of the factors of B1 or B2 of one problem.
  size_t sfb_bytes() const { return dualgemm_sf_size_of(b_dtype(), n, k); }
  int64_t columns() const { return int64_t{products} * n; }  // of all products of a row of A
  double flops() const;  // of the GEMMs, 2 operations per multiply-add, padding not counted
};

// Returns groups of these rows; MASKED has room for the largest of them, rounded up to 128 rows.
Shape groups(dualgemm_group_mode_t mode, std::vector<int32_t> rows, int32_t n, int32_t k, std::string label);

// Returns `groups` numbers that spread tokens over experts and add up to exactly `total`, in even steps
// through an exponential distribution and a scrambled order that never changes. The largest is about
// ln(groups) + 1 times the mean; where the mean is small, some are zero.
std::vector<int32_t> skewed_rows(int32_t groups, int64_t total);

// Parses the arguments of --shape (README.md); throws std::runtime_error.
Shape parse_shape(const std::string& text);

// Reads a list of shapes: on each line the products of A, 1 or 2, a shape as --shape takes it, and a label.
// What follows a # is a comment. Throws std::runtime_error, which names the line.
std::vector<Shape> parse_shape_list(const std::string& text);

// Throws std::runtime_error for a shape that the library may take, but whose rows the benchmark cannot lay
// out without gaps.
void check_compact(const Shape& shape);

// Returns "256 x 4096 x 7168", "8 of 16 x 720 x 2880", or "offsets 8, 1024 x 4096 x 7168" for groups with all
// their rows.
std::string shape_text(const Shape& shape);

// What becomes of the products: the activation of two, with its default parameters, or that of one, and the
// type of C. An epilogue that is named by its type alone is a plain SwiGLU of two products, and of one there
// is no activation.
struct Epilogue {
  dualgemm_dtype_t dtype;
  dualgemm_activation_t activation;
  dualgemm_linear_activation_t linear_activation;
  Epilogue(dualgemm_dtype_t type, dualgemm_activation_t of_two = DUALGEMM_ACTIVATION_SWIGLU,
           dualgemm_linear_activation_t of_one = DUALGEMM_LINEAR_ACTIVATION_NONE)
      : dtype(type), activation(of_two), linear_activation(of_one) {}
  int bits() const;                                              // of an element of C
  bool blocks() const { return dtype == DUALGEMM_DTYPE_NVFP4; }  // of C have a factor each
  bool encodes() const { return blocks() || dtype == DUALGEMM_DTYPE_FP8_E4M3; }
  // Returns the elements from one row of a C with n columns to the next: as few as whole 16 bytes take.
  int64_t pitch(int64_t n) const;
};

// The shapes of a suite have one number of products.
struct Suite {
  std::string name, what;
  std::vector<Shape> shapes;
};
const std::vector<Suite>& suites();

// Returns each of the shapes with each of these numbers of rows, and a shape that is there twice once. Throws
// std::runtime_error for groups, which have rows of their own.
std::vector<Shape> with_rows(const std::vector<Shape>& shapes, const std::vector<int32_t>& rows);

// Returns every Nth of the shapes, from the Ith on, for the argument "I/N" of --part; throws
// std::runtime_error.
std::vector<Shape> part_of(const std::vector<Shape>& shapes, const std::string& text);

}  // namespace bench
