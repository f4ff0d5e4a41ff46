// ref_wgmma_test.cpp -- the bound of the reference for sums that wgmma computes, against sums that are
// rounded as the worst such unit may round them, in any order of the elements that the bound allows.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ref/dual_gemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/problem.h"
#include "support/rng.h"

namespace ref_wgmma_test {

using namespace dualgemm_test;

static double cut(double x, int exponent) {
  return std::trunc(std::ldexp(x, -exponent)) * std::ldexp(1.0, exponent);
}

// Returns c plus the sum of these products as one wgmma computes it: what is below 2^-25 of the largest
// power of two is lost, and then what a float has no room for.
static float wgmma(float c, const std::vector<double>& products) {
  int largest = c != 0 ? std::ilogb(c) : -1000;
  for (const double p : products)
    if (p != 0) largest = std::max(largest, std::ilogb(p));
  if (largest == -1000) return c;
  double sum = cut(c, largest - 25);
  for (const double p : products) sum += cut(p, largest - 25);
  return static_cast<float>(sum == 0 ? 0 : cut(sum, std::ilogb(sum) - 23));
}

// Returns the k-tiles at which parts of a sum begin, and their end. Where any parts are allowed, `rng`
// makes them up.
static std::vector<int64_t> parts_of(int64_t k_tiles, int slices, Rng& rng) {
  std::vector<int64_t> begins;
  for (int64_t s = 0; s < slices; ++s) begins.push_back(k_tiles * s / slices);
  if (slices == ref::kAnyParts)
    for (int64_t tile = 0; tile < k_tiles; ++tile)
      if (tile == 0 || rng.between(0, 1) == 0) begins.push_back(tile);
  begins.push_back(k_tiles);
  return begins;
}

// Sums one row of A and one of B. Within each half of a k-tile the elements come in an order that `rng` makes
// up.
static double sum_of(const Problem& p, int32_t row, int32_t column, int slices, int groups, Rng& rng) {
  const auto product = [&](int64_t k) {
    if (k >= p.k) return 0.0;
    return double{ref::e2m1_decode(ref::nibble(&p.a[row * p.lda / 2], k))} *
           ref::ue4m3_decode(p.sfa[ref::sf_offset(p.k, row, k / 16)]) *
           double{ref::e2m1_decode(ref::nibble(&p.b1[column * p.ldb1 / 2], k))} *
           ref::ue4m3_decode(p.sfb1[ref::sf_offset(p.k, column, k / 16)]);
  };
  const std::vector<int64_t> begins = parts_of((p.k + 255) / 256, slices, rng);
  float total = 0;
  for (size_t part = 0; part + 1 < begins.size(); ++part) {
    float chains[2] = {0, 0};
    for (int64_t tile = begins[part]; tile < begins[part + 1]; ++tile)
      for (int half = 0; half < 2; ++half) {
        std::vector<int64_t> order;
        for (int64_t k = 256 * tile; k < 256 * (tile + 1); ++k)
          if ((k >> 5 & 1) == half) order.push_back(k);
        for (size_t i = order.size(); i-- > 1;)
          std::swap(order[i], order[static_cast<size_t>(rng.between(0, static_cast<int32_t>(i)))]);
        float& chain = chains[groups == 2 ? half : 0];
        for (size_t step = 0; step < order.size(); step += 16) {
          std::vector<double> products;
          for (size_t i = step; i < step + 16; ++i) products.push_back(product(order[i]));
          chain = wgmma(chain, products);
        }
      }
    total += chains[0] + chains[1];
  }
  return total;
}

static ref::Product product_of(const Problem& p) {
  return ref::product({p.a.data(), p.lda / 2, p.sfa.data(), p.m},
                      {p.b1.data(), p.ldb1 / 2, p.sfb1.data(), p.n}, p.k, ref::TensorCore::kWgmma);
}

TEST_CASE("the bound for wgmma holds in any order, and says something", "[ref]") {
  Rng rng(5);
  for (const int32_t k : {16, 256, 528, 1040, 7 * 256 + 48}) {
    const Problem p = make_problem(Data::kFullRange, 5, 24, k, 60 + k);
    const ref::Product product = product_of(p);
    for (const int slices : ref::kSplits)
      for (const int groups : {1, 2}) {
        if (slices == ref::kAnyParts && groups == 2) continue;  // no instance does both
        INFO("k " << k << ", slices " << slices << ", chains " << groups);
        double worst = 0;
        for (int32_t row = 0; row < p.m; ++row)
          for (int32_t column = 0; column < p.n; ++column) {
            const ref::Sum& sum = product.sums[row * p.n + column];
            const double lost = sum.lost[ref::split_index(slices)];
            worst =
                std::max(worst, std::fabs(sum_of(p, row, column, slices, groups, rng) - sum.exact) / lost);
          }
        CHECK(worst <= 1);
        if (k > 256) CHECK(worst > 0.002);
      }
  }
}

TEST_CASE("the bound for wgmma finds an element that is missing or has another factor", "[ref]") {
  for (const int32_t k : {256, 2048, 7168}) {
    Problem p = make_problem(Data::kContest, 4, 16, k, 70);
    const ref::Product before = product_of(p);
    const std::vector<uint8_t> codes = p.a;
    int found = 0, changed = 0;
    for (int32_t i = 0; i < k; i += 16) {
      p.a = codes;
      p.a[static_cast<size_t>(i / 2)] = 0;  // two elements of row 0
      const ref::Product after = product_of(p);
      for (int32_t column = 0; column < p.n; ++column) {
        const double difference = std::fabs(after.sums[column].exact - before.sums[column].exact);
        changed += difference != 0;
        found += difference > 2 * before.sums[column].lost[0];
      }
    }
    INFO("k " << k << ": " << found << " of " << changed);
    CHECK(found > 0.8 * changed);
  }
}

}  // namespace ref_wgmma_test
