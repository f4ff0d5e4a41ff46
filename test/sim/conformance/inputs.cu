// inputs.cu -- the operands of the arithmetic forms. Special values of every format that fits the register
// meet in all combinations; the rest is random, one half with independent operands, the other with operands
// that are close to each other, so that sums cancel and comparisons tie.
#include <cmath>

#include "test/sim/conformance/form.cuh"

namespace conformance {

const std::vector<uint16_t> kSpecial16 = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x0080, 0x0400, 0x03FF, 0x007F, 0x3C00, 0xBC00, 0x3C01, 0x3F80,
    0xBF80, 0x3F81, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80,
    0x7FC0, 0x7FFF, 0xFFFF, 0x00FF, 0x0100, 0x7FFE, 0x4900, 0x0002, 0x001F, 0x0020, 0x3800, 0xB800};

const std::vector<uint32_t> kSpecial32 = {
    // integers
    0, 1, 2, 3, 31, 32, 33, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001,
    0xFFFFFFFF, 0xFFFFFF80, 0xFFFF8000,
    // f32: ones, halves, ties, extremes, subnormals, infinities, NaNs, format limits
    0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0xC0200000, 0x3F7FFFFF,
    0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC12345,
    0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x43E00000,
    0x43E80000, 0x47600000, 0x47700000, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0x4F800000, 0x5F000000,
    0xDF000000, 0x5F800000, 0x33000000, 0x33000001, 0x38800000, 0x387FFFFF, 0x3A800000, 0x3A7FFFFF,
    0x3F801000, 0x3F803000, 0x3F808000, 0x3F818000, 0x7F7F8000,
    // f16x2 and bf16x2
    0x3C007C00, 0x7E01FC00, 0x04000001, 0x7BFF7BFF, 0xFBFF8400, 0x3F807F80, 0x7FC10001, 0x7F7F0080,
    0x80000000};

const std::vector<uint64_t> kSpecial64 = {0,
                                          1,
                                          2,
                                          31,
                                          63,
                                          64,
                                          255,
                                          0x7FFF,
                                          0xFFFFFFFF,
                                          0x100000000,
                                          0x7FFFFFFF,
                                          0x80000000,
                                          0x7FFFFFFFFFFFFFFF,
                                          0x8000000000000000,
                                          0x8000000000000001,
                                          0xFFFFFFFFFFFFFFFF,
                                          0xFFFFFFFF80000000,
                                          0x3FF0000000000000,
                                          0xBFF0000000000000,
                                          0x3FE0000000000000,
                                          0x4004000000000000,
                                          0x7FEFFFFFFFFFFFFF,
                                          0x7FF0000000000000,
                                          0xFFF0000000000000,
                                          0x7FF8000000000000,
                                          0x7FF0000000000001,
                                          0x000FFFFFFFFFFFFF,
                                          0x0010000000000000,
                                          0x43E0000000000000,
                                          0xC3E0000000000000,
                                          0x41DFFFFFFFC00000,
                                          0x47EFFFFFF0000000,
                                          0x36A0000000000000,
                                          0x3690000000000001,
                                          0x3FF0000010000000,
                                          0x0000008000000001,
                                          0x00FFFFFF00FFFFFF,
                                          0x0000010000000000};

static const std::vector<uint16_t>& specials(uint16_t) { return kSpecial16; }
static const std::vector<uint32_t>& specials(uint32_t) { return kSpecial32; }
static const std::vector<uint64_t>& specials(uint64_t) { return kSpecial64; }

// Returns a random pattern; for 32 bits half of them are floats of moderate size.
static uint64_t pattern(Random& random, size_t bytes) {
  const uint64_t bits = random.bits();
  if (bytes == 4 && (bits >> 63) != 0) {
    const uint32_t exponent = 127 - 34 + random.below(70);
    return (bits & 0x807FFFFF) | exponent << 23;
  }
  if (bytes == 8 && (bits >> 62) == 1) return bits >> random.below(64);
  if (bytes == 8 && (bits >> 62) == 2) {
    const uint64_t exponent = 1023 - 70 + random.below(140);
    return (bits & 0x800FFFFFFFFFFFFF) | exponent << 52;
  }
  return bits;
}

template <class T>
std::vector<T> inputs(int position, int count) {
  std::vector<T> out(kElements);
  if (sizeof(T) == 2 && count == 1) {
    for (uint32_t i = 0; i < kElements; ++i) out[i] = T(i);
    return out;
  }
  const std::vector<T>& special = specials(T{});
  const uint32_t all = uint32_t(special.size());
  const uint32_t used = count == 3 ? 28 : all;  // three operands: a sample of the specials
  const uint32_t stride = count == 3 ? all / used + (all % used != 0) : 1;
  uint32_t combinations = 1;
  for (int i = 0; i < count; ++i) combinations *= used;
  Random independent(uint64_t(position) + 1), common(77), noise(uint64_t(position) + 1000);
  for (uint32_t i = 0; i < kElements; ++i) {
    const uint64_t own = pattern(independent, sizeof(T)), shared = pattern(common, sizeof(T)),
                   flips = noise.bits() & noise.bits();
    if (i < combinations) {
      uint32_t digit = i;
      for (int p = 0; p < position; ++p) digit /= used;
      out[i] = special[(digit % used) * stride % all];
    } else if (i % 2 == 0) {
      out[i] = T(own);
    } else {
      // The operand is near the common pattern: the sign and some low bits differ.
      const uint64_t low = sizeof(T) == 2 ? 0x800F : sizeof(T) == 4 ? 0x800380FF : 0x800000000000FFFF;
      out[i] = T(shared ^ (flips & low));
    }
  }
  return out;
}

template std::vector<uint16_t> inputs<uint16_t>(int, int);
template std::vector<uint32_t> inputs<uint32_t>(int, int);
template std::vector<uint64_t> inputs<uint64_t>(int, int);

}  // namespace conformance
