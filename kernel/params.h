// params.h -- the one argument of the kernel, filled by host/ and read by the device. Passed by value as
// __grid_constant__, so a CUDA graph freezes it and nothing needs device memory of its own.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace dualgemm {

// Tensor maps, as host/tensor_map.cpp encodes them and kernel/load.cuh addresses them:
//
//   map          type    dims {inner, outer}          box                swizzle  coordinates {inner, outer}
//   a            UINT8   {k/2, m}                     {128, kABoxRows}   128B     {128 k_tile, row}
//   b1, b2       UINT8   {k/2, n}                     {128, kBBoxRows}   128B     {128 k_tile, row}
//   sfa          INT64   {64 * atoms, row blocks m}   {256, 1}           none     {256 k_tile, row block}
//   sfb1, sfb2   INT64   {64 * atoms, row blocks n}   {256, 1}           none     {256 k_tile, row block}
//
// An atom is 512 bytes: the scale factors of 128 rows x 64 elements of K. atoms = ceil(k / 64), row blocks =
// ceil(rows / 128). One box of scale factors is four atoms: kTileK = 256. What lies outside a tensor arrives
// as zero.
struct alignas(128) Params {
  CUtensorMap a, b1, b2, sfa, sfb1, sfb2;
  void* c;                  // [m, n] row-major, 16-byte aligned
  int64_t ldc;              // elements between rows of c; the row pitch is a multiple of 16 bytes
  const float* alpha1_dev;  // optional device factors, multiplied into alpha1 and alpha2; may be null
  const float* alpha2_dev;
  float alpha1, alpha2;
  int32_t m, n, k;                    // elements; k is a multiple of 16, n of 8
  int32_t m_tiles, n_tiles, k_tiles;  // ceil(m / kTileM), ceil(n / kTileN), ceil(k / kTileK)
};

}  // namespace dualgemm
