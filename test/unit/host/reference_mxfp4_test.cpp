// reference_mxfp4_test.cpp -- the library's reference with MXFP4 weights and an A in FP8 against plain loops
// over the formats: every element with every byte of a factor, exponents of rows, one product and two.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace reference_mxfp4_test {

using dualgemm_test::Rng;

// Returns the nearest number of E4M3, of two that are as near the one with an even mantissa. The list of all
// numbers takes the place of any arithmetic of rounding.
static double nearest_e4m3(double exact) {
  int nearest = 0;
  double distance = HUGE_VAL;
  for (int bits = 0; bits < 0x7F; ++bits) {
    const double away = std::fabs(std::fabs(exact) - ref::e4m3_decode(static_cast<uint8_t>(bits)));
    if (away < distance || (away == distance && bits % 2 == 0)) nearest = bits, distance = away;
  }
  return std::copysign(ref::e4m3_decode(static_cast<uint8_t>(nearest)), exact);
}

// What a launch multiplies by.
static double weight(uint8_t code, int byte) {
  static const std::vector<double> weights = [] {
    std::vector<double> all;
    for (int byte = 0; byte <= 133; ++byte)
      for (uint8_t code = 0; code < 16; ++code)
        all.push_back(nearest_e4m3(std::ldexp(double{ref::e2m1_decode(code)}, byte - 127)));
    return all;
  }();
  if (byte > 133) return std::numeric_limits<double>::quiet_NaN();
  return weights[static_cast<size_t>(byte * 16 + code)];
}

// Returns where byte `block` of a row lies, by the formula of the manual.
static size_t place(int32_t k, int32_t row, int32_t block) {
  const int32_t of_row = (k + 127) / 128 * 4;
  return static_cast<size_t>(row / 128 * 128 * of_row + block / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 +
                             block % 4);
}

// A matrix of weights; bytes that no block has are 133, so that a wrong place shows.
struct Weights {
  int32_t n, k;
  std::vector<uint8_t> codes, factors;
  std::vector<int16_t> exponents;

  Weights(int32_t n, int32_t k, uint64_t seed)
      : n(n),
        k(k),
        codes(static_cast<size_t>(n) * k / 2),
        factors(static_cast<size_t>((n + 127) / 128 * 128) * ((k + 127) / 128 * 4), 133),
        exponents(static_cast<size_t>(n)) {
    Rng random(seed);
    for (uint8_t& two : codes) two = static_cast<uint8_t>(random.below(256));
    for (int32_t row = 0; row < n; ++row) {
      exponents[static_cast<size_t>(row)] = static_cast<int16_t>(random.between(-9, 9));
      for (int32_t block = 0; block < k / 32; ++block)
        byte(row, block) = static_cast<uint8_t>(random.between(116, 133));
    }
  }
  uint8_t& byte(int32_t row, int32_t block) { return factors[place(k, row, block)]; }
  double value(int32_t row, int32_t i) const {
    const uint8_t code = ref::nibble(codes.data() + static_cast<int64_t>(row) * k / 2, i);
    return weight(code, factors[place(k, row, i / 32)]);
  }
};

struct Rows {
  int32_t m, k;
  std::vector<uint8_t> elements;
  std::vector<float> scales;

  Rows(int32_t m, int32_t k, uint64_t seed)
      : m(m), k(k), elements(static_cast<size_t>(m) * k), scales(static_cast<size_t>(m)) {
    Rng random(seed);
    for (uint8_t& byte : elements) {
      byte = static_cast<uint8_t>(random.below(256));
      if ((byte & 0x7F) == 0x7F) byte ^= 0x40;  // no NaN
    }
    for (float& scale : scales) scale = static_cast<float>(0.25 + random.unit());
  }
  double value(int32_t row, int32_t i) const {
    return ref::e4m3_decode(
        elements[static_cast<size_t>(row) * static_cast<size_t>(k) + static_cast<size_t>(i)]);
  }
};

static double product(const Rows& a, const Weights& b, int32_t row, int32_t column, bool exponents) {
  double sum = 0;
  for (int32_t i = 0; i < a.k; ++i) sum += a.value(row, i) * b.value(column, i);
  return exponents ? std::ldexp(sum, b.exponents[static_cast<size_t>(column)]) : sum;
}

