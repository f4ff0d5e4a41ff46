// product.h -- operands for the multiply wrappers and the product they must give. Data and scales are chosen
// so that every product and every partial sum is a multiple of 1/16, at most 64 * (6 * 6) * (2 * 2) * 3 <
// 2^15. That is 19 bits, so fp32 holds all of them exactly, in any order and with any rounding.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "test/ptx/launch.h"

namespace wrappers {

// Holds A of `m` rows times two B of 32 rows each, side by side; K = 64. Rows have 256 elements, of which the
// instruction reads the first 64; the rest must not matter.
class Product {
 public:
  static constexpr int kN = 64, kK = 64;
  static constexpr uint32_t kRowWords = 32;

  explicit Product(int m) : m_(m) {
    auto words = distinct_words((m + kN) * kRowWords);
    a_.assign(words.begin(), words.begin() + m * kRowWords);
    b_.assign(words.begin() + m * kRowWords, words.end());
    // A row has one scale for each 16 elements: the 4 bytes of a word. Row r of an atom is word r / 32 of
    // line r % 32. Atoms: one for every 128 rows of A, then one for each B.
    atoms_.resize(128 * (m / 128 + 2));
    const auto put = [&](int atom, int row, int k, uint8_t code) {
      atoms_[128 * atom + 4 * (row % 32) + row / 32] |= uint32_t{code} << (8 * (k / 16));
    };
    for (int k = 0; k < kK; k += 16) {
      for (int row = 0; row < m; ++row) put(row / 128, row % 128, k, sfa(row, k).first);
      for (int row = 0; row < kN; ++row) put(m / 128 + row / 32, row % 32, k, sfb(row, k).first);
    }
  }

  const std::vector<uint32_t>& a() const { return a_; }
  const std::vector<uint32_t>& b() const { return b_; }
  const std::vector<uint32_t>& atoms() const { return atoms_; }

  // `bits` of fp32, m x kN, are `times` times the product, which is not zero everywhere.
  void check(const std::vector<uint32_t>& bits, int times) const {
    bool any_nonzero = false;
    for (int row = 0; row < m_; ++row)
      for (int column = 0; column < kN; ++column) {
        double sum = 0;
        for (int k = 0; k < kK; ++k)
          sum += element(a_, row, k) * sfa(row, k).second * element(b_, column, k) * sfb(column, k).second;
        any_nonzero |= sum != 0;
        INFO("row " << row << ", column " << column);
        CHECK(std::bit_cast<float>(bits[kN * row + column]) == times * sum);
      }
    CHECK(any_nonzero);
  }

 private:
  using Scale = std::pair<uint8_t, double>;  // ue4m3, value
  static constexpr Scale kScale[] = {{0x30, 0.5}, {0x38, 1}, {0x3C, 1.5}, {0x40, 2}};
  static Scale sfa(int row, int k) { return kScale[(row + row / 7 + 3 * (k / 16)) % 4]; }
  static Scale sfb(int row, int k) { return kScale[(2 * row + row / 5 + k / 16) % 4]; }
  static double element(const std::vector<uint32_t>& rows, int row, int k) {
    constexpr double kE2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
    return kE2m1[rows[kRowWords * row + k / 8] >> (4 * (k % 8)) & 0xF];
  }

  int m_;
  std::vector<uint32_t> a_, b_, atoms_;
};

}  // namespace wrappers
