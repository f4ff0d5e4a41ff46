// region.cpp -- overlap of strided regions: by their ranges, by remainders, and problem by problem.
#include "host/common/region.h"

#include <numeric>

namespace dualgemm {
namespace {

int64_t span_of_problem(const Region& r) { return (r.rows - 1) * r.pitch + r.row_bytes; }
int64_t span(const Region& r) { return (r.problems - 1) * r.stride + span_of_problem(r); }

bool ranges_meet(int64_t x_bytes, int64_t y_bytes, int64_t distance) {
  return distance < x_bytes && -distance < y_bytes;
}

// Returns the greatest number that divides every distance between rows, 0 when there is one row.
int64_t common_pitch(const Region& r) {
  return std::gcd(r.problems > 1 ? r.stride : 0, r.rows > 1 ? r.pitch : 0);
}

// Modulo `pitch` all rows of x start at one address, and all rows of y start r bytes behind it. A row of y
// touches a row of x only if it starts before the end of that row (r < x.row_bytes), or reaches past the
// pitch into the next row of x.
bool windows_meet(const Region& x, const Region& y, int64_t pitch, int64_t distance) {
  if (pitch == 0) return true;
  const int64_t r = ((distance % pitch) + pitch) % pitch;
  return r < x.row_bytes || r + y.row_bytes > pitch;
}

// Of one problem of x, and one of y that lies `distance` bytes behind it: returns false only if they share no
// byte. That is exact where pitches are equal; where they differ it may be true although no byte is shared.
bool problems_overlap(const Region& x, const Region& y, int64_t distance) {
  if (!ranges_meet(span_of_problem(x), span_of_problem(y), distance)) return false;
  const int64_t pitch = std::gcd(x.rows > 1 ? x.pitch : 0, y.rows > 1 ? y.pitch : 0);
  return windows_meet(x, y, pitch, distance);
}

int64_t floor_div(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor != 0 && (value < 0) != (divisor < 0));
}

}  // namespace

bool overlap(const Region& x, const Region& y) {
  const auto x_start = reinterpret_cast<uintptr_t>(x.base), y_start = reinterpret_cast<uintptr_t>(y.base);
  if (y_start < x_start) return overlap(y, x);
  if (y_start - x_start >= static_cast<uint64_t>(span(x))) return false;
  const auto distance = static_cast<int64_t>(y_start - x_start);
  if (!windows_meet(x, y, std::gcd(common_pitch(x), common_pitch(y)), distance)) return false;
  if (x.problems > 1 && y.problems > 1 && x.stride != y.stride) return true;
  if (x.problems == 1 && y.problems == 1) return problems_overlap(x, y, distance);

  // Problem j of y lies `distance` + (j - i) * stride behind problem i of x. Only a few values of j - i bring
  // the two problems near each other.
  const int64_t stride = x.problems > 1 ? x.stride : y.stride;
  int64_t first = floor_div(-span_of_problem(y) - distance, stride) + 1;
  if (first < 1 - x.problems) first = 1 - x.problems;
  for (int64_t step = first; step < y.problems && distance + step * stride < span_of_problem(x); ++step)
    if (problems_overlap(x, y, distance + step * stride)) return true;
  return false;
}

}  // namespace dualgemm
