// ref_fp8_test.cpp -- the reference for an A in FP8 and weights in MXFP4: the weights against their
// definition, and the bound against sums that are rounded as wgmma of e4m3 rounds them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ref/dual_gemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/problem.h"

namespace ref_fp8_test {

using namespace dualgemm_test;

TEST_CASE("a weight of MXFP4 is its element times its factor, as the nearest number of e4m3",
          "[ref][mxfp4]") {
  CHECK(ref::ue8m0_decode(0) == 0x1p-127);
  CHECK(ref::ue8m0_decode(127) == 1);
  CHECK(ref::ue8m0_decode(254) == 0x1p127);
  CHECK(std::isnan(ref::ue8m0_decode(255)));
  // The numbers of e4m3 near zero are the multiples of 2^-9, of which a tie goes to the even one. Of each
  // byte these are 0.5, 1, 1.5, 2, 3, 4, 6, in units of 2^-9.
  const struct {
    uint8_t byte;
    double units[8];
  } rounded[] = {{118, {0, 0, 1, 2, 2, 3, 4, 6}}, {117, {0, 0, 0, 1, 1, 2, 2, 3}},
                 {116, {0, 0, 0, 0, 0, 1, 1, 2}}, {115, {0, 0, 0, 0, 0, 0, 0, 1}},
                 {114, {0, 0, 0, 0, 0, 0, 0, 0}}, {0, {0, 0, 0, 0, 0, 0, 0, 0}}};
  for (const auto& row : rounded)
    for (uint8_t code = 0; code < 8; ++code) {
      INFO("byte " << int{row.byte} << ", code " << int{code});
      CHECK(ref::mxfp4_weight(code, row.byte) == row.units[code] * 0x1p-9);
      CHECK(ref::mxfp4_weight(code | 8, row.byte) == -row.units[code] * 0x1p-9);
      CHECK(std::signbit(ref::mxfp4_weight(code | 8, row.byte)));
    }
  for (int byte = 0; byte < 256; ++byte)
    for (uint8_t code = 0; code < 16; ++code) {
      INFO("byte " << byte << ", code " << int{code});
      const double weight = ref::mxfp4_weight(code, static_cast<uint8_t>(byte));
      const double exact = double{ref::e2m1_decode(code)} * std::ldexp(1.0, byte - 127);
      if (byte > 133) CHECK(std::isnan(weight));
      else if (byte >= 119) CHECK(weight == exact);
      else CHECK(std::fabs(weight - exact) <= 0x1p-10);
    }
}

TEST_CASE("the factors of MXFP4 lie in atoms of 128 rows and 128 elements", "[ref][mxfp4]") {
  CHECK(ref::mx_sf_bytes(1, 32) == 512);
  CHECK(ref::mx_sf_bytes(129, 128) == 2 * 512);
  CHECK(ref::mx_sf_bytes(128, 2880) == 23 * 512);
  CHECK(ref::mx_sf_offset(160, 0, 0) == 0);
  CHECK(ref::mx_sf_offset(160, 0, 3) == 3);
  CHECK(ref::mx_sf_offset(160, 0, 4) == 512);
  CHECK(ref::mx_sf_offset(160, 33, 1) == 16 + 4 + 1);
  CHECK(ref::mx_sf_offset(160, 128, 0) == 2 * 512);
}

namespace {

double cut(double x, int exponent) { return std::ldexp(std::trunc(std::ldexp(x, -exponent)), exponent); }

int field_of(double x) { return std::max(std::ilogb(x), -6); }

// Returns c plus the products of 32 elements as one wgmma computes it.
double wgmma(double c, const double* a, const double* b) {
  int largest = c != 0 ? std::ilogb(c) : -1000;
  for (int i = 0; i < 32; ++i)
    if (a[i] * b[i] != 0) largest = std::max(largest, field_of(a[i]) + field_of(b[i]));
  if (largest == -1000) return c;
  double sum = cut(c, largest - 13);
  for (int i = 0; i < 32; ++i) sum += cut(a[i] * b[i], largest - 13);
  return sum == 0 ? 0 : cut(sum, std::ilogb(sum) - 13);
}

// Sums one row of A and one of B1, in `slices` parts of K and one chain or two in each.
double sum_of(const Problem& p, int64_t row, int64_t column, int slices, int groups) {
  std::vector<double> a, b;
  for (int64_t i = 0; i < p.k; ++i) {
    a.push_back(ref::e4m3_decode(p.a8[row * p.lda + i]));
    b.push_back(ref::mxfp4_weight(ref::nibble(&p.b1[column * p.ldb1 / 2], i),
                                  p.sfb1[ref::mx_sf_offset(p.k, column, i / 32)]));
  }
  const int64_t k_tiles = (p.k + 255) / 256;
  float total = 0;
  for (int64_t slice = 0; slice < slices; ++slice) {
    double chains[2] = {0, 0};
    const int64_t end = std::min<int64_t>(p.k, k_tiles * (slice + 1) / slices * 256);
    for (int64_t i = k_tiles * slice / slices * 256; i < end; i += 32) {
      double& chain = chains[groups == 2 ? i / 128 % 2 : 0];
      chain = wgmma(chain, &a[i], &b[i]);
    }
    for (const double chain : chains) total += static_cast<float>(chain);
  }
  return p.b1_exponents.empty() ? total : std::ldexp(total, p.b1_exponents[column]);
}

ref::Product product_of(const Problem& p) {
  return ref::product({p.a8.data(), p.lda, nullptr, p.m, ref::Elements::kE4m3},
                      {p.b1.data(), p.ldb1 / 2, p.sfb1.data(), p.n, ref::Elements::kMxfp4,
                       p.b1_exponents.empty() ? nullptr : p.b1_exponents.data()},
                      p.k, ref::TensorCore::kWgmma);
}

}  // namespace

TEST_CASE("the bound for wgmma of FP8 holds, and says something", "[ref][mxfp4]") {
  for (const int32_t k : {32, 256, 544, 2880}) {
    Problem p = with_fp8(make_problem(Data::kFullRange, 5, 24, k, 80 + k, 32), Mx::kFullRange, k);
    give_exponents(p, 0, 20, k);
    const ref::Product product = product_of(p);
    for (const int slices : {1, 2, 3, 4})
      for (const int groups : {1, 2}) {
        INFO("k " << k << ", slices " << slices << ", chains " << groups);
        double worst = 0, least = 1e300, size = 0;
        for (int32_t row = 0; row < p.m; ++row)
          for (int32_t column = 0; column < p.n; ++column) {
            const ref::Sum& sum = product.sums[row * p.n + column];
            const double lost = sum.lost[ref::split_index(slices)];
            const double away = std::fabs(sum_of(p, row, column, slices, groups) - sum.exact);
            if (lost == 0) CHECK(away == 0);
            else worst = std::max(worst, away / lost);
            const double unit = std::ldexp(1.0, p.b1_exponents[column]);
            least = std::min(least, lost / unit);
            size = std::max(size, std::fabs(sum.exact) / unit);
          }
        CHECK(worst <= 1);
        CHECK(least < 0.01 * size);
        if (k > 256) CHECK(worst > 0.02);
      }
  }
}

TEST_CASE("sums of integers in FP8 and MXFP4 are exact, and known to be", "[ref][mxfp4]") {
  for (const int32_t k : {32, 480, 2880}) {
    const Problem p = with_fp8(make_problem(Data::kIntegers, 5, 24, k, 90 + k), Mx::kIntegers, k);
    const ref::Product product = product_of(p);
    for (int32_t row = 0; row < p.m; ++row)
      for (int32_t column = 0; column < p.n; ++column) {
        const ref::Sum& sum = product.sums[row * p.n + column];
        CHECK(sum.exact == std::trunc(sum.exact));
        for (const int slices : {1, 2, 3, 4}) {
          CHECK(sum.lost[ref::split_index(slices)] == 0);
          CHECK(sum_of(p, row, column, slices, 1) == sum.exact);
        }
      }
  }
}

TEST_CASE("the bound for wgmma of FP8 finds an element that is missing", "[ref][mxfp4]") {
  for (const int32_t k : {256, 2880}) {
    Problem p = with_fp8(make_problem(Data::kFullRange, 4, 16, k, 70), Mx::kIntegers, 3);
    const ref::Product before = product_of(p);
    const std::vector<uint8_t> whole = p.a8;
    int found = 0, changed = 0;
    for (int32_t i = 0; i < k; i += 16) {
      p.a8 = whole;
      p.a8[static_cast<size_t>(i)] = 0;
      const ref::Product after = product_of(p);
      for (int32_t column = 0; column < p.n; ++column) {
        const double difference = std::fabs(after.sums[column].exact - before.sums[column].exact);
        changed += difference != 0;
        found += difference > 2 * before.sums[column].lost[0];
      }
    }
    INFO("k " << k << ": " << found << " of " << changed);
    CHECK(changed > 0);
    CHECK(found > 0.8 * changed);
  }
}

TEST_CASE("a NaN in FP8 or MXFP4 is that of its row or column alone", "[ref][mxfp4]") {
  Problem p = with_fp8(make_problem(Data::kFullRange, 5, 24, 288, 1), Mx::kFullRange, 2);
  const ref::Product before = product_of(p);
  p.a8[3 * p.lda + 287] = 0xFF;
  p.sfb1[ref::mx_sf_offset(288, 17, 8)] = 134;
  const ref::Product after = product_of(p);
  for (int32_t row = 0; row < p.m; ++row)
    for (int32_t column = 0; column < p.n; ++column) {
      const ref::Sum &was = before.sums[row * p.n + column], &is = after.sums[row * p.n + column];
      if (row == 3 || column == 17) {
        CHECK(std::isnan(is.exact));
        continue;
      }
      CHECK(is.exact == was.exact);
      for (const int slices : {1, 2, 3, 4})
        CHECK(is.lost[ref::split_index(slices)] == was.lost[ref::split_index(slices)]);
    }
}

}  // namespace ref_fp8_test
