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

// Returns those of an A: codes; uniform numbers in [-1, 1) in 16 bits; or uniform numbers in [-256, 256] in
// FP8, whose rows have factors.
std::vector<uint8_t> random_a(int64_t rows, int64_t k, dualgemm_dtype_t dtype, dualgemm_test::Rng& random);

// Returns ue4m3 of a uniform number in [0, 1), rounded down: the top bits of the number's exponent and
// mantissa.
uint8_t uniform_scale(uint64_t bits);

// Returns a factor of a block of this type: one as above, or in MXFP4 2^3, 2^4, 2^5 or 2^6. The last one is
// the largest that the rows of prepared weights have.
uint8_t random_factor(dualgemm_dtype_t dtype, uint64_t bits);

// An A in FP8 is about as large as one in 16 bits once its rows are multiplied by their factors, which are
// this times 1, 7/8, 6/8 or 5/8.
inline constexpr float kFactorOfA = 0x1p-8f;
float factor_of_row(int64_t row);
std::vector<float> factors_of_rows(int64_t rows);

// Weights in MXFP4 are about as large as those in NVFP4 once their rows are multiplied by 2 to their
// exponents, which are this, or less by one or two. Side 0 is B1, side 1 is B2.
inline constexpr int kExponentOfB = -6;
int16_t exponent_of_row(int side, int64_t row);
std::vector<int16_t> exponents_of_rows(int side, int64_t rows);

// Returns an encode scale that brings nearly all of C into the range of its type: a power of two. A product
// has a standard deviation of 0.29 sqrt(K) with these data; SwiGLU of two reaches about K, and so does the
// square of one.
float encode_scale_of(const Shape& shape, const Epilogue& epilogue);

}  // namespace bench
