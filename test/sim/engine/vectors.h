// vectors.h -- what the tile versions of the dot products share: vectors of any width. They are passed only
// by reference and through inlined functions, since a call would pass them in another way for each
// instruction set.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace sim {

#define SIM_INLINE inline __attribute__((always_inline))

template <class T>
SIM_INLINE void load(T& vector, const void* from) {
  std::memcpy(&vector, from, sizeof vector);
}

// Makes lanes of `out` negative where a number that is not negative lies outside [least, limit) and is not
// zero. A comparison of vectors of 64 bytes would be compiled lane by lane.
template <class V, class T>
SIM_INLINE void mark_outside(V& out, const V& number, T least, T limit) {
  out |= ((number - least) | (limit - 1 - number)) & ~(number - 1);
}

// Returns the bits that any lane has: a negative number where a lane is negative.
template <class T, class V>
SIM_INLINE T all_bits(const V& vector) {
  T lanes[sizeof vector / sizeof(T)], all = 0;
  std::memcpy(lanes, &vector, sizeof lanes);
  for (const T lane : lanes) all |= lane;
  return all;
}

// Stores sums as they are, and rounded toward zero to floats of `kPlaces` fractional bits by clearing the
// bits that they have no room for. That is right for zero and for magnitudes from 2^-126, the smallest normal
// number of float, to below `limit`. In lanes with any other sum `rare` becomes negative.
template <class F, int kPlaces = 23, class L, class D>
SIM_INLINE void round_sums(const D& sum, double limit, double* sums, float* out, L& rare) {
  constexpr int kNoRoom = 52 - kPlaces;  // double has 52 fractional bits
  const L magnitude = (L)sum & std::numeric_limits<int64_t>::max();
  mark_outside<L>(rare, magnitude, std::bit_cast<int64_t>(0x1p-126), std::bit_cast<int64_t>(limit));
  const D cut = (D)((L)sum & ~((int64_t{1} << kNoRoom) - 1));
  const F result = __builtin_convertvector(cut, F);
  std::memcpy(sums, &sum, sizeof sum);
  std::memcpy(out, &result, sizeof result);
}

}  // namespace sim
