// ref_test.cpp -- the reference against things it was not derived from: worked examples of the formats, the
// rounding tables, and a triple loop that knows nothing of tiles, threads or vector registers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "ref/dual_gemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/problem.h"
#include "support/rng.h"

namespace ref_test {

using namespace dualgemm_test;

TEST_CASE("e2m1 has the sixteen values of the format", "[ref]") {
  const float magnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    const float value = ref::e2m1_decode(static_cast<uint8_t>(code));
    CHECK(std::fabs(value) == magnitudes[code & 7]);
    CHECK(std::signbit(value) == (code >= 8));
    CHECK(ref::e2m1_encode(value) == code);
  }
}

TEST_CASE("e2m1 rounds ties to the even mantissa and saturates", "[ref]") {
  const std::map<double, float> table = {{0.25, 0}, {0.75, 1},    {1.25, 1}, {1.75, 2}, {2.5, 2}, {3.5, 4},
                                         {5, 4},    {0.26, 0.5f}, {4.99, 4}, {5.01, 6}, {6.5, 6}, {1e9, 6}};
  for (const auto& [x, rounded] : table) {
    INFO(x);
    CHECK(ref::e2m1_decode(ref::e2m1_encode(x)) == rounded);
    CHECK(ref::e2m1_decode(ref::e2m1_encode(-x)) == -rounded);
  }
  CHECK(ref::e2m1_encode(std::numeric_limits<double>::quiet_NaN()) == 0x7);
}

TEST_CASE("ue4m3 has the values of the format", "[ref]") {
  CHECK(ref::ue4m3_decode(0x00) == 0);
  CHECK(ref::ue4m3_decode(0x01) == 0x1p-9f);
  CHECK(ref::ue4m3_decode(0x07) == 7 * 0x1p-9f);
  CHECK(ref::ue4m3_decode(0x08) == 0x1p-6f);
  CHECK(ref::ue4m3_decode(0x38) == 1);
  CHECK(ref::ue4m3_decode(0x3C) == 1.5f);
  CHECK(ref::ue4m3_decode(0x7E) == 448);
  CHECK(std::isnan(ref::ue4m3_decode(0x7F)));
  for (int code = 0; code < 0x7F; ++code) {
    const float value = ref::ue4m3_decode(static_cast<uint8_t>(code));
    CHECK(ref::ue4m3_decode(static_cast<uint8_t>(code | 0x80)) == value);  // the sign bit does not count
    CHECK(ref::ue4m3_encode(value) == code);
    if (code > 0) CHECK(value > ref::ue4m3_decode(static_cast<uint8_t>(code - 1)));
  }
  CHECK(ref::ue4m3_encode(1 + 1.0 / 16) == 0x38);  // tie between 1 and 1.125
  CHECK(ref::ue4m3_encode(1 + 3.0 / 16) == 0x3A);  // tie between 1.125 and 1.25
  CHECK(ref::ue4m3_encode(1000) == 0x7E);
  CHECK(ref::ue4m3_encode(std::numeric_limits<double>::quiet_NaN()) == 0x7F);
}

TEST_CASE("e4m3 is ue4m3 with a sign", "[ref]") {
  for (int code = 0; code < 0x7F; ++code) {
    const double value = ref::ue4m3_decode(static_cast<uint8_t>(code));
    CHECK(ref::e4m3_decode(static_cast<uint8_t>(code)) == value);
    CHECK(ref::e4m3_decode(static_cast<uint8_t>(code | 0x80)) == -value);
    CHECK(ref::e4m3_encode(value) == code);
    CHECK(ref::e4m3_encode(-value) == (code | 0x80));
  }
  CHECK(ref::e4m3_encode(-1 - 3.0 / 16) == 0xBA);
  CHECK(ref::e4m3_encode(-1e6) == 0xFE);
  CHECK(ref::e4m3_encode(std::numeric_limits<double>::quiet_NaN()) == 0x7F);
  CHECK(std::isnan(ref::e4m3_decode(0xFF)));
}

