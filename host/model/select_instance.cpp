// select_instance.cpp -- the lowest cost, and the choice among those that come close to it.

#include "host/model/select_instance.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dualgemm {
namespace {

// Costs this close to the lowest count as equal to it: a part of the time, below what the model can tell
// apart. Its own error is larger, but common to similar instances.
constexpr double kResolution = 0.02;

// Of two instances of equal cost this prefers:
//   - the one without split-K, or with fewer slices: less that has to meet at the same time, and the same
//     order of additions as the instances without split-K; most tiles with stream-K have two parts;
//   - then fewer bytes into the shared memory of the busiest SM: where DRAM makes several equal, the one that
//     stays ahead of it if the rates into an SM are lower than assumed;
//   - then less work for the busiest tensor core, likewise;
//   - then, with more than one tile per cluster, the one whose accumulators overlap, which hides an epilogue
//     that takes longer than assumed; with one, the other, whose mma thread has less to wait for;
//   - then the first in the table.
bool preferred(const Candidate& left, const Candidate& right) {
  const auto rank = [](const Candidate& candidate) {
    const Cost& c = candidate.cost;
    return std::tuple(candidate.split_k, c.waves * c.k_tiles * c.fill_bytes,
                      c.waves * c.k_tiles * c.tensor_us, candidate.overlapped == (c.waves == 1),
                      candidate.index);
  };
  return rank(left) < rank(right);
}

}  // namespace

int32_t best_of(std::span<const Candidate> candidates) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const Candidate& c : candidates) lowest = std::min(lowest, c.cost.total_us);
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates)
    if (c.cost.total_us <= lowest * (1 + kResolution) && (!best || preferred(c, *best))) best = &c;
  return best ? static_cast<int32_t>(best - candidates.data()) : -1;
}

int32_t select_instance(const InstanceKind& kind, Shape shape, const Machine& machine, Allowed allowed) {
  Candidate candidates[kMaxOfKind];
  size_t count = 0;
  shape.c_type = kind.c_type;
  for (const auto& [instance, index] : instances_of(kind, shape.grouped)) {
    const Plan& plan = instance->plan;
    if (plan.tile.split_k > 1 && !allowed.split_k) continue;
    if (plan.prepared_a() && !allowed.prepared_a) continue;
    if (plan.tile.stream_k && !allowed.stream_k) continue;
    Candidate& candidate = candidates[count];
    if (!cost_of(*instance, shape, machine, &candidate.cost)) continue;
    candidate.index = index;
    candidate.split_k = plan.tile.stream_k ? kPartsOfCta : plan.tile.split_k;
    candidate.overlapped = plan.tmem.overlapped();
    ++count;
  }
  const int32_t best = best_of({candidates, count});
  return best < 0 ? -1 : candidates[best].index;
}

}  // namespace dualgemm
