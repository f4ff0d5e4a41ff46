// random_operands.cpp -- see random_operands.h.
#include "random_operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

// Returns e4m3 of a number in [0, 448], rounded down: the top bits of its exponent and mantissa.
uint8_t e4m3_below(double x) {
  if (x < 0x1p-6) return static_cast<uint8_t>(x * 512);
  int exponent;
  const double fraction = std::frexp(x, &exponent);  // x = fraction * 2^exponent, fraction in [0.5, 1)
  return static_cast<uint8_t>((exponent - 1 + 7) << 3 | static_cast<int>((fraction * 2 - 1) * 8));
}

// Returns numbers that are uniform in [-256, 256], rounded towards zero.
std::vector<uint8_t> random_fp8(int64_t rows, int64_t k, dualgemm_test::Rng& random) {
  std::vector<uint8_t> out(rows * k);
  uint64_t word = 0;
  for (size_t i = 0; i < out.size(); ++i, word >>= 16) {
    if (i % 4 == 0) word = random.bits();
    const int x = static_cast<int16_t>(word & 0xFFFF);
    out[i] = static_cast<uint8_t>(e4m3_below(std::abs(x) * 0x1p-7) | (x < 0 ? 0x80 : 0));
  }
  return out;
}

}  // namespace

// They are multiples of 2^-15: they have all significant bits of either type, and about the spread of the
// codes below times their scale factors.
std::vector<uint8_t> random_halves(int64_t rows, int64_t k, dualgemm_dtype_t dtype,
                                   dualgemm_test::Rng& random) {
  std::vector<uint8_t> out(rows * k * 2);
  for (size_t i = 0; i < out.size(); i += 8) {
    uint64_t word = random.bits(), four = 0;
    for (int bit = 0; bit < 64; bit += 16, word >>= 16) {
      const float x = static_cast<float>(static_cast<int16_t>(word & 0xFFFF)) * 0x1p-15f;
      // A bf16 is the upper half of a float: that rounds towards zero.
      const auto bits = dtype == DUALGEMM_DTYPE_BF16 ? static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)
                                                     : std::bit_cast<uint16_t>(static_cast<_Float16>(x));
      four |= uint64_t{bits} << bit;
    }
    std::memcpy(&out[i], &four, std::min<size_t>(8, out.size() - i));
  }
  return out;
}

std::vector<uint8_t> random_codes(int64_t rows, int64_t k, dualgemm_test::Rng& random) {
  std::vector<uint8_t> out(rows * k / 2);
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t word = random.bits() & 0xBBBBBBBBBBBBBBBBu;
    std::memcpy(&out[i], &word, std::min<size_t>(8, out.size() - i));
  }
  return out;
}

std::vector<uint8_t> random_a(int64_t rows, int64_t k, dualgemm_dtype_t dtype, dualgemm_test::Rng& random) {
  switch (dtype) {
    case DUALGEMM_DTYPE_NVFP4: return random_codes(rows, k, random);
    case DUALGEMM_DTYPE_FP8_E4M3: return random_fp8(rows, k, random);
    default: return random_halves(rows, k, dtype, random);
  }
}

uint8_t uniform_scale(uint64_t bits) { return e4m3_below(static_cast<double>(bits >> 11) * 0x1p-53); }

uint8_t random_factor(dualgemm_dtype_t dtype, uint64_t bits) {
  return dtype == DUALGEMM_DTYPE_MXFP4 ? static_cast<uint8_t>(133 - bits % 4) : uniform_scale(bits);
}

float factor_of_row(int64_t row) { return kFactorOfA * (1 - static_cast<float>(row % 4) / 8); }

int16_t exponent_of_row(int side, int64_t row) {
  return static_cast<int16_t>(kExponentOfB - (row + side) % 3);
}

std::vector<float> factors_of_rows(int64_t rows) {
  std::vector<float> out;
  for (int64_t row = 0; row < rows; ++row) out.push_back(factor_of_row(row));
  return out;
}

std::vector<int16_t> exponents_of_rows(int side, int64_t rows) {
  std::vector<int16_t> out;
  for (int64_t row = 0; row < rows; ++row) out.push_back(exponent_of_row(side, row));
  return out;
}

float encode_scale_of(const Shape& shape, const Epilogue& epilogue) {
  const auto k = static_cast<float>(shape.k);
  const bool squared = shape.products == 2 || epilogue.linear_activation == DUALGEMM_LINEAR_ACTIVATION_RELU2;
  return std::exp2(std::floor(std::log2(448.0f / (1.5f * (squared ? k : std::sqrt(k))))));
}

}  // namespace bench
