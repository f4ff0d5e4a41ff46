// nvfp4.cpp -- see nvfp4.h.
//
// Both conversions keep the order of what they convert, so a range of inputs gives the range between what its
// ends give. The largest value lies between the largest of |y| - e and the largest of |y| + e. Of it the
// factor is three roundings away: of 1 / 6, of its product with the encode scale, of that with the value; and
// so is a code of its value: 1 / factor, its product with the encode scale, that with the value. The factor
// that was written is the one that the codes were made with, and a ue4m3 number is exact.
#include "ref/nvfp4.h"

#include <algorithm>
#include <cmath>

#include "ref/formats.h"

namespace ref {

constexpr double kThreeRoundings = 3 * 0x1p-24 * (1 + 1.0 / 64);
constexpr uint32_t kAll = (1u << kBlock) - 1;

// Returns the place of a code in the order of the values, -0 before +0.
static int place(uint8_t code) { return code & 8 ? -1 - (code & 7) : code; }

static bool code_may_be(double low, double high, double scale, uint8_t code) {
  const auto at = [&](double y, double direction) {
    return place(e2m1_encode(y * scale + direction * std::fabs(y * scale) * kThreeRoundings));
  };
  const bool neighbour = std::abs(place(code) - at((low + high) / 2, 0)) <= 1;
  return code < 16 && neighbour && place(code) >= at(low, -1) && place(code) <= at(high, 1);
}

uint8_t quantise_block(const double* exact, double encode, uint8_t* codes) {
  double largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(exact[i]));
  const uint8_t factor = ue4m3_encode(largest * encode / 6);
  for (int i = 0; i < kBlock; ++i)
    codes[i] = factor == 0 ? 0 : e2m1_encode(exact[i] * encode / ue4m3_decode(factor));
  return factor;
}

BlockVerdict judge_block(const double* exact, const float* error, double encode, uint8_t factor,
                         const uint8_t* codes) {
  double low = 0, high = 0, largest = 0;
  for (int i = 0; i < kBlock; ++i) {
    if (std::isnan(exact[i])) return {factor == 0x7F, 0, 0};
    if (std::isnan(error[i])) return {false, kAll, 0};
    const double y = std::fabs(exact[i]);
    low = std::max(low, y - error[i]);
    high = std::max(high, y + error[i]);
    largest = std::max(largest, y);
  }
  const double sixth = encode / 6;
  BlockVerdict verdict;
  verdict.factor = factor >= ue4m3_encode(low * sixth * (1 - kThreeRoundings)) &&
                   factor <= ue4m3_encode(high * sixth * (1 + kThreeRoundings)) &&
                   std::abs(factor - ue4m3_encode(largest * sixth)) <= 1;
  if (factor > 0x7E) return {false, kAll, 0};
  verdict.exceptions += verdict.factor && factor != ue4m3_encode(largest * sixth);
  if (factor == 0) {
    for (int i = 0; i < kBlock; ++i) verdict.wrong |= uint32_t{codes[i] != 0} << i;
    return verdict;
  }
  const double scale = encode / ue4m3_decode(factor);
  for (int i = 0; i < kBlock; ++i) {
    if (!code_may_be(exact[i] - error[i], exact[i] + error[i], scale, codes[i])) verdict.wrong |= 1u << i;
    else verdict.exceptions += e2m1_decode(codes[i]) != e2m1_decode(e2m1_encode(exact[i] * scale));
  }
  return verdict;
}

}  // namespace ref
