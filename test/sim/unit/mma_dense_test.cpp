// mma_dense_test.cpp -- the dense tile against the scheme worked out in integers: every term is a significand
// and an exponent, aligned by shifts.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "sim/engine/numerics.h"
#include "support/catch.hpp"

namespace mma_dense_test {

constexpr int kRows = 5, kColumns = 37;  // no multiple of a vector

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
constexpr Format kF16{10, -14}, kBf16{7, -126}, kE4m3{3, -6}, kE5m2{2, -14}, kF32{23, -126};

// The formats of A and B, and what depends on how many bits they have.
struct Formats {
  sim::DenseFormats names;
  Format a, b;
  int depth = 16, kept = 25, result = 23;
};
constexpr Formats same(sim::DenseFormat name, const Format& f) { return {{name, name}, f, f}; }
constexpr Formats of_8_bits(sim::DenseFormat a, sim::DenseFormat b) {
  const auto format = [](sim::DenseFormat name) { return name == sim::DenseFormat::kE4m3 ? kE4m3 : kE5m2; };
  return {{a, b}, format(a), format(b), 32, 13, 13};
}

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
static uint32_t expected(const float* a, const float* b, const Formats& f, float c) {
  int top = c == 0 ? -1000 : exponent_of(c, kF32);  // zero has none
  std::vector<Term> products;
  for (int k = 0; k < f.depth; ++k) {
    if (a[k] == 0 || b[k] == 0) continue;
    const Term x = term_of(a[k]), y = term_of(b[k]);
    products.push_back({x.negative != y.negative, x.significand * y.significand, x.exponent + y.exponent});
    top = std::max(top, exponent_of(a[k], f.a) + exponent_of(b[k], f.b));
  }
  const int unit = top - f.kept;
  __int128 sum = c == 0 ? 0 : in_units(term_of(c), unit);
  for (const Term& product : products) sum += in_units(product, unit);
  const uint32_t sign = sum < 0 ? 0x80000000 : 0;
  uint64_t magnitude = uint64_t(sum < 0 ? -sum : sum);
  if (magnitude == 0) return 0;
  // Clear what lies below the places of the result, or of a subnormal one.
  int exponent = unit;
  const int last = std::max(63 - std::countl_zero(magnitude) - f.result, -126 - f.result - exponent);
  if (last >= 64) return 0;
  if (last > 0) magnitude = magnitude >> last << last;
  if (magnitude == 0) return 0;
  // 24 bits, or those above 2^-149.
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
  Formats formats;
  int low, high, c_low, c_high;
  bool split;
};

constexpr Formats kHalf = same(sim::DenseFormat::kF16, kF16), kBrain = same(sim::DenseFormat::kBf16, kBf16);
constexpr Formats kBothE4m3 = of_8_bits(sim::DenseFormat::kE4m3, sim::DenseFormat::kE4m3),
                  kBothE5m2 = of_8_bits(sim::DenseFormat::kE5m2, sim::DenseFormat::kE5m2),
                  kE4m3E5m2 = of_8_bits(sim::DenseFormat::kE4m3, sim::DenseFormat::kE5m2),
                  kE5m2E4m3 = of_8_bits(sim::DenseFormat::kE5m2, sim::DenseFormat::kE4m3);
constexpr Range kRanges[] = {
    {kHalf, -3, 3, -4, 8, false},           // everything counts
    {kHalf, -14, 15, -30, 30, false},       // most terms are cut
    {kHalf, -26, 15, -30, 30, false},       // some operands are subnormal
    {kHalf, -26, 14, -20, 10, true},        // and meet large ones
    {kHalf, -24, -15, -60, -20, false},     // all are subnormal
    {kBrain, -135, 126, -20, 10, true},     // the same of bf16
    {kBrain, -135, 10, -126, -110, true},   // results below the normal range
    {kBrain, -70, -55, -127, -110, false},  // the same without subnormal operands
    {kBrain, -127, 127, -127, 127, false},  // and beyond every range
    {kBrain, 55, 63, 110, 127, false},      // sums too large
    {kBothE4m3, 0, 1, -5, 5, false},        // little is cut
    {kBothE4m3, -6, 7, -20, 20, false},     // most terms are
    {kBothE4m3, -9, 7, -12, 10, true},      // some operands are subnormal, and meet large ones
    {kBothE4m3, -10, -7, -30, -10, false},  // all are subnormal
    {kBothE4m3, -3, 3, -127, -120, false},  // accumulators are
    {kBothE5m2, -1, 1, -5, 5, false},       // little is cut of e5m2
    {kBothE5m2, -14, 15, -30, 30, false},   // most terms are
    {kBothE5m2, -17, 14, -20, 10, true},    // some operands are subnormal, and meet large ones
    {kBothE5m2, -3, 3, 100, 127, false},    // accumulators are large
    {kE4m3E5m2, -10, 7, -20, 10, false},    // subnormal numbers only in A
    {kE5m2E4m3, -10, 7, -20, 10, false},    // and only in B
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
  const int depth = r.formats.depth;
  int a[32], b[32];
  for (int k = 0; k < depth; ++k) {
    a[k] = r.split ? between(r.low, r.high) : r.low;
    b[k] = r.split ? r.low + r.high - a[k] : r.low;
  }
  const int spread = r.split ? 1 : r.high - r.low;
  Tile t;
  for (int i = 0; i < kRows * depth; ++i)
    t.a.push_back(number(random, r.formats.a, a[i % depth] + between(0, spread)));
  for (int i = 0; i < kColumns * depth; ++i)
    t.b.push_back(number(random, r.formats.b, b[i % depth] + between(0, spread)));
  // In half of the tiles accumulators are results of such a sum, and have no more places.
  const Format of_c{seed % 4 < 2 ? kF32.mantissa_bits : r.formats.result, kF32.least};
  for (int i = 0; i < kRows * kColumns; ++i) t.c.push_back(number(random, of_c, between(r.c_low, r.c_high)));
  // Every other tile reaches beyond its matrices: its first row and its first 16 columns are zeros of either
  // sign, and so are some accumulators.
  if (seed % 2 != 0) {
    for (int i = 0; i < depth; ++i) t.a[size_t(i)] = i % 2 == 0 ? 0.0f : -0.0f;
    for (int i = 0; i < 16 * depth; ++i) t.b[size_t(i)] = i % 3 == 0 ? -0.0f : 0.0f;
    for (int i = 0; i < kRows * kColumns; i += 5) t.c[size_t(i)] = -0.0f;
  }
  return t;
}

TEST_CASE("numerics: the dense tile aligns, cuts and adds as integers do", "[mma]") {
  const Range r = GENERATE(from_range(std::begin(kRanges), std::end(kRanges)));
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Tile t = tile(seed, r);
    for (const sim::DenseTileVariant& variant : sim::dense_tile_variants()) {
      std::vector<float> d = t.c, fresh(t.c.size(), 7.0f);
      variant.run(t.a.data(), t.b.data(), r.formats.names, kRows, kColumns, true, d.data());
      variant.run(t.a.data(), t.b.data(), r.formats.names, kRows, kColumns, false, fresh.data());
      int wrong = 0;
      for (int m = 0; m < kRows; ++m)
        for (int n = 0; n < kColumns; ++n) {
          const size_t i = size_t(m * kColumns + n);
          const float *a = &t.a[size_t(m * r.formats.depth)], *b = &t.b[size_t(n * r.formats.depth)];
          wrong += std::bit_cast<uint32_t>(d[i]) != expected(a, b, r.formats, t.c[i]);
          wrong += std::bit_cast<uint32_t>(fresh[i]) != expected(a, b, r.formats, 0);
        }
      CAPTURE(variant.name, r.formats.a.least, r.formats.depth, r.low, r.high, r.split, seed);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("numerics: NaN and infinities in a dense tile stay in their rows and columns", "[mma]") {
  const Formats f = GENERATE(kHalf, kBothE5m2);
  const size_t depth = size_t(f.depth);
  for (const sim::DenseTileVariant& variant : sim::dense_tile_variants()) {
    std::vector<float> a(2 * depth, 1.0f), b(20 * depth, 1.0f), d(2 * 20, 1.0f);
    a[depth] = INFINITY;   // row 1
    b[3 * depth] = NAN;    // column 3
    b[5 * depth] = 0.0f;   // infinity times zero
    b[7 * depth] = -1.0f;  // minus infinity
    d[9] = -INFINITY;      // row 0, column 9
    variant.run(a.data(), b.data(), f.names, 2, 20, true, d.data());
    CAPTURE(variant.name);
    for (int n = 0; n < 20; ++n) {
      const float first = d[size_t(n)], second = d[size_t(20 + n)];
      CAPTURE(n);
      if (n == 3) CHECK((std::bit_cast<uint32_t>(first) == 0x7FFFFFFF && std::isnan(second)));
      else if (n == 9) CHECK(first == -INFINITY);
      else CHECK(first == float(f.depth + (n == 5 ? 0 : n == 7 ? -1 : 1)));
      if (n == 5) CHECK(std::isnan(second));
      else if (n != 3) CHECK(second == (n == 7 ? -INFINITY : INFINITY));
    }
  }
}

}  // namespace mma_dense_test
