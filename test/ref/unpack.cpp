// unpack.cpp -- see unpack.h.
#include "ref/unpack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ref/formats.h"

namespace ref {
namespace {

using Floats16 = float __attribute__((vector_size(64)));
using Codes16 = uint32_t __attribute__((vector_size(64)));
using FloatsInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

// These are the values of all codes of a format.
struct Values {
  float e2m1[16], ue4m3[256];
  Values() {
    for (int code = 0; code < 16; ++code) e2m1[code] = e2m1_decode(static_cast<uint8_t>(code));
    for (int code = 0; code < 256; ++code) ue4m3[code] = ue4m3_decode(static_cast<uint8_t>(code));
  }
};
const Values& values() {
  static const Values all;
  return all;
}

// Returns the 16 codes of a block, code i in the bits from 4 i on: the machine is little-endian.
uint64_t codes_of(const Operand& x, int64_t row, int64_t block) {
  uint64_t codes;
  std::memcpy(&codes, x.codes + row * x.pitch + block * (kBlock / 2), sizeof codes);
  return codes;
}

// Decodes the 16 codes of each block of a row, one after the other.
__attribute__((target_clones("avx512f", "default"))) void decode_row(const uint64_t* codes, int64_t blocks,
                                                                     const float* table, float* out) {
  const Floats16 value_of = *reinterpret_cast<const FloatsInMemory*>(table);
  const Codes16 shift = {0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28};
  for (int64_t block = 0; block < blocks; ++block) {
    const auto low = static_cast<uint32_t>(codes[block]), high = static_cast<uint32_t>(codes[block] >> 32);
    const Codes16 halves = {low,  low,  low,  low,  low,  low,  low,  low,
                            high, high, high, high, high, high, high, high};
    *reinterpret_cast<FloatsInMemory*>(out + block * kBlock) =
        __builtin_shuffle(value_of, (halves >> shift) & 15);
  }
}

// Decodes the codes of 16 rows, `codes` [block][row], to [element][row].
__attribute__((target_clones("avx512f", "default"))) void decode_rows(const uint64_t* codes, int64_t blocks,
                                                                      const float* table, float* out) {
  const Floats16 value_of = *reinterpret_cast<const FloatsInMemory*>(table);
  for (int64_t block = 0; block < blocks; ++block) {
    Codes16 halves[2];
    for (int row = 0; row < 16; ++row) {
      halves[0][row] = static_cast<uint32_t>(codes[block * 16 + row]);
      halves[1][row] = static_cast<uint32_t>(codes[block * 16 + row] >> 32);
    }
    for (int i = 0; i < kBlock; ++i)
      *reinterpret_cast<FloatsInMemory*>(out + (block * kBlock + i) * 16) =
          __builtin_shuffle(value_of, (halves[i / 8] >> (i % 8 * 4)) & 15);
  }
}

// Every number of either type of 16 bits is a float.
float sixteen_bits(Elements type, const uint8_t* bytes) {
  const auto bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  return static_cast<float>(type == Elements::kFp16 ? fp16_decode(bits) : bf16_decode(bits));
}

// Calls each(block, factor) for the factors of a row.
template <class Each>
void for_each_scale(const Operand& x, int64_t row, int64_t k, Each each) {
  const int64_t blocks = k / kBlock;
  for (int64_t first = 0; first < blocks; first += 4) {
    const uint8_t* const four = x.scales + sf_offset(k, row, first);
    for (int64_t block = first; block < std::min(first + 4, blocks); ++block)
      each(block, values().ue4m3[four[block - first]]);
  }
}

// What an element of A, or of the weights beside it, other than zero counts as at least.
double least_of_a(Elements of_a) {
  if (of_a == Elements::kFp16) return 0x1p-14;
  return of_a == Elements::kBf16 ? 0x1p-126 : 0;
}
double least_of_weights(Elements of_a) { return of_a == Elements::kFp16 ? 0x1p-7 : 0; }

// Returns the square of an element as a tensor core aligns it, times its factor.
[[gnu::always_inline]] inline double aligned_square(float element, float scale, double least) {
  const double value = double{std::fabs(element)} * scale;
  const double aligned = value == 0 ? 0 : value < least ? least : value;  // NaN stays
  return aligned * aligned;
}

// Returns the norms of the halves of k-tiles of one row.
void norms_of_row(const float* values, const float* scales, int64_t blocks, double least, double* norms) {
  for (int64_t block = 0; block < blocks; ++block) {
    double squares = 0;
    for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i)
      squares += aligned_square(values[i], scales[block], least);
    norms[half_of(block)] += squares;
  }
  for (int64_t half = 0; half < halves_of(blocks); ++half) norms[half] = std::sqrt(norms[half]);
}

// Returns those of interleaved rows.
__attribute__((target_clones("avx512f", "fma", "default"))) void norms_of_rows(const float* values,
                                                                               const float* scales,
                                                                               int64_t blocks, double least,
                                                                               double* norms) {
  for (int64_t block = 0; block < blocks; ++block) {
    double squares[kTileCols] = {};
    for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i)
      for (int64_t row = 0; row < kTileCols; ++row)
        squares[row] += aligned_square(values[i * kTileCols + row], scales[block * kTileCols + row], least);
    for (int64_t row = 0; row < kTileCols; ++row) norms[half_of(block) * kTileCols + row] += squares[row];
  }
  for (int64_t i = 0; i < halves_of(blocks) * kTileCols; ++i) norms[i] = std::sqrt(norms[i]);
}

}  // namespace