TEST_CASE("floats decode by their definition", "[ref]") {
  for (const float x : {0.0f, -1.5f, 3.4e38f, 1e-45f}) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    CHECK(ref::fp32_decode(bits) == x);
  }
  CHECK(ref::fp16_decode(0x3C00) == 1);
  CHECK(ref::fp16_decode(0xC000) == -2);
  CHECK(ref::fp16_decode(0x7BFF) == 65504);
  CHECK(ref::fp16_decode(0x0001) == 0x1p-24);
  CHECK(std::isinf(ref::fp16_decode(0x7C00)));
  CHECK(std::isnan(ref::fp16_decode(0x7E00)));
  CHECK(ref::bf16_decode(0x3F80) == 1);
  CHECK(ref::bf16_decode(0xC040) == -3);
  CHECK(ref::bf16_decode(0x0001) == 0x1p-133);
  CHECK(std::isnan(ref::bf16_decode(0xFFFF)));
}

TEST_CASE("scale factors lie where the worked examples of the layout say", "[ref]") {
  CHECK(ref::sf_offset(464, 133, 5) == 4689);
  CHECK(ref::sf_offset(1024, 200, 7) == 8843);
  CHECK(ref::sf_offset(64, 77, 2) == 218);
  CHECK(ref::sf_bytes(1, 16) == 512);
  CHECK(ref::sf_bytes(129, 80) == 2 * 2 * 512);
  CHECK(ref::sf_bytes(0, 80) == 0);
}

TEST_CASE("every scale factor has a place of its own and together they fill the buffer", "[ref]") {
  const int64_t rows = 256, k = 320;
  std::vector<int> hits(ref::sf_bytes(rows, k));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < k / 16; ++block) ++hits.at(ref::sf_offset(k, row, block));
  }
  CHECK(hits == std::vector<int>(hits.size(), 1));
}

TEST_CASE("the generators produce what their comments say", "[ref]") {
  const Problem p = make_problem(Data::kContest, 130, 72, 80, 1, 32);
  CHECK(p.lda == 128);
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t i = 0; i < p.k; ++i) {
      REQUIRE(std::fabs(ref::e2m1_decode(ref::nibble(&p.a[row * p.lda / 2], i))) <= 1.5f);
    }
    for (int64_t block = 0; block < 5; ++block) {
      REQUIRE(ref::ue4m3_decode(p.sfa[ref::sf_offset(p.k, row, block)]) <= 1);
    }
    for (int64_t block = 5; block < 8; ++block) REQUIRE(p.sfa[ref::sf_offset(p.k, row, block)] == 0);
  }
  for (int64_t row = p.m; row < 256; ++row) REQUIRE(p.sfa[ref::sf_offset(p.k, row, 0)] == 0x7F);

  // In full-range data gate and up are a few units, so that neither side of the activation is hidden.
  const Problem full = make_problem(Data::kFullRange, 64, 64, 1024, 2);
  const ref::DualGemm expected = full.reference();
  double squares = 0;
  for (double c : expected.c) squares += c * c;
  const double rms = std::sqrt(squares / expected.c.size());
  CHECK(rms > 5);
  CHECK(rms < 100);
}

