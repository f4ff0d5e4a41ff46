// mxfp4.cuh -- the factors of MXFP4 weights from rows to atoms, with an exponent of two for each row. A tile
// is the eight rows of two lines of an atom, with all of K, as where each row of x is quantised with a scale
// of its own (quantize.cuh). A lane has a block of 32 elements. The blocks of a warp follow the order of the
// bytes in an atom: the lanes write 32 factors next to each other, and read 64 bytes of elements of each of
// eight rows.
#pragma once

#include "kernel/convert/bands.cuh"
#include "ptx/global.cuh"

namespace dualgemm::convert {

// The block that byte i of an atom belongs to.
struct Mxfp4Block {
  bool exists;           // else its factor is padding
  bool nonzero = false;  // one of its elements is neither +0 nor -0
  int32_t byte = 0;      // its factor

  DUALGEMM_DEVICE Mxfp4Block(const Mxfp4Params& p, const Tile& tile, int row, int block)
      : exists(row < tile.rows && block < p.blocks) {
    if (!exists) return;
    const int64_t of_matrix = int64_t{tile.row} + row;
    byte = p.scales[tile.a_problem * p.scale_stride + of_matrix * p.scale_pitch + block];
    const uint4 codes = *reinterpret_cast<const uint4*>(
        p.q + tile.a_problem * p.q_stride + of_matrix * p.q_pitch + int64_t{block} * (kMxBlock / 2));
    nonzero = ((codes.x | codes.y | codes.z | codes.w) & 0x77777777) != 0;
  }
  DUALGEMM_DEVICE bool nan() const { return byte == kE8m0Nan; }
  DUALGEMM_DEVICE bool scales() const { return nonzero && !nan(); }
};

// A warp takes every eighth atom: first it looks for the largest bytes, then it reads the atom again, out of
// L2, and writes the factors.
__global__ void __launch_bounds__(kConvertThreads, kMxfp4Ctas)
    prepare_mxfp4_kernel(const __grid_constant__ Mxfp4Params p) {
  constexpr int kWarps = kConvertThreads / 32, kRows = 32 / kSfAtomBlocks;
  __shared__ int32_t largest_of[kWarps][kRows];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int32_t atoms = (p.blocks + kSfAtomBlocks - 1) / kSfAtomBlocks;
  uint32_t counts[kMxfp4Counts] = {};
  for_each_tile<false>(p.rows, [&](const Tile& tile) {
    const int byte = tile.n * 32 + lane, row = byte / 16 + byte / kSfAtomBlocks % 4 * 32;
    int32_t largest = -1;  // there is no block yet that scales anything
    for (int32_t atom = warp; atom < atoms; atom += kWarps) {
      const Mxfp4Block block(p, tile, row, atom * kSfAtomBlocks + byte % kSfAtomBlocks);
      if (block.scales()) largest = max(largest, block.byte);
    }
#pragma unroll
    for (int bit = 1; bit < kSfAtomBlocks; bit *= 2)
      largest = max(largest, __shfl_xor_sync(0xffffffff, largest, bit));
    if (lane % kSfAtomBlocks == 0) largest_of[warp][lane / kSfAtomBlocks] = largest;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWarps; ++i) largest = max(largest, largest_of[i][lane / kSfAtomBlocks]);
    __syncthreads();  // the next tile writes them again

    const int32_t exponent = largest < 0 ? 0 : largest - kMostMxfp4Byte;
    if (warp == 0 && lane % kSfAtomBlocks == 0 && row < tile.rows)
      p.row_exponent[tile.a_problem * p.row_exponent_stride + tile.row + row] =
          static_cast<int16_t>(exponent);
    uint8_t* const band = band_of(p.factors, p.factor_stride, tile, atoms);
    for (int32_t atom = warp; atom < atoms; atom += kWarps) {
      const Mxfp4Block block(p, tile, row, atom * kSfAtomBlocks + byte % kSfAtomBlocks);
      int32_t factor = block.nonzero ? max(block.byte - exponent, 0) : 0;
      if (block.nan()) factor = kE8m0Nan;
      band[int64_t{atom} * kSfAtomBytes + byte] = static_cast<uint8_t>(factor);
      counts[kNonzeroBlocks] += block.nonzero ? 1 : 0;
      counts[kRoundedBlocks] += block.scales() && block.byte < largest - kExactOctaves ? 1 : 0;
      counts[kNanBlocks] += block.nan() ? 1 : 0;
      counts[kRaisedBlocks] += block.scales() && block.byte < exponent ? 1 : 0;
    }
  });
  if (!p.counts) return;
#pragma unroll
  for (int i = 0; i < kMxfp4Counts; ++i) {
    const uint32_t of_warp = __reduce_add_sync(0xffffffff, counts[i]);
    ptx::atom_acq_rel_gpu_global_add_u32_if(p.counts + i, of_warp, lane == 0 && of_warp > 0);
  }
}

}  // namespace dualgemm::convert