static dualgemm_args_t args_of(const Rows& a, const Weights& b1, const Weights* b2) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = a.m, args.n = b1.n, args.k = a.k;
  args.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  args.b_dtype = DUALGEMM_DTYPE_MXFP4;
  args.a = a.elements.data();
  args.b1 = b1.codes.data(), args.sfb1 = b1.factors.data();
  if (b2) args.b2 = b2->codes.data(), args.sfb2 = b2->factors.data();
  else args.products = 1;
  args.c_dtype = DUALGEMM_DTYPE_FP32;
  return args;
}

// Returns C before its conversion.
static std::vector<double> computed(dualgemm_args_t args) {
  std::vector<float> c(static_cast<size_t>(args.m) * static_cast<size_t>(args.n) *
                       static_cast<size_t>(args.batch > 1 ? args.batch : 1));
  std::vector<double> y(c.size());
  args.c = c.data();
  const dualgemm_status_t status = dualgemm_reference_host(&args, y.data());
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  return y;
}

TEST_CASE("the reference with MXFP4 weights: every element with every byte is the nearest number of E4M3",
          "[host][reference][mxfp4]") {
  // Row n of B has the code n % 16 at one place, zeros elsewhere, and the byte n / 16.
  Rows a(1, 32, 1);
  a.elements.assign(32, 0x38);  // 1
  Weights b(16 * 256, 32, 2);
  std::fill(b.codes.begin(), b.codes.end(), uint8_t{0});
  for (int32_t row = 0; row < b.n; ++row) {
    b.codes[static_cast<size_t>(row * 16 + row % 15)] = static_cast<uint8_t>(row % 16 << (row % 2 * 4));
    b.byte(row, 0) = static_cast<uint8_t>(row / 16);
  }
  const std::vector<double> got = computed(args_of(a, b, nullptr));
  for (int32_t row = 0; row < b.n; ++row) {
    INFO("code " << row % 16 << ", byte " << row / 16);
    const double expected = weight(static_cast<uint8_t>(row % 16), row / 16);
    if (std::isnan(expected)) CHECK(std::isnan(got[static_cast<size_t>(row)]));
    else CHECK(got[static_cast<size_t>(row)] == expected);
    // From 119 to 133 nothing is rounded; below, at most half of 2^-9 is lost.
    if (std::isnan(expected)) continue;
    const double exact = std::ldexp(double{ref::e2m1_decode(static_cast<uint8_t>(row % 16))}, row / 16 - 127);
    CHECK(std::fabs(expected - exact) <= (row / 16 >= 119 ? 0 : 0x1p-10));
  }
}

TEST_CASE(
    "the reference with MXFP4 weights: sums, exponents of rows, scales of rows of A, one product and two",
    "[host][reference][mxfp4]") {
  for (const int32_t k : {32, 160, 256})
    for (const bool exponents : {false, true}) {
      INFO("k " << k << ", exponents " << exponents);
      const Rows a(5, k, 3);
      Weights b1(136, k, 4), b2(136, k, 5);
      for (Weights* b : {&b1, &b2}) {
        std::fill_n(b->codes.begin() + 7 * k / 2, k / 2, uint8_t{0x80});  // a row of zeros
        for (int32_t block = 0; block < k / 32; ++block) b->byte(7, block) = 133;
        b->byte(9, 0) = 0, b->byte(10, 0) = 118, b->byte(11, 0) = 119, b->byte(12, 0) = 133;
      }
      dualgemm_args_t one = args_of(a, b1, nullptr), two = args_of(a, b1, &b2);
      for (dualgemm_args_t* args : {&one, &two}) {
        args->a_row_scale = a.scales.data();
        if (exponents) args->b1_row_exponent = b1.exponents.data();
      }
      if (exponents) two.b2_row_exponent = b2.exponents.data();
      two.activation = DUALGEMM_ACTIVATION_REGLU;
      two.alpha2 = 0.5f;
      const std::vector<double> of_one = computed(one), of_two = computed(two);
      for (int32_t row = 0; row < a.m; ++row)
        for (int32_t column = 0; column < 136; ++column) {
          const double scale = double{a.scales[static_cast<size_t>(row)]};
          const double g = scale * product(a, b1, row, column, exponents),
                       u = 0.5 * scale * product(a, b2, row, column, exponents);
          const auto at = static_cast<size_t>(row * 136 + column);
          // Sums are multiples of 2^-18 below 2^27, which double holds; what follows is rounded.
          CHECK(of_one[at] == Approx(g).epsilon(1e-14));
          CHECK(of_two[at] == Approx(std::fmax(g, 0.0) * u).epsilon(1e-14));
        }
    }
}

