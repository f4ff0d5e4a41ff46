// numbers.h -- the numbers beside the elements: scales, biases, factors. A number that no launch can do
// anything right with is refused here, with its tensor and its place, and not found by the comparison.
#pragma once

#include <array>
#include <vector>

#include "example/checkpoint/layout.h"

namespace checkpoint {

// Of one expert: gate's and up's, which are the same number where the tensor has one for both.
using TwoScales = std::array<double, 2>;

// One number for all experts, or one for each; of a tensor that has gate and up (`fused`) also two for each;
// as decode scales.
std::vector<TwoScales> read_scales(const StoredTensor& tensor, uint64_t experts, bool fused, bool encode);

// Element i of a tensor of BF16 or F32.
float read_bias(const StoredTensor& tensor, uint64_t i);

// Refuses factors that are NaN or negative, and of MXFP4 those that make their elements too large or too
// small. `tensor` is where they are from.
void check_factors(const StoredTensor& tensor, const Planes& planes);

}  // namespace checkpoint
