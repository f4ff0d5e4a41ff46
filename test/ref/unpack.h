// unpack.h -- operands as floats, laid out for the sums of sums.cpp, with the norms that the bound for wgmma
// needs.
#pragma once

#include <cstdint>
#include <vector>

#include "ref/dual_gemm.h"

namespace ref {

inline constexpr int64_t kTileRows = 4, kTileCols = 16;
inline constexpr int64_t kBlocksPerKTile = 16;  // K is split between k-tiles

// Returns which half of which k-tile a block of K belongs to, for wgmma: as its k has bit 5 clear or set.
constexpr int64_t half_of(int64_t block) { return block / kBlocksPerKTile * 2 + block / 2 % 2; }
constexpr int64_t halves_of(int64_t blocks) { return (blocks + kBlocksPerKTile - 1) / kBlocksPerKTile * 2; }

// Rows of A stand one after the other: value i of a row at [row][i], the factor of a block at [row][block],
// a norm at [row][half of a k-tile]. The rows of B in a tile are interleaved: [i][row], [block][row] and
// [half][row]. Rows that do not exist are zeros.
struct Unpacked {
  std::vector<float> values, scales;
  std::vector<double> norms;  // of the values as a tensor core aligns them, times their factors
  float scale_max = 0x1p-6f;  // the largest factor that is a number, at least 2^-6
};

enum class Norms { kNone, kOfWgmma };

// Unpacks all rows of A, and zeros up to a multiple of kTileRows.
Unpacked unpack_a(const Operand& a, int64_t k, Norms norms);

// Unpacks kTileCols rows of B from `first_row` on, beside an A whose elements are of this type.
Unpacked unpack_b(const Operand& b, int64_t first_row, int64_t k, Elements of_a, Norms norms);

}  // namespace ref
