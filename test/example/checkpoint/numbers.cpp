#include "example/checkpoint/numbers.h"

#include <bit>
#include <cmath>
#include <cstdio>

#include "example/checkpoint/names.h"

namespace checkpoint {
namespace {

// Between these lies the largest weight or activation that a scale gives, 6 * 448 times it. What is outside
// is no number of a model. Inside, neither an alpha, nor g and u, nor their product leaves the range of
// float: with K up to 2^30 and activations below 4, as this program makes them, g and u are below 2^63.
constexpr double kLeast = 0x1p-30, kMost = 0x1p30;

float float_at(const StoredTensor& tensor, uint64_t i) {
  const bool wide = tensor.dtype == "F32";  // else BF16
  uint32_t bits = 0;
  for (int byte = 0; byte < (wide ? 4 : 2); ++byte)
    bits |= uint32_t{tensor.bytes[(wide ? 4 : 2) * i + byte]} << (8 * byte);
  return std::bit_cast<float>(wide ? bits : bits << 16);
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

std::vector<double> read_scales(const StoredTensor& tensor, uint64_t experts, bool encode) {
  const uint64_t count = element_count(tensor.name, tensor.shape);
  if (tensor.dtype != "F32" || (count != 1 && count != experts))
    refuse(tensor, "is not one F32, or one for each of " + std::to_string(experts) + " experts");
  std::vector<double> scales;
  for (uint64_t i = 0; i < experts; ++i) {
    const float stored = float_at(tensor, count == 1 ? 0 : i);
    const double scale = encode ? 1 / double{stored} : stored, largest = 6 * 448 * scale;
    if (!(largest >= kLeast && largest <= kMost))  // NaN is in no range
      refuse(tensor, "is " + text_of(stored) + (count == 1 ? "" : " for expert " + std::to_string(i)) +
                         ", which is no scale: the largest number that it gives would be " +
                         text_of(largest) + ", not one from 2^-30 to 2^30");
    scales.push_back(scale);
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

// An E4M3 has a sign, but a factor of a launch is a UE4M3, whose sign bit the hardware ignores: a negative
// one would be multiplied as a positive one. The one byte above 448 = 0x7E that is harmless is another zero:
// GGUF has 0x7F for that, E4M3 a negative one.
void check_factors(const StoredTensor& tensor, const uint8_t* rows, uint64_t experts, uint64_t n,
                   uint64_t k) {
  const bool blocks = tensor.dtype == "NVFP4";
  const uint64_t row_bytes = blocks ? k / 64 * 36 : k / 16;
  for (uint64_t row = 0; row < experts * n; ++row)
    for (uint64_t block = 0; block < k / 16; ++block) {
      const uint8_t factor = rows[row * row_bytes + (blocks ? block / 4 * 36 + block % 4 : block)];
      if (factor <= 0x7E || factor == (blocks ? 0x7F : 0x80)) continue;
      refuse(tensor, std::string("has a factor that is ") + ((factor & 0x7F) == 0x7F ? "NaN" : "negative") +
                         " in row " + std::to_string(row % n) +
                         (experts > 1 ? " of expert " + std::to_string(row / n) : "") + ", columns " +
                         std::to_string(16 * block) + " to " + std::to_string(16 * block + 15) +
                         ": factors are unsigned numbers up to 448");
    }
}

}  // namespace checkpoint
