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

// Bytes that all SMs together bring into shared memory, edges of tiles in full.
int64_t fill_bytes(const Instance& i, Shape shape) {
  return tile_count(i, shape) * (i.tile_m + 2 * i.tile_n) * shape.k / 2;
}

// Which of two instances of equal cost:
//   - the one without a split of K, or with the smaller: less that has to meet at the same time, and the same
//     order of additions as the instances without a split;
//   - then fewer bytes from L2 into shared memory, which leaves more of L2 and of the power budget;
//   - then the one whose accumulators do not overlap: its mma thread has less to wait for;
//   - then the first in the table.
bool preferred(const Instance& left, const Instance& right, Shape shape) {
  if (left.split_k != right.split_k) return left.split_k < right.split_k;
  const int64_t left_bytes = fill_bytes(left, shape), right_bytes = fill_bytes(right, shape);
  if (left_bytes != right_bytes) return left_bytes < right_bytes;
  return left.overlapped < right.overlapped;
}

}  // namespace

int32_t select_config(Shape shape, CType c_type, const Machine& machine, bool split_k) {
  std::array<double, kInstanceCount> us;
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    Cost cost;
    const bool runs = kInstances[i].c_type == c_type && (split_k || kInstances[i].split_k == 1) &&
                      cost_of(kInstances[i], shape, machine, &cost);
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
