#include "example/checkpoint/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "example/checkpoint/names.h"

namespace checkpoint {

// Between these lies the largest weight or activation that a scale gives, 6 * 448 times it. What is outside
// is no number of a model. Inside, neither an alpha, nor g and u, nor their product leaves the range of
// float: with K up to 2^30 and activations below 4, as this program makes them, g and u are below 2^63.
constexpr double kLeast = 0x1p-30, kMost = 0x1p30;

static float float_at(const StoredTensor& tensor, uint64_t i) {
  const bool wide = tensor.dtype == "F32";  // else BF16
  uint32_t bits = 0;
  for (int byte = 0; byte < (wide ? 4 : 2); ++byte)
    bits |= uint32_t{tensor.bytes[(wide ? 4 : 2) * i + byte]} << (8 * byte);
  return std::bit_cast<float>(wide ? bits : bits << 16);
}

static std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::vector<TwoScales> read_scales(const StoredTensor& tensor, uint64_t experts, bool fused, bool encode) {
  const uint64_t count = element_count(tensor.name, tensor.shape);
  const bool by_expert = !tensor.shape.empty() && tensor.shape[0] == experts;
  const bool one = count == 1, each = by_expert && count == experts,
             two = fused && count == 2 * experts &&
                   (experts == 1 || (by_expert && tensor.shape.size() > 1 && tensor.shape[1] == 2));
  if (tensor.dtype != "F32" || (!one && !each && !two))
    refuse(tensor, "is not one F32, or one for each of " + std::to_string(experts) + " experts" +
                       (fused ? ", or two for each, gate's and up's" : ""));
  std::vector<TwoScales> scales(experts);
  for (uint64_t i = 0; i < 2 * experts; ++i) {
    const float stored = float_at(tensor, one ? 0 : two ? i : i / 2);
    const double scale = encode ? 1 / double{stored} : stored, largest = 6 * 448 * scale;
    if (!(largest >= kLeast && largest <= kMost))  // NaN is in no range
      refuse(tensor, "is " + text_of(stored) + (one ? "" : " for expert " + std::to_string(i / 2)) +
                         ", which is no scale: the largest number that it gives would be " +
                         text_of(largest) + ", not one from 2^-30 to 2^30");
    scales[i / 2][i % 2] = scale;
  }
  return scales;
}

float read_bias(const StoredTensor& tensor, uint64_t i) {
  const float bias = float_at(tensor, i);
  if (!(std::fabs(bias) <= kMost))
    refuse(tensor, "has " + text_of(bias) + " as its number " + std::to_string(i) +
                       ", which is no bias: at most 2^30 are added");
  return bias;
}

static std::string place(const Planes& planes, uint64_t row, uint64_t first, uint64_t elements) {
  return " in row " + std::to_string(row % planes.rows) +
         (planes.experts > 1 ? " of expert " + std::to_string(row / planes.rows) : "") + ", columns " +
         std::to_string(first) + " to " + std::to_string(first + elements - 1);
}

// An E4M3 has a sign, but a factor of a launch is a UE4M3, whose sign bit the hardware ignores: a negative
// one would be multiplied as a positive one. The one byte above 448 = 0x7E that is harmless is another zero:
// GGUF has 0x7F for that, E4M3 a negative one.
static void check_e4m3(const StoredTensor& tensor, const Planes& planes) {
  const bool blocks = planes.encoding == Encoding::kGguf;
  const uint8_t* const rows = blocks ? planes.elements : planes.factors;
  const uint64_t row_bytes = blocks ? planes.element_bytes() : planes.factor_bytes();
  for (uint64_t row = 0; row < planes.experts * planes.rows; ++row)
    for (uint64_t block = 0; block < planes.k / 16; ++block) {
      const uint8_t factor = rows[row * row_bytes + (blocks ? block / 4 * 36 + block % 4 : block)];
      if (factor <= 0x7E || factor == (blocks ? 0x7F : 0x80)) continue;
      refuse(tensor, std::string("has a factor that is ") + ((factor & 0x7F) == 0x7F ? "NaN" : "negative") +
                         place(planes, row, 16 * block, 16) + ": factors are unsigned numbers up to 448");
    }
}

// E8M0 is 2^(byte - 127), without a sign; 0xFF is NaN. Where the 32 elements are zero any other will do.
static void check_e8m0(const StoredTensor& tensor, const Planes& planes) {
  for (uint64_t row = 0; row < planes.experts * planes.rows; ++row)
    for (uint64_t block = 0; block < planes.factor_bytes(); ++block) {
      const uint8_t byte = planes.factors[row * planes.factor_bytes() + block];
      if (byte == 0xFF) refuse(tensor, "has a factor that is NaN" + place(planes, row, 32 * block, 32));
      const uint8_t* const codes = planes.elements + row * planes.element_bytes() + 16 * block;
      const double largest = std::ldexp(6, byte - 127);
      if (std::any_of(codes, codes + 16, [](uint8_t two) { return (two & 0x77) != 0; }) &&
          !(largest >= kLeast && largest <= kMost))
        refuse(tensor, "has the factor 2^" + std::to_string(byte - 127) + place(planes, row, 32 * block, 32) +
                           ": the largest number that it gives is not one from 2^-30 to 2^30");
    }
}

void check_factors(const StoredTensor& tensor, const Planes& planes) {
  if (planes.encoding == Encoding::kMxfp4) check_e8m0(tensor, planes);
  else check_e4m3(tensor, planes);
}

}  // namespace checkpoint
