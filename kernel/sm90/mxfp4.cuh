// mxfp4.cuh -- from MXFP4 to the operand of wgmma in FP8 (e4m3). An e2m1 number is a sign and three bits that
// name one of eight magnitudes, 0 0.5 1 1.5 2 3 4 6, and a factor is a power of two, 2^(byte - 127). So a
// block of 32 elements with one factor has at most eight different magnitudes. A table in shared memory has
// them for every factor, as e4m3: factors from 2^-8 to 2^6 give exact ones, smaller factors give the nearest,
// and larger ones NaN. Whoever prepares the weights takes powers of two out of the rows until the largest
// factor of each is 2^6 (host/FORMATS.md); the sums of a row get its power back (Multiplier::multiply).
//
// The order of K is that of memory, for the weights as for A. A wgmma multiplies 32 elements of K, which are
// one block of each row. Of a row's 16 bytes, lane 4 r + q has two pairs of bytes:
//
//   byte        0  1   2  3   4  5   6  7   8  9  10 11  12 13  14 15
//   q           0      1      2      3      0      1      2      3
//   register    first                       second                          of the fragment (9.7.15.5.1.1)
//
// Two bytes are four neighbouring elements, which prmt turns into the four bytes of a register: it takes the
// lower three bits of each nibble as the number of a magnitude.
#pragma once

#include <cstdint>

#include "kernel/convert/params.h"
#include "ptx/math.cuh"

namespace dualgemm::sm90 {

// Holds the magnitudes of the elements 0 to 7, one to a byte.
struct alignas(8) Magnitudes {
  uint32_t low, high;
};

struct MagnitudeTable {
  Magnitudes of_factor[256];

  // The threads of a group write the table together.
  DUALGEMM_DEVICE void write(int thread, int threads) {
    for (int byte = thread; byte < 256; byte += threads) {
      const auto pair = [=](float first, float second) -> uint32_t {
        if (byte > kMostMxfp4Byte) return 0x7F7F;
        // The smallest factor, 2^-127, is the only one that is subnormal in fp32.
        const float factor = byte == 0 ? 0x1p-127f : __uint_as_float(static_cast<uint32_t>(byte) << 23);
        return ptx::cvt_rn_satfinite_e4m3x2_f32(second * factor, first * factor);
      };
      of_factor[byte] = {pair(0.0f, 0.5f) | pair(1.0f, 1.5f) << 16, pair(2.0f, 3.0f) | pair(4.0f, 6.0f)
                                                                                           << 16};
    }
  }
};

// Returns the four numbers whose codes are the nibbles of `codes`, with their signs inverted: prmt gives 0x40
// for a nibble without sign and 0 for one with it, which becomes the sign bit when it is doubled. (wgmma
// inverts the signs again.)
DUALGEMM_DEVICE uint32_t expand_four(Magnitudes magnitudes, uint32_t codes) {
  constexpr uint32_t kHalfOfSigns = 0x40404040;
  return 2 * ptx::prmt(kHalfOfSigns, kHalfOfSigns, codes) +
         ptx::prmt(magnitudes.low, magnitudes.high, codes & 0x7777);
}

}  // namespace dualgemm::sm90
