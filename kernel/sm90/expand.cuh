// expand.cuh -- from NVFP4 to the operands of wgmma, fp16 or bf16, and the order of K in which these lie. An
// e2m1 number is sign, two bits of exponent and one of mantissa: s e e m. It is placed as
//
//   fp16   15   14..12   11..9   8..0         bf16   15   14..9         8..6    5..0
//          s    0 0 0    e e m   0                   s    0 0 0 0 0 0   e e m   0
//
// and is then the same number times 2^-14, or 2^-126, subnormal or not, since the exponent of fp16 is biased
// by 15, that of bf16 by 127, and that of e2m1 by 1. A factor is multiplied with 2^7 for fp16, with 2^119 for
// bf16. Even the largest factor, 448, is a number of the type after that. The product of element and factor
// is the weight w times 2^-7. It has at most 1 + 1 + 4 bits of significance and is a multiple of 2^-17, so
// that either type holds it exactly; NaN stays NaN. An A in NVFP4 is expanded to fp16 like the weights, and
// an A of 16 bits stays as it is. So the sum of the products is an element of A * B^T times a power of two. A
// multiplication by `unscale` removes this power: exactly, in fp32, whatever alpha is.
//
// A tensor core aligns products by the exponent fields of their operands, where a subnormal number has that
// of the smallest normal one (test/sim/conformance/tensor_core.cu, measured): leading zeros of a subnormal
// operand take places from all products of a sum. In bf16 every weight is a normal number, in fp16 every
// weight from 2^-7 on. Smaller weights come only of factors with codes 1 to 7. As fp16 numbers they have at
// most three leading zeros:
//
//   A in fp16    a sum of 16 products that all have such weights may keep three places fewer
//   A in NVFP4   nothing is lost: products are multiples of 2^-34, and where one operand is subnormal, with
//                the field of 2^-14, the other is at most 21, with the field of 2^4. If such a product has
//                the largest exponent of a sum, places down to 2^(-14 + 4 - 25) are kept.
//
// A second multiplication of each element would make all weights normal with an A in fp16, too. It takes time
// (bench/HOPPER.md, "What small weights cost").
//
// The order of K is arbitrary, as long as A has the order of B1 and B2. It is chosen so that a lane that
// loads 16 bytes, 32 neighbours of a row, has its own part of the fragments of eight wgmma. The places of a
// k-tile are the elements of K in this order:
//
//   bit of the place   7     6  5   4     3      2  1   0
//   is                 half  word   step  upper  quad   second
//   bit of k           5     4  3   0     1      7  6   2
//
// Of a lane's 64 elements of a k-tile, `half` names one of two loads of 16 bytes, and `word` its 32 bits. A
// word holds eight elements, and the even ones, 0 2 4 6, come out of it together, as the upper bytes of four
// fp16. Bytes 0 and 2 make one register of a fragment, bytes 1 and 3 another: so a register holds elements k
// and k + 4 (`second`), the even ones are for one wgmma and the odd ones for the next (`step`), and the two
// registers are those of the lower and the upper eight of its 16 elements of K (`upper`, figure of PTX ISA
// 9.0, 9.7.15.5.1.1). `quad` is the number of the lane among its four.
#pragma once

#include <cstdint>

#include "kernel/sm90/plan.h"
#include "ptx/host_device.h"

namespace dualgemm::sm90 {

// Returns what sums of products are multiplied with, for an A of this type.
constexpr float unscale(CType a_type) {
  if (a_type == CType::kFp8) return 1;                // expand.cuh has no part in it
  return a_type == CType::kNvfp4 ? 0x1p14f : 0x1p7f;  // of NVFP4 both operands are expanded
}

// Returns the element of a k-tile at a place.
DUALGEMM_HOST_DEVICE constexpr int k_of_place(int place) {
  const auto bit = [place](int from, int to) { return (place >> from & 1) << to; };
  return bit(7, 5) | bit(6, 4) | bit(5, 3) | bit(4, 0) | bit(3, 1) | bit(2, 7) | bit(1, 6) | bit(0, 2);
}

// A lane's 16 bytes of one half are 32 elements, which are two blocks. The first two of the four words are
// for the wgmma of one panel of A, the last two for those of the other panel, and each block has a factor of
// its own.
inline constexpr int kWords = 4, kPanelWords = 2, kPanels = 2;
static_assert(kHalfK == kPanels * kPanelK);

// Returns which 16 bytes of a row of 128 bytes a lane with this number in its quad loads for a half. The
// bytes lie in the 128-byte swizzle, which exchanges the 16-byte columns of a row by the number of the row.
// Lanes of two neighbouring rows then load from eight different columns, which are all banks.
DUALGEMM_HOST_DEVICE constexpr int operand_offset(int row, int quad, int half) {
  return row * 128 + ((2 * quad + half) ^ row % 8) * 16;
}

// Holds the registers that a word becomes, [step][upper], with elements k and k + 4 in 16 bits each.
struct Pairs {
  uint32_t pair[2][2];
};

// Math comes in as a type: the kernel passes HalfMath or BrainMath (half_math.cuh), a test on the host passes
// classes of its own for fp16 and bf16.
//   kType                  the type of the operands, fp16 or bf16
//   select(mask, x, y)     bits of x where those of mask are 1, else of y
//   multiply(x, y)         two products
//   factor_twice(x, i)     of two e4m3 numbers, one as the factor of two elements
template <class Math>
DUALGEMM_HOST_DEVICE uint32_t place_pair(uint32_t word, int step, int upper) {
  if constexpr (Math::kType == CType::kFp16) {
    // Four numbers are placed at a time, each in one byte, which is the upper byte of an fp16. Bits of other
    // numbers that lie between their bits are removed last.
    constexpr uint32_t kSigns = 0x80808080, kPlaced = 0x8E008E00;
    const uint32_t bytes =
        step == 0 ? Math::select(kSigns, word << 4, word << 1) : Math::select(kSigns, word, word >> 3);
    return (upper == 0 ? bytes << 8 : bytes) & kPlaced;
  } else {
    constexpr uint32_t kSigns = 0x80008000, kPlaced = 0x81C081C0;
    const auto up = [word](int bits) { return bits >= 0 ? word << bits : word >> -bits; };
    const int below = 4 * (2 * upper + step);  // bits of the word before this number
    return Math::select(kSigns, up(12 - below), up(6 - below)) & kPlaced;
  }
}
template <class Math>
DUALGEMM_HOST_DEVICE uint32_t expand_pair(uint32_t word, int step, int upper, uint32_t factor) {
  return Math::multiply(place_pair<Math>(word, step, upper), factor);
}
template <class Math>
DUALGEMM_HOST_DEVICE Pairs expand_word(uint32_t word, uint32_t factor) {
  const auto pair = [=](int step, int upper) { return expand_pair<Math>(word, step, upper, factor); };
  return {{{pair(0, 0), pair(0, 1)}, {pair(1, 0), pair(1, 1)}}};
}

// Holds the four factors that an atom has for a row, as they lie in shared memory. The sign bit of a factor
// is ignored.
struct Factors {
  uint32_t bytes;

  // Returns the factor of a panel of a half, twice.
  template <class Math>
  DUALGEMM_HOST_DEVICE uint32_t of(int half, int panel) const {
    return Math::factor_twice(static_cast<uint16_t>((bytes & 0x7F7F7F7F) >> 16 * half), panel);
  }
};

}  // namespace dualgemm::sm90
