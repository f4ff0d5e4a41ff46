// select_config.cpp -- the lowest cost, and the choice among those that come close to it.

#include "host/select_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dualgemm {
namespace {

// Costs this close to the lowest count as equal to it: a part of the time, below what the model can tell
// apart. Its own error is larger, but common to similar instances.
constexpr double kResolution = 0.02;

// Which of two instances of equal cost:
//   - the one without a split of K, or with the smaller: less that has to meet at the same time, and the same
//     order of additions as the instances without a split;
//   - then fewer tiles, which read A and B less often and leave more of L2 and DRAM to whoever shares them;
//   - then the first in the table.
bool preferred(const Instance& left, const Instance& right, Shape shape) {
  if (left.split_k != right.split_k) return left.split_k < right.split_k;
  return tile_count(left, shape) < tile_count(right, shape);
}

}  // namespace

int32_t select_config(Shape shape, CType c_type, const Machine& machine) {
  std::array<double, kInstanceCount> us;
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    Cost cost;
    const bool runs = kInstances[i].c_type == c_type && cost_of(kInstances[i], shape, machine, &cost);
    us[i] = runs ? cost.total_us : std::numeric_limits<double>::infinity();
  }
  const double lowest = *std::min_element(us.begin(), us.end());
  if (std::isinf(lowest)) return -1;
  int32_t best = -1;
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    if (us[i] > lowest * (1 + kResolution)) continue;
    if (best < 0 || preferred(kInstances[i], kInstances[best], shape)) best = i;
  }
  return best;
}

}  // namespace dualgemm
