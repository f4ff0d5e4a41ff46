// quantize_test.cpp -- quantisation on the host: the tables of E2M1 and UE4M3 with their ties, the arithmetic
// that the header promises to the bit, padding, round trips and a derived error bound.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace quantize_test {

constexpr uint8_t kGuard = 0xAA;
constexpr float kFloatMax = std::numeric_limits<float>::max();

struct Quantized {
  std::vector<uint8_t> q, sf;
};

static Quantized quantize(const std::vector<float>& x, int32_t rows, int32_t k, float g, int64_t ldq = 0) {
  Quantized out;
  out.q.assign(static_cast<size_t>(rows * (ldq ? ldq : k) / 2), kGuard);
  out.sf.assign(dualgemm_sf_size(rows, k), kGuard);
  const dualgemm_status_t status =
      dualgemm_quantize_host(x.data(), rows, k, 0, g, out.q.data(), ldq, out.sf.data());
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  return out;
}

static uint8_t nibble(const std::vector<uint8_t>& q, size_t element) {
  return static_cast<uint8_t>(q[element / 2] >> (element % 2 * 4) & 0xF);
}

// Returns the code of `value` in a block whose scale factor is exactly 1.
static uint8_t e2m1_of(float value) {
  std::vector<float> block(16, 0.0f);
  block[0] = 6;
  block[5] = value;
  const Quantized out = quantize(block, 1, 16, 1);
  REQUIRE(out.sf[0] == 0x38);
  CHECK(nibble(out.q, 0) == 7);
  return nibble(out.q, 5);
}

// Returns the scale factor of a block whose largest magnitude is `amax`.
static uint8_t factor_of(float amax, float g = 1) {
  std::vector<float> block(16, 0.0f);
  block[3] = -amax;
  return quantize(block, 1, 16, g).sf[0];
}

// Returns the scale factor of a block whose largest magnitude, in units of the factor, is `value`: with this
// global scale its sixth is 1.
static uint8_t ue4m3_of(float value) { return factor_of(value, 6); }

// Computes UE4M3 from its definition: 4 exponent bits, bias 7, 3 mantissa bits.
static double ue4m3(int code) {
  return code < 8 ? code * 0x1p-9 : (1 + code % 8 / 8.0) * std::ldexp(1.0, code / 8 - 7);
}

// What the header says of a block, one rounded operation at a time, with the conversions of the reference.
struct Block {
  uint8_t factor;
  std::vector<uint8_t> codes;
};
static Block block_of(const std::vector<float>& x, float global_scale) {
  float largest = 0;
  for (const float value : x) largest = std::fmax(largest, std::fabs(value));
  const float a_sixth = 1.0f / 6.0f;
  const float sixth = global_scale * a_sixth;
  const float scaled = largest * sixth;
  Block out{ref::ue4m3_encode(scaled), std::vector<uint8_t>(x.size(), 0)};
  if (out.factor == 0) return out;
  const float reciprocal = 1.0f / ref::ue4m3_decode(out.factor);
  const float encode = global_scale * reciprocal;
  for (size_t i = 0; i < x.size(); ++i) {
    const float value = x[i] * encode;
    out.codes[i] = ref::e2m1_encode(value);
  }
  return out;
}

// The same without rounding between the operations, as far as double holds them.
static Block exact_block_of(const std::vector<float>& x, float global_scale) {
  double largest = 0;
  for (const double value : x) largest = std::fmax(largest, std::fabs(value));
  Block out{ref::ue4m3_encode(largest * global_scale / 6), std::vector<uint8_t>(x.size(), 0)};
  for (size_t i = 0; i < x.size() && out.factor != 0; ++i)
    out.codes[i] = ref::e2m1_encode(double{x[i]} * global_scale / ref::ue4m3_decode(out.factor));
  return out;
}

// Moves x by a few floats up or down.
static float nudged(float x, int32_t steps) {
  for (; steps > 0; --steps) x = std::nextafter(x, kFloatMax);
  for (; steps < 0; ++steps) x = std::nextafter(x, -kFloatMax);
  return x;
}

