// operators.h -- the operators by their names.
#pragma once

#include <string_view>

#include "host/torch/call.h"

namespace dualgemm::torch_ops {

// Returns what computes the operator "linear", "linear.plain", ..., or nullptr if there is none.
using Compute = void (*)(Call& call);
Compute find_operator(std::string_view name);

}  // namespace dualgemm::torch_ops
