// launch.h -- the operators that launch: two products (swiglu) and one (linear). Each has three forms: it
// returns C, it returns an NVFP4 C with its factors, or its outputs are arguments. operators.cpp has their
// schemas.
#pragma once

#include "host/torch/call.h"

namespace dualgemm::torch_ops {

enum class Form { kFunctional, kNvfp4, kOut };

// A plain operator has no keyword-only arguments. PyTorch takes 0.1 us for each argument, even for one that a
// call leaves out.
template <Form form, bool plain>
void swiglu(Call& call);
template <Form form, bool plain>
void linear(Call& call);

}  // namespace dualgemm::torch_ops