// Sums of twelve numbers from [0, 1), less 6: about normally distributed.
static std::vector<float> random_matrix(size_t count, uint64_t seed) {
  dualgemm_test::Rng random(seed);
  std::vector<float> x(count, -6.0f);
  for (float& value : x)
    for (int i = 0; i < 12; ++i) value += static_cast<float>(random.unit());
  return x;
}

TEST_CASE("E2M1 rounds to nearest, ties to even, and keeps the sign", "[host][quantize]") {
  const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (uint8_t code = 0; code < 8; ++code) {
    CHECK(e2m1_of(values[code]) == code);
    CHECK(e2m1_of(-values[code]) == (code | 8));
  }
  struct Tie {
    float value;
    uint8_t code;
  };
  for (const Tie& tie : {Tie{0.25f, 0}, Tie{0.75f, 2}, Tie{1.25f, 2}, Tie{1.75f, 4}, Tie{2.5f, 4},
                         Tie{3.5f, 6}, Tie{5.0f, 6}}) {
    INFO("tie at " << tie.value);
    CHECK(e2m1_of(tie.value) == tie.code);
    CHECK(e2m1_of(-tie.value) == (tie.code | 8));
    // One float to either side there is no tie.
    uint8_t below = 0;
    while (values[below + 1] < tie.value) ++below;
    CHECK(e2m1_of(std::nextafter(tie.value, 0.0f)) == below);
    CHECK(e2m1_of(std::nextafter(tie.value, 10.0f)) == below + 1);
  }
}

TEST_CASE("UE4M3 factors round to nearest, ties to even", "[host][quantize]") {
  for (int code = 0; code < 0x7E; ++code) {
    INFO("code " << code);
    const double low = ue4m3(code), high = ue4m3(code + 1);
    CHECK(ue4m3_of(static_cast<float>(low)) == code);
    CHECK(factor_of(static_cast<float>(6 * low)) == code);
    // (low + high) / 2 has at most 5 significant bits: a float holds the tie exactly.
    const auto tie = static_cast<float>((low + high) / 2);
    REQUIRE(static_cast<double>(tie) == (low + high) / 2);
    CHECK(ue4m3_of(tie) == code + code % 2);
    CHECK(ue4m3_of(std::nextafter(tie, 0.0f)) == code);
    CHECK(ue4m3_of(std::nextafter(tie, 1e30f)) == code + 1);
    // A sixth of a float rounds to the tie only where it is one.
    CHECK(factor_of(6 * tie) == code + code % 2);
  }
}