Unpacked unpack_a(const Operand& a, int64_t k, Norms norms) {
  const int64_t rows = (a.rows + kTileRows - 1) / kTileRows * kTileRows, blocks = k / kBlock;
  Unpacked out;
  out.values.resize(static_cast<size_t>(rows * k));
  out.scales.resize(static_cast<size_t>(rows * blocks));
  if (norms == Norms::kOfWgmma) out.norms.resize(static_cast<size_t>(rows * halves_of(blocks)));
  std::vector<uint64_t> codes(static_cast<size_t>(blocks));
  for (int64_t row = 0; row < a.rows; ++row) {
    float* const of_row = &out.values[row * k];
    float* const scales = &out.scales[row * blocks];
    if (a.elements == Elements::kNvfp4) {
      for (int64_t block = 0; block < blocks; ++block) codes[block] = codes_of(a, row, block);
      decode_row(codes.data(), blocks, values().e2m1, of_row);
      for_each_scale(a, row, k, [&](int64_t block, float scale) {
        scales[block] = scale;
        out.scale_max = scale > out.scale_max ? scale : out.scale_max;
      });
    } else {
      for (int64_t i = 0; i < k; ++i) of_row[i] = sixteen_bits(a.elements, a.codes + row * a.pitch + 2 * i);
      std::fill(scales, scales + blocks, 1.0f);
      out.scale_max = 1;
    }
    if (norms == Norms::kOfWgmma)
      norms_of_row(of_row, scales, blocks, least_of_a(a.elements), &out.norms[row * halves_of(blocks)]);
  }
  return out;
}

Unpacked unpack_b(const Operand& b, int64_t first_row, int64_t k, Elements of_a, Norms norms) {
  const int64_t rows = std::min(kTileCols, b.rows - first_row), blocks = k / kBlock;
  Unpacked out;
  out.values.resize(static_cast<size_t>(kTileCols * k));
  out.scales.resize(static_cast<size_t>(kTileCols * blocks));
  std::vector<uint64_t> codes(static_cast<size_t>(kTileCols * blocks));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < blocks; ++block)
      codes[block * kTileCols + row] = codes_of(b, first_row + row, block);
    for_each_scale(b, first_row + row, k, [&](int64_t block, float scale) {
      out.scales[block * kTileCols + row] = scale;
      out.scale_max = scale > out.scale_max ? scale : out.scale_max;
    });
  }
  decode_rows(codes.data(), blocks, values().e2m1, out.values.data());
  if (norms == Norms::kNone) return out;
  out.norms.resize(static_cast<size_t>(kTileCols * halves_of(blocks)));
  norms_of_rows(out.values.data(), out.scales.data(), blocks, least_of_weights(of_a), out.norms.data());
  return out;
}

}  // namespace ref
