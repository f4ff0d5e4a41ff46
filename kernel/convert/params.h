// params.h -- the arguments of the kernels that move scale factors and quantise, filled by host/ and passed
// by value, and the table of these kernels. This is plain C++, like kernel/params.h.
#pragma once

#include <cstdint>

#include "kernel/plan.h"

namespace dualgemm {

// The rows of a launch, with the fields of kernel/params.h. A tile is a band, which is a block of 128 rows of
// scale factors, by a piece of the other direction.
struct BandParams {
  int32_t m;                  // rows of a problem, with groups at most
  int32_t m_tiles, n_tiles;   // bands of a problem, pieces of a band
  int32_t problems;           // of a batch, or groups
  const int32_t* group_rows;  // as in Params
  int32_t group_offsets;
};

// These are the arguments of the kernels that move factors between rows [problems][m][blocks] and atoms.
struct FactorParams {
  BandParams rows;
  uint8_t* linear;
  int64_t pitch, stride;  // bytes of the linear factors
  uint8_t* atoms;
  int64_t atom_stride;  // bytes
  int32_t blocks;       // factors of a row
  int32_t wide;         // 1: linear rows begin at multiples of 16 bytes
};

// The places in tensor_scales of what the kernels find for a whole tensor: its largest magnitude, the scale
// that follows from it, and 1 / this scale.
enum TensorScale { kLargest, kGlobalScale, kDecodeScale, kTensorScales };

struct QuantizeParams {
  BandParams rows;
  const void* x;
  int64_t x_pitch, x_stride;  // elements
  uint8_t* q;
  int64_t q_pitch, q_stride;  // bytes
  uint8_t* factors;           // null in FP8
  int64_t factor_stride;      // bytes
  int32_t k;
  float scale;
  const float* scale_dev;  // optional, multiplied into `scale`
  int64_t scale_stride;
  float* tensor_scales;  // kTensorScales floats, or null: the scale is given
  float* row_scale;      // of the kernels that scale row by row: the scales of the way back
  int64_t row_scale_stride;
  const int32_t* row_index;  // the row of x that each row is quantised from, or null: its own
  int32_t x_rows;            // of x; an index beyond them stands for zeros
};

// A factor of MXFP4 is 2^(byte - 127), and the byte 0xFF is NaN (E8M0; OCP Microscaling Formats (MX)
// Specification, version 1.0). Preparation makes the largest byte of a row 133: 2^6 times 6, the largest
// E2M1, is a number of E4M3, and 2^7 times 6 would not be. Elements with factors of up to kExactOctaves
// octaves less are numbers of E4M3, too: 2^-8 times 0.5 is its smallest.
inline constexpr int32_t kE8m0Bias = 127, kE8m0Nan = 0xFF, kMostMxfp4Byte = kE8m0Bias + 6, kExactOctaves = 14;

// What is counted while MXFP4 weights are prepared, in the order of dualgemm_prepare_mxfp4_args_t.counts.
enum Mxfp4Count { kNonzeroBlocks, kRoundedBlocks, kNanBlocks, kRaisedBlocks, kMxfp4Counts };

// These are the arguments of the kernel that prepares MXFP4 weights.
struct Mxfp4Params {
  BandParams rows;
  const uint8_t* q;
  int64_t q_pitch, q_stride;  // bytes
  const uint8_t* scales;
  int64_t scale_pitch, scale_stride;  // bytes
  uint8_t* factors;
  int64_t factor_stride;  // bytes
  int16_t* row_exponent;
  int64_t row_exponent_stride;
  uint32_t* counts;  // kMxfp4Counts numbers, which are added to; or null
  int32_t blocks;    // of a row
};

// These are the arguments of the pass over A. It makes 16 bits as an instance takes them (Params::prepared_a)
// out of NVFP4, or out of 16 bits without factors. Each row has whole k-tiles, in the order of K that these
// instances take, and zeros beyond the end of A.
struct PrepareParams {
  BandParams rows;
  const uint8_t* a;
  int64_t a_pitch, a_stride;  // bytes
  const uint8_t* factors;
  int64_t factor_stride;  // bytes
  uint16_t* prepared_a;
  int64_t pitch, stride;  // elements; the pitch is that of whole k-tiles
  int32_t k;
  uint32_t* zeros;  // numbers that the pass sets to 0, of which there are this many
  int32_t zero_count;
};

using PrepareKernel = void (*)(PrepareParams);
using FactorKernel = void (*)(FactorParams);
using QuantizeKernel = void (*)(QuantizeParams);
using QuantizeKernels = QuantizeKernel[2][3];
using Mxfp4Kernel = void (*)(Mxfp4Params);

// The CTAs of all these kernels have kConvertThreads threads. The other numbers say how many CTAs of each
// kind fit on an SM.
inline constexpr int32_t kConvertThreads = 256;
inline constexpr int32_t kFactorCtas = 8, kQuantizeCtas = 4, kMxfp4Ctas = 4, kPrepareCtas = 3;

// Pieces of a band: the factors of a row that one tile moves, and the elements that it quantises. Where each
// row has a scale of its own, a tile has whole rows, and a band has this many tiles.
inline constexpr int32_t kFactorPiece = 32, kQuantizePiece = 64, kTilesOfRows = 16;
// A tile of FP8 is a row, or several short rows, which are those of at most so many bytes of x.
inline constexpr int32_t kShortRowBytes = 8192, kShortRowsOfTile = 4;
// A warp of the kernels that prepare A makes a k-tile of this many rows. One of their tiles has the k-tiles
// of all warps of a CTA.
inline constexpr int32_t kPrepareRows = 8, kPreparePiece = kTileK * kConvertThreads / 32;

// The first index is 1 with groups. The second is the type of x: bf16, fp16, fp32, in the order of CType.
extern const FactorKernel kSwizzleKernels[2], kUnswizzleKernels[2];
// These are for an architecture that multiplies 16 bits. The first index is 1 if A is in NVFP4, and 0 if it
// has 16 bits. The second is 1 with groups.
extern const PrepareKernel kPrepareKernels[2][2];
extern const Mxfp4Kernel kMxfp4Kernel;
extern const QuantizeKernels kLargestKernels, kQuantizeKernels, kQuantizeRowsKernels, kQuantizeFp8Kernels,
    kQuantizeShortFp8Kernels;

}  // namespace dualgemm
