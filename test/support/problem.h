// problem.h -- one dual GEMM as a test states it: operands made on the host, and C as it came back. It knows
// the formats and the reference, neither a device nor how a launch is made.
#pragma once

#include <cstdint>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/dual_gemm.h"

namespace dualgemm_test {

// This is what dualgemm_args_init asks for. Tests of everything but the activation compute this one.
inline constexpr dualgemm_activation_t kDefaultActivation = DUALGEMM_ACTIVATION_SWIGLU;

// These are operands on the host. Row padding of the scale factors is NaN (0x7F), their K padding zero, and
// the bytes between k and the pitch are random: none of that may reach C.
struct Problem {
  int32_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb1 = 0, ldb2 = 0;  // elements; multiples of 32
  float alpha1 = 1, alpha2 = 1;
  std::vector<uint8_t> a, b1, b2, sfa, sfb1, sfb2;
  // Another A instead, [m, lda] of a type of 16 bits; empty: none. A launch that takes its A in 16 bits gets
  // this one, or else the numbers that A is in NVFP4, which both types have.
  std::vector<uint16_t> a16;
  dualgemm_dtype_t a16_dtype = DUALGEMM_DTYPE_BF16;
  // With MXFP4 sfb1 and sfb2 are its factors, whose row padding is NaN (0xFF), the rows of B1 and B2 may have
  // exponents of two (empty: none), and A is in FP8 [m, lda].
  dualgemm_dtype_t b_dtype = DUALGEMM_DTYPE_NVFP4;
  std::vector<uint8_t> a8;
  std::vector<int16_t> b1_exponents, b2_exponents;
  // What the general epilogue takes; empty: none. The biases are numbers that their type has.
  std::vector<float> row_scale, bias1, bias2, c_row_scale;
  dualgemm_dtype_t bias_dtype = DUALGEMM_DTYPE_BF16;
  ref::Parameters parameters;
  float encode = 1;  // of an FP8 or NVFP4 C
  // One product has neither b2, sfb2, bias2 nor alpha2. Its c_add [m, n] has numbers that bf16 has; empty:
  // none.
  int32_t products = 2;
  dualgemm_linear_activation_t linear_activation = DUALGEMM_LINEAR_ACTIVATION_NONE;
  std::vector<float> c_add;

  // This is C before its conversion, encode scale left out.
  ref::DualGemm reference(dualgemm_activation_t activation = kDefaultActivation,
                          ref::Arithmetic arithmetic = ref::Arithmetic::kFloat,
                          const ref::Wanted& wanted = {}) const;
  // Gate (0) or up (1) as the activation takes it.
  ref::Matrix reference_d(int side) const;

  // Returns A as a launch takes it whose a_dtype this is, in bytes. Between k and the pitch what is not NVFP4
  // is NaN.
  std::vector<uint8_t> a_of(dualgemm_dtype_t a_dtype) const;

  bool mxfp4() const { return b_dtype == DUALGEMM_DTYPE_MXFP4; }
  // Returns the bytes of the factors of B1, and of B2.
  size_t sfb_bytes() const;

 private:
  ref::Operand left() const, right(int side) const;
};

enum class Data {
  // All 16 codes, all finite scale factors from 0 to 448; the alphas bring gate and up to a few units.
  kFullRange,
  // The same with scale factors that are subnormal numbers, bytes 1 to 7: all those of the weights, and those
  // of odd rows of A.
  kSubnormalFactors,
  // Codes of 0, 0.5, 1, 1.5 and their negatives, scale factors e4m3(uniform [0, 1)), alphas 1.
  kContest,
  // Codes of 0, 1, 2 and their negatives, scale factors 1: every sum is an integer, exact in any order.
  kIntegers,
};

// Returns the same with an A of this type: numbers of all its significant bits, and of 35 powers of two,
// subnormal ones of fp16 among them. The alphas bring gate and up to a few units.
Problem with_sixteen_bits(const Problem& p, dualgemm_dtype_t a_dtype, uint64_t seed);

// The numbers of an A in FP8 and of MXFP4 weights.
enum class Mx {
  // All finite numbers of A, -0 among them. Factors that e4m3 has with all their elements, 2^-8 to 2^6, and
  // in one of eight blocks smaller ones, which round; the alphas bring gate and up to a few units.
  kFullRange,
  // Integers from -3 to 3 in A, factors 1, 2 and 4: of a problem in kIntegers every sum is an integer, and
  // exact in any order.
  kIntegers,
};

// Returns the same with an A in FP8, and with B1 and B2 in MXFP4, of which the codes stay. Its k is a
// multiple of 32.
Problem with_fp8(const Problem& p, Mx data, uint64_t seed);
// Gives the rows of B1 or of B2 exponents around `middle`, and takes these from their alpha.
void give_exponents(Problem& p, int side, int middle, uint64_t seed);

// A row of A has `pitch_padding` elements, a multiple of 32, beyond the next legal pitch, one of B1 twice as
// many, one of B2 three times as many.
Problem make_problem(Data data, int32_t m, int32_t n, int32_t k, uint64_t seed, int64_t pitch_padding = 0);

// Returns the bits of a number that a type of 16 bits has. Throws for any other.
uint16_t bits_of_number(dualgemm_dtype_t dtype, double x);

// Returns the bits of an element.
int bits_of(dualgemm_dtype_t dtype);

// This is C, or one of gate and up, as it came back.
struct Output {
  int64_t m = 0, n = 0;
  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_BF16;
  std::vector<uint16_t> bits =
      {};               // [m, n] of any type, compact, by 16 bits: a row is a whole number of them
  int32_t split_k = 1;  // slices of K in the instance that computed it, or ref::kAnyParts
  float encode = 1;     // the encode scale, which FP8 and NVFP4 hold their numbers times
  std::vector<uint8_t> factors = {};  // [m, n / 16] of NVFP4

  // Returns what the bits say, of NVFP4 with the factor of the block.
  double value(int64_t row, int64_t column) const;
  uint8_t code(int64_t row, int64_t column) const;  // of NVFP4

  // The same bits, wherever they come from.
  friend bool operator==(const Output& a, const Output& b) {
    return a.m == b.m && a.n == b.n && a.dtype == b.dtype && a.bits == b.bits && a.factors == b.factors;
  }
};

}  // namespace dualgemm_test
