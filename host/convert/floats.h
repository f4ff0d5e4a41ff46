// floats.h -- the types of x, of biases and of outputs on the host: their numbers, and the nearest one to a
// double.
#pragma once

#include <cstdint>

#include "host/include/dualgemm.h"

namespace dualgemm {

// Returns element i of an array whose type, `dtype`, is BF16, FP16, FP32 or FP8_E4M3.
float float_of(int32_t dtype, const void* elements, int64_t i);

// Rounds `value` to the nearest number of the type, ties to even, and stores it as element i of an array of
// BF16, FP16, FP32 or FP8_E4M3. A value that is too large becomes infinity, in FP8 448; NaN stays NaN.
void store_nearest(int32_t dtype, void* elements, int64_t i, double value);

}  // namespace dualgemm
