// params.h -- the one argument of the kernel, filled by host/ and read by the device. It is passed by value
// as __grid_constant__, so a CUDA graph freezes it and nothing needs device memory of its own.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace dualgemm {

// Params has these tensor maps, as host/tensor_map.cpp encodes them and kernel/common/load.cuh addresses
// them, with their dimensions innermost first:
//
//   map          type    dims                                 box                                   swizzle
//   a            UINT8   {k/2, rows, problems}                {128, a_box_rows, 1}                  128B
//   b1, b2       UINT8   {k/2, n, problems}                   {128, b_box_rows, 1}                  128B
//   sfa          INT64   {64, atoms, row blocks, problems}    {64, 4 k_tiles, 1, 1}                 none
//   sfb1, sfb2   INT64   {64, atoms, row blocks, problems}    {64, 4 k_tiles, sfb_blocks, 1}        none
//
// The boxes are those of the instance's plan (OperandPlan, ScalePlan).
// An atom is 512 bytes: the scale factors of 128 rows x 64 elements of K.
// atoms = ceil(k / 64), row blocks = ceil(rows / 128).
// What lies outside a tensor arrives as zero. `problems` counts the problems of a batch or the groups. Groups
// whose rows follow each other (group_offsets) share one A, C and SFA, with problems = 1; the scale factors
// of a group start at a new row block there.
struct alignas(128) Params {
  CUtensorMap a, b1, b2, sfa, sfb1, sfb2;
  void* c;                  // [problems][rows][n], 16-byte aligned
  int64_t ldc;              // elements between rows of c; the row pitch is a multiple of 16 bytes
  int64_t c_stride;         // elements between problems; 0 where they share one C
  const float* alpha1_dev;  // optional, multiplied into alpha1 and alpha2; may be null
  const float* alpha2_dev;
  int64_t alpha_stride;  // floats between the alphas of one problem and the next
  float alpha1, alpha2;
  int32_t m, n, k;  // elements; k is a multiple of 16, n of 8. m: rows of A, with groups at most
  int32_t m_tiles, n_tiles, k_tiles;  // of the instance: ceil(m / tile.m), and so on
  int32_t problems;                   // of a batch, or groups
  // For grouped instances these are the ends of the rows of each group, [groups + 1], or their numbers,
  // [groups].
  const int32_t* group_rows;
  int32_t group_offsets;   // 1: group_rows are offsets; 0: numbers of rows
  int32_t static_weights;  // 1: no work that may still run writes B1, B2 or their factors
};

}  // namespace dualgemm
