// floats.h -- the types of x, of biases and of outputs on the host: their numbers, and the nearest one to a
// double.
#pragma once

#include <cstdint>

#include "host/include/dualgemm.h"

namespace dualgemm {

// Returns element i of an array of BF16, FP16 or FP32.
float float_of(int32_t dtype, const void* elements, int64_t i);

// Stores what is nearest to `value`, ties to even, in element i of an array of BF16, FP16, FP32 or FP8_E4M3.
// What is too large becomes infinity, in FP8 448; NaN stays NaN.
void store_nearest(int32_t dtype, void* elements, int64_t i, double value);

}  // namespace dualgemm
