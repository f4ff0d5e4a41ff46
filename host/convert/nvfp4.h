// nvfp4.h -- the numbers of NVFP4, which are E2M1 and UE4M3, and the quantisation of a block of sixteen
// elements. These functions define what such data look like for this library.
#pragma once

#include <cstdint>

namespace dualgemm {

// Returns the code, in the lower four bits. Rounds to nearest, ties to even, and saturates at 6; NaN becomes
// 6, as in the instructions of the GPU.
uint8_t to_e2m1(float value);
float from_e2m1(uint8_t code);

// UE4M3 has 4 exponent bits with bias 7, 3 mantissa bits, and subnormals below 2^-6; bit 7 is no part of it.
inline constexpr uint8_t kUe4m3Nan = 0x7F;
float from_ue4m3(uint8_t byte);
// Rounds to nearest, ties to even, and saturates at 448. NaN stays NaN. A negative number becomes NaN; it can
// come from a scale in device memory, which no rule has checked.
uint8_t to_ue4m3(float value);

// Quantises sixteen elements: returns their scale factor and writes eight bytes. Kernels perform the same
// operations in fp32: which results are rounded, and in which order, is part of the interface.
uint8_t quantize_block(const float* x, float global_scale, uint8_t* packed);

// The largest numbers: of NVFP4 that of an element times that of a factor.
inline constexpr float kE2m1Max = 6, kE4m3Max = 448, kNvfp4Max = kE4m3Max * kE2m1Max;

// Returns the scale that makes `largest` the largest number of a type. An infinity counts as the largest
// float.
float global_scale_of(float largest, float largest_of_type);

}  // namespace dualgemm
