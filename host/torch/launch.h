// launch.h -- the operators that launch: two products (swiglu) and one (linear), each as a function that
// returns C, as one that returns an NVFP4 C with its factors, and with its outputs as arguments.
// operators.cpp has their schemas.
#pragma once

#include "host/torch/stack.h"

namespace dualgemm::torch_ops {

enum class Form { kFunctional, kNvfp4, kOut };

// PyTorch's calling convention: arguments are taken from the stack, and results put in their place. A plain
// one has no arguments that go by name alone. PyTorch takes 0.1 us for each argument, even for one that a
// call leaves out.
template <Form form, bool plain>
void swiglu(StableIValue* stack, uint64_t arguments, uint64_t results);
template <Form form, bool plain>
void linear(StableIValue* stack, uint64_t arguments, uint64_t results);

}  // namespace dualgemm::torch_ops