TEST_CASE("the reference equals a triple loop over the definition", "[ref]") {
  for (const auto& [m, n, k] :
       std::vector<std::array<int32_t, 3>>{{1, 8, 16}, {5, 24, 80}, {131, 136, 272}, {9, 40, 1024}}) {
    const Problem p = make_problem(Data::kFullRange, m, n, k, 10 + k, 64);
    const ref::DualGemm fast = p.reference();
    const auto element = [&](const std::vector<uint8_t>& codes, int64_t ld, const std::vector<uint8_t>& sf,
                             int64_t row, int64_t i) {
      return static_cast<double>(ref::e2m1_decode(ref::nibble(&codes[row * ld / 2], i))) *
             ref::ue4m3_decode(sf[ref::sf_offset(k, row, i / 16)]);
    };
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        double gate = 0, up = 0, gate_terms = 0, up_terms = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double a = element(p.a, p.lda, p.sfa, row, i);
          const double b1 = element(p.b1, p.ldb1, p.sfb1, column, i),
                       b2 = element(p.b2, p.ldb2, p.sfb2, column, i);
          gate += a * b1;
          up += a * b2;
          gate_terms += std::fabs(a * b1);
          up_terms += std::fabs(a * b2);
        }
        const double g = p.alpha1 * gate, h = p.alpha2 * up;
        const double expected = g / (1 + std::exp(-g)) * h;
        const int64_t index = row * n + column;
        // Both sum in double, in different orders, and each makes k roundings of 2^-53 of at most the sum of
        // magnitudes.
        const double lost = k * 0x1p-52;
        const double bound =
            lost * (1.1 * p.alpha1 * gate_terms * std::fabs(h) + std::fabs(g) * p.alpha2 * up_terms) +
            8 * 0x1p-52 * std::fabs(expected);
        REQUIRE(std::fabs(fast.c[index] - expected) <= bound);
        REQUIRE(std::fabs(fast.tensor_core[index] - expected) <=
                fast.error[0][index] + std::fabs(expected) * 0x1p-23);
      }
    }
  }
}

TEST_CASE("factors of rows and biases stand where the formula has them", "[ref]") {
  Problem p = make_problem(Data::kIntegers, 3, 16, 64, 20);
  const ref::DualGemm plain = p.reference(DUALGEMM_ACTIVATION_REGLU);
  const ref::Matrix sums[2] = {p.reference_d(0), p.reference_d(1)};
  p.row_scale = {1, 0.5f, 2};
  p.bias1 = std::vector<float>(16, 0.25f);
  p.bias2 = std::vector<float>(16, -3);
  p.c_row_scale = {1, -4, 0.125f};
  const ref::DualGemm all = p.reference(DUALGEMM_ACTIVATION_REGLU);
  const ref::Matrix d[2] = {p.reference_d(0), p.reference_d(1)};
  for (int i = 0; i < 3 * 16; ++i) {
    const size_t row = i / 16;
    CHECK(plain.c[i] == std::max(sums[0].c[i], 0.0) * sums[1].c[i]);
    CHECK(d[0].c[i] == sums[0].c[i] * p.row_scale[row] + 0.25);
    CHECK(d[1].c[i] == sums[1].c[i] * p.row_scale[row] - 3);
    CHECK(all.c[i] == std::max(d[0].c[i], 0.0) * d[1].c[i] * p.c_row_scale[row]);
    CHECK(all.tensor_core[i] == all.c[i]);  // integers: nothing is cut
    CHECK(all.error[0][i] >= std::fabs(all.c[i]) * 0x1p-24);
    CHECK(d[0].error[0][i] >= std::fabs(d[0].c[i]) * 0x1p-23);
    CHECK(d[0].error[0][i] < 1e-3 * (1 + std::fabs(d[0].c[i])));
  }
}

TEST_CASE("sums are cut toward zero to 24 bits after every 64 elements", "[ref]") {
  // Step one leaves 2^24 in the accumulator, step two adds 1.5: 2^24 + 1.5 cut to 24 bits is 2^24.
  // 64 products of 4 * 4 with scale factors 128 * 128 are 2^24; one product of 1.5 * 1 with 1 * 1 is 1.5.
  std::vector<uint8_t> a(64), b(64), sfa(ref::sf_bytes(1, 128)), sfb(ref::sf_bytes(1, 128));
  for (int i = 0; i < 32; ++i) a[i] = b[i] = 0x66;
  a[32] = 0x03;
  b[32] = 0x02;
  for (int block = 0; block < 4; ++block)
    sfa[ref::sf_offset(128, 0, block)] = sfb[ref::sf_offset(128, 0, block)] = 0x70;
  sfa[ref::sf_offset(128, 0, 4)] = sfb[ref::sf_offset(128, 0, 4)] = 0x38;
  const ref::Operand left{a.data(), 64, sfa.data(), 1}, right{b.data(), 64, sfb.data(), 1};
  const ref::DualGemm result =
      ref::dual_gemm(left, right, right, 128, 0x1p-12f, 0x1p-12f, ref::activation(0));
  const double exact = (0x1p24 + 1.5) * 0x1p-12;  // a gate of 4096, where silu is the identity
  CHECK(result.c[0] == exact * exact);
  CHECK(result.tensor_core[0] == 0x1p24f);
  CHECK(result.error[0][0] >= std::fabs(result.c[0] - result.tensor_core[0]));
  CHECK(result.error[0][0] < 64 * std::fabs(result.c[0] - result.tensor_core[0]));
}

