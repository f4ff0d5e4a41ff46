// output_nvfp4.cuh -- C in NVFP4, which can be the A of the next launch: E2M1 in rows, and a UE4M3 factor for
// each 16 elements of a row, in the layout of SFA (host/FORMATS.md draws it). The arithmetic is that of
// dualgemm_quantize_host, each operation in fp32:
//
//   factor = UE4M3(max|x of the 16| * (encode * (1 / 6)))   element = E2M1(x * (encode * (1 / factor)))
//
// Each byte of the factors has one writer. In a row that exists, the lane that has a block writes its factor;
// where the row ends within an atom, the lanes that would have the next blocks write zeros. complete_tile
// zeroes the factors of the rows beyond the last one, up to the end of their block of 128, and, where a tile
// is narrower than an atom, those of columns that no lane would have.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernel/epilogue/e2m1.cuh"
#include "kernel/epilogue/output.cuh"

namespace dualgemm {

// Returns the largest magnitude of some elements, or NaN if one of them is NaN.
template <int kCount>
DUALGEMM_DEVICE float largest_magnitude(const float* x) {
  float largest = fabsf(x[0]);
#pragma unroll
  for (int i = 1; i < kCount; ++i) largest = ptx::max_nan(largest, fabsf(x[i]));
  return largest;
}

// The factor of a block, and what its elements are multiplied with before they become E2M1.
class BlockFactor {
 public:
  DUALGEMM_DEVICE BlockFactor(float largest, float encode) {
    // A factor has no sign. If it would be below 0, because of an encode scale that only the device knows, it
    // is NaN; -0 is 0.
    const float wanted = largest * (encode * (1.0f / 6));
    const uint16_t factor = ptx::cvt_rn_satfinite_e4m3x2_f32(0.0f, wanted < 0 ? NAN : wanted) & 0x7F;
    bits_ = static_cast<uint8_t>(factor);
    const float value = ptx::cvt_f32_f16(static_cast<uint16_t>(ptx::cvt_rn_f16x2_e4m3x2(factor)));
    // The first reciprocal is off by 1 ulp at most. One step of Newton's method gives the correctly rounded
    // reciprocal of an e4m3 number: such a number has 4 bits, so that no reciprocal lies within 2^-30 of the
    // middle between two floats.
    const float guess = ptx::rcp_approx_ftz(value);
    const float reciprocal = fmaf(guess, fmaf(-value, guess, 1.0f), guess);
    scale_ = encode * reciprocal;
  }
  DUALGEMM_DEVICE uint8_t bits() const { return bits_; }
  // Returns eight elements, the first in the lowest nibble. Where the factor is 0 the reciprocal is infinite,
  // and the elements are +0.
  DUALGEMM_DEVICE uint32_t pack(const float* x) const {
    float scaled[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) scaled[i] = x[i] * scale_;
    return bits_ == 0 ? 0 : to_e2m1x8(scaled);
  }

 private:
  uint8_t bits_;
  float scale_;
};

// Holds sixteen elements of a row: packed[0] has the first eight.
struct PackedBlock {
  uint32_t packed[2];
  uint8_t factor;
};
DUALGEMM_DEVICE PackedBlock quantise_block(const float* x, float encode) {
  const BlockFactor factor(largest_magnitude<kSfBlock>(x), encode);
  return {{factor.pack(x), factor.pack(x + kSfBlock / 2)}, factor.bits()};
}

// Each lane of half a warp has one of 16 columns, with 16 rows. Afterwards lane i has row i, with the columns
// in their order. Two lanes whose numbers differ in one bit exchange the halves of their elements that belong
// to the other lane.
DUALGEMM_DEVICE void transpose_16x16(float* x) {
  const int lane = static_cast<int>(threadIdx.x) % 16;
#pragma unroll
  for (int bit = 1; bit < 16; bit *= 2) {
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (i & bit) continue;
      const float received = __shfl_xor_sync(0xffffffff, upper ? x[i] : x[i | bit], bit);
      if (upper) x[i] = received;
      else x[i | bit] = received;
    }
  }
}

// Writes what a lane has of one tile.
template <class Traits, class Layout>
class Nvfp4Writer : public Fp32Results {
  static constexpr bool kRows = std::is_same_v<Layout, AlongRow>;
  static_assert(kRows || std::is_same_v<Layout, DownColumn>);
  static constexpr int kRowsOfCta = std::min(kSfAtomRows, Traits::kPlan.tile.m);
  static_assert(in_blocks(Traits::kPlan.tile.m), "factors of one block of 128 rows at a time");
  // A tile that is narrower than an atom writes the factors of a part of the atom.
  static constexpr int kColumns = Traits::kPlan.tile.n;
  static constexpr int kPiece = std::min(kColumns, kSfAtomElems);
  static_assert(kColumns % kSfAtomElems == 0 || kColumns == kSfAtomElems / 2);

 public:
  // Along a row a lane has a block, or half of one. Down a column two lanes store a block each, side by side.
  static constexpr int kLeastWidth = kRows ? limits_of(Traits::kPlan.arch).store_bytes / 2 : kSfBlock;
  static constexpr int32_t kStoreBytes = kRows ? kLeastWidth / 2 : 16;

