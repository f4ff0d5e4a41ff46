// dot_products.h -- the dot products of the block-scaled kinds, before scales: rows of A times a block of 16
// columns of B, in four groups along K = 64. Elements are e2m1, so twice an element is an integer of a byte
// and every product and sum is exact. Only mma_numerics.cpp includes this.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sim/engine/vectors.h"

namespace sim {

constexpr int kDepth = 64;  // K of one instruction
constexpr int kGroups = 4;  // groups of the model, whatever the number of scales
constexpr int kGroupDepth = kDepth / kGroups;
constexpr int kBlock = 16;  // columns

// Twice the value of an e2m1 code, which is an integer.
constexpr int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Vectors of kLanes, and of half as many.
template <int kLanes>
struct Vec {
  static constexpr int kHalf = kLanes / 2;
  typedef float F __attribute__((vector_size(4 * kLanes)));
  typedef int32_t I __attribute__((vector_size(4 * kLanes)));
  typedef float HalfF __attribute__((vector_size(4 * kHalf)));
  typedef int32_t HalfI __attribute__((vector_size(4 * kHalf)));
  typedef double D __attribute__((vector_size(8 * kHalf)));
  typedef int64_t L __attribute__((vector_size(8 * kHalf)));
};

// In float, which holds the sums exactly. B is stored as [k][16], so that one row times the block is 64
// multiply-adds of a broadcast with a vector.
template <int kWidth>
struct FloatDots {
  static constexpr int kLanes = kWidth;
  // The number of rows that share the loads of B. It makes eight running sums in all, which are enough to
  // hide the latency of a multiply-add and few enough for the registers of each instruction set.
  static constexpr int kRows = 8 * kLanes / kBlock;
  using Products = float[kGroups][kRows][kBlock];

  // Both take codes; rows and columns that do not exist become zeros.
  void set_rows(const uint8_t* codes, int rows, int padded_rows) {
    a_.assign(static_cast<size_t>(padded_rows) * kDepth, 0.0f);
    for (int i = 0; i < rows * kDepth; ++i) a_[static_cast<size_t>(i)] = kTwiceE2m1[codes[i] & 15];
  }
  void set_columns(const uint8_t* codes, int columns) {
    if (columns < kBlock) std::memset(b_, 0, sizeof b_);
    for (int n = 0; n < columns; ++n)
      for (int k = 0; k < kDepth; ++k) b_[k][n] = kTwiceE2m1[codes[n * kDepth + k] & 15];
  }
  // Computes dot[g][r][c] for rows from m0 on.
  SIM_INLINE void multiply(int m0, Products& dot) const {
    using F = typename Vec<kLanes>::F;
    constexpr int kParts = kBlock / kLanes;
    const float* a = &a_[static_cast<size_t>(m0) * kDepth];
    for (int g = 0; g < kGroups; ++g) {
      F sum[kRows][kParts] = {};
      for (int k = g * kGroupDepth; k < (g + 1) * kGroupDepth; ++k) {
        F column[kParts];
        std::memcpy(column, b_[k], sizeof column);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
          for (int p = 0; p < kParts; ++p) sum[r][p] += a[r * kDepth + k] * column[p];
      }
      std::memcpy(dot[g], sum, sizeof sum);
    }
  }

 private:
  std::vector<float> a_;  // integers: twice the element
  alignas(64) float b_[kDepth][kBlock];
};

#if defined(__x86_64__)
#define SIM_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))

// kTwiceE2m1 once for each 16 bytes of a vector, since each 16 bytes are looked up separately.
struct alignas(64) TableOfVector {
  int8_t codes[kDepth];
  constexpr TableOfVector() : codes() {
    for (int i = 0; i < kDepth; ++i) codes[i] = kTwiceE2m1[i % 16];
  }
};
inline constexpr TableOfVector kTableOfVector;

// The dot products in bytes, with four products to an instruction. One factor of that instruction has no
// sign, so B is stored with kOffset added, and each sum begins with minus the amount that this adds.
struct ByteDots {
  static constexpr int kLanes = 16;
  static constexpr int kRows = 8;
  static constexpr int kQuad = 4;  // neighbours along K in 32 bits
  static constexpr int kOffset = 12;
  using Products = int32_t[kGroups][kRows][kBlock];

  SIM_AVX512 static __m512i twice(const uint8_t* codes, int offset) {
    const __m512i values =
        _mm512_shuffle_epi8(_mm512_load_si512(kTableOfVector.codes),
                            _mm512_and_si512(_mm512_loadu_si512(codes), _mm512_set1_epi8(15)));
    return _mm512_add_epi8(values, _mm512_set1_epi8(static_cast<char>(offset)));
  }
  SIM_AVX512 void set_rows(const uint8_t* codes, int rows, int padded_rows) {
    a_.assign(static_cast<size_t>(padded_rows), {});
    for (int m = 0; m < rows; ++m) {
      Row& row = a_[static_cast<size_t>(m)];
      const __m512i values = twice(codes + m * kDepth, 0);
      std::memcpy(row.quads, &values, sizeof row.quads);
      // The sums of four neighbours, of which four again are a group.
      const __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(kOffset), values);
      int32_t of_quads[kDepth / kQuad];
      std::memcpy(of_quads, &sums, sizeof of_quads);
      for (int q = 0; q < kDepth / kQuad; ++q) row.too_much[q / kGroups] += of_quads[q];
    }
  }
  SIM_AVX512 void set_columns(const uint8_t* codes, int columns) {
    if (columns < kBlock) std::memset(b_, kOffset, sizeof b_);
    for (int n = 0; n < columns; ++n) {
      const __m512i values = twice(codes + n * kDepth, kOffset);
      int32_t quads[kDepth / kQuad];
      std::memcpy(quads, &values, sizeof quads);
      for (int q = 0; q < kDepth / kQuad; ++q) b_[q][n] = quads[q];
    }
  }
  SIM_AVX512 void multiply(int m0, Products& dot) const {
    const Row* rows = &a_[static_cast<size_t>(m0)];
    for (int g = 0; g < kGroups; ++g) {
      __m512i sum[kRows];
      for (int r = 0; r < kRows; ++r) sum[r] = _mm512_set1_epi32(-rows[r].too_much[g]);
      for (int q = g * kGroups; q < (g + 1) * kGroups; ++q) {
        const __m512i column = _mm512_load_si512(b_[q]);
        for (int r = 0; r < kRows; ++r)
          sum[r] = _mm512_dpbusd_epi32(sum[r], column, _mm512_set1_epi32(rows[r].quads[q]));
      }
      for (int r = 0; r < kRows; ++r) _mm512_store_si512(dot[g][r], sum[r]);
    }
  }

 private:
  struct Row {
    int32_t quads[kDepth / kQuad];
    int32_t too_much[kGroups];  // kOffset times the sum of the group
  };
  std::vector<Row> a_;
  alignas(64) int32_t b_[kDepth / kQuad][kBlock];
};
#endif

}  // namespace sim
