// quantize.cuh -- from fp32, bf16 or fp16 to NVFP4, with the arithmetic of an NVFP4 C (output_nvfp4.cuh). A
// lane has a block of 16 elements. The blocks of a warp follow the order of the bytes in an atom, so that the
// lanes write 32 factors next to each other, and 32 bytes of codes in each of eight rows. They read 64
// elements of x for each of these rows.
#pragma once

#include <cfloat>

#include "kernel/convert/bands.cuh"
#include "kernel/convert/elements.cuh"
#include "kernel/epilogue/output_nvfp4.cuh"

namespace dualgemm::convert {

// Says which block of x byte i of an atom belongs to.
struct BlockPlace {
  int row;      // of the band
  int block;    // of the row
  bool exists;  // else its factor is padding

  DUALGEMM_DEVICE BlockPlace(const QuantizeParams& p, const Tile& tile, int atom, int byte)
      : row(byte / 16 + byte / kSfAtomBlocks % 4 * 32),
        block(atom * kSfAtomBlocks + byte % kSfAtomBlocks),
        exists(row < tile.rows && block < p.k / kSfBlock) {}
};

// Holds sixteen elements as they are loaded, 16 bytes at a time.
template <class X>
struct Block {
  uint32_t words[4 * X::kBytes];

  DUALGEMM_DEVICE void load(const QuantizeParams& p, const Tile& tile, const BlockPlace& at) {
    if (!at.exists) return;
    int64_t row = int64_t{tile.row} + at.row;
    if (p.row_index) {
      row = p.row_index[row];
      if (row < 0 || row >= p.x_rows) {
#pragma unroll
        for (uint32_t& word : words) word = 0;
        return;
      }
    }
    load_words(static_cast<const char*>(p.x) +
                   (tile.a_problem * p.x_stride + row * p.x_pitch + at.block * kSfBlock) * X::kBytes,
               words);
  }
  // Returns the largest magnitude of the block, or `largest` if that is larger. NaN is left out.
  DUALGEMM_DEVICE float largest(float largest) const {
#pragma unroll
    for (int i = 0; i < kSfBlock; ++i) largest = fmaxf(largest, fabsf(X::value(words, i)));
    return largest;
  }
};

template <class X>
DUALGEMM_DEVICE void quantise(const QuantizeParams& p, const Tile& tile, int atom, int byte,
                              const BlockPlace& at, const Block<X>& block, float scale) {
  const int32_t atoms = (p.k + kSfAtomElems - 1) / kSfAtomElems;
  uint8_t factor = 0;
  if (at.exists) {
    float x[kSfBlock];
#pragma unroll
    for (int i = 0; i < kSfBlock; ++i) x[i] = X::value(block.words, i);
    const PackedBlock packed = quantise_block(x, scale);
    ptx::st_global_v2_b32(p.q + tile.a_problem * p.q_stride + (int64_t{tile.row} + at.row) * p.q_pitch +
                              at.block * (kSfBlock / 2),
                          packed.packed);
    factor = packed.factor;
  }
  band_of(p.factors, p.factor_stride, tile, atoms)[int64_t{atom} * kSfAtomBytes + byte] = factor;
}

// The largest numbers of the types of q: of NVFP4 that of an element times that of a factor.
inline constexpr float kE4m3Max = 448, kNvfp4Max = kE4m3Max * 6;

// Returns the scale that makes the largest magnitude the largest number of a type, as
// dualgemm_global_scale_host has it for NVFP4. An infinity counts as the largest float.
DUALGEMM_DEVICE float scale_of(float largest, float largest_of_type) {
  if (largest == 0) return 1.0f;
  return fminf(__fdiv_rn(largest_of_type, fminf(largest, FLT_MAX)), FLT_MAX / 512);
}

DUALGEMM_DEVICE float given_scale(const QuantizeParams& p, const Tile& tile) {
  return p.scale_dev ? p.scale * p.scale_dev[tile.problem * p.scale_stride] : p.scale;
}

// Writes the scales that follow from the largest magnitude of x, if they are asked for.
DUALGEMM_DEVICE void write_tensor_scales(const QuantizeParams& p, float largest_of_type) {
  if (!p.tensor_scales || blockIdx.x != 0 || threadIdx.x != 0) return;
  const float scale = scale_of(p.tensor_scales[kLargest], largest_of_type);
  p.tensor_scales[kGlobalScale] = scale;
  p.tensor_scales[kDecodeScale] = __frcp_rn(scale);
}

// Returns the largest magnitude among so many threads of the CTA that follow each other. All threads call it.
template <int kThreads>
DUALGEMM_DEVICE float largest_of_threads(float largest) {
  __shared__ int32_t of_warps[kConvertThreads / 32];
  // The bits of floats that are not negative have the order of integers.
  const int32_t of_warp = __reduce_max_sync(0xffffffff, __float_as_int(largest));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  const int32_t* const own = of_warps + threadIdx.x / kThreads * (kThreads / 32);
  int32_t all = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) all = max(all, own[i]);
  __syncthreads();  // the next call writes them again
  return __int_as_float(all);
}

