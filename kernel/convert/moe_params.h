// moe_params.h -- the arguments of the kernels around the launches of a layer of experts, filled by host/ and
// passed by value, and the table of these kernels. This is plain C++, like kernel/params.h.
#pragma once

#include <cstdint>

#include "kernel/convert/params.h"

namespace dualgemm {

// These are the arguments of the kernel that makes the rows of the experts out of each token's choices.
struct PermuteParams {
  const int32_t* ids;    // the expert of each choice
  const float* weights;  // of each choice, or null
  int32_t count;         // of choices
  int32_t top_k;         // choices of a token
  int32_t experts;
  int32_t* group_rows;  // the first row of each expert, and the end of the last
  int32_t* row_token;   // the token of each row, -1 beyond the last
  int32_t* token_row;   // the row of each choice, -1 where there is none
  float* row_weight;    // the weight of each row, 0 beyond the last; null without weights
};

// These are the arguments of the kernel that copies rows of x to an A of 16 bits.
struct GatherParams {
  const int32_t* row_index;  // the row of x that each row is copied from
  int32_t rows, k;
  int32_t x_rows;  // of x; a row whose index is beyond them is left alone
  const void* x;
  int64_t x_pitch;  // elements
  void* out;
  int64_t out_pitch;
};

// These are the arguments of the kernel that adds up each token's rows.
struct CombineParams {
  const int32_t* token_row;
  int32_t tokens, top_k, n;
  int32_t rows;  // of c; a number beyond them is no row
  const void* c;
  int64_t c_pitch;  // elements, as all pitches
  const void* add;  // or null
  int64_t add_pitch;
  void* out;
  int64_t out_pitch;
  const float* weights;  // of each choice; null: 1 each
};

using PermuteKernel = void (*)(PermuteParams);
using GatherKernel = void (*)(GatherParams);
using CombineKernel = void (*)(CombineParams);

// This many CTAs of each kind fit on an SM. Each has kConvertThreads threads, as all conversions do.
inline constexpr int32_t kPermuteCtas = 4, kGatherCtas = 4, kCombineCtas = 4;
// Eight threads copy a row, 16 bytes each, which together are a line of 128 bytes. Each thread has this many
// such lines under way at once. So a tile is 32 rows by 256 columns.
inline constexpr int32_t kGatherColumns = 8, kGatherThreads = 8, kGatherAtOnce = 4;
inline constexpr int32_t kGatherRows = kConvertThreads / kGatherThreads,
                         kGatherPiece = kGatherColumns * kGatherThreads * kGatherAtOnce;
// How many columns a thread sums (elements of 16 bits fill 16 bytes then), and how many a CTA does.
inline constexpr int32_t kCombineColumns = 8, kCombinePiece = kCombineColumns * kConvertThreads;

extern const PermuteKernel kPermuteKernel;
extern const GatherKernel kGatherKernel;
// The first index is the type of c, the second that of out: bf16, fp16, fp32, in the order of CType.
extern const CombineKernel kCombineKernels[3][3];

}  // namespace dualgemm
