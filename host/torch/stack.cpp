// stack.cpp -- see stack.h.

#include "host/torch/stack.h"

namespace dualgemm::torch_ops {

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

void Stack::give_results() {
  for (int i = 0; i < made_; ++i) stack_[i] = torch::stable::detail::from(results_[i].release());
}

}  // namespace dualgemm::torch_ops