TEST_CASE("the bits are those of the arithmetic in fp32 that the header writes down", "[host][quantize]") {
  dualgemm_test::Rng random(7);
  int factors_differ = 0, codes_differ = 0;  // from those of exact arithmetic
  for (int trial = 0; trial < 4000; ++trial) {
    const auto g = static_cast<float>(std::ldexp(1 + random.unit(), random.between(-20, 20)));
    // The largest lies within a few floats of where a factor, or the middle of two, comes from; the others
    // lie as near the middle of two values.
    const int code = random.between(1, 0x7D);
    const double scaled = trial % 2 ? ue4m3(code) : (ue4m3(code) + ue4m3(code + 1)) / 2;
    std::vector<float> x(16);
    x[0] = nudged(static_cast<float>(6 * scaled / g), random.between(-3, 3));
    for (size_t i = 1; i < x.size(); ++i) {
      constexpr double kMiddles[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
      const double middle = kMiddles[random.below(7)] * ue4m3(code) / g;
      x[i] = nudged(static_cast<float>(random.below(2) ? middle : -middle), random.between(-3, 3));
    }
    const Block expected = block_of(x, g), exact = exact_block_of(x, g);
    const Quantized out = quantize(x, 1, 16, g);
    INFO("trial " << trial);
    REQUIRE(out.sf[0] == expected.factor);
    for (size_t i = 0; i < x.size(); ++i) REQUIRE(nibble(out.q, i) == expected.codes[i]);
    factors_differ += expected.factor != exact.factor;
    codes_differ += expected.factor == exact.factor && expected.codes != exact.codes;
  }
  CHECK(factors_differ > 10);
  CHECK(codes_differ > 10);
}

TEST_CASE("factors and values saturate", "[host][quantize]") {
  CHECK(factor_of(6 * 448) == 0x7E);
  CHECK(factor_of(6 * 464) == 0x7E);  // without saturation 464 and above would round to the code of NaN
  CHECK(factor_of(6 * 479) == 0x7E);
  CHECK(factor_of(1e30f) == 0x7E);
  CHECK(factor_of(1e38f, 6e35f) == 0x7E);
  std::vector<float> block(16, 0.0f);
  block[0] = 1e30f;
  block[1] = -1e30f;
  const Quantized out = quantize(block, 1, 16, 1);
  CHECK(out.q[0] == 0xF7);
}

TEST_CASE("a factor that rounds to zero makes its values zero", "[host][quantize]") {
  CHECK(factor_of(0) == 0);
  std::vector<float> block(16, 0x1p-10f);  // 2^-10 / 6 is below half of the smallest factor, 2^-9
  block[1] = -0x1p-10f;
  const Quantized out = quantize(block, 1, 16, 1);
  CHECK(out.sf[0] == 0);
  for (const uint8_t byte : out.q) CHECK(byte == 0);
}

TEST_CASE("element 2i is the low nibble", "[host][quantize]") {
  std::vector<float> block(16, 0.0f);
  block[0] = 1;
  block[1] = 6;
  CHECK(quantize(block, 1, 16, 1).q[0] == 0x72);
}

TEST_CASE("all padding is written as zero", "[host][quantize]") {
  const int32_t rows = 130, k = 464;
  const int64_t ldq = 512;
  const std::vector<float> x(static_cast<size_t>(rows) * k, 6.0f);  // every factor 1, every code 7
  const Quantized out = quantize(x, rows, k, 1, ldq);
  for (int32_t row = 0; row < 256; ++row)
    for (int32_t block = 0; block < 32; ++block) {
      const auto at = static_cast<size_t>(dualgemm_sf_offset(rows, k, row, block));
      REQUIRE(out.sf[at] == (row < rows && block < k / 16 ? 0x38 : 0x00));
    }
  for (int32_t row = 0; row < rows; ++row)
    for (int32_t byte = 0; byte < ldq / 2; ++byte)
      REQUIRE(out.q[static_cast<size_t>(row * ldq / 2 + byte)] == (byte < k / 2 ? 0x77 : 0x00));
}

TEST_CASE("the error is at most one factor, the widest half step of E2M1", "[host][quantize]") {
  const int32_t rows = 37, k = 208;
  const std::vector<float> x = random_matrix(static_cast<size_t>(rows) * k, 1);
  float g = 0;
  REQUIRE(dualgemm_global_scale_host(x.data(), rows, k, 0, &g) == DUALGEMM_STATUS_SUCCESS);
  const Quantized out = quantize(x, rows, k, g);
  std::vector<float> back(x.size(), std::numeric_limits<float>::quiet_NaN());
  REQUIRE(dualgemm_dequantize_host(out.q.data(), 0, out.sf.data(), rows, k, g, back.data(), 0) ==
          DUALGEMM_STATUS_SUCCESS);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<int32_t>(i / k), block = static_cast<int32_t>(i % k / 16);
    const double factor = ue4m3(out.sf[static_cast<size_t>(dualgemm_sf_offset(rows, k, row, block))]);
    // Between 4 and 6 a value moves by up to 1. A normal factor rounds down by at most 1/17,
    // so |value| <= 6 * 17/16 and saturation moves it by less than 1, too. Before it is converted, three
    // roundings to float have moved it by less than 6 * 17/16 * 3.01 * 2^-24 < 2^-19.
    // The last term is the rounding of the result to float.
    REQUIRE(factor >= 0x1p-6);
    const double bound = factor / g * (1 + 0x1p-19) + std::fabs(back[i]) * 0x1p-24;
    REQUIRE(std::fabs(static_cast<double>(back[i]) - x[i]) <= bound);
    largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
  }
  CHECK(g == static_cast<float>(2688 / largest));
}

