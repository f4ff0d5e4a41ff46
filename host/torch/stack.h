// stack.h -- a call by PyTorch's dispatcher. It passes the arguments on a stack, and expects the results in
// the place of the arguments.
#pragma once

#include <torch/csrc/stable/library.h>

#include "host/torch/call.h"

namespace dualgemm::torch_ops {

class Stack final : public Call {
 public:
  explicit Stack(StableIValue* stack) : stack_(stack), next_(stack) {}

  Tensor tensor(const char* name) override { return hold(name, value<AtenTensorHandle>()); }
  Tensor optional_tensor(const char* name) override {
    return hold(name, optional<AtenTensorHandle>(nullptr));
  }
  Tensor output(const char* name) override { return written(tensor(name)); }
  Tensor optional_output(const char* name) override { return written(optional_tensor(name)); }
  double number() override { return value<double>(); }
  double optional_number(double otherwise) override { return optional(otherwise); }
  int64_t integer() override { return value<int64_t>(); }
  int32_t type() override { return value<int32_t>(); }
  int32_t optional_type(int32_t otherwise) override { return optional(otherwise); }
  Tensor result(const char* name, const Tensor& beside, int32_t type, int64_t dims, const int64_t* sizes,
                const int64_t* strides) override;

  // Counts a new version of each output that was given.
  void count_versions();
  // Puts the results on the stack. From then on the dispatcher owns them, so this comes last, when nothing
  // can fail any more.
  void give_results();

 private:
  static constexpr int kMostTensors = 32, kMostResults = 4;

  template <typename T>
  T value() {
    return torch::stable::detail::to<T>(*next_++);
  }
  template <typename T>
  T optional(T otherwise) {
    // PyTorch allocates memory for a value that may be None. Whoever takes the value deletes that memory.
    const std::unique_ptr<StableIValue> place(value<StableIValue*>());
    return place ? torch::stable::detail::to<T>(*place) : otherwise;
  }
  Tensor hold(const char* name, AtenTensorHandle handle);
  // Notes that the tensor which was held last is an output.
  Tensor written(Tensor tensor);

  StableIValue *stack_, *next_;
  Handle tensors_[kMostTensors], results_[kMostResults];
  Handle* outputs_[kMostOutputs];
  int held_ = 0, written_ = 0, made_ = 0;
};

// An operator as the dispatcher calls it.
template <void compute(Call&)>
void boxed(StableIValue* stack, uint64_t, uint64_t) {
  Stack call(stack);
  compute(call);
  call.count_versions();
  call.give_results();
}

}  // namespace dualgemm::torch_ops