TEST_CASE("the reference with MXFP4 weights: each problem of a batch has its own exponents",
          "[host][reference][mxfp4]") {
  const Rows a(2, 64, 6);
  const Weights b(48, 64, 7);
  std::vector<int16_t> exponents(3 * 50, 1000);
  for (size_t problem = 0; problem < 3; ++problem)
    for (size_t n = 0; n < 48; ++n) exponents[problem * 50 + n] = static_cast<int16_t>(problem * 3 + n % 2);
  dualgemm_args_t args = args_of(a, b, nullptr);
  std::vector<uint8_t> elements, codes, factors;
  for (int problem = 0; problem < 3; ++problem) {
    elements.insert(elements.end(), a.elements.begin(), a.elements.end());
    codes.insert(codes.end(), b.codes.begin(), b.codes.end());
    factors.insert(factors.end(), b.factors.begin(), b.factors.end());
  }
  args.a = elements.data(), args.b1 = codes.data(), args.sfb1 = factors.data();
  args.batch = 3;
  args.b1_row_exponent = exponents.data();
  args.batch_stride_b_row_exponent = 50;
  const std::vector<double> got = computed(args);
  for (int32_t problem = 0; problem < 3; ++problem)
    for (int32_t row = 0; row < 2; ++row)
      for (int32_t n = 0; n < 48; ++n)
        CHECK(got[static_cast<size_t>((problem * 2 + row) * 48 + n)] ==
              Approx(std::ldexp(product(a, b, row, n, false), problem * 3 + n % 2)).epsilon(1e-12));
}

TEST_CASE("the reference with MXFP4 weights: NaN of a byte fills its column, NaN of A its row, and no other",
          "[host][reference][mxfp4]") {
  for (const int byte : {134, 254, 255}) {
    Rows a(3, 96, 8);
    Weights b(24, 96, 9);
    a.elements[96 + 40] = 0xFF;
    b.byte(5, 2) = static_cast<uint8_t>(byte);
    std::fill_n(b.codes.begin() + 5 * 48 + 32, 16, uint8_t{0});  // zeros times NaN are NaN
    const std::vector<double> got = computed(args_of(a, b, nullptr));
    for (int32_t row = 0; row < 3; ++row)
      for (int32_t n = 0; n < 24; ++n)
        CHECK(std::isnan(got[static_cast<size_t>(row * 24 + n)]) == (row == 1 || n == 5));
  }
}

TEST_CASE(
    "the reference with MXFP4 weights: an exponent of a row acts before all other factors, in the range of "
    "fp32",
    "[host][reference][mxfp4]") {
  Rows a(1, 32, 1);
  a.elements.assign(32, 0x38);
  Weights b(8, 32, 1);
  std::fill(b.codes.begin(), b.codes.end(), uint8_t{0x22});
  for (int32_t n = 0; n < 8; ++n) b.byte(n, 0) = 127;  // each product is 32
  const std::array<int16_t, 8> exponents = {0, -5, 122, 123, -154, -155, 32767, -32768};
  const double expected[] = {32, 1, 0x1p127, HUGE_VAL, 0x1p-149, 0, HUGE_VAL, 0};
  dualgemm_args_t args = args_of(a, b, nullptr);
  args.b1_row_exponent = exponents.data();
  for (const float alpha : {1.0f, 0x1p-20f}) {
    args.alpha1 = alpha;
    const std::vector<double> got = computed(args);
    for (size_t n = 0; n < 8; ++n) {
      const double scaled = expected[n] * double{alpha};
      CHECK(got[n] == (scaled < 0x1p-150 ? 0 : scaled));
    }
  }
}

}  // namespace reference_mxfp4_test
