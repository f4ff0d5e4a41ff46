// expand_pass.cuh -- A from NVFP4 to fp16, or from 16 bits to the same in order, in a pass of its own, once,
// for instances that take it so: where there are many rows of A, every column of tiles would have to do it
// anew. A lane makes eight neighbouring places, 16 bytes, and a warp those of a k-tile of a row.
#pragma once

#include "kernel/convert/bands.cuh"
#include "kernel/sm90/expand.cuh"
#include "kernel/sm90/half_math.cuh"
#include "kernel/sm90/order.cuh"
#include "ptx/global.cuh"

namespace dualgemm::sm90 {

// Returns the eight places of a row from 8 * `column` of its k-tile on: a pair of each number in a quad of
// lanes (expand.cuh). What lies beyond the end of the row is 0.
DUALGEMM_DEVICE void expand_places(const ExpandParams& p, const uint8_t* row, const uint8_t* factors,
                                   int k_tile, int column, uint32_t (&pairs)[4]) {
  const int first = k_of_place(8 * column);  // of lane 0 of a quad; the others follow in 64s
  const int step = first % 2, upper = first / 2 % 2;
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    const int in_tile = first - first % 8 + quad * kSfAtomElems;  // the word's first element
    const int k = k_tile * kTileK + in_tile;
    uint32_t word = 0, factor = 0;
    if (k < p.k) {
      word = *reinterpret_cast<const uint32_t*>(row + k / 2);
      factor = factors[k / kSfAtomElems * kSfAtomBytes + k / kSfBlock % kSfAtomBlocks];
    }
    const uint32_t twice = Factors{factor}.template of<HalfMath>(0, 0);
    pairs[quad] = expand_pair<HalfMath>(word, step, upper, twice);
  }
}

// Returns the same eight places of a row that has 16 bits. Each load of a warp has a part of all four lines
// of a k-tile of the row, of which the first brings them to L1.
DUALGEMM_DEVICE void order_places(const ExpandParams& p, const uint8_t* row, int k_tile, int column,
                                  uint32_t (&pairs)[4]) {
  const int first = k_of_place(8 * column);
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    const int k = k_tile * kTileK + first - first % 2 + quad * kSfAtomElems;
    uint32_t low = 0, high = 0;
    if (k < p.k) {  // a chunk of eight lies within the row or beyond it
      low = *reinterpret_cast<const uint32_t*>(row + 2 * k);
      high = *reinterpret_cast<const uint32_t*>(row + 2 * k + 8);
    }
    pairs[quad] = order_pair(low, high, first % 2);
  }
}

// A is packed, in NVFP4, or has 16 bits.
template <bool kPacked, bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kExpandCtas)
    expand_kernel(const __grid_constant__ ExpandParams p) {
  constexpr int kWarps = kConvertThreads / 32;
  static_assert(kExpandPiece == kTileK && kTileK == 32 * 8, "a warp makes a k-tile of a row");
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  convert::for_each_tile<kGrouped>(p.rows, [&](const Tile& tile) {
    const int32_t atoms = (p.k + kSfAtomElems - 1) / kSfAtomElems;
#pragma unroll 2
    for (int row = warp; row < kSfAtomRows; row += kWarps) {
      if (row >= tile.rows) break;
      const uint8_t* const a = p.a + tile.a_problem * p.a_stride + (int64_t{tile.row} + row) * p.a_pitch;
      uint32_t pairs[4];
      if constexpr (kPacked) {
        const uint8_t* const factors = convert::band_of(p.factors, p.factor_stride, tile, atoms);
        expand_places(p, a, factors + sf_offset_in_atom(row, 0), tile.n, lane, pairs);
      } else {
        order_places(p, a, tile.n, lane, pairs);
      }
      ptx::st_global_v4_b32(p.expanded + tile.a_problem * p.stride + (int64_t{tile.row} + row) * p.pitch +
                                tile.n * kTileK + 8 * lane,
                            pairs);
    }
  });
}

}  // namespace dualgemm::sm90
