// mma_dense_test.cpp -- the dense tile against the scheme worked out in integers: every term is a significand
// and an exponent, aligned by shifts.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "sim/engine/numerics.h"
#include "support/catch.hpp"

namespace {

constexpr int kDepth = 16, kRows = 5, kColumns = 37;  // no multiple of a vector

struct Term {  // sign * significand * 2^exponent
  bool negative;
  uint64_t significand;
  int exponent;
  int leading() const { return exponent + 63 - std::countl_zero(significand); }
};

Term term_of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), field = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFF;
  return {bits >> 31 != 0, field == 0 ? fraction : fraction | 0x800000, int(field == 0 ? 1 : field) - 150};
}

// The exponent that a factor brings to the alignment: that of its leading bit, of a subnormal float -126.
int exponent_of(float x) { return std::max(term_of(x).leading(), -126); }

// Cuts toward zero to units of 2^unit.
__int128 in_units(const Term& t, int unit) {
  const int shift = t.exponent - unit;
  if (shift <= -64) return 0;
  const __int128 value = shift >= 0 ? __int128(t.significand) << shift : __int128(t.significand >> -shift);
  return t.negative ? -value : value;
}

// One output for finite inputs, as the bits of a float.
uint32_t expected(const float* a, const float* b, float c) {
  int top = c == 0 ? -126 : exponent_of(c);
  std::vector<Term> products;
  for (int k = 0; k < kDepth; ++k) {
    if (a[k] == 0 || b[k] == 0) continue;
    const Term x = term_of(a[k]), y = term_of(b[k]);
    products.push_back({x.negative != y.negative, x.significand * y.significand, x.exponent + y.exponent});
    top = std::max(top, exponent_of(a[k]) + exponent_of(b[k]));
  }
  const int unit = top - 25;
  __int128 sum = c == 0 ? 0 : in_units(term_of(c), unit);
  for (const Term& product : products) sum += in_units(product, unit);
  const uint32_t sign = sum < 0 ? 0x80000000 : 0;
  uint64_t magnitude = uint64_t(sum < 0 ? -sum : sum);
  if (magnitude == 0) return 0;
  // Keep 24 bits, or those above 2^-149.
  int exponent = unit;
  const int drop = std::max(64 - std::countl_zero(magnitude) - 24, -149 - exponent);
  if (drop >= 64) return 0;
  if (drop > 0) magnitude >>= drop, exponent += drop;
  else magnitude <<= -drop, exponent += drop;
  if (magnitude == 0) return 0;
  if (magnitude < 0x800000) return sign | uint32_t(magnitude);  // subnormal: exponent is -149
  if (exponent + 150 > 254) return sign | 0x7F800000;
  return sign | uint32_t(exponent + 150) << 23 | uint32_t(magnitude & 0x7FFFFF);
}

struct Tile {
  std::vector<float> a, b, c;
};

// Numbers of 16 bits, or of bf16, with exponents in a range, and accumulators around their products.
Tile tile(uint32_t seed, bool bf16, int low, int high, int c_low, int c_high) {
  std::mt19937 random(seed);
  const auto number = [&](int mantissa_bits, int from, int to) {
    const uint32_t mantissa = uint32_t(random()) & ~((1u << (23 - mantissa_bits)) - 1) & 0x7FFFFF;
    if (random() % 16 == 0) return 0.0f;
    const int exponent = from + int(random() % uint32_t(to - from + 1));
    return std::bit_cast<float>(uint32_t(random() % 2) << 31 | uint32_t(exponent + 127) << 23 | mantissa);
  };
  Tile t;
  const int bits = bf16 ? 7 : 10;
  for (int i = 0; i < kRows * kDepth; ++i) t.a.push_back(number(bits, low, high));
  for (int i = 0; i < kColumns * kDepth; ++i) t.b.push_back(number(bits, low, high));
  for (int i = 0; i < kRows * kColumns; ++i) t.c.push_back(number(23, c_low, c_high));
  return t;
}

}  // namespace

TEST_CASE("numerics: the dense tile aligns, cuts and adds as integers do", "[mma]") {
  struct Range {
    bool bf16;
    int low, high, c_low, c_high;
  };
  const Range r = GENERATE(values<Range>({{false, -3, 3, -4, 8},         // everything counts
                                          {false, -14, 15, -30, 30},     // most terms are cut
                                          {false, -24, -14, -60, -20},   // subnormal operands of f16
                                          {true, -70, -55, -127, -110},  // results below the normal range
                                          {true, -127, 127, -127, 127},  // and beyond every range
                                          {true, 55, 63, 110, 127}}));
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Tile t = tile(seed, r.bf16, r.low, r.high, r.c_low, r.c_high);
    for (const sim::DenseTileVariant& variant : sim::dense_tile_variants()) {
      std::vector<float> d = t.c, fresh(t.c.size(), 7.0f);
      variant.run(t.a.data(), t.b.data(), kRows, kColumns, true, d.data());
      variant.run(t.a.data(), t.b.data(), kRows, kColumns, false, fresh.data());
      int wrong = 0;
      for (int m = 0; m < kRows; ++m)
        for (int n = 0; n < kColumns; ++n) {
          const size_t i = size_t(m * kColumns + n);
          const float *a = &t.a[size_t(m * kDepth)], *b = &t.b[size_t(n * kDepth)];
          wrong += std::bit_cast<uint32_t>(d[i]) != expected(a, b, t.c[i]);
          wrong += std::bit_cast<uint32_t>(fresh[i]) != expected(a, b, 0);
        }
      CAPTURE(variant.name, r.bf16, r.low, r.high, seed);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("numerics: NaN and infinities in a dense tile stay in their rows and columns", "[mma]") {
  for (const sim::DenseTileVariant& variant : sim::dense_tile_variants()) {
    std::vector<float> a(2 * kDepth, 1.0f), b(20 * kDepth, 1.0f), d(2 * 20, 1.0f);
    a[kDepth] = INFINITY;   // row 1
    b[3 * kDepth] = NAN;    // column 3
    b[5 * kDepth] = 0.0f;   // infinity times zero
    b[7 * kDepth] = -1.0f;  // minus infinity
    d[9] = -INFINITY;       // row 0, column 9
    variant.run(a.data(), b.data(), 2, 20, true, d.data());
    CAPTURE(variant.name);
    for (int n = 0; n < 20; ++n) {
      const float first = d[size_t(n)], second = d[size_t(20 + n)];
      CAPTURE(n);
      if (n == 3) CHECK((std::bit_cast<uint32_t>(first) == 0x7FFFFFFF && std::isnan(second)));
      else if (n == 9) CHECK(first == -INFINITY);
      else CHECK(first == (n == 5 ? 16.0f : n == 7 ? 15.0f : 17.0f));
      if (n == 5) CHECK(std::isnan(second));
      else if (n != 3) CHECK(second == (n == 7 ? -INFINITY : INFINITY));
    }
  }
}
