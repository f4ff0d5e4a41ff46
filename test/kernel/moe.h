// moe.h -- what the tests of a layer of experts share: choices of a router, and rows of numbers of each type.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/convert.h"

namespace dualgemm_test {

inline constexpr dualgemm_dtype_t kTypes[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32};
inline constexpr const char* kModes[] = {"early",      "late",    "one-late", "starve-warp",
                                         "starve-cta", "reverse", "diverge",  "random"};

// The choices of a router.
struct Routing {
  int32_t tokens, top_k, experts;
  std::vector<int32_t> ids;

  int32_t choices() const { return tokens * top_k; }
  std::string text() const {
    return std::to_string(tokens) + " tokens, top_k " + std::to_string(top_k) + ", " +
           std::to_string(experts) + " experts";
  }
};

enum class Kind { kAll, kSome, kFew, kNone };  // of the experts are chosen; the rest is of other ranks

inline Routing routing(int32_t tokens, int32_t top_k, int32_t experts, Kind kind, uint64_t seed) {
  Rng random(seed);
  Routing out{tokens, top_k, experts, {}};
  for (int32_t i = 0; i < out.choices(); ++i) {
    const int32_t any = random.between(0, experts - 1);
    const int32_t others[] = {-1, experts, INT32_MIN, INT32_MAX};
    const int32_t other = others[random.below(4)];
    if (kind == Kind::kAll) out.ids.push_back(any);
    else if (kind == Kind::kSome) out.ids.push_back(random.below(2) ? any : other);
    else if (kind == Kind::kFew) out.ids.push_back(any / 7 * 7);
    else out.ids.push_back(other);
  }
  return out;
}

inline size_t bytes_of(dualgemm_dtype_t dtype) { return dtype == DUALGEMM_DTYPE_FP32 ? 4 : 2; }

inline double decoded(dualgemm_dtype_t dtype, uint16_t bits) {
  return dtype == DUALGEMM_DTYPE_FP16 ? ref::fp16_decode(bits) : ref::bf16_decode(bits);
}
inline float element(dualgemm_dtype_t dtype, const Buffer& from, int64_t i) {
  if (dtype == DUALGEMM_DTYPE_FP32) return from.get<float>(i);
  return static_cast<float>(decoded(dtype, from.get<uint16_t>(i)));
}

// Returns what is nearest to x in a type of 16 bits, ties to even. Codes are ordered as their numbers are.
// Beyond the last finite one the next number would be as far away as the one before.
inline uint16_t nearest(dualgemm_dtype_t dtype, float x) {
  const uint16_t infinity = dtype == DUALGEMM_DTYPE_FP16 ? 0x7C00 : 0x7F80;
  const auto number = [&](uint16_t code) {
    if (code < infinity) return decoded(dtype, code);
    return 2 * decoded(dtype, infinity - 1) - decoded(dtype, infinity - 2);
  };
  const double magnitude = std::fabs(double{x});
  uint16_t low = 0, high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (number(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - number(low), above = number(high) - magnitude;
  const uint16_t code = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(code | (std::signbit(x) ? 0x8000 : 0));
}
inline void put_nearest(dualgemm_dtype_t dtype, Buffer& to, int64_t i, float x) {
  if (dtype == DUALGEMM_DTYPE_FP32) to.put(i, x);
  else to.put(i, nearest(dtype, x));
}

// Returns a * b + c, rounded once. The product is exact in fp64. A sum that is not is rounded to odd there,
// which loses nothing that decides how its fp32 is rounded.
inline float multiply_add(float a, float b, float c) {
  const double product = double{a} * b, sum = product + c;
  const double of_c = sum - product, lost = (product - (sum - of_c)) + (c - of_c);
  if (!std::isfinite(sum) || lost == 0) return static_cast<float>(sum);
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  if (bits % 2 == 0) bits += (lost > 0) == (sum > 0) ? 1 : -1;
  double odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return static_cast<float>(odd);
}

// Numbers so far apart that the order of additions decides.
inline void fill(Buffer& to, dualgemm_dtype_t dtype, uint64_t seed) {
  Rng random(seed);
  for (int64_t i = 0; i < static_cast<int64_t>(to.size() / bytes_of(dtype)); ++i) {
    const float x = std::ldexp(1 + static_cast<float>(random.below(256)) / 256, random.between(-13, 13));
    put_nearest(dtype, to, i, random.below(2) ? -x : x);
  }
}

}  // namespace dualgemm_test
