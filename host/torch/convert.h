// convert.h -- the operators that prepare a launch: quantisation, scale factors in atoms, and what surrounds
// a layer of experts. operators.cpp has their schemas; the calling convention is that of launch.h.
#pragma once

#include "host/torch/stack.h"

namespace dualgemm::torch_ops {

// `out`: outputs are arguments.
template <bool out>
void quantize(StableIValue* stack, uint64_t arguments, uint64_t results);
template <bool out>
void sf_swizzle(StableIValue* stack, uint64_t arguments, uint64_t results);
template <bool out>
void sf_unswizzle(StableIValue* stack, uint64_t arguments, uint64_t results);
template <bool out>
void moe_permute(StableIValue* stack, uint64_t arguments, uint64_t results);
template <bool out>
void moe_gather(StableIValue* stack, uint64_t arguments, uint64_t results);
template <bool out>
void moe_combine(StableIValue* stack, uint64_t arguments, uint64_t results);

}  // namespace dualgemm::torch_ops
