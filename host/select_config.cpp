// select_config.cpp -- the lowest cost, and the choice among those that come close to it.

#include "host/select_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

namespace dualgemm {
namespace {

// Costs this close to the lowest count as equal to it: a part of the time, below what the model can tell
// apart. Its own error is larger, but common to similar instances.
constexpr double kResolution = 0.02;

using Costs = std::array<Cost, kInstanceCount>;  // total_us is infinite where an instance cannot run

// Which of two instances of equal cost:
//   - the one without a split of K, or with the smaller: less that has to meet at the same time, and the same
//     order of additions as the instances without a split;
//   - then fewer bytes into the shared memory of the busiest SM: where DRAM makes several equal, the one that
//     stays ahead of it if the rates into an SM are lower than assumed;
//   - then the one whose accumulators do not overlap: its mma thread has less to wait for;
//   - then the first in the table.
bool preferred(int32_t left, int32_t right, const Costs& costs) {
  const auto rank = [&costs](int32_t index) {
    const Instance& i = kInstances[index];
    const Cost& c = costs[index];
    return std::tuple(i.split_k, c.waves * c.k_tiles * c.fill_bytes, i.overlapped, index);
  };
  return rank(left) < rank(right);
}

}  // namespace

int32_t select_config(Shape shape, CType c_type, const Machine& machine, bool split_k) {
  Costs costs;
  double lowest = std::numeric_limits<double>::infinity();
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    const Instance& instance = kInstances[i];
    const bool runs = instance.c_type == c_type && (split_k || instance.split_k == 1) &&
                      cost_of(instance, shape, machine, &costs[i]);
    if (!runs) costs[i].total_us = std::numeric_limits<double>::infinity();
    lowest = std::min(lowest, costs[i].total_us);
  }
  if (std::isinf(lowest)) return -1;
  int32_t best = -1;
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    if (costs[i].total_us > lowest * (1 + kResolution)) continue;
    if (best < 0 || preferred(i, best, costs)) best = i;
  }
  return best;
}

}  // namespace dualgemm