TEST_CASE("NVFP4 numbers survive the round trip", "[host][quantize]") {
  // Every scale factor meets every pair of codes, q -> x -> q. Each block holds a 6, so that the scale factor
  // is recovered.
  const int32_t rows = 126, k = 256;
  std::vector<uint8_t> q(static_cast<size_t>(rows) * k / 2), sf(dualgemm_sf_size(rows, k));
  for (size_t i = 0; i < q.size(); ++i) q[i] = i % 8 == 0 ? 0xF7 : static_cast<uint8_t>(i);
  for (int32_t row = 0; row < rows; ++row)
    for (int32_t block = 0; block < k / 16; ++block)
      sf[static_cast<size_t>(dualgemm_sf_offset(rows, k, row, block))] = static_cast<uint8_t>(row + 1);
  for (const float g : {1.0f, 0.125f, 4096.0f}) {
    std::vector<float> x(static_cast<size_t>(rows) * k);
    REQUIRE(dualgemm_dequantize_host(q.data(), 0, sf.data(), rows, k, g, x.data(), 0) ==
            DUALGEMM_STATUS_SUCCESS);
    const Quantized again = quantize(x, rows, k, g);
    CHECK(again.q == q);
    CHECK(again.sf == sf);
  }
}

TEST_CASE("dequantisation ignores the sign of a factor and passes NaN on", "[host][quantize]") {
  std::vector<uint8_t> q(8, 0x2A), sf(512);  // 2A: low nibble -1, high nibble +1
  std::vector<float> x(16);
  for (const int code : {0x38, 0x38 | 0x80}) {
    sf[0] = static_cast<uint8_t>(code);
    REQUIRE(dualgemm_dequantize_host(q.data(), 0, sf.data(), 1, 16, 2, x.data(), 0) ==
            DUALGEMM_STATUS_SUCCESS);
    CHECK(x[0] == -0.5f);
    CHECK(x[1] == 0.5f);
  }
  sf[0] = 0x7F;
  REQUIRE(dualgemm_dequantize_host(q.data(), 0, sf.data(), 1, 16, 2, x.data(), 0) == DUALGEMM_STATUS_SUCCESS);
  for (const float value : x) CHECK(std::isnan(value));
}

TEST_CASE("a matrix without elements needs no memory, however many rows it has", "[host][quantize]") {
  constexpr int32_t kRows = std::numeric_limits<int32_t>::max();
  CHECK(dualgemm_quantize_host(nullptr, kRows, 0, 0, 1, nullptr, 32, nullptr) == DUALGEMM_STATUS_SUCCESS);
  CHECK(dualgemm_dequantize_host(nullptr, 32, nullptr, kRows, 0, 1, nullptr, 0) == DUALGEMM_STATUS_SUCCESS);
  float g = 0;
  CHECK(dualgemm_global_scale_host(nullptr, kRows, 0, 0, &g) == DUALGEMM_STATUS_SUCCESS);
  CHECK(g == 1);
}

TEST_CASE("a negative scale, which only device memory can hold, makes NaN of its blocks",
          "[host][quantize]") {
  alignas(16) float x[16];
  alignas(16) uint8_t q[8], sf[512];
  std::fill_n(x, 16, 1000.0f);
  const float negative = -1;
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = 1, args.k = 16, args.ldq = 32, args.x_dtype = DUALGEMM_DTYPE_FP32;
  args.x = x, args.q = q, args.sf = sf, args.global_scale_dev = &negative;
  REQUIRE(dualgemm_quantize_host_ex(&args) == DUALGEMM_STATUS_SUCCESS);
  CHECK(sf[0] == 0x7F);
}

