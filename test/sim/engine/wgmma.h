// wgmma.h -- what wgmma.mma_async computes, as pure functions over shared memory and fragments: 64 rows of A
// times N columns of B, of 32 bytes each, which are 16 elements of 16 bits or 32 of 8 bits. The rows are
// those of the four warps of a warpgroup, 16 each, and a thread holds (PTX ISA 9.7.15.5.1 "Register
// Fragments"; g = lane / 4, t = lane % 4):
//
//   register i of D  row g + 8 * (i / 2 % 2)   column 8 * (i / 4) + 2 * t + i % 2
//   register j of A  row g + 8 * (j % 2)       bytes from 16 * (j / 2) + 4 * t, the first in the lowest bits
//
// When this runs and who waits for it is exec/'s business; the numerics are in numerics.h.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/descriptor.h"
#include "sim/engine/footprint.h"
#include "sim/engine/numerics.h"
#include "sim/mem/bytes.h"

namespace sim {

constexpr int kWgmmaRows = 64, kWgmmaWarpRows = 16, kWgmmaRowBytes = kDenseRowBytes;

struct WgmmaOp {
  int n = 0;
  DenseFormats formats{};
  bool a_in_registers = false;  // then a_desc means nothing
  uint64_t a_desc = 0, b_desc = 0;
  bool a_mn_major = false, b_mn_major = false;  // only of 16 bits
  bool negate_a = false, negate_b = false;
  bool accumulate = false;  // scale-d
  int depth() const { return dense_depth(formats); }
};

// Decodes a matrix descriptor of sm_90 (PTX ISA 9.7.15.5.1.2.2 "Matrix Descriptor Format"): its fields are
// those of the descriptor of tcgen05, except a swizzle of only two bits. It faults as decode_smem_descriptor
// does.
SmemDescriptor decode_wgmma_descriptor(uint64_t bits);

// Returns whether the matrix starts in a later row of its pattern. The ISA asks for a base offset then, but
// kernels leave it 0 with the swizzle of 128 bytes, and an H100 swizzles by the bits of the address, as for
// any other start.
inline bool starts_inside_pattern(const SmemDescriptor& d) {
  return d.span == 128 && !in_first_row_of_pattern(d);
}

// Checks what the operands alone decide. Throws Fault kProtocol or kUnsupported.
void check_wgmma(const WgmmaOp& op);

// Return the bytes of shared memory that the part of one warp reads: its 16 rows of A, and all of B.
std::vector<ByteRange> wgmma_bytes_of_a(const WgmmaOp& op, int warp);
std::vector<ByteRange> wgmma_bytes_of_b(const WgmmaOp& op);

struct MatrixCell {
  int row, column;
};
inline MatrixCell wgmma_d_cell(int warp, int lane, int i) {
  return {warp * kWgmmaWarpRows + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2};
}
inline MatrixCell wgmma_a_cell(int warp, int lane, int j) {  // `column` counts bytes
  return {warp * kWgmmaWarpRows + lane / 4 + 8 * (j % 2), 16 * (j / 2) + 4 * (lane % 4)};
}

// Reads A (64 rows) or B (n rows) as numbers, a row after the other, with the sign that the operation gives
// them. Throws Fault kPoison or kBounds.
void read_wgmma_a(const WgmmaOp& op, const Bytes& smem, float* a);
void read_wgmma_b(const WgmmaOp& op, const Bytes& smem, float* b);
float wgmma_element(const WgmmaOp& op, uint32_t code, bool of_b);

}  // namespace sim
