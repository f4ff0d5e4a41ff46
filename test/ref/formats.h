// formats.h -- the number formats of operands and outputs from their definitions: 4-bit e2m1 values with one
// unsigned e4m3 scale factor per 16 of them along K, the scale factors stored in tiles of 128 rows x 4
// blocks; MXFP4, with a power of two per 32 of them; and the types of C. This is the reference side of every
// test: it shares no code with the library or with the simulator, so that an error in either cannot cancel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ref {

inline constexpr int kBlock = 16;    // elements of K that share one scale factor
inline constexpr int kMxBlock = 32;  // likewise in MXFP4

// e2m1: sign, 2 bits of exponent (bias 1), 1 bit of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
float e2m1_decode(uint8_t code);  // the low 4 bits count
uint8_t e2m1_encode(double x);    // nearest, ties to the even mantissa; beyond 6 saturates; NaN becomes +6

// ue4m3: 4 bits of exponent (bias 7), 3 bits of mantissa, subnormals in steps of 2^-9, largest 448 = 0x7E.
// There is no infinity; 0x7F is NaN. Bit 7 is not part of the value.
float ue4m3_decode(uint8_t code);
uint8_t ue4m3_encode(double x);  // x >= 0; nearest even; beyond 448 saturates; NaN stays NaN

// e4m3, a type of C, is the same with bit 7 for a sign.
double e4m3_decode(uint8_t code);
uint8_t e4m3_encode(double x);  // nearest even; beyond 448 saturates; NaN becomes 0x7F

// ue8m0: a power of two, 2^(code - 127). 0xFF is NaN.
double ue8m0_decode(uint8_t code);
// Returns the weight of MXFP4 that a launch multiplies by: the element times its factor, as the nearest e4m3,
// ties to even. A factor above 2^6, which is byte 133, makes it NaN.
double mxfp4_weight(uint8_t code, uint8_t factor);

// Elements 2i and 2i + 1 of a row share byte i; the even one has the low nibble.
inline uint8_t nibble(const uint8_t* row, int64_t element) {
  return (row[element / 2] >> (element % 2 * 4)) & 0xF;
}

// These are the outputs whose elements stand alone (nvfp4.h has the one whose elements do not).
enum class Format { kFp16, kBf16, kFp32, kE4m3 };
double fp16_decode(uint16_t bits);
double bf16_decode(uint16_t bits);
double fp32_decode(uint32_t bits);
double decode(Format type, uint32_t bits);  // the low bits count

// Conversion to them rounds to nearest: a number of at most |x| moves by at most half an ulp, relative 2^-11
// for fp16, 2^-8 for bf16, 2^-24 for fp32 and 2^-4 for e4m3, but no finer than half the smallest subnormal.
// What e4m3 saturates moves by what is beyond 448.
double conversion_error(Format type, double x);
// Says whether `actual`, a number of this type, is one that a number within `error` of `expected` may have
// become. A number at or above the overflow threshold (the largest finite one plus half an ulp) becomes
// infinity, in e4m3 the largest. Returns false if a NaN stands where a number belongs, or the other way
// round, or if the error is NaN.
bool may_become(Format type, double expected, double error, double actual);

// Scale factors of a matrix of `rows` rows and `k` elements per row: tiles of 128 rows x 4 blocks, 512 bytes
// each, tiles of one 128-row band one after the other along K. Inside a tile, 32 lines of 16 bytes:
//
//   line i:  | row i: blocks 0-3 | row i+32: 0-3 | row i+64: 0-3 | row i+96: 0-3 |
//
// Rows are padded to a multiple of 128 and blocks to a multiple of 4.
size_t sf_bytes(int64_t rows, int64_t k);
size_t sf_offset(int64_t k, int64_t row, int64_t block);
// The same of MXFP4, whose blocks have 32 elements: half as many for each row.
inline size_t mx_sf_bytes(int64_t rows, int64_t k) { return sf_bytes(rows, k / 2); }
inline size_t mx_sf_offset(int64_t k, int64_t row, int64_t block) { return sf_offset(k / 2, row, block); }

}  // namespace ref
