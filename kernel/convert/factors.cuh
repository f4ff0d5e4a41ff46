// factors.cuh -- scale factors from rows to atoms and back. An atom has 32 lines of 16 bytes; line i holds
// four factors each of the rows i, i + 32, i + 64 and i + 96. Each of four lanes holds 16 factors of one of
// these four rows, which belong to four atoms. A transposition of their words gives each of the four lanes
// the line of one atom. A warp has eight neighbouring lines, so that every lane reads and writes 16 bytes,
// and the warp 128 bytes in a row in each atom; two warps share the 32 bytes of a row that come from DRAM
// together.
#pragma once

#include "kernel/convert/bands.cuh"
#include "ptx/global.cuh"

namespace dualgemm::convert {

// Four lanes whose numbers differ only in the last two bits share a matrix of words: lane i of the four has
// row i, and afterwards column i.
DUALGEMM_DEVICE void transpose_4x4(uint32_t* words) {
  const unsigned lane = threadIdx.x % 4;
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const uint32_t received = __shfl_xor_sync(0xffffffff, upper ? words[i] : words[i | bit], bit);
      if (upper) words[i] = received;
      else words[i | bit] = received;
    }
  }
}

// Says which 16 factors of a tile a lane has.
struct Place {
  int line;   // of the atoms
  int row;    // of the band
  int first;  // factor of the row
  int atom;   // whose line the lane has on the other side of the transposition
  int count;  // of the factors that exist, 0 to 16
  uint8_t* linear;

  DUALGEMM_DEVICE Place(const FactorParams& p, const Tile& tile) {
    const int thread = static_cast<int>(threadIdx.x), quarter = thread % 4;
    line = thread / 4 % 32;
    row = line + 32 * quarter;
    first = tile.n * kFactorPiece + thread / 128 * 16;
    atom = first / kSfAtomBlocks + quarter;
    count = row < tile.rows ? max(0, min(p.blocks - first, 16)) : 0;
    linear = p.linear + tile.a_problem * p.stride + (int64_t{tile.row} + row) * p.pitch + first;
  }
};

DUALGEMM_DEVICE int32_t atoms_of(const FactorParams& p) {
  return (p.blocks + kSfAtomBlocks - 1) / kSfAtomBlocks;
}

template <bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kFactorCtas)
    swizzle_kernel(const __grid_constant__ FactorParams p) {
  for_each_tile<kGrouped>(p.rows, [&p](const Tile& tile) {
    const Place at(p, tile);
    const int32_t atoms = atoms_of(p);
    uint32_t words[4] = {};
    if (p.wide && at.count == 16) {
      const uint4 all = *reinterpret_cast<const uint4*>(at.linear);
      words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (i < at.count) words[i / 4] |= static_cast<uint32_t>(at.linear[i]) << (i % 4 * 8);
    }
    transpose_4x4(words);
    if (at.atom < atoms)
      ptx::st_global_v4_b32(
          band_of(p.atoms, p.atom_stride, tile, atoms) + int64_t{at.atom} * kSfAtomBytes + at.line * 16,
          words);
  });
}

template <bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kFactorCtas)
    unswizzle_kernel(const __grid_constant__ FactorParams p) {
  for_each_tile<kGrouped>(p.rows, [&p](const Tile& tile) {
    const Place at(p, tile);
    const int32_t atoms = atoms_of(p);
    uint32_t words[4] = {};
    if (at.atom < atoms) {
      const uint4 all = *reinterpret_cast<const uint4*>(band_of(p.atoms, p.atom_stride, tile, atoms) +
                                                        int64_t{at.atom} * kSfAtomBytes + at.line * 16);
      words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
    }
    transpose_4x4(words);
    if (p.wide && at.count == 16) {
      ptx::st_global_v4_b32(at.linear, words);
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (i < at.count) at.linear[i] = static_cast<uint8_t>(words[i / 4] >> (i % 4 * 8));
    }
  });
}

}  // namespace dualgemm::convert
