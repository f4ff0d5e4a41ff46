// tensor_core_inputs.cu -- makes the operands and accumulators of wgmma.mma_async. The random numbers of each
// family begin anew, so that a new family leaves the bytes of the others as they are.
#include "test/sim/conformance/tensor_core_inputs.h"

#include <algorithm>
#include <cstring>

#include "test/sim/conformance/device.cuh"

namespace conformance {
namespace {

constexpr int kRows = 64, kDepth = 16;

// Fields of a 16-bit number.
struct Format {
  int exponent_bits, mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int most() const { return (1 << exponent_bits) - 2; }       // the largest field of a finite number
  int least() const { return 1 - bias(); }                    // the exponent of the smallest normal number
  int lowest() const { return least() - mantissa_bits - 4; }  // below all subnormal numbers
  uint16_t make(uint32_t sign, int exponent, uint32_t mantissa) const {
    return uint16_t(sign << 15 | uint32_t(exponent) << mantissa_bits |
                    (mantissa & ((1u << mantissa_bits) - 1)));
  }
};
constexpr Format kF16{5, 10}, kBf16Format{8, 7};

float float_of(uint32_t sign, int exponent, uint32_t mantissa) {
  const uint32_t bits = sign << 31 | uint32_t(exponent) << 23 | (mantissa & 0x7FFFFF);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

enum class Family { kNear, kWide, kCancel, kSubnormal, kSpecial, kSplit, kZeros };

uint16_t operand(Random& random, const Format& f, Family family) {
  const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
  switch (family) {
    case Family::kWide: return f.make(sign, random.between(f.bias() - 14, f.bias() + 14), mantissa);
    case Family::kSubnormal: return f.make(sign, random.between(0, 3), mantissa);
    case Family::kSpecial:
      if (random.below(64) == 0) return f.make(sign, f.most() + 1, random.below(2) == 0 ? 0 : mantissa);
      if (random.below(8) == 0) return f.make(sign, 0, 0);
      return f.make(sign, random.between(1, f.most()), mantissa);
    default: return f.make(sign, random.between(f.bias() - 3, f.bias() + 3), mantissa);
  }
}

float accumulator(Random& random, const Format& f, Family family) {
  const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
  switch (family) {
    case Family::kWide: return float_of(sign, random.between(127 - 40, 127 + 40), mantissa);
    case Family::
        kSubnormal:  // the products are about the square of the smallest operands, or below a float's
      return float_of(sign, random.below(4) == 0 ? 0 : random.between(0, 2 * (127 - f.bias()) + 8), mantissa);
    case Family::kSpecial:
      if (random.below(32) == 0) return float_of(sign, 255, random.below(2) == 0 ? 0 : mantissa);
      return float_of(sign, random.between(0, 254), mantissa);
    default: return float_of(sign, random.between(127 - 8, 127 + 8), mantissa);
  }
}

ProductInputs independent(Random& random, const Format& f, Family family, int n, int blocks) {
  ProductInputs out;
  for (int i = 0; i < blocks * kRows * kDepth; ++i) out.a.push_back(operand(random, f, family));
  for (int i = 0; i < blocks * n * kDepth; ++i) out.b.push_back(operand(random, f, family));
  for (int i = 0; i < blocks * kRows * n; ++i) out.c.push_back(accumulator(random, f, family));
  if (family != Family::kCancel) return out;
  // The second half of a row repeats the first half, in A with the opposite sign, and a few elements of the
  // second half are off by one in the last place.
  for (size_t row = 0; row < out.a.size() / kDepth; ++row)
    for (int k = 0; k < kDepth / 2; ++k)
      out.a[row * kDepth + kDepth / 2 + k] =
          out.a[row * kDepth + k] ^ (random.below(4) == 0 ? 0x8001 : 0x8000);
  for (size_t row = 0; row < out.b.size() / kDepth; ++row)
    for (int k = 0; k < kDepth / 2; ++k) out.b[row * kDepth + kDepth / 2 + k] = out.b[row * kDepth + k];
  return out;
}

// ---- products of operands that lie far apart --------------------------------------------------------------

// Returns a number whose leading bit is 2^exponent, cut to the places of the format: a normal one, a
// subnormal one, or zero.
uint16_t number(Random& random, const Format& f, int exponent) {
  const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
  if (exponent >= f.least()) return f.make(sign, exponent + f.bias(), mantissa);
  const int shift = f.least() - exponent;
  const uint32_t significand = 1u << f.mantissa_bits | (mantissa & ((1u << f.mantissa_bits) - 1));
  return f.make(sign, 0, shift > f.mantissa_bits ? 0 : significand >> shift);
}

// The exponents of the operands of one k. kZero as an exponent stands for zeros, with few exceptions.
struct Exponents {
  int a, b;
};
constexpr int kZero = -10000;

// Returns two exponents with the sum `sum`, both of normal numbers if the sum allows that.
Exponents normal_pair(Random& random, const Format& f, int sum) {
  const auto [first, last] = std::minmax({f.least(), sum - f.least()});
  const int a = random.between(first, last);
  return {a, sum - a};
}

// With a chance of `often` in 16, one of the two operands lies around the subnormal numbers (from above all
// of them to below all of them), and the other is so large that the sum is the same.
Exponents split_pair(Random& random, const Format& f, int sum, uint32_t often) {
  if (random.below(kDepth) >= often) return normal_pair(random, f, sum);
  const int low = f.lowest() + random.between(0, f.mantissa_bits + 5);
  return random.below(2) == 0 ? Exponents{low, sum - low} : Exponents{sum - low, low};
}

// In half of the pairs one operand is zero and the other is one of the largest numbers.
Exponents zeros_pair(Random& random, const Format& f, int sum) {
  const int huge = random.between(f.bias() - 3, f.bias());
  switch (random.below(4)) {
    case 0: return {kZero, huge};
    case 1: return {huge, kZero};
    default: return normal_pair(random, f, sum);
  }
}

// Accumulators about as large as the products, far above or far below all of them, and zero.
float accumulator_near(Random& random, int sum) {
  const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
  int exponent = sum + random.between(-6, 18);
  switch (random.below(8)) {
    case 0:
    case 1: return float_of(sign, 0, 0);
    case 2: exponent = sum + random.between(20, 40); break;
    case 3: exponent = sum - random.between(12, 40); break;
  }
  return float_of(sign, std::max(0, exponent + 127), mantissa);
}

// Within a block all products are of about one size, 2^sum, except products of zeros. In three of four blocks
// `sum` is the lowest exponent plus the largest exponent minus 1; in the others it is random and not larger,
// so that both operands of a product may be subnormal.
ProductInputs paired(Random& random, const Format& f, Family family, int n, int blocks) {
  const bool split = family == Family::kSplit;
  const int most = f.lowest() + f.bias() - 1;
  const int least = std::max(2 * (split ? f.least() - f.mantissa_bits : f.least()), -140);
  ProductInputs out;
  for (int block = 0; block < blocks; ++block) {
    const int sum = random.below(4) == 0 ? random.between(least, most) : most;
    const uint32_t often = random.below(kDepth + 1);
    Exponents pairs[kDepth];
    for (Exponents& pair : pairs)
      pair = split ? split_pair(random, f, sum, often) : zeros_pair(random, f, sum);
    // In half of the blocks one of eight zeros is the smallest subnormal number instead.
    const bool exceptions = random.below(2) == 0;
    const auto element = [&](int exponent) {
      if (exponent != kZero) return number(random, f, exponent + (split ? random.between(-1, 1) : 0));
      const uint32_t sign = random.below(2);
      return f.make(sign, 0, exceptions && random.below(8) == 0 ? 1 : 0);
    };
    for (int i = 0; i < kRows * kDepth; ++i) out.a.push_back(element(pairs[i % kDepth].a));
    for (int i = 0; i < n * kDepth; ++i) out.b.push_back(element(pairs[i % kDepth].b));
    for (int i = 0; i < kRows * n; ++i) out.c.push_back(accumulator_near(random, sum));
  }
  return out;
}

}  // namespace

ProductInputs product_inputs(bool bf16, int number, int n, int blocks) {
  const Format& f = bf16 ? kBf16Format : kF16;
  const Family family = Family(number);
  Random random(uint64_t(f.mantissa_bits) * 1000 + uint64_t(family) * 100 + uint64_t(n));
  if (family == Family::kSplit || family == Family::kZeros) return paired(random, f, family, n, blocks);
  return independent(random, f, family, n, blocks);
}

}  // namespace conformance