TEST_CASE("global scale", "[host][quantize]") {
  const auto scale_of = [](std::vector<float> x) {
    x.resize(16);
    float g = -1;
    REQUIRE(dualgemm_global_scale_host(x.data(), 1, 16, 0, &g) == DUALGEMM_STATUS_SUCCESS);
    return g;
  };
  CHECK(scale_of({0, 0}) == 1);
  CHECK(scale_of({1, -6}) == 448);
  CHECK(scale_of({2688}) == 1);
  CHECK(scale_of({1e-44f}) == kFloatMax / 512);
  CHECK(scale_of({1e-32f}) == 2688 / 1e-32f);
}

TEST_CASE("numbers for which the global scale is cut off lose range alone", "[host][quantize]") {
  std::vector<float> x(16, 0.0f);
  for (size_t i = 0; i < 8; ++i) x[i] = std::ldexp(i % 2 ? -1.0f : 1.0f, -126 - static_cast<int>(i));
  float g = 0;
  REQUIRE(dualgemm_global_scale_host(x.data(), 1, 16, 0, &g) == DUALGEMM_STATUS_SUCCESS);
  REQUIRE(2688 / 0x1p-126 > kFloatMax);
  const Quantized out = quantize(x, 1, 16, g);
  const double factor = ue4m3(out.sf[0]);
  REQUIRE(factor == 0x1p-9);
  std::vector<float> back(16);
  REQUIRE(dualgemm_dequantize_host(out.q.data(), 0, out.sf.data(), 1, 16, g, back.data(), 0) ==
          DUALGEMM_STATUS_SUCCESS);
  // The largest is 4 of the smallest factor: values up to there move by up to half a unit.
  for (size_t i = 0; i < 16; ++i)
    CHECK(std::fabs(static_cast<double>(back[i]) - x[i]) <= factor / g / 2 * (1 + 0x1p-19) + 0x1p-149);
  for (size_t i = 8; i < 16; ++i) CHECK(nibble(out.q, i) == 0);
}

TEST_CASE("what cannot be quantised is refused and nothing is written", "[host][quantize]") {
  std::vector<float> x(64, 1.0f);
  std::vector<uint8_t> q(32, kGuard), sf(512, kGuard);
  const auto call = [&](int32_t rows, int32_t k, int64_t ldx, float g, int64_t ldq) {
    return dualgemm_quantize_host(x.data(), rows, k, ldx, g, q.data(), ldq, sf.data());
  };
  const auto text = [] { return std::string(dualgemm_last_error()); };
  CHECK(call(-1, 16, 0, 1, 0) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(call(1, -16, 0, 1, 0) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(call(1, 24, 0, 1, 0) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(text() == "k=24: must be a multiple of 16");
  CHECK(call(1, 32, 16, 1, 0) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(call(1, 32, 0, 1, 30) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(call(1, 32, 0, 1, 33) == DUALGEMM_STATUS_INVALID_STRIDE);
  for (const float g :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    CHECK(call(1, 32, 0, g, 0) == DUALGEMM_STATUS_INVALID_VALUE);
  x[33] = std::numeric_limits<float>::quiet_NaN();
  CHECK(call(2, 32, 0, 1, 0) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(text() == "x[1][1]=nan: must be finite");
  x[33] = std::numeric_limits<float>::infinity();
  CHECK(call(2, 32, 0, 1, 0) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(dualgemm_quantize_host(nullptr, 1, 16, 0, 1, q.data(), 0, sf.data()) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(dualgemm_quantize_host(x.data(), 1, 16, 0, 1, nullptr, 0, sf.data()) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(dualgemm_quantize_host(x.data(), 1, 16, 0, 1, q.data(), 0, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  for (const uint8_t byte : q) CHECK(byte == kGuard);
  for (const uint8_t byte : sf) CHECK(byte == kGuard);
  CHECK(call(1, 32, 0, 1, 0) == DUALGEMM_STATUS_SUCCESS);
  CHECK(text().empty());
}

}  // namespace quantize_test
