// descriptor.h -- the two descriptors of the tensor core, decoded from their bit tables (PTX ISA, tcgen05
// "Matrix descriptor" and "Instruction descriptor"), and the address of every operand byte. These are pure
// functions of the bits, which know nothing of memory, threads or TMEM.
#pragma once

#include <cstdint>

#include "sim/engine/tensor_core.h"

namespace sim {

constexpr uint32_t kChunk = 16;        // bytes that every layout keeps together
constexpr uint32_t kChunksPerRow = 2;  // K of one tcgen05.mma is 32 bytes of a row

// Returns the bits [first, last] of a descriptor.
inline uint32_t field(uint64_t bits, int first, int last) {
  return static_cast<uint32_t>(bits >> first & ((uint64_t{1} << (last - first + 1)) - 1));
}

// A shared-memory matrix descriptor. Decoding faults on reserved bits (kProtocol) and on modes whose layout
// is not established (kUnsupported).
struct SmemDescriptor {
  uint32_t start = 0;    // byte offset in the CTA's shared window
  uint32_t leading = 0;  // leading-dimension byte offset (LBO)
  uint32_t stride = 0;   // stride-dimension byte offset (SBO)
  uint32_t span = 0;     // bytes of the swizzle: 0 none, 32, 64, 128
};
SmemDescriptor decode_smem_descriptor(uint64_t bits);

// With base offset 0 the pattern of a swizzle begins where the address bits of its row number are zero, at
// multiples of 1024, 512 or 256 bytes. A start may lie inside the first row of the pattern, where it steps
// along K.
inline bool in_first_row_of_pattern(const SmemDescriptor& d) {
  return d.span == 0 || d.start % (d.span * 8) < d.span;
}

// Returns the address of the 16-byte chunk `chunk` of row `row` of a K-major operand (a row is contiguous
// along K):
//   none:      start + (row/8)*SBO + (row%8)*16 + chunk*LBO
//   swizzled:  start + (row/8)*SBO + (row%8)*span + chunk*16, then address bits 4.. ^= bits 7..
uint32_t k_major_address(const SmemDescriptor& d, uint32_t row, uint32_t chunk);

// Returns the address of the 16-byte chunk `chunk` along M or N at depth k of an MN-major operand (contiguous
// along M or N, 16-bit elements):
//   none:      start + chunk*SBO + (k/8)*LBO + (k%8)*16
//   swizzled:  start + (chunk / (span/16))*LBO + (k/8)*SBO + (k%8)*span + (chunk % (span/16))*16,
//              then the same XOR
uint32_t mn_major_address(const SmemDescriptor& d, uint32_t chunk, uint32_t k);

// A decoded instruction descriptor. Decoding checks it, and the operation around it, as far as bits alone
// allow.
struct MmaShape {
  int m = 0, n = 0, k = 0;     // of the whole instruction
  int a_type = 0, b_type = 0;  // codes of the kind's table
  bool negate_a = false, negate_b = false;
  bool a_mn_major = false, b_mn_major = false;
  bool d_is_f16 = false;       // kF16 only; else f32
  bool ue8m0 = false;          // block-scaled kinds
  int sfa_id = 0, sfb_id = 0;  // block-scaled kinds

  int rows_per_cta(int cta_group) const { return m / cta_group; }
  int b_rows_per_cta(int cta_group) const { return n / cta_group; }
};
MmaShape decode_shape(const MmaOp& op);

// B's scale factors take a column for 32 rows and are fetched in pairs of columns.
inline int scale_columns_b(int n) { return 2 * ((n + 63) / 64); }

inline bool block_scaled(MmaKind kind) { return kind == MmaKind::kMxf4 || kind == MmaKind::kMxf4nvf4; }

}  // namespace sim
