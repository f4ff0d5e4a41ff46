// convert.h -- the operators that prepare a launch: quantisation, scale factors in atoms, and what surrounds
// a layer of experts. operators.cpp has their schemas.
#pragma once

#include "host/torch/call.h"

namespace dualgemm::torch_ops {

// With `out` the outputs are arguments.
template <bool out>
void quantize(Call& call);
template <bool out>
void sf_swizzle(Call& call);
template <bool out>
void sf_unswizzle(Call& call);
template <bool out>
void prepare_mxfp4(Call& call);
template <bool out>
void moe_permute(Call& call);
template <bool out>
void moe_gather(Call& call);
template <bool out>
void moe_combine(Call& call);

}  // namespace dualgemm::torch_ops
