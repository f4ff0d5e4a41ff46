// tensor_core_fixture.hpp -- the memory of one CTA and the addresses in it, for tests of single tensor-core
// operations: formulas written out again, so that a wrong one in the machine shows.
#pragma once

#include "sim/engine/tensor_core.h"

namespace tensor_core_test {

inline constexpr uint64_t kSw128 = 0x4000404000000000;  // SBO 1024, bit 46, 128-byte swizzle
inline uint64_t at(uint64_t desc, uint32_t address) { return desc | address >> 4; }

struct Cta {
  sim::Bytes smem{232448, "shared memory"};
  sim::Tmem tmem;
  sim::CtaMemory memory() { return {&smem, &tmem}; }
  void byte(uint32_t address, uint8_t value) { smem.write(address, &value, 1); }
  void half(uint32_t address, uint16_t value) { smem.write(address, &value, 2); }
};

// Returns the address of byte b of row r in a tile of 128-byte rows under the 128-byte swizzle.
inline uint32_t sw128(uint32_t base, int row, int b) {
  const uint32_t linear = base + static_cast<uint32_t>(row * 128 + b);
  return linear ^ ((linear >> 7 & 7) << 4);
}

}  // namespace tensor_core_test
