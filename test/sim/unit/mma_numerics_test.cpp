// mma_numerics_test.cpp -- the tensor core's dot product against a second,
// independent statement of the published model.
#include "sim/engine/numerics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "sim/unit/formats.hpp"
#include "support/catch.hpp"
#include "support/rng.h"

namespace mma_numerics_test {

using namespace formats;

// This is the published model of the block-scaled dot product, stated in real numbers.

static uint32_t truncate_to_f32(double x) {  // via the grid of the result, not via conversions
  if (x == 0) return 0;
  const int exponent = std::max(std::ilogb(x), -126);
  if (std::ilogb(x) >= 128) return x < 0 ? 0xFF800000 : 0x7F800000;
  const double grid = std::ldexp(1.0, exponent - 23);
  const float result = static_cast<float>(std::trunc(x / grid) * grid);
  return result == 0 ? 0 : bits_of(result);
}

static uint32_t model(const uint8_t* a, const uint8_t* b, const uint8_t* sfa, const uint8_t* sfb, int scales,
                      bool ue8m0, float c) {
  if (std::isnan(c)) return kCanonicalNan;
  int top = c == 0 ? -126 : std::max(std::ilogb(c), -126);
  double term[4];
  for (int g = 0; g < 4; ++g) {
    const Scale x = scale_of(sfa[g * scales / 4], ue8m0), y = scale_of(sfb[g * scales / 4], ue8m0);
    if (x.nan || y.nan) return kCanonicalNan;
    double dot = 0;
    for (int k = 16 * g; k < 16 * g + 16; ++k) dot += element(a[k]) * element(b[k]);
    term[g] = std::ldexp(dot * x.significand * y.significand, x.exponent + y.exponent);
    top = std::max(top, x.exponent + y.exponent);
  }
  if (std::isinf(c)) return bits_of(c);
  // Conversion to integer truncates toward zero.
  int64_t sum = static_cast<int64_t>(std::ldexp(double{c}, 35 - top));
  for (double t : term) sum += static_cast<int64_t>(std::ldexp(t, 35 - top));
  return truncate_to_f32(std::ldexp(static_cast<double>(sum), top - 35));
}

// This is the same model for NVFP4 alone, stated in integers: one vector of 64 products, block 16, UE4M3
// scales.

struct ScaledVector {
  uint8_t a[64], b[64], sfa[4], sfb[4];
  float c;
};

// Returns a magnitude moved by `left` bits; what falls off below is lost.
static int64_t shifted(int64_t value, int left) {
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const uint64_t moved = left >= 0 ? size << left : left > -64 ? size >> -left : 0;
  return value < 0 ? -static_cast<int64_t>(moved) : static_cast<int64_t>(moved);
}

static uint32_t nvfp4_model(const ScaledVector& v) {
  constexpr int kHalves[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const uint32_t c = bits_of(v.c), c_field = c >> 23 & 0xFF;
  bool nan = c_field == 255 && (c & 0x7FFFFF) != 0;
  int64_t term[5];  // in units of 2^(exponent - 8), the last (C) of 2^(exponent - 23)
  int exponent[5];
  for (int g = 0; g < 4; ++g) {
    term[g] = 0;
    for (int k = 16 * g; k < 16 * (g + 1); ++k) term[g] += kHalves[v.a[k]] * kHalves[v.b[k]];
    exponent[g] = 0;
    for (const uint8_t code : {v.sfa[g], v.sfb[g]}) {
      const int field = code >> 3 & 15, mantissa = code & 7;
      nan = nan || (code & 0x7F) == 0x7F;
      term[g] *= field == 0 ? mantissa : 8 + mantissa;
      exponent[g] += field != 0 ? field - 7 : mantissa != 0 ? -6 : -126;
    }
  }
  if (nan) return kCanonicalNan;
  if (c_field == 255) return c;
  term[4] = static_cast<int64_t>((c & 0x7FFFFF) | (c_field != 0 ? 0x800000 : 0)) * ((c >> 31) != 0 ? -1 : 1);
  exponent[4] = c_field != 0 ? static_cast<int>(c_field) - 127 : -126;

  const int top = *std::max_element(exponent, exponent + 5);
  int64_t sum = 0;  // in units of 2^(top - 35)
  for (int i = 0; i < 5; ++i) sum += shifted(term[i], exponent[i] - top + 35 - (i < 4 ? 8 : 23));
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000 : 0;
  const uint64_t size = sum < 0 ? 0 - static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const int lead = 63 - std::countl_zero(size) + top - 35;
  if (lead > 127) return sign | 0x7F800000;
  const int last = std::max(lead, -126) - 23;  // weight of the result's last place
  const auto kept = static_cast<uint32_t>(shifted(static_cast<int64_t>(size), top - 35 - last));
  if (kept == 0) return 0;
  return sign | (kept + (static_cast<uint32_t>(std::max(lead, -126) + 126) << 23));
}

// This is one random tile: scale and accumulator codes come from the generators, so that each case aims at
// one corner.
struct TileCase {
  const char* name;
  int scales;
  bool ue8m0;
  std::function<uint8_t(dualgemm_test::Rng&)> scale;
  std::function<float(dualgemm_test::Rng&)> accumulator;
  std::function<uint8_t(dualgemm_test::Rng&)> code;
};

static float random_finite(dualgemm_test::Rng& r) {
  for (;;) {
    const float x = float_of(r.word());
    if (std::isfinite(x)) return x;
  }
}

struct TileResult {
  int outputs, mismatches;
};

static TileResult run_tile(const TileCase& test, const sim::TileVariant& variant, uint32_t seed, int rows,
                           int cols) {
  dualgemm_test::Rng random(seed);
  const size_t m_size = static_cast<size_t>(rows), n_size = static_cast<size_t>(cols);
  const size_t groups = static_cast<size_t>(test.scales);
  std::vector<uint8_t> a(m_size * 64), b(n_size * 64), sfa(m_size * groups), sfb(n_size * groups);
  std::vector<float> fa(sfa.size()), fb(sfb.size()), c(m_size * n_size);
  for (auto& x : a) x = test.code(random);
  for (auto& x : b) x = test.code(random);
  for (size_t i = 0; i < sfa.size(); ++i)
    fa[i] = test.ue8m0 ? sim::ue8m0_to_f32(sfa[i] = test.scale(random))
                       : sim::ue4m3_to_f32(sfa[i] = test.scale(random));
  for (size_t i = 0; i < sfb.size(); ++i)
    fb[i] = test.ue8m0 ? sim::ue8m0_to_f32(sfb[i] = test.scale(random))
                       : sim::ue4m3_to_f32(sfb[i] = test.scale(random));
  for (auto& x : c) x = test.accumulator(random);

  std::vector<float> d = c;
  const sim::ScaleFormat format = test.ue8m0 ? sim::ScaleFormat::kUe8m0 : sim::ScaleFormat::kUe4m3;
  variant.run(a.data(), b.data(), fa.data(), fb.data(), test.scales, rows, cols, true, d.data(), format);
  TileResult result{rows * cols, 0};
  for (size_t m = 0; m < m_size; ++m) {
    for (size_t n = 0; n < n_size; ++n) {
      const float in = c[m * n_size + n];
      const uint32_t want =
          model(&a[m * 64], &b[n * 64], &sfa[m * groups], &sfb[n * groups], test.scales, test.ue8m0, in);
      const uint32_t reference = bits_of(sim::mma_block_scaled_reference(
          &a[m * 64], &b[n * 64], &fa[m * groups], &fb[n * groups], test.scales, in, format));
      result.mismatches += want != bits_of(d[m * n_size + n]) || want != reference;
    }
  }
  return result;
}

static const std::vector<TileCase>& tile_cases() {
  const auto any_code = [](dualgemm_test::Rng& r) { return static_cast<uint8_t>(r.word() & 15); };
  const auto sparse_code = [](dualgemm_test::Rng& r) {
    return static_cast<uint8_t>(r.word() % 16 == 0 ? r.word() & 15 : r.word() % 2 * 8);
  };
  const auto usual_scale = [](dualgemm_test::Rng& r) { return static_cast<uint8_t>(0x40 + r.word() % 0x30); };
  const auto any_scale = [](dualgemm_test::Rng& r) {
    return static_cast<uint8_t>(r.word() % 0x7F | (r.word() & 0x80));
  };
  const auto extreme_scale = [](dualgemm_test::Rng& r) {
    constexpr uint8_t kCodes[] = {0x00, 0x01, 0x07, 0x08, 0x7E, 0x80, 0xFE, 0x38};
    return kCodes[r.word() % std::size(kCodes)];
  };
  const auto nan_scale = [](dualgemm_test::Rng& r) {
    return static_cast<uint8_t>(r.word() % 64 == 0 ? 0x7F : 0x30 + r.word() % 16);
  };
  const auto near_power = [](dualgemm_test::Rng& r) {
    return static_cast<uint8_t>(127 - 20 + r.word() % 40);
  };
  const auto any_power = [](dualgemm_test::Rng& r) {
    return static_cast<uint8_t>(r.word() % 512 == 0 ? 0xFF : r.word() % 255);
  };
  const auto usual_c = [](dualgemm_test::Rng& r) {
    return std::ldexp(static_cast<float>(static_cast<int32_t>(r.word())), -20);
  };
  const auto zero_c = [](dualgemm_test::Rng& r) { return r.word() % 2 == 0 ? 0.0f : -0.0f; };
  const auto any_c = [](dualgemm_test::Rng& r) { return random_finite(r); };
  const auto window_c = [](dualgemm_test::Rng& r) {  // exponents around the edges of the truncation windows
    return float_of((r.word() & 0x807FFFFF) | ((127 - 40 + r.word() % 80) << 23));
  };
  const auto tiny_c = [](dualgemm_test::Rng& r) { return float_of(r.word() & 0x80FFFFFF); };
  const auto special_c = [](dualgemm_test::Rng& r) {
    constexpr uint32_t kBits[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF,
                                  0xFF7FFFFF, 0x00000001, 0x80000000};
    return float_of(kBits[r.word() % std::size(kBits)]);
  };
  const auto quarter_c = [](dualgemm_test::Rng& r) {
    return 0.25f * (static_cast<int>(r.word() % 257) - 128);
  };
  const auto unit_scale = [](dualgemm_test::Rng&) { return uint8_t{0x38}; };
  static const std::vector<TileCase> cases{
      {"usual scales and sums", 4, false, usual_scale, usual_c, any_code},
      {"all scales", 4, false, any_scale, window_c, any_code},
      {"all scales, any accumulator", 4, false, any_scale, any_c, any_code},
      {"extreme and zero scales", 4, false, extreme_scale, window_c, sparse_code},
      {"extreme scales, zero accumulator", 4, false, extreme_scale, zero_c, sparse_code},
      {"subnormal accumulators", 4, false, extreme_scale, tiny_c, sparse_code},
      {"special accumulators", 4, false, usual_scale, special_c, any_code},
      {"NaN scales", 4, false, nan_scale, usual_c, any_code},
      {"cancellation to zero", 4, false, unit_scale, quarter_c, sparse_code},
      {"UE8M0 block 16", 4, true, near_power, window_c, any_code},
      {"UE8M0 block 32", 2, true, near_power, usual_c, any_code},
      {"UE8M0 whole range", 2, true, any_power, any_c, any_code},
      {"UE8M0 whole range, zero accumulator", 4, true, any_power, zero_c, sparse_code},
  };
  return cases;
}

TEST_CASE("numerics: block-scaled worked examples", "[mma]") {
  std::vector<uint8_t> six(64, 0x7), zero(64, 0), one(64, 0);
  const float largest[4] = {448, 448, 448, 448}, ones[4] = {1, 1, 1, 1};
  CHECK(sim::mma_block_scaled_reference(six.data(), six.data(), largest, largest, 4, 0) == 462422016.0f);
  one[0] = 0x2;  // 1.0
  std::vector<uint8_t> factor(64, 0);
  factor[0] = 0x3;  // 1.5: 2^24 + 1.5 truncates
  CHECK(sim::mma_block_scaled_reference(one.data(), factor.data(), ones, ones, 4, 16777216.0f) ==
        16777216.0f);
  factor[0] = 0x1;  // 0.5: -2^24 + 0.5 truncates toward zero
  CHECK(sim::mma_block_scaled_reference(one.data(), factor.data(), ones, ones, 4, -16777216.0f) ==
        -16777215.0f);
  // A group of zeros under large scales still sets the alignment: the accumulator loses its last bit.
  CHECK(sim::mma_block_scaled_reference(zero.data(), zero.data(), largest, largest, 4,
                                        float_of(0x3F800001)) == 1.0f);
  CHECK(sim::mma_block_scaled_reference(zero.data(), zero.data(), ones, ones, 4, float_of(0x3F800001)) ==
        float_of(0x3F800001));
}

TEST_CASE(
    "numerics: every tile variant and the reference equal the model, "
    "over a million outputs and all corners",
    "[mma]") {
  int outputs = 0;
  for (const sim::TileVariant& variant : sim::tile_variants()) {
    for (const TileCase& test : tile_cases()) {
      for (uint32_t seed : {11u, 13u, 17u}) {
        const TileResult result = run_tile(test, variant, seed, 128, 256);
        INFO(variant.name << ": " << test.name);
        CHECK(result.mismatches == 0);
        outputs += result.outputs;
      }
    }
    // Neither rows nor columns fill a step.
    const TileResult ragged = run_tile(tile_cases()[1], variant, 12, 7, 24);
    CHECK(ragged.mismatches == 0);
  }
  CHECK(outputs >= 1000000);
}

TEST_CASE("NVFP4 products equal an independent scalar model on 1e6 random vectors", "[mma]") {
  // A fast variant takes a row of A and several columns at once: 8 vectors share their A, all else is new.
  constexpr int kColumns = 8, kTiles = 1 << 17;
  std::vector<const TileCase*> cases;
  for (const TileCase& test : tile_cases())
    if (!test.ue8m0) cases.push_back(&test);
  const std::vector<sim::TileVariant> variants = sim::tile_variants();
  dualgemm_test::Rng random(2027);
  int vectors = 0, wrong = 0, special = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    const TileCase& test = *cases[static_cast<size_t>(tile) % cases.size()];
    ScaledVector v[kColumns];
    uint8_t columns[kColumns * 64];
    float sfa[4], sfb[kColumns * 4], c[kColumns];
    for (uint8_t& code : v[0].a) code = test.code(random);
    for (int i = 0; i < 4; ++i) sfa[i] = sim::ue4m3_to_f32(v[0].sfa[i] = test.scale(random));
    for (int n = 0; n < kColumns; ++n) {
      std::copy_n(v[0].a, 64, v[n].a);
      std::copy_n(v[0].sfa, 4, v[n].sfa);
      for (int k = 0; k < 64; ++k) columns[n * 64 + k] = v[n].b[k] = test.code(random);
      for (int i = 0; i < 4; ++i) sfb[n * 4 + i] = sim::ue4m3_to_f32(v[n].sfb[i] = test.scale(random));
      c[n] = v[n].c = test.accumulator(random);
    }
    uint32_t want[kColumns];
    for (int n = 0; n < kColumns; ++n) {
      want[n] = nvfp4_model(v[n]);
      special += (want[n] & 0x7F800000) == 0x7F800000 || (want[n] & 0x7F800000) == 0;
      wrong += bits_of(sim::mma_block_scaled_reference(v[n].a, v[n].b, sfa, sfb + n * 4, 4, c[n])) != want[n];
      ++vectors;
    }
    for (const sim::TileVariant& variant : variants) {
      float d[kColumns];
      std::copy_n(c, kColumns, d);
      variant.run(v[0].a, columns, sfa, sfb, 4, 1, kColumns, true, d, sim::ScaleFormat::kUe4m3);
      for (int n = 0; n < kColumns; ++n) wrong += bits_of(d[n]) != want[n];
    }
  }
  CHECK(wrong == 0);
  CHECK(vectors >= 1000000);
  CHECK(special >= 10000);  // NaN, infinities, zeros and subnormals are really among them
}

// In a tile that reaches beyond its matrices, rows 4 to 7 and columns 16 to 31 are zeros of either sign.
// Their scales count all the same: they cut accumulators, and NaN among them is NaN.
TEST_CASE("numerics: rows and columns of zeros in a tile are what the reference says", "[mma]") {
  constexpr int kRows = 12, kColumns = 48, kRounds = 40;
  dualgemm_test::Rng random(2031);
  for (int round = 0; round < kRounds; ++round) {
    for (const TileCase& test : tile_cases()) {
      if (test.ue8m0) continue;
      std::vector<uint8_t> a, b;
      std::vector<float> sfa, sfb, c;
      const auto zero = [&] { return uint8_t(random.word() % 2 * 8); };
      for (int i = 0; i < kRows * 64; ++i) a.push_back(i / 64 / 4 == 1 ? zero() : test.code(random));
      for (int i = 0; i < kColumns * 64; ++i) b.push_back(i / 64 / 16 == 1 ? zero() : test.code(random));
      for (int i = 0; i < kRows * 4; ++i) sfa.push_back(sim::ue4m3_to_f32(test.scale(random)));
      for (int i = 0; i < kColumns * 4; ++i) sfb.push_back(sim::ue4m3_to_f32(test.scale(random)));
      for (int i = 0; i < kRows * kColumns; ++i) c.push_back(test.accumulator(random));
      for (const sim::TileVariant& variant : sim::tile_variants()) {
        std::vector<float> d = c;
        variant.run(a.data(), b.data(), sfa.data(), sfb.data(), 4, kRows, kColumns, true, d.data(),
                    sim::ScaleFormat::kUe4m3);
        int wrong = 0;
        for (int m = 0; m < kRows; ++m)
          for (int n = 0; n < kColumns; ++n) {
            const size_t i = size_t(m * kColumns + n);
            wrong += bits_of(d[i]) != bits_of(sim::mma_block_scaled_reference(
                                          &a[size_t(m * 64)], &b[size_t(n * 64)], &sfa[size_t(m * 4)],
                                          &sfb[size_t(n * 4)], 4, c[i]));
          }
        CAPTURE(variant.name, test.name, round);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("numerics: without accumulation the old contents do not matter", "[mma]") {
  for (const sim::TileVariant& variant : sim::tile_variants()) {
    const std::vector<uint8_t> a(64 * 2, 0x2), b(64 * 16, 0x2);
    const std::vector<float> sfa(8, 1.0f), sfb(64, 1.0f);
    std::vector<float> d(32, NAN);
    variant.run(a.data(), b.data(), sfa.data(), sfb.data(), 4, 2, 16, false, d.data(),
                sim::ScaleFormat::kUe4m3);
    for (float x : d) CHECK(x == 64.0f);
  }
}

TEST_CASE("numerics: dense sums truncate to 25 fractional bits of the largest exponent", "[mma]") {
  const float a[2] = {1.0f, std::ldexp(1.0f, -13)}, b[2] = {1.0f, std::ldexp(1.5f, -12)};
  constexpr sim::DenseFormats kF16{sim::DenseFormat::kF16, sim::DenseFormat::kF16};
  CHECK(sim::mma_dense_sum(a, b, kF16, 2, 0) == 1.0 + 0x1p-25);  // 1.5 * 2^-25 loses its half
  const float negative[2] = {-1.0f, -std::ldexp(1.0f, -13)};
  CHECK(sim::mma_dense_sum(negative, b, kF16, 2, 0) == -1.0 - 0x1p-25);  // toward zero on both sides
  CHECK(std::isnan(sim::mma_dense_sum(a, b, kF16, 2, NAN)));
  CHECK(sim::mma_dense_sum(a, b, kF16, 2, -kInfinity) == -kInfinity);
  CHECK(bits_of(sim::f64_to_f32_toward_zero(0x1.FFFFFFFp127)) == 0x7F7FFFFF);
  CHECK(sim::f64_to_f32_toward_zero(0x1p128) == kInfinity);
  CHECK(bits_of(sim::f64_to_f32_toward_zero(-0x1p-150)) == 0);
}

TEST_CASE("numerics: dense sums align a subnormal operand by the smallest normal exponent", "[mma]") {
  // Two products cancel, and a third lies some binary places below them. The last place that is left was
  // measured on an H100: 2^-26 beside 2^-22 * 2^13 and 2^-24 beside 2^-24 * 2^15, both 2^-9.
  const auto left = [](int subnormal, int place, sim::DenseFormat f) {
    const float low = std::ldexp(1.0f, subnormal), high = std::ldexp(1.0f, -9 - subnormal);
    const float a[3] = {low, std::ldexp(1.0f, place + 12), -low}, b[3] = {high, std::ldexp(1.0f, -12), high};
    const double sum = sim::mma_dense_sum(a, b, {f, f}, 3, 0);
    CHECK(sim::mma_dense_sum(b, a, {f, f}, 3, 0) == sum);
    return sum;
  };
  using enum sim::DenseFormat;
  CHECK(left(-22, -26, kF16) == 0x1p-26);
  CHECK(left(-22, -27, kF16) == 0);
  CHECK(left(-24, -24, kF16) == 0x1p-24);
  CHECK(left(-24, -25, kF16) == 0);
  CHECK(left(-24, -34, kBf16) == 0x1p-34);  // in bf16 these are normal numbers
  CHECK(left(-24, -35, kBf16) == 0);
  // A zero has no place: the largest number beside it cuts nothing.
  const float a[2] = {0, 0x1p-14f}, b[2] = {0x1p15f, 0x1p-14f};
  CHECK(sim::mma_dense_sum(a, b, {kF16, kF16}, 2, 0) == 0x1p-28);
}

TEST_CASE("numerics: sums of 8-bit operands keep 13 places of every term and of the result", "[mma]") {
  using enum sim::DenseFormat;
  constexpr sim::DenseFormats kFormats{kE4m3, kE4m3};
  std::vector<float> a(32), b(32);
  const auto sum = [&](float c, sim::DenseFormats formats = {kE4m3, kE4m3}) {
    const float result = sim::round_dense(sim::mma_dense_sum(a.data(), b.data(), formats, 32, c), formats);
    float tile[1] = {c};
    sim::mma_dense_tile(a.data(), b.data(), formats, 1, 1, true, tile);
    CHECK(bits_of(tile[0]) == bits_of(result));
    return result;
  };
  const auto product = [&](size_t k, float x, float y) { a[k] = x, b[k] = y; };
  // The third product has bits of 2^-13 and 2^-14 beside two of 1 that cancel, wherever the three are.
  for (const size_t place : {1u, 15u, 16u, 31u}) {
    a.assign(32, 0), b.assign(32, 0);
    product(0, 1, 1);
    product(place, 0x1.8p-7f, 0x1p-6f);
    product(place == 7 ? 8 : 7, -1, 1);
    CHECK(sum(0) == 0x1p-13f);
    a[place] = -a[place];
    CHECK(sum(0) == -0x1p-13f);  // toward zero on both sides
  }
  SECTION("an accumulator is a term") {
    a.assign(32, 0), b.assign(32, 0);
    product(20, 0x1.8p-5f, 0x1p-6f);  // 2^-11 + 2^-12
    CHECK(sum(2) == 2 + 0x1p-11f + 0x1p-12f);
    CHECK(sum(3.5f) == 3.5f + 0x1p-11f + 0x1p-12f);
    CHECK(sum(4) == 4 + 0x1p-11f);
    CHECK(sum(0x1p12f) == 0x1p12f);
    CHECK(sum(0x1p-24f) == 0x1.8p-11f + 0x1p-24f);  // 13 places below 2^-11
    CHECK(sum(0x1p-25f) == 0x1.8p-11f);
    // Of 4096 and nearly 1, which is far above all products, 4096.5 is left before 32 is added.
    a.assign(32, 1), b.assign(32, 1);
    CHECK(sum(-0x1.000FFEp12f) == -4064.5f);
  }
  SECTION("a sum above its terms loses last places") {
    for (size_t k = 0; k < 32; ++k) product(k, 1, 1);
    product(31, 0x1p-6f, 0x1p-6f);
    CHECK(sum(0) == 31);  // 2^-12 is kept of the product, but not beside 2^4
    product(31, 0x1p-4f, 0x1p-5f);
    CHECK(sum(0) == 31 + 0x1p-9f);
    product(31, 0x1p-5f, 0x1p-5f);
    CHECK(sum(0) == 31);
  }
  SECTION("without products an accumulator loses what lies below 13 places, and -0 its sign") {
    a.assign(32, 0), b.assign(32, -0.0f);
    CHECK(sum(0x1.FFFFFEp0f) == 0x1.FFF8p0f);
    CHECK(sum(-0x1.FFFFFEp0f) == -0x1.FFF8p0f);
    CHECK(sum(0x1p-139f) == 0x1p-139f);
    CHECK(sum(0x1.8p-139f) == 0x1p-139f);
    CHECK(bits_of(sum(-0x1p-140f)) == 0);
    CHECK(bits_of(sum(-0.0f)) == 0);
  }
  SECTION("a subnormal factor has the exponent of the smallest normal number") {
    const auto last_place = [&](float low, float high, sim::DenseFormats formats) {
      for (int place = 10;; --place) {
        a.assign(32, 0), b.assign(32, 0);
        product(0, low, high);
        product(1, -low, high);
        product(2, std::ldexp(1.0f, place / 2), std::ldexp(1.0f, place - place / 2));
        if (sum(0, formats) == 0) return place + 1;
      }
    };
    // Measured on an H100: 2^-1 beside 2^6 * 2^6, 2^-11 beside 2^-9 * 2^8.
    CHECK(last_place(0x1p6f, 0x1p6f, kFormats) == -1);
    CHECK(last_place(0x1p-9f, 0x1p8f, kFormats) == -11);
    CHECK(last_place(0x1p8f, 0x1p-9f, kFormats) == -11);
    // 2^-9 is a normal number of e5m2, and 2^-16 is as its 2^-14.
    CHECK(last_place(0x1p-9f, 0x1p8f, {kE5m2, kE4m3}) == -14);
    CHECK(last_place(0x1p8f, 0x1p-9f, {kE5m2, kE4m3}) == -11);
    CHECK(last_place(0x1p8f, 0x1p-9f, {kE4m3, kE5m2}) == -14);
    CHECK(last_place(0x1p-16f, 0x1p8f, {kE5m2, kE4m3}) == -19);
  }
  SECTION("NaN and infinities") {
    a.assign(32, 1), b.assign(32, 1);
    constexpr sim::DenseFormats kWide{kE5m2, kE5m2};
    CHECK(bits_of(sum(-NAN)) == 0x7FFFFFFF);
    CHECK(sum(-kInfinity) == -kInfinity);
    product(3, kInfinity, 2);
    CHECK(sum(0, kWide) == kInfinity);
    CHECK(bits_of(sum(-kInfinity, kWide)) == 0x7FFFFFFF);
    product(3, kInfinity, 0);
    CHECK(bits_of(sum(0, kWide)) == 0x7FFFFFFF);
    product(3, -NAN, 1);
    CHECK(bits_of(sum(0, kWide)) == 0x7FFFFFFF);
  }
}

}  // namespace mma_numerics_test