// Raises tensor_scales[kLargest], which is 0 before, to the largest magnitude of x.
template <class X, bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kQuantizeCtas)
    largest_kernel(const __grid_constant__ QuantizeParams p) {
  float largest = 0;
  for_each_tile<kGrouped>(p.rows, [&](const Tile& tile) {
    Block<X> blocks[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      blocks[i].load(p, tile, {p, tile, tile.n, static_cast<int>(threadIdx.x) + i * kConvertThreads});
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (BlockPlace(p, tile, tile.n, static_cast<int>(threadIdx.x) + i * kConvertThreads).exists)
        largest = blocks[i].largest(largest);
  });
  largest = largest_of_threads<kConvertThreads>(largest);
  // An infinity counts as the largest float. Floats that are not negative have the order of their bits.
  if (threadIdx.x == 0)
    ptx::red_global_max_s32(p.tensor_scales + kLargest, __float_as_int(fminf(largest, FLT_MAX)));
}

// Quantises with one scale for each problem, or one for all problems.
template <class X, bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kQuantizeCtas)
    quantize_kernel(const __grid_constant__ QuantizeParams p) {
  for_each_tile<kGrouped>(p.rows, [&p](const Tile& tile) {
    const float scale =
        p.tensor_scales ? scale_of(p.tensor_scales[kLargest], kNvfp4Max) : given_scale(p, tile);
    Block<X> blocks[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      blocks[i].load(p, tile, {p, tile, tile.n, static_cast<int>(threadIdx.x) + i * kConvertThreads});
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int byte = static_cast<int>(threadIdx.x) + i * kConvertThreads;
      quantise(p, tile, tile.n, byte, {p, tile, tile.n, byte}, blocks[i], scale);
    }
  });
  write_tensor_scales(p, kNvfp4Max);
}

// Quantises with a scale for each row. A tile is the eight rows of two lines of an atom, with all of K. A
// warp takes every eighth atom: first it looks for the largest magnitudes, then it reads the atom again, out
// of L2, and makes the codes.
template <class X, bool kGrouped>
__global__ void __launch_bounds__(kConvertThreads, kQuantizeCtas)
    quantize_rows_kernel(const __grid_constant__ QuantizeParams p) {
  constexpr int kWarps = kConvertThreads / 32, kRows = 32 / kSfAtomBlocks;
  __shared__ float largest_of[kWarps][kRows];
  for_each_tile<kGrouped>(p.rows, [&](const Tile& tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int byte = tile.n * 32 + lane, atoms = (p.k + kSfAtomElems - 1) / kSfAtomElems;
    float largest = 0;
    for (int atom = warp; atom < atoms; atom += kWarps) {
      const BlockPlace at(p, tile, atom, byte);
      Block<X> block;
      block.load(p, tile, at);
      if (at.exists) largest = block.largest(largest);
    }
#pragma unroll
    for (int bit = 1; bit < kSfAtomBlocks; bit *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, bit));
    if (lane % kSfAtomBlocks == 0) largest_of[warp][lane / kSfAtomBlocks] = largest;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, largest_of[i][lane / kSfAtomBlocks]);
    __syncthreads();  // the next tile writes them again

    const float scale = scale_of(largest, kNvfp4Max);
    if (const BlockPlace at(p, tile, 0, byte); warp == 0 && at.block == 0 && at.row < tile.rows)
      p.row_scale[tile.a_problem * p.row_scale_stride + tile.row + at.row] = __frcp_rn(scale);
    for (int atom = warp; atom < atoms; atom += kWarps) {
      const BlockPlace at(p, tile, atom, byte);
      Block<X> block;
      block.load(p, tile, at);
      quantise(p, tile, atom, byte, at, block, scale);
    }
  });
}

}  // namespace dualgemm::convert
