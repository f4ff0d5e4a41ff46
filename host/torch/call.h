// call.h -- a call of an operator. PyTorch's dispatcher makes it (stack.h), or Python without the dispatcher
// (direct.cpp). An operator first takes all of its arguments, in the order of its schema. After that it
// checks them.
#pragma once

#include "host/torch/tensor.h"

namespace dualgemm::torch_ops {

class Call {
 public:
  static constexpr int kMostOutputs = 5;  // of an operator that writes into its arguments

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // A tensor that is None is not given. A number that is None becomes `otherwise`.
  virtual Tensor tensor(const char* name) = 0;
  virtual Tensor optional_tensor(const char* name) = 0;
  // The same of a tensor that the operator writes. When it is written, PyTorch counts a new version of it.
  virtual Tensor output(const char* name) = 0;
  virtual Tensor optional_output(const char* name) = 0;
  virtual double number() = 0;
  virtual double optional_number(double otherwise) = 0;
  virtual int64_t integer() = 0;
  virtual int32_t type() = 0;
  virtual int32_t optional_type(int32_t otherwise) = 0;

  // Makes a result beside another tensor. The caller gets the results in the order in which they are made.
  virtual Tensor result(const char* name, const Tensor& beside, int32_t type, int64_t dims,
                        const int64_t* sizes, const int64_t* strides) = 0;

 protected:
  ~Call() = default;
};

// Makes a result that is a matrix [problems, rows, columns], or [rows, columns]. If rows without gaps would
// not begin at multiples of 16 bytes, there are gaps between them.
Tensor new_matrix(Call& call, const char* name, const Tensor& beside, int32_t type,
                  std::optional<int64_t> problems, int64_t rows, int64_t columns);
// Makes a result without gaps.
Tensor new_array(Call& call, const char* name, const Tensor& beside, int32_t type,
                 std::initializer_list<int64_t> sizes);

}  // namespace dualgemm::torch_ops
