// descriptor.h -- what the tensor cores take as plain integers: the shared-memory matrix descriptors of
// tcgen05 and of wgmma (where an operand lies and how it is swizzled), and the instruction descriptor of
// tcgen05.mma (types and shape of one mma). The fields are those of PTX ISA 9.0, tables 40 and 44, and
// 9.7.15.5.1.2.2. It is plain constexpr C++: the tests check it without a GPU.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm::ptx {

// Returns `value` in bits first..last of a descriptor.
DUALGEMM_HOST_DEVICE constexpr uint64_t bit_field(uint64_t value, int first, int last) {
  return (value & ((uint64_t{1} << (last - first + 1)) - 1)) << first;
}

// Returns an address or an offset as a matrix descriptor has it: 18 bits of bytes, in units of 16. The mask
// also drops the cluster rank that a shared-window address carries above bit 23: a descriptor only ever names
// the CTA's own memory.
DUALGEMM_HOST_DEVICE constexpr uint64_t matrix_offset(uint32_t bytes) { return (bytes & 0x3FFFF) >> 4; }

enum class Swizzle : uint32_t { kNone = 0, k128B = 2 };

// Returns the shared-memory matrix descriptor of a K-major operand. `stride_bytes` is the distance between
// groups of eight rows. The leading offset (bits 16-29) stays 0: neither a swizzled K-major operand nor a
// 16-byte-wide copy has a second column to reach.
//
//   bits 0-13 start address   16-29 leading offset   32-45 stride offset   46-48 constant 1
//        49-51 base offset: 0, every swizzle pattern starts at a multiple of 1024 bytes   61-63 swizzle
DUALGEMM_HOST_DEVICE constexpr uint64_t matrix_descriptor(uint32_t smem_address, uint32_t stride_bytes,
                                                          Swizzle swizzle) {
  return bit_field(matrix_offset(smem_address), 0, 13) | bit_field(matrix_offset(stride_bytes), 32, 45) |
         bit_field(1, 46, 48) | bit_field(static_cast<uint32_t>(swizzle), 61, 63);
}

// Returns the descriptor of rows of 128 bytes (256 e2m1 elements) in the 128-byte swizzle, which is how TMA
// writes A, B1 and B2. Eight rows are 1024 bytes.
DUALGEMM_HOST_DEVICE constexpr uint64_t operand_descriptor(uint32_t smem_address) {
  return matrix_descriptor(smem_address, 1024, Swizzle::k128B);
}

// Returns the descriptor of a scale-factor atom, 512 bytes without a swizzle, which tcgen05.cp.32x128b reads
// as 32 rows of 16 bytes. Eight of these rows are 128 bytes.
DUALGEMM_HOST_DEVICE constexpr uint64_t scale_descriptor(uint32_t smem_address) {
  return matrix_descriptor(smem_address, 128, Swizzle::kNone);
}

// Returns the shared-memory matrix descriptor of wgmma for a K-major operand of 128-byte rows in the 128-byte
// swizzle (PTX ISA 9.0, 9.7.15.5.1.2.2). Its swizzle has two bits and numbers of its own; eight rows are 1024
// bytes, and the leading offset is not used.
//
//   bits 0-13 start address   16-29 leading offset   32-45 stride offset
//        49-51 base offset: 0, as above   62-63 swizzle: 1 = 128 bytes
DUALGEMM_HOST_DEVICE constexpr uint64_t wgmma_descriptor(uint32_t smem_address) {
  return bit_field(matrix_offset(smem_address), 0, 13) | bit_field(1, 16, 29) |
         bit_field(matrix_offset(1024), 32, 45) | bit_field(1, 62, 63);
}

// Returns `descriptor` with its start address moved by `bytes`, a multiple of 16. The address field does not
// carry out of its 14 bits because an operand never crosses the end of the 256 KiB window.
DUALGEMM_HOST_DEVICE constexpr uint64_t advance(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

// Returns the instruction descriptor of tcgen05.mma kind::mxf4nvf4 for dense e2m1 times e2m1 with ue4m3
// scales and K = 64. The scale-factor ids (bits 4-5 and 29-30), the negations (13, 14), the transpositions
// (15, 16), the scale type (23, 0 = ue4m3) and the K size (31) are all 0: block16 has only the id 0, and
// K-major is the only order of 4-bit operands.
//
//   bits 7-9 type of A, 10-11 type of B: 1 = e2m1      17-22 N / 8      27-28 M / 128
DUALGEMM_HOST_DEVICE constexpr uint32_t mxf4nvf4_instruction_descriptor(int m, int n) {
  constexpr int kE2m1 = 1;
  return static_cast<uint32_t>(bit_field(kE2m1, 7, 9) | bit_field(kE2m1, 10, 11) |
                               bit_field(static_cast<uint32_t>(n) / 8, 17, 22) |
                               bit_field(static_cast<uint32_t>(m) / 128, 27, 28));
}

}  // namespace dualgemm::ptx