// Sums one row of A and one of B as a kernel with this many slices of K does: chains of steps of 64 elements,
// each cut toward zero to float, and their sums added in float.
static double sum_in_slices(const Problem& p, int32_t row, int32_t column, int slices) {
  const auto terms = [&](int64_t i) {
    return double{ref::e2m1_decode(ref::nibble(&p.a[row * p.lda / 2], i))} *
           ref::ue4m3_decode(p.sfa[ref::sf_offset(p.k, row, i / 16)]) *
           double{ref::e2m1_decode(ref::nibble(&p.b1[column * p.ldb1 / 2], i))} *
           ref::ue4m3_decode(p.sfb1[ref::sf_offset(p.k, column, i / 16)]);
  };
  const int64_t k_tiles = (p.k + 255) / 256;
  float total = 0;
  for (int s = 0; s < slices; ++s) {
    float chain = 0;
    const int64_t end = std::min<int64_t>(k_tiles * (s + 1) / slices * 256, p.k);
    for (int64_t step = k_tiles * s / slices * 256; step < end; step += 64) {
      double exact = chain;
      for (int64_t i = step; i < std::min(step + 64, end); ++i) exact += terms(i);
      chain = static_cast<float>(exact);
      if (std::fabs(double{chain}) > std::fabs(exact)) chain = std::nextafter(chain, 0.0f);
    }
    total += chain;
  }
  return total;
}

static ref::Product product_of(const Problem& p) {
  return ref::product({p.a.data(), p.lda / 2, p.sfa.data(), p.m},
                      {p.b1.data(), p.ldb1 / 2, p.sfb1.data(), p.n}, p.k);
}

TEST_CASE("the bound of a sum holds however K is split, and says something", "[ref]") {
  for (const int32_t k : {16, 256, 528, 1040, 2048, 7 * 256 + 48}) {
    const Problem p = make_problem(Data::kFullRange, 9, 40, k, 30 + k);
    const ref::Product product = product_of(p);
    for (const int slices : ref::kSplits) {
      if (slices == ref::kAnyParts) continue;  // it has no bound here
      INFO("k " << k << ", slices " << slices);
      double worst = 0;
      for (int32_t row = 0; row < p.m; ++row)
        for (int32_t column = 0; column < p.n; ++column) {
          const ref::Sum& sum = product.sums[row * p.n + column];
          const double error = std::fabs(sum_in_slices(p, row, column, slices) - sum.exact);
          worst = std::max(worst, error / sum.lost[ref::split_index(slices)]);
          if (slices == 1) REQUIRE(sum_in_slices(p, row, column, 1) == sum.tensor_core);
        }
      CHECK(worst <= 1);
      if (k > 256) CHECK(worst > 0.1);
    }
  }
}

TEST_CASE("the path of one chain does not bound that of two slices", "[ref]") {
  // The first element is 6, its negative is in the middle: one chain is 0 from there on, the second slice
  // never.
  Problem p = make_problem(Data::kIntegers, 1, 1, 4096, 40);
  std::fill(p.a.begin(), p.a.end(), 0x00);
  std::fill(p.b1.begin(), p.b1.end(), 0x22);
  p.a[0] = 0x06;
  p.a[2048 / 2] = 0x0E;
  const ref::Sum sum = product_of(p).sums[0];
  CHECK(sum.exact == 0);
  CHECK(sum.lost[ref::split_index(2)] > 1.9 * sum.lost[ref::split_index(1)]);
  CHECK_THROWS(ref::split_index(5));
}

}  // namespace ref_test
