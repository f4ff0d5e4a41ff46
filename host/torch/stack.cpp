// stack.cpp -- see stack.h.

#include "host/torch/stack.h"

namespace dualgemm::torch_ops {
namespace {

StableIValue as_value(auto x) { return torch::stable::detail::from(x); }

// Returns what an operator of PyTorch says of a tensor.
template <typename T>
T asked(const char* op, const Handle& tensor) {
  AtenTensorHandle other = nullptr;
  check_torch(aoti_torch_new_tensor_handle(tensor.get(), &other), "new_tensor_handle");
  StableIValue stack[] = {as_value(other)};  // the call takes it over
  check_torch(aoti_torch_call_dispatcher(op, "", stack), op);
  return torch::stable::detail::to<T>(stack[0]);
}

// A tensor that was made under torch.inference_mode() has no version.
bool has_version(const Handle& tensor) { return !asked<bool>("aten::is_inference", tensor); }

// The stable interface does not say whether a tensor requires a gradient. If it does, and gradients are
// recorded, a view of it is no leaf.
bool is_recorded(const Handle& tensor) {
  if (!aoti_torch_grad_mode_is_enabled()) return false;
  return !asked<bool>("aten::is_leaf", Handle(asked<AtenTensorHandle>("aten::alias", tensor)));
}

// The stable interface has no function that counts a version. Operators of PyTorch that work in place do it,
// and to exchange dimension 0 with itself does nothing else.
void count_version(Handle& tensor) {
  if (!has_version(tensor)) return;
  StableIValue stack[] = {as_value(tensor.release()), as_value(int64_t{0}), as_value(int64_t{0})};
  check_torch(aoti_torch_call_dispatcher("aten::transpose_", "", stack), "transpose_");
  tensor.reset(torch::stable::detail::to<AtenTensorHandle>(stack[0]));
}

}  // namespace

Tensor Stack::hold(const char* name, AtenTensorHandle handle) {
  Handle& place = tensors_[held_++];
  place.reset(handle);
  return describe(name, place);
}

Tensor Stack::result(const char* name, const Tensor& beside, int32_t type, int64_t dims, const int64_t* sizes,
                     const int64_t* strides) {
  Handle& place = results_[made_++];
  place = allocate(beside, type, dims, sizes, strides);
  return describe(name, place);
}

Tensor Stack::written(Tensor tensor) {
  if (!tensor) return tensor;
  outputs_[written_++] = &tensors_[held_ - 1];
  tensor.recorded = is_recorded(*outputs_[written_ - 1]);
  return tensor;
}

void Stack::count_versions() {
  struct WithoutDerivatives {  // an output gets no history of these exchanges
    bool before = aoti_torch_grad_mode_is_enabled();
    WithoutDerivatives() { aoti_torch_grad_mode_set_enabled(false); }
    ~WithoutDerivatives() { aoti_torch_grad_mode_set_enabled(before); }
  };
  if (written_ == 0) return;
  const WithoutDerivatives guard;
  for (int i = 0; i < written_; ++i) count_version(*outputs_[i]);
}

void Stack::give_results() {
  for (int i = 0; i < made_; ++i) stack_[i] = as_value(results_[i].release());
}

}  // namespace dualgemm::torch_ops
