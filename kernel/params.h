// params.h -- the one argument of the kernel, filled by host/ and read by the device. It is passed by value
// as __grid_constant__, so a CUDA graph freezes it and nothing needs device memory of its own.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernel/stream_k.h"

namespace dualgemm {

// Describes a matrix [problems][rows][n] that the kernel writes. In elements, rows are `pitch` apart and
// problems `stride`, which is 0 if they share one matrix. Rows start at multiples of 16 bytes.
struct Matrix {
  void* start;
  int64_t pitch, stride;
};

// These are the inputs of the general epilogue (epilogue/general.cuh). Pointers may be null unless a comment
// says otherwise. Strides count elements from one problem to the next; a stride is 0 where all problems share
// one tensor.
struct GeneralParams {
  const float* row_scale;     // a factor for each row of A
  const float* c_row_scale;   // a factor for each row of C, after the activation
  const void *bias1, *bias2;  // an addend for each column, after all other factors
  Matrix d1, d2;              // gate and up as the activation takes them
  float* amax;                // raised to the largest |C| before its conversion
  const float* encode_dev;    // multiplied into `encode`
  void* sfc;                  // factors of an NVFP4 C, which needs them, in blocks of 128 rows as in SFA
  int64_t row_scale_stride, c_row_scale_stride, bias_stride, encode_stride;
  int64_t sfc_stride;  // bytes
  float encode;        // what an FP8 or NVFP4 C is multiplied with before its conversion
  float swiglu_alpha, swiglu_beta, swiglu_limit;
  float situ_gate, situ_up;  // the bounds of the two tanh of SiTU, and 1 / these
  float situ_gate_reciprocal, situ_up_reciprocal;
  int32_t activation;         // ActivationKind, with one product LinearActivation
  int32_t exact;              // 1: the activation in fp64
  int32_t bias_type, d_type;  // CType
  // With one product this is added to C as the last step: a matrix [problems][rows][n] in C's type, which is
  // fp16, bf16 or fp32. It may be C itself. Pitch and stride are in elements, and rows start at multiples of
  // 16 bytes.
  const void* c_add;
  int64_t c_add_ld, c_add_stride;
};

// Params has these tensor maps, as host/launch/tensor_map.cpp encodes them and kernel/common/load.cuh
// addresses them, with their dimensions innermost first. Their boxes follow from the instance's plan
// (boxes.h).
//
//   map          type    dims                                 swizzle
//   a            UINT8   {k/2, rows, problems}                128B
//   a, 16 bits   UINT16  {k, rows, problems}                  128B
//   b1, b2       UINT8   {k/2, n, problems}                   128B
//   a, FP8       UINT8   {k, rows, problems}                  128B
//   sfa          INT64   {64, atoms, row blocks, problems}    none
//   sfb1, sfb2   INT64   {64, atoms, row blocks, problems}    none
//   prepared_a   UINT16  {64, rows, panels, problems}         128B
//
// `prepared_a` is A as a pass before the kernel leaves it (PrepareParams), for instances of
// Plan::prepared_a. A row has whole k-tiles of four panels each, and a panel has 64 places. These instances
// have no maps of A and SFA, those for another A than NVFP4 none of SFA, those of one product none of B2 and
// SFB2. An atom is 512 bytes: the factors of 128 rows x 64 elements of K, of MXFP4 128. atoms = ceil(k / 64),
// or ceil(k / 128); row blocks = ceil(rows / 128). What lies outside a tensor arrives as zero. `problems`
// counts those of a batch, or groups. Groups whose rows follow each other (group_offsets) share one A, C and
// SFA, with problems = 1; the scale factors of a group start at a new row block there.
struct alignas(128) Params {
  CUtensorMap a, b1, b2, sfa, sfb1, sfb2, prepared_a;
  Matrix c;
  const float* alpha1_dev;  // optional, multiplied into alpha1 and alpha2; may be null
  const float* alpha2_dev;
  int64_t alpha_stride;  // floats between the alphas of one problem and the next
  float alpha1, alpha2;
  int32_t m, n, k;  // elements; k is a multiple of 16, n of 4. m: rows of A, with groups at most
  int32_t m_tiles, n_tiles, k_tiles;  // of the instance: ceil(m / tile.m), and so on
  int32_t problems;                   // of a batch, or groups
  int32_t c_type;                     // CType; a kernel that writes one type does not read it
  // For grouped instances: the offsets of the groups' rows, [groups + 1], or their numbers of rows, [groups].
  const int32_t* group_rows;
  int32_t group_offsets;   // 1: group_rows are offsets; 0: numbers of rows
  int32_t static_weights;  // 1: no work that may still run writes B1, B2 or their factors
  GeneralParams general;
  // With stream-K: who has what, where CTAs leave sums of parts of tiles, kPartsOfCta for each CTA, and how
  // many parts of each shared tile have arrived. The pass before the kernel has set these numbers to 0.
  Shares shares;
  float* part_sums;
  uint32_t* parts_there;
  // For B1 and B2 in MXFP4: the exponents of the powers of two that rows are multiplied with; may be null.
  const int16_t *b1_row_exponent, *b2_row_exponent;
  int64_t b_row_exponent_stride;  // numbers from one problem to the next
};

}  // namespace dualgemm
