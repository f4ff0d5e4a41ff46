// tensor_core_inputs.cu -- makes the operands and accumulators of wgmma.mma_async. The random numbers of each
// family begin anew, so that a new family leaves the bytes of the others as they are.
#include "test/sim/conformance/tensor_core_inputs.h"

#include <algorithm>
#include <cstring>

#include "test/sim/conformance/device.cuh"

namespace conformance {
namespace {

constexpr int kRows = 64, kRowBytes = 32;

// Fields of a number of 8 or 16 bits.
struct Format {
  int exponent_bits, mantissa_bits;
  bool infinite = true;  // else the largest exponent field is of numbers, and one mantissa of it is NaN
  int bytes() const { return (1 + exponent_bits + mantissa_bits) / 8; }
  int depth() const { return kRowBytes / bytes(); }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int most() const { return (1 << exponent_bits) - 2; }       // an exponent field of finite numbers only
  int least() const { return 1 - bias(); }                    // the exponent of the smallest normal number
  int lowest() const { return least() - mantissa_bits - 4; }  // below all subnormal numbers
  int kept() const { return bytes() == 1 ? 13 : 25; }         // places of a sum below its largest term
  uint16_t sign_bit() const { return uint16_t(1 << (exponent_bits + mantissa_bits)); }
  uint16_t make(uint32_t sign, int exponent, uint32_t mantissa) const {
    return uint16_t(sign * sign_bit() | uint32_t(exponent) << mantissa_bits |
                    (mantissa & ((1u << mantissa_bits) - 1)));
  }
};
constexpr Format kFormats[] = {{5, 10}, {8, 7}, {4, 3, false}, {5, 2}};  // by OperandType

struct Formats {
  Format a, b;
};

float float_of(uint32_t sign, int exponent, uint32_t mantissa) {
  const uint32_t bits = sign << 31 | uint32_t(exponent) << 23 | (mantissa & 0x7FFFFF);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

enum class Family { kNear, kWide, kCancel, kSubnormal, kSpecial, kSplit, kZeros, kOneSign, kFew, kFar };

struct Numbers {
  std::vector<uint16_t> a, b;  // 64 and n rows of each block
  std::vector<float> c;        // 64 x n
};

uint16_t operand(Random& random, const Format& f, Family family) {
  const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
  const int wide = std::min(14, f.bias() - 1);
  switch (family) {
    case Family::kWide: return f.make(sign, random.between(f.bias() - wide, f.bias() + wide), mantissa);
    case Family::kSubnormal: return f.make(sign, random.between(0, 3), mantissa);
    case Family::kSpecial:
      if (random.below(4 * uint32_t(f.depth())) == 0)
        return f.make(sign, f.most() + 1, !f.infinite ? ~0u : random.below(2) == 0 ? 0 : mantissa);
      if (random.below(8) == 0) return f.make(sign, 0, 0);
      return f.make(sign, random.between(1, f.most()), mantissa);
    default: return f.make(sign, random.between(f.bias() - 3, f.bias() + 3), mantissa);
  }
}

float accumulator(Random& random, const Formats& f, Family family) {
  const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
  switch (family) {
    case Family::kWide: return float_of(sign, random.between(127 - 40, 127 + 40), mantissa);
    case Family::kSubnormal: {  // the products are about that of the smallest operands, or below a float's
      const int most = 2 * 127 - f.a.bias() - f.b.bias() + 8;
      return float_of(sign, random.below(4) == 0 ? 0 : random.between(0, most), mantissa);
    }
    case Family::kSpecial:
      if (random.below(32) == 0) return float_of(sign, 255, random.below(2) == 0 ? 0 : mantissa);
      return float_of(sign, random.between(0, 254), mantissa);
    default: return float_of(sign, random.between(127 - 8, 127 + 8), mantissa);
  }
}

Numbers independent(Random& random, const Formats& f, Family family, int n, int blocks) {
  const int depth = f.a.depth(), half = depth / 2;
  Numbers out;
  for (int i = 0; i < blocks * kRows * depth; ++i) out.a.push_back(operand(random, f.a, family));
  for (int i = 0; i < blocks * n * depth; ++i) out.b.push_back(operand(random, f.b, family));
  for (int i = 0; i < blocks * kRows * n; ++i) out.c.push_back(accumulator(random, f, family));
  if (family != Family::kCancel) return out;
  // The second half of a row repeats the first half, in A with the opposite sign, and a few elements of the
  // second half are off by one in the last place.
  for (size_t row = 0; row < out.a.size() / depth; ++row)
    for (int k = 0; k < half; ++k)
      out.a[row * depth + half + k] =
          out.a[row * depth + k] ^ f.a.sign_bit() ^ (random.below(4) == 0 ? 1 : 0);
  for (size_t row = 0; row < out.b.size() / depth; ++row)
    for (int k = 0; k < half; ++k) out.b[row * depth + half + k] = out.b[row * depth + k];
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
Exponents normal_pair(Random& random, const Formats& f, int sum) {
  const auto [first, last] = std::minmax({f.a.least(), sum - f.b.least()});
  const int a = random.between(first, last);
  return {a, sum - a};
}

// With a chance of `often` in the depth, one of the two operands lies around the subnormal numbers (from
// above all of them to below all of them), and the other is so large that the sum is the same.
Exponents split_pair(Random& random, const Formats& f, int sum, uint32_t often) {
  if (random.below(uint32_t(f.a.depth())) >= often) return normal_pair(random, f, sum);
  const int above = random.between(0, f.a.mantissa_bits + 5);
  if (random.below(2) == 0) return {f.a.lowest() + above, sum - f.a.lowest() - above};
  return {sum - f.b.lowest() - above, f.b.lowest() + above};
}

// In half of the pairs one operand is zero and the other is one of the largest numbers.
Exponents zeros_pair(Random& random, const Formats& f, int sum) {
  const int huge = random.between(-3, 0);
  switch (random.below(4)) {
    case 0: return {kZero, f.b.bias() + huge};
    case 1: return {f.a.bias() + huge, kZero};
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
Numbers paired(Random& random, const Formats& f, Family family, int n, int blocks) {
  const bool split = family == Family::kSplit;
  const int depth = f.a.depth();
  const int most = std::min(f.a.lowest() + f.b.bias(), f.b.lowest() + f.a.bias()) - 1;
  const int places = split ? f.a.mantissa_bits + f.b.mantissa_bits : 0;
  const int least = std::max(f.a.least() + f.b.least() - places, -140);
  Numbers out;
  for (int block = 0; block < blocks; ++block) {
    const int sum = random.below(4) == 0 ? random.between(least, most) : most;
    const uint32_t often = random.below(uint32_t(depth) + 1);
    std::vector<Exponents> pairs(depth);
    for (Exponents& pair : pairs)
      pair = split ? split_pair(random, f, sum, often) : zeros_pair(random, f, sum);
    // In half of the blocks one of eight zeros is the smallest subnormal number instead.
    const bool exceptions = random.below(2) == 0;
    const auto element = [&](const Format& of, int exponent) {
      if (exponent != kZero) return number(random, of, exponent + (split ? random.between(-1, 1) : 0));
      const uint32_t sign = random.below(2);
      return of.make(sign, 0, exceptions && random.below(8) == 0 ? 1 : 0);
    };
    for (int i = 0; i < kRows * depth; ++i) out.a.push_back(element(f.a, pairs[i % depth].a));
    for (int i = 0; i < n * depth; ++i) out.b.push_back(element(f.b, pairs[i % depth].b));
    for (int i = 0; i < kRows * n; ++i) out.c.push_back(accumulator_near(random, sum));
  }
  return out;
}

// ---- products and accumulators that are chosen ------------------------------------------------------------

// All terms of a row have one sign.
Numbers one_sign(Random& random, const Formats& f, int n, int blocks) {
  const int depth = f.a.depth();
  const auto element = [&](const Format& of, uint32_t sign) {
    return of.make(sign, of.bias() + random.between(-2, 2), uint32_t(random.bits()));
  };
  Numbers out;
  for (int i = 0; i < blocks * kRows * depth; ++i) out.a.push_back(element(f.a, uint32_t(i / depth % 2)));
  for (int i = 0; i < blocks * n * depth; ++i) out.b.push_back(element(f.b, 0));
  for (int i = 0; i < blocks * kRows * n; ++i) {
    const int exponent = random.below(4) == 0 ? 0 : 127 + random.between(-8, 12);
    out.c.push_back(float_of(uint32_t(i / n % 2), exponent, exponent == 0 ? 0 : uint32_t(random.bits())));
  }
  return out;
}

// A row of A has three elements that are not zero: one, the same with the other sign (in one of four rows off
// by one in the last place), and one so far below that its product lies about the last place that is kept. A
// column of B has one number everywhere.
Numbers few(Random& random, const Formats& f, int n, int blocks) {
  const int depth = f.a.depth(), kept = f.a.kept();
  Numbers out;
  for (int row = 0; row < blocks * kRows; ++row) {
    std::vector<uint16_t> a(depth, 0);
    int places[3];
    for (int i = 0; i < 3; ++i) do
        places[i] = int(random.below(uint32_t(depth)));
      while (std::find(places, places + i, places[i]) != places + i);
    const uint16_t large = number(random, f.a, f.a.bias());
    a[places[0]] = large;
    a[places[1]] = large ^ f.a.sign_bit() ^ (random.below(4) == 0 ? 1 : 0);
    a[places[2]] = number(random, f.a, f.a.bias() - random.between(kept - 8, kept + 2));
    out.a.insert(out.a.end(), a.begin(), a.end());
  }
  for (int row = 0; row < blocks * n; ++row)
    out.b.insert(out.b.end(), depth, number(random, f.b, random.between(-3, 3)));
  for (int i = 0; i < blocks * kRows * n; ++i) {
    const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
    const int exponent = f.a.bias() + random.between(-3 - kept, 3);
    out.c.push_back(random.below(2) == 0 ? 0 : float_of(sign, 127 + exponent, mantissa));
  }
  return out;
}

// In one of eight rows A is zero, and the accumulator alone. Elsewhere it is up to 2^40 times as large as the
// products, or as small.
Numbers far(Random& random, const Formats& f, int n, int blocks) {
  Numbers out = independent(random, f, Family::kNear, n, blocks);
  const size_t depth = size_t(f.a.depth());
  for (size_t row = 0; row < size_t(blocks * kRows); ++row) {
    const bool zero = random.below(8) == 0;
    if (zero)
      for (size_t k = 0; k < depth; ++k) out.a[row * depth + k] &= f.a.sign_bit();
    for (size_t i = row * size_t(n); i < (row + 1) * size_t(n); ++i) {
      const uint32_t sign = random.below(2), mantissa = uint32_t(random.bits());
      const int exponent = !zero                  ? 127 + random.between(-40, 40)
                           : random.below(4) == 0 ? 0
                                                  : random.between(0, 254);
      out.c[i] = float_of(sign, exponent, mantissa);
    }
  }
  return out;
}

Numbers numbers(Random& random, const Formats& f, Family family, int n, int blocks) {
  switch (family) {
    case Family::kSplit:
    case Family::kZeros: return paired(random, f, family, n, blocks);
    case Family::kOneSign: return one_sign(random, f, n, blocks);
    case Family::kFew: return few(random, f, n, blocks);
    case Family::kFar: return far(random, f, n, blocks);
    default: return independent(random, f, family, n, blocks);
  }
}

std::vector<uint32_t> words_of(const std::vector<uint16_t>& numbers, size_t size) {
  std::vector<uint32_t> out(numbers.size() * size / 4);
  for (size_t i = 0; i < numbers.size(); ++i) out[i * size / 4] |= uint32_t(numbers[i]) << 8 * (i * size % 4);
  return out;
}

}  // namespace

ProductInputs product_inputs(OperandType a, OperandType b, int family, int n, int blocks) {
  const Formats f{kFormats[int(a)], kFormats[int(b)]};
  const uint64_t types = uint64_t(f.a.mantissa_bits) + (a == b ? 0 : 100 * uint64_t(f.b.mantissa_bits));
  Random random(types * 1000 + uint64_t(family) * 100 + uint64_t(n));
  const Numbers out = numbers(random, f, Family(family), n, blocks);
  return {words_of(out.a, size_t(f.a.bytes())), words_of(out.b, size_t(f.b.bytes())), out.c};
}

}  // namespace conformance
