// select_config.cpp -- candidates and the comparator that ranks them.

#include "host/select_config.h"

#include <cmath>

namespace dualgemm {
namespace {

struct Candidate {
  int32_t index;
  Cost cost;
};

// The shorter launch wins. Costs closer than the model can tell apart count as equal; between equals:
//   - fewer CTAs per tile, then no split of K: less that has to meet at the same time, and the same order of
//   additions as
//     the instances without a split;
//   - then fewer tiles, which read A and B less often and leave more of L2 and DRAM to whoever shares them;
//   - then the first in the table.
bool better(const Candidate& left, const Candidate& right) {
  constexpr double kResolution =
      0.02;  // of the time; the model's own error is larger, but common to similar instances
  const double difference = left.cost.total_us - right.cost.total_us;
  if (std::abs(difference) > kResolution * right.cost.total_us) return difference < 0;
  const Instance &l = kInstances[left.index], &r = kInstances[right.index];
  if (l.split_k != r.split_k) return l.split_k < r.split_k;
  if (left.cost.tiles != right.cost.tiles) return left.cost.tiles < right.cost.tiles;
  return false;
}

}  // namespace

int32_t select_config(Shape shape, CType c_type, int32_t sm_count) {
  Candidate best{-1, {}};
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    Candidate candidate{i, {}};
    if (kInstances[i].c_type != c_type || !cost_of(kInstances[i], shape, sm_count, &candidate.cost)) continue;
    if (best.index < 0 || better(candidate, best)) best = candidate;
  }
  return best.index;
}

}  // namespace dualgemm
