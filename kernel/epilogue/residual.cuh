// residual.cuh -- reads the addend of C (c_add). Each of its elements has one reader, the lane that writes
// the same element of C, and that lane reads it before it writes. So the addend may be C itself.
#pragma once

#include <type_traits>

#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/output.cuh"
#include "kernel/params.h"
#include "ptx/math.cuh"

namespace dualgemm {

// Returns element i of some words in a format. fp16, bf16 and fp32 are exact in fp32.
template <class Format>
DUALGEMM_DEVICE float element_of(const uint32_t* words, int i) {
  if constexpr (std::is_same_v<Format, Fp32>) {
    return __uint_as_float(words[i]);
  } else {
    const uint32_t bits = words[i / 2] >> (i % 2 * 16) & 0xFFFF;
    if constexpr (std::is_same_v<Format, Fp16>) return ptx::cvt_f32_f16(static_cast<uint16_t>(bits));
    else return __uint_as_float(bits << 16);
  }
}

// Reads what a lane has of one tile. Elements beyond C are not read, and count as 0.
template <class Format, class Layout>
class MatrixReader {
  using Element = typename Format::Element;
  static constexpr bool kRows = std::is_same_v<Layout, AlongRow>;

 public:
  DUALGEMM_DEVICE MatrixReader(const Params& p, const Tile& tile, LanePlace at)
      : rows_(tile.rows - at.row),
        columns_(p.n - at.column),
        pitch_(p.general.c_add_ld),
        elements_(in_global_memory<const Element>(const_cast<void*>(p.general.c_add)) +
                  tile.a_problem * p.general.c_add_stride + (int64_t{tile.row} + at.row) * pitch_ +
                  at.column) {}

  // Loads the elements first .. first + kWidth - 1.
  template <int kWidth>
  DUALGEMM_DEVICE void load(float* x, int first) const {
    if constexpr (kRows) load_row<kWidth>(x, first);
    else load_each<kWidth>(x, first);
  }

 private:
  // The existing columns of a row are a multiple of 16 bytes, as those of C are.
  template <int kWidth>
  DUALGEMM_DEVICE void load_row(float* x, int first) const {
    constexpr int kPiece = 128 / Format::kBits;  // elements of 16 bytes
    static_assert(kWidth % kPiece == 0, "whole pieces");
#pragma unroll
    for (int column = 0; column < kWidth; column += kPiece) {
      uint4 piece{};
      if (rows_ > 0 && first + column + kPiece <= columns_)
        piece = *reinterpret_cast<const uint4*>(elements_ + first + column);
      const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
      for (int i = 0; i < kPiece; ++i) x[column + i] = element_of<Format>(words, i);
    }
  }

  template <int kWidth>
  DUALGEMM_DEVICE void load_each(float* x, int first) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int row = Layout::row(first + i), column = Layout::column(first + i);
      uint32_t word = 0;
      if (row < rows_ && column < columns_) word = elements_[row * pitch_ + column];
      x[i] = element_of<Format>(&word, 0);
    }
  }

  int rows_, columns_;  // of C, from the lane's first element on
  int64_t pitch_;
  const Element* elements_;
};

}  // namespace dualgemm
