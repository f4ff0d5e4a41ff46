// nvfp4.h -- an NVFP4 output: 16 values of a row share a factor that comes from the largest of them, so the
// block is judged as a whole. Written from the definition of the quantisation in the public header.
#pragma once

#include <cstdint>

namespace ref {

// With the encode scale s, in float, each operation rounded to nearest:
//     factor = ue4m3(max |y| * (s * (1 / 6)))        code = e2m1(y * (s * (1 / factor)))
// A factor of zero makes all codes +0; a NaN among the values makes the factor NaN, and the codes say
// nothing.

// Quantises 16 exact values, none of them NaN: writes their codes and returns their factor.
uint8_t quantise_block(const double* exact, double encode, uint8_t* codes);

struct BlockVerdict {
  bool factor = false;  // it is one that the largest value may have given
  uint32_t wrong = 0;   // a bit for each element whose code its value cannot have given with this factor
  int exceptions = 0;   // the factor and codes that may be, but are not those of the exact values
};

// Judges a block as it was written: 16 exact values, how far the kernel's may be from them, the encode scale.
BlockVerdict judge_block(const double* exact, const float* error, double encode, uint8_t factor,
                         const uint8_t* codes);

}  // namespace ref
