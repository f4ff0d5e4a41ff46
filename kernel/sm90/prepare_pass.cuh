// prepare_pass.cuh -- a pass over A before the kernel, for instances of Plan::prepared_a: it expands an A in
// NVFP4 to fp16, or puts an A of 16 bits in order. Without the pass every column of tiles would have to do
// this work again, which takes long where A has many rows. A warp makes a k-tile of eight rows. Its lanes
// write pieces of a row to shared memory, 64 bytes each, and from there whole rows go to global memory.
#pragma once

#include "kernel/convert/bands.cuh"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/half_math.cuh"
#include "kernel/sm90/order.cuh"
#include "ptx/global.cuh"

namespace dualgemm::sm90 {

// A piece of a row is 32 places, four columns of 16 bytes. It is made of four 32-bit words of e2m1, one for
// each number in a quad of lanes, or of four chunks of eight elements of 16 bits. A k-tile has eight,
// numbered as `half` and `word` are in expand.cuh.
inline constexpr int kPieceBytes = 64, kPieces = kTileK * 2 / kPieceBytes;
struct Piece {
  uint4 column[4];
};

// Holds a k-tile of the rows of one warp, on the way from its lanes to global memory. Eight lanes, each of
// which writes 16 bytes of the same column in a row of its own, access every bank once.
struct StagedRows {
  alignas(16) uint8_t row[kPrepareRows][kTileK * 2 + 16];

  DUALGEMM_DEVICE void put(int of_row, int piece, const Piece& x) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      *reinterpret_cast<uint4*>(&row[of_row][piece * kPieceBytes + i * 16]) = x.column[i];
  }
  DUALGEMM_DEVICE uint4 columns(int of_row, int lane) const {
    return *reinterpret_cast<const uint4*>(&row[of_row][lane * 16]);
  }
};

// Lane 8 w + r expands word w of both halves of row r: `row` is its k-tile, of which `left` elements exist,
// and `factors` are those of the row in the first of four atoms. Elements beyond the end of the row become 0.
DUALGEMM_DEVICE void expand_rows(const uint8_t* row, const uint8_t* factors, int left, int lane,
                                 StagedRows& staged) {
  const int word = lane / kPrepareRows;
  uint32_t words[2][4], bytes[4];
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    bytes[quad] = 0;
    if (quad * kSfAtomElems < left)
      bytes[quad] = *reinterpret_cast<const uint32_t*>(factors + quad * kSfAtomBytes);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int k = quad * kSfAtomElems + half * 32 + word * 8;
      words[half][quad] = 0;
      if (k < left) words[half][quad] = *reinterpret_cast<const uint32_t*>(row + k / 2);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    Pairs of_quad[4];
#pragma unroll
    for (int quad = 0; quad < 4; ++quad) {
      // A factor that belongs to no element may have any value, also NaN.
      const bool exists = quad * kSfAtomElems + half * 32 + word * 8 < left;
      const Factors f{exists ? bytes[quad] : 0};
      of_quad[quad] = expand_word<HalfMath>(words[half][quad], f.of<HalfMath>(half, word / kPanelWords));
    }
    Piece piece;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto pair = [&](int quad) { return of_quad[quad].pair[i / 2][i % 2]; };
      piece.column[i] = make_uint4(pair(0), pair(1), pair(2), pair(3));
    }
    staged.put(lane % kPrepareRows, 4 * half + word, piece);
  }
}

// Lane 8 r + c puts four chunks of row r in order: chunk c of each of four panels of 64 elements.
DUALGEMM_DEVICE void order_row(const uint8_t* row, int left, int of_row, int c, StagedRows& staged) {
  uint4 chunk[4];
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    const int k = quad * kSfAtomElems + c * 8;  // a chunk lies within the row or beyond it
    chunk[quad] = {};
    if (k < left) chunk[quad] = *reinterpret_cast<const uint4*>(row + 2 * k);
  }
  Piece piece;
  order_chunks(chunk, piece.column);
  staged.put(of_row, c, piece);
}

// A is packed, in NVFP4, or has 16 bits.
template <bool kPacked, bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kPrepareCtas)
    prepare_kernel(const __grid_constant__ PrepareParams p) {
  constexpr int kWarps = kConvertThreads / 32;
  static_assert(kPreparePiece == kWarps * kTileK && kPrepareRows == 8, "a warp makes a k-tile of eight rows");
  __shared__ StagedRows of_warps[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  StagedRows& staged = of_warps[warp];
  convert::for_each_tile<kGrouped>(p.rows, [&](const Tile& tile) {
    constexpr int kParts = kSfAtomRows / kPrepareRows;  // of a band
    const int first = tile.n % kParts * kPrepareRows, k_tile = tile.n / kParts * kWarps + warp;
    const int left = p.k - k_tile * kTileK;
    if (first >= tile.rows || left <= 0) return;
    // A row that does not exist is read as the last one, so that no load waits for a branch.
    const auto existing = [&](int row) { return min(first + row, tile.rows - 1); };
    const auto row_of_a = [&](int row, int element_bits) {
      return p.a + tile.a_problem * p.a_stride + (int64_t{tile.row} + row) * p.a_pitch +
             k_tile * (kTileK * element_bits / 8);
    };
    if constexpr (kPacked) {
      const int row = existing(lane % kPrepareRows);
      const int32_t atoms = (p.k + kSfAtomElems - 1) / kSfAtomElems;
      const uint8_t* const factors = convert::band_of(p.factors, p.factor_stride, tile, atoms) +
                                     k_tile * (kTileK / kSfAtomElems) * kSfAtomBytes;
      expand_rows(row_of_a(row, 4), factors + sf_offset_in_atom(row, 0), left, lane, staged);
    } else {
#pragma unroll
      for (int of_row = lane / kPieces; of_row < kPrepareRows; of_row += 32 / kPieces)
        order_row(row_of_a(existing(of_row), 16), left, of_row, lane % kPieces, staged);
    }
    __syncwarp();  // all pieces of a row are there before it is read
#pragma unroll
    for (int row = 0; row < kPrepareRows; ++row) {
      const uint4 x = staged.columns(row, lane);
      const uint32_t words[4] = {x.x, x.y, x.z, x.w};
      if (first + row < tile.rows)
        ptx::st_global_v4_b32(p.prepared_a + tile.a_problem * p.stride +
                                  (int64_t{tile.row} + first + row) * p.pitch + k_tile * kTileK + 8 * lane,
                              words);
    }
    __syncwarp();  // and has been read before it is written again
  });
  // The preceding grid, whose numbers these may be, has ended: for_each_tile has waited for it.
  for (int32_t i = static_cast<int32_t>(blockIdx.x * kConvertThreads + threadIdx.x); i < p.zero_count;
       i += static_cast<int32_t>(gridDim.x) * kConvertThreads)
    p.zeros[i] = 0;
}

}  // namespace dualgemm::sm90
