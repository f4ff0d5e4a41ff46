// device.cuh -- what the fixtures are made of: instructions, one function each, and waits. What matters in a
// fixture is the order of these calls; so no function here elects a lane or fences by itself, and a wait is a
// loop around try_wait.
#pragma once

#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "support/ptx.cuh"

namespace defects {

using namespace test_ptx;

DUALGEMM_DEVICE uint32_t warp_index() { return threadIdx.x / 32; }
DUALGEMM_DEVICE uint32_t lane_index() { return threadIdx.x % 32; }
// Returns the shared address of the same variable in CTA `rank` of the cluster.
DUALGEMM_DEVICE uint32_t shared_of(const void* pointer, uint32_t rank) {
  return mapa(smem_u32(pointer), rank);
}

DUALGEMM_DEVICE void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}
DUALGEMM_DEVICE void mbarrier_wait_cluster(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_cluster(barrier, parity)) {
  }
}
DUALGEMM_DEVICE void mbarrier_wait_relaxed(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_relaxed(barrier, parity)) {
  }
}

// Descriptors of shared memory (PTX ISA, "Matrix descriptor"): start address, bytes between groups of 8 rows,
// and the swizzle: 0 none, 4 64-byte, 6 32-byte.
DUALGEMM_DEVICE uint64_t matrix_descriptor(const void* start, uint32_t stride, uint64_t swizzle) {
  return (smem_u32(start) & 0x3FFFF) >> 4 | uint64_t(stride >> 4) << 32 | uint64_t(1) << 46 | swizzle << 61;
}
// Returns the address at which a lane of ldmatrix or stmatrix finds its row: four matrices are 16 rows and
// two chunks of 16 bytes. Rows have 128 bytes and lie under the 128-byte swizzle: chunk c of row r is at
// place c ^ r % 8.
DUALGEMM_DEVICE uint32_t matrix_row(uint32_t tile, uint32_t first_row, uint32_t first_chunk) {
  const uint32_t row = first_row + lane_index() % 16, chunk = first_chunk + lane_index() / 16;
  return tile + row * 128 + (chunk ^ row % 8) * 16;
}
DUALGEMM_DEVICE uint64_t scale_descriptor(const void* start) { return matrix_descriptor(start, 128, 0); }

}  // namespace defects
