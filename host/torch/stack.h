// stack.h -- the arguments of an operator as PyTorch hands them over, and its results. An operator first
// takes all of its arguments, in the order of its schema: those that are not taken would never be freed.
// Checks come after.
#pragma once

#include <torch/csrc/stable/library.h>

#include "host/torch/tensor.h"

namespace dualgemm::torch_ops {

class Arguments {
 public:
  explicit Arguments(StableIValue* stack) : next_(stack) {}

  AtenTensorHandle tensor() { return value<AtenTensorHandle>(); }
  AtenTensorHandle optional_tensor() { return optional<AtenTensorHandle>(nullptr); }
  double number() { return value<double>(); }
  int64_t integer() { return value<int64_t>(); }
  int32_t type() { return value<int32_t>(); }

  // What stands for None is `otherwise`.
  template <typename T>
  T optional(T otherwise) {
    // PyTorch allocates the place of a value that may be None, and whoever takes the value deletes it.
    const std::unique_ptr<StableIValue> place(value<StableIValue*>());
    return place ? torch::stable::detail::to<T>(*place) : otherwise;
  }

 private:
  template <typename T>
  T value() {
    return torch::stable::detail::to<T>(*next_++);
  }

  StableIValue* next_;
};

// Hands tensors back, the first of which is result 0.
template <typename... Results>
void give(StableIValue* stack, Results&... results) {
  ((*stack++ = torch::stable::detail::from(results.handle.release())), ...);
}

}  // namespace dualgemm::torch_ops
