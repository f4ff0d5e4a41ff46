// quantize_fp8.cuh -- from fp32, bf16 or fp16 to FP8 E4M3, which has no factors. A tile is one row with all
// of K, or several short ones, so that the threads of a CTA always have much to load at once. A lane has runs
// of eight elements, so that a warp reads and writes without gaps.
#pragma once

#include "kernel/convert/quantize.cuh"

namespace dualgemm::convert {

inline constexpr int kRun = 8;

// Holds what a thread has of one piece of a row, as it is loaded. A row has so many threads. A piece is 128
// bytes for each of them.
template <class X, int kThreads>
class RowPiece {
  static constexpr int kRuns = 16 / X::kBytes;

 public:
  static constexpr int kRunsOfPiece = kRuns * kThreads;

  // Loads from a row of so many runs, or of zeros if it is null. What is beyond the row counts as zeros.
  DUALGEMM_DEVICE void load(const char* row, int32_t runs, int32_t piece) {
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      if (const int32_t run = place(piece, i); row && run < runs) {
        load_words(row + int64_t{run} * kRun * X::kBytes, words_[i]);
      } else {
#pragma unroll
        for (uint32_t& word : words_[i]) word = 0;
      }
    }
  }
  // Returns the largest magnitude, or `largest` if that is larger. NaN is left out.
  DUALGEMM_DEVICE float largest(float largest) const {
#pragma unroll
    for (int i = 0; i < kRuns * kRun; ++i) largest = fmaxf(largest, fabsf(value(i)));
    return largest;
  }
  DUALGEMM_DEVICE void store(uint8_t* row, int32_t runs, int32_t piece, float scale) const {
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int32_t run = place(piece, i);
      if (run >= runs) return;
      uint32_t codes[kRun / 4];
#pragma unroll
      for (int word = 0; word < kRun / 4; ++word) codes[word] = four(i * kRun + word * 4, scale);
      ptx::st_global_v2_b32(row + int64_t{run} * kRun, codes);
    }
  }

 private:
  DUALGEMM_DEVICE static int32_t place(int32_t piece, int i) {
    return piece * kRunsOfPiece + i * kThreads + static_cast<int32_t>(threadIdx.x) % kThreads;
  }
  DUALGEMM_DEVICE float value(int i) const { return X::value(words_[i / kRun], i % kRun); }
  DUALGEMM_DEVICE uint32_t four(int i, float scale) const {
    const uint32_t low = ptx::cvt_rn_satfinite_e4m3x2_f32(value(i + 1) * scale, value(i) * scale),
                   high = ptx::cvt_rn_satfinite_e4m3x2_f32(value(i + 3) * scale, value(i + 2) * scale);
    return low | high << 16;
  }

  uint32_t words_[kRuns][kRun * X::kBytes / 4];
};

// Returns the row of x that a row is quantised from, or null where x has no such row and zeros stand for it.
template <class X>
DUALGEMM_DEVICE const char* row_of_x(const QuantizeParams& p, const Tile& tile, int64_t row) {
  if (p.row_index) {
    row = p.row_index[row];
    if (row < 0 || row >= p.x_rows) return nullptr;
  }
  return static_cast<const char*>(p.x) + (tile.a_problem * p.x_stride + row * p.x_pitch) * X::kBytes;
}

// Returns what the launch multiplies a row with whose largest magnitude this is.
DUALGEMM_DEVICE float decode_scale_of(float largest) {
  if (largest == 0) return 1.0f;
  return fmaxf(__fdiv_rn(fminf(largest, FLT_MAX), kE4m3Max), 512 / FLT_MAX);
}

// Quantises with a scale for each row if `row_scale` is there, else with one for all rows or for each
// problem. The search for the largest magnitude goes through the pieces backwards, and leaves the first one
// in registers.
template <class X, bool kGrouped, int kRowsOfTile>
__global__ void __launch_bounds__(kConvertThreads, kQuantizeCtas)
    quantize_fp8_kernel(const __grid_constant__ QuantizeParams p) {
  constexpr int kThreads = kConvertThreads / kRowsOfTile;
  static_assert(kThreads % 32 == 0 && kSfAtomRows % kRowsOfTile == 0);
  for_each_tile<kGrouped>(p.rows, [&p](const Tile& tile) {
    if (tile.n * kRowsOfTile >= tile.rows) return;
    const int in_band = tile.n * kRowsOfTile + static_cast<int>(threadIdx.x) / kThreads;
    const bool exists = in_band < tile.rows;
    const int64_t row = int64_t{tile.row} + in_band;
    const char* const x = exists ? row_of_x<X>(p, tile, row) : nullptr;
    const int32_t runs = p.k / kRun, pieces = (runs - 1) / RowPiece<X, kThreads>::kRunsOfPiece + 1;
    RowPiece<X, kThreads> piece;
    float scale;
    if (p.row_scale) {
      float largest = 0;
      for (int32_t i = pieces - 1; i >= 0; --i) {
        piece.load(x, runs, i);
        largest = piece.largest(largest);
      }
      largest = largest_of_threads<kThreads>(largest);
      scale = scale_of(largest, kE4m3Max);
      if (exists && threadIdx.x % kThreads == 0)
        p.row_scale[tile.a_problem * p.row_scale_stride + row] = decode_scale_of(largest);
    } else {
      piece.load(x, runs, 0);
      scale = p.tensor_scales ? scale_of(p.tensor_scales[kLargest], kE4m3Max) : given_scale(p, tile);
    }
    if (!exists) return;
    uint8_t* const q = p.q + tile.a_problem * p.q_stride + row * p.q_pitch;
    for (int32_t i = 0; i < pieces; ++i) {
      if (i > 0) piece.load(x, runs, i);
      piece.store(q, runs, i, scale);
    }
  });
  write_tensor_scales(p, kE4m3Max);
}

}  // namespace dualgemm::convert
