// numbers.h -- the numbers beside the elements: scales, biases, factors. A number that no launch can do
// anything right with is refused here, with its tensor and its place, and not found by the comparison.
#pragma once

#include <vector>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

// One number for all experts, or one for each; as decode scales.
std::vector<double> read_scales(const StoredTensor& tensor, uint64_t experts, bool encode);

// Element i of a tensor of BF16 or F32.
float read_bias(const StoredTensor& tensor, uint64_t i);

// Refuses the factors of [experts, n, k] elements where one is NaN or negative. They lie in rows, which are
// the tensor's or were made of it; in GGUF's blocks they are the first four bytes.
void check_factors(const StoredTensor& tensor, const uint8_t* rows, uint64_t experts, uint64_t n, uint64_t k);

}  // namespace checkpoint
