// mma_dense_test.cpp -- the dense tile against the scheme worked out in integers: every term is a significand
// and an exponent, aligned by shifts.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "sim/engine/numerics.h"
#include "support/catch.hpp"

namespace mma_dense_test {

constexpr int kDepth = 16, kRows = 5, kColumns = 37;  // no multiple of a vector

struct Term {  // sign * significand * 2^exponent
  bool negative;
  uint64_t significand;
  int exponent;
  int leading() const { return exponent + 63 - std::countl_zero(significand); }
};

static Term term_of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), field = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFF;
  return {bits >> 31 != 0, field == 0 ? fraction : fraction | 0x800000, int(field == 0 ? 1 : field) - 150};
}

struct Format {
  int mantissa_bits;
  int least;  // exponent of the smallest normal number
};
constexpr Format kF16{10, -14}, kBf16{7, -126}, kF32{23, -126};

// The exponent by which a number is aligned: the exponent of its leading bit, but for a subnormal number of
// the format the exponent of the smallest normal number.
static int exponent_of(float x, const Format& f) { return std::max(term_of(x).leading(), f.least); }

// Cuts toward zero to units of 2^unit.
__int128 in_units(const Term& t, int unit) {
  const int shift = t.exponent - unit;
  if (shift <= -64) return 0;
  const __int128 value = shift >= 0 ? __int128(t.significand) << shift : __int128(t.significand >> -shift);
  return t.negative ? -value : value;
}

// One output for finite inputs, as the bits of a float.
static uint32_t expected(const float* a, const float* b, const Format& f, float c) {
  int top = c == 0 ? -1000 : exponent_of(c, kF32);  // zero has none
  std::vector<Term> products;
  for (int k = 0; k < kDepth; ++k) {
    if (a[k] == 0 || b[k] == 0) continue;
    const Term x = term_of(a[k]), y = term_of(b[k]);
    products.push_back({x.negative != y.negative, x.significand * y.significand, x.exponent + y.exponent});
    top = std::max(top, exponent_of(a[k], f) + exponent_of(b[k], f));
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

// What a tile is made of: numbers of a format whose exponents lie in [low, high], and accumulators. If a tile
// is split, then for each k the elements of A are about 2^low and those of B about 2^high, or the other way
// round, so that all products are about 2^(low + high).
struct Range {
  Format format;
  int low, high, c_low, c_high;
  bool split;
};

// Returns a number with its leading bit at 2^exponent, cut to the places of the format.
static float number(std::mt19937& random, const Format& f, int exponent) {
  const double significand = 1 + double(random() % (1u << f.mantissa_bits)) / (1u << f.mantissa_bits);
  const int last = std::max(exponent, f.least) - f.mantissa_bits;
  const double value = std::ldexp(std::trunc(std::ldexp(significand, exponent - last)), last);
  if (random() % 16 == 0) return 0;
  return float(random() % 2 == 0 ? value : -value);
}

static Tile tile(uint32_t seed, const Range& r) {
  std::mt19937 random(seed);
  const auto between = [&](int from, int to) { return from + int(random() % uint32_t(to - from + 1)); };
  int a[kDepth], b[kDepth];
  for (int k = 0; k < kDepth; ++k) {
    a[k] = r.split ? between(r.low, r.high) : r.low;
    b[k] = r.split ? r.low + r.high - a[k] : r.low;
  }
  const int spread = r.split ? 1 : r.high - r.low;
  Tile t;
  for (int i = 0; i < kRows * kDepth; ++i)
    t.a.push_back(number(random, r.format, a[i % kDepth] + between(0, spread)));
  for (int i = 0; i < kColumns * kDepth; ++i)
    t.b.push_back(number(random, r.format, b[i % kDepth] + between(0, spread)));
  for (int i = 0; i < kRows * kColumns; ++i) t.c.push_back(number(random, kF32, between(r.c_low, r.c_high)));
  // Every other tile reaches beyond its matrices: its first row and its first 16 columns are zeros of either
  // sign, and so are some accumulators.
  if (seed % 2 != 0) {
    for (int i = 0; i < kDepth; ++i) t.a[size_t(i)] = i % 2 == 0 ? 0.0f : -0.0f;
    for (int i = 0; i < 16 * kDepth; ++i) t.b[size_t(i)] = i % 3 == 0 ? -0.0f : 0.0f;
    for (int i = 0; i < kRows * kColumns; i += 5) t.c[size_t(i)] = -0.0f;
  }
  return t;
}

TEST_CASE("numerics: the dense tile aligns, cuts and adds as integers do", "[mma]") {
  const Range r =
      GENERATE(values<Range>({{kF16, -3, 3, -4, 8, false},           // everything counts
                              {kF16, -14, 15, -30, 30, false},       // most terms are cut
                              {kF16, -26, 15, -30, 30, false},       // some operands are subnormal
                              {kF16, -26, 14, -20, 10, true},        // and meet large ones
                              {kF16, -24, -15, -60, -20, false},     // all are subnormal
                              {kBf16, -135, 126, -20, 10, true},     // the same of bf16
                              {kBf16, -135, 10, -126, -110, true},   // results below the normal range
                              {kBf16, -70, -55, -127, -110, false},  // the same without subnormal operands
                              {kBf16, -127, 127, -127, 127, false},  // and beyond every range
                              {kBf16, 55, 63, 110, 127, false}}));
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Tile t = tile(seed, r);
    for (const sim::DenseTileVariant& variant : sim::dense_tile_variants()) {
      std::vector<float> d = t.c, fresh(t.c.size(), 7.0f);
      variant.run(t.a.data(), t.b.data(), r.format.least, kRows, kColumns, true, d.data());
      variant.run(t.a.data(), t.b.data(), r.format.least, kRows, kColumns, false, fresh.data());
      int wrong = 0;
      for (int m = 0; m < kRows; ++m)
        for (int n = 0; n < kColumns; ++n) {
          const size_t i = size_t(m * kColumns + n);
          const float *a = &t.a[size_t(m * kDepth)], *b = &t.b[size_t(n * kDepth)];
          wrong += std::bit_cast<uint32_t>(d[i]) != expected(a, b, r.format, t.c[i]);
          wrong += std::bit_cast<uint32_t>(fresh[i]) != expected(a, b, r.format, 0);
        }
      CAPTURE(variant.name, r.format.least, r.low, r.high, r.split, seed);
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
    variant.run(a.data(), b.data(), kF16.least, 2, 20, true, d.data());
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

}  // namespace mma_dense_test