  DUALGEMM_DEVICE Nvfp4Writer(const Params& p, const Tile& tile, LanePlace at, const Nothing&)
      : encode_(encode_scale(p.general, tile)),
        n_(p.n),
        column_(at.column - at.column % kSfBlock),
        half_(at.column % kSfBlock / (kSfBlock / 2)),
        first_row_(kRows ? at.row - at.row % kSfAtomRows : 0),
        row_(kRows ? at.row % kSfAtomRows : 0),
        rows_(tile.rows - first_row_),
        block_row_(tile.m * Traits::kPlan.tile.m % kSfAtomRows),
        pitch_(p.c.pitch / 2),
        c_(in_global_memory<uint8_t>(p.c.start) + tile.a_problem * (p.c.stride / 2) +
           (int64_t{tile.row} + first_row_) * pitch_) {
    const int64_t atoms = (p.n + kSfAtomElems - 1) / kSfAtomElems;
    factors_ = in_global_memory<uint8_t>(p.general.sfc) + tile.a_problem * p.general.sfc_stride +
               (tile.sfa_block + first_row_ / kSfAtomRows) * atoms * kSfAtomBytes;
  }

  // Along a row all blocks up to the end of the last atom count, down a column the rows that exist.
  DUALGEMM_DEVICE int extent() const { return kRows ? padded_columns() - column_ : rows_; }
  // Lanes whose columns lie beyond C have factors to write, up to the end of the atom.
  DUALGEMM_DEVICE int writing_lanes(int lanes) const {
    return kRows ? lanes : (lanes + kSfAtomElems - 1) & -kSfAtomElems;
  }

  // Stores the elements first .. first + kWidth - 1.
  template <int kWidth>
  DUALGEMM_DEVICE void store(Results<kWidth>& results, int first) const {
    static_assert(kWidth % kSfBlock == 0 || (kRows && kWidth == kSfBlock / 2),
                  "whole blocks, or half a block");
    if constexpr (kWidth < kSfBlock) {
      store_half(row_, column_ + first, results.values);
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; i += kSfBlock) {
        if constexpr (kRows) {
          store_block(row_, column_ + first + i, &results.values[i]);
        } else {
          transpose_16x16(&results.values[i]);
          store_block(first + i + static_cast<int>(threadIdx.x) % kSfBlock, column_, &results.values[i]);
        }
      }
    }
  }

  // Zeroes the factors of the rows beyond the last row of C, as far as the atoms of this tile go, and those
  // of columns beyond C that no lane has. `thread` is the number of the thread among those of the epilogue.
  DUALGEMM_DEVICE void complete_tile(int thread) const {
    if (rows_ <= 0) return;  // none that exist
    const int first = column_ - column_ % kColumns;
    const bool last = first + kColumns >= n_;
    const int end = last ? padded_columns() : first + kColumns;
    if (rows_ <= kRowsOfCta)  // else other tiles go on below
      zero_factors(thread, rows_, kSfAtomRows - block_row_, first, end);
    if constexpr (kColumns < kSfAtomElems)
      if (last) zero_factors(thread, 0, min(rows_, kRowsOfCta), first + kColumns, end);
  }

 private:
  DUALGEMM_DEVICE int padded_columns() const { return (n_ + kSfAtomElems - 1) / kSfAtomElems * kSfAtomElems; }
  // Returns the place of a factor. `row` counts from the first row of this CTA, `column` from the first
  // column of C.
  DUALGEMM_DEVICE uint8_t* factor(int row, int column) const {
    return factors_ + int64_t{column / kSfAtomElems} * kSfAtomBytes +
           sf_offset_in_atom(block_row_ + row, column / kSfBlock);
  }
  // Zeroes the factors of some rows and columns, one atom, or a tile's part of one, at a time.
  DUALGEMM_DEVICE void zero_factors(int thread, int first_row, int end_row, int first_column,
                                    int end_column) const {
    constexpr int kThreads = 32 * Traits::kPlan.epilogue.warps;
    using Word = std::conditional_t<kPiece == kSfAtomElems, uint32_t, uint16_t>;
    const int rows = end_row - first_row, count = rows * ((end_column - first_column) / kPiece);
    for (int i = thread; i < count; i += kThreads)
      *reinterpret_cast<Word*>(factor(first_row + i % rows, first_column + i / rows * kPiece)) = 0;
  }
  DUALGEMM_DEVICE void store_block(int row, int column, const float* x) const {
    if (row >= rows_ || column >= padded_columns()) return;
    if (column >= n_) {
      *factor(row, column) = 0;
      return;
    }
    const PackedBlock block = quantise_block(x, encode_);
    ptx::st_global_v2_b32(c_ + row * pitch_ + column / 2, block.packed);
    *factor(row, column) = block.factor;
  }
  // Two neighbouring lanes have a block, eight elements each. All lanes of the warp call this.
  DUALGEMM_DEVICE void store_half(int row, int column, const float* x) const {
    const float largest = largest_magnitude<kSfBlock / 2>(x);
    const BlockFactor f(ptx::max_nan(largest, __shfl_xor_sync(0xffffffff, largest, 1)), encode_);
    if (row >= rows_ || column >= padded_columns()) return;
    if (column < n_)
      *reinterpret_cast<uint32_t*>(c_ + row * pitch_ + column / 2 + half_ * (kSfBlock / 4)) = f.pack(x);
    if (half_ == 0) *factor(row, column) = column < n_ ? f.bits() : 0;
  }

  float encode_;
  int n_;
  int column_;        // of the lane's first block
  int half_;          // of that block, where the lane's first element lies
  int first_row_;     // of this CTA in the tile
  int row_;           // of the lane from there on
  int rows_;          // that exist from there on
  int block_row_;     // of this CTA's first row in its block of 128
  int64_t pitch_;     // bytes
  uint8_t* c_;        // the first row of this CTA
  uint8_t* factors_;  // of its block of 128 rows
};

struct Nvfp4 : DirectOutput {
  static constexpr CType kType = CType::kNvfp4;
  static constexpr const char* kName = "nvfp4";
  static constexpr int32_t kBits = 4;
  template <class Traits, class Layout>
  using Writer = Nvfp4Writer<Traits, Layout>;
};

}  // namespace dualgemm
