// random_operands.h -- the numbers that operands are filled with (README.md, Method).
#pragma once

#include <cstdint>
#include <vector>

#include "dualgemm.h"
#include "shapes.h"
#include "test/support/rng.h"

namespace bench {

// Returns `rows` rows of k uniform numbers in [-1, 1), rounded to a type of 16 bits.
std::vector<uint8_t> random_halves(int64_t rows, int64_t k, dualgemm_dtype_t dtype,
                                   dualgemm_test::Rng& random);

// Returns codes of 0, 0.5, 1, 1.5 and their negatives.
std::vector<uint8_t> random_codes(int64_t rows, int64_t k, dualgemm_test::Rng& random);

// Returns ue4m3 of a uniform number in [0, 1), rounded down: the top bits of the number's exponent and
// mantissa.
uint8_t uniform_scale(uint64_t bits);

// Returns an encode scale that brings nearly all of C into the range of its type: a power of two. A product
// has a standard deviation of 0.29 sqrt(K) with these data; SwiGLU of two reaches about K, and so does the
// square of one.
float encode_scale_of(const Shape& shape, const Epilogue& epilogue);

}  // namespace bench
