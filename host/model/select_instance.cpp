// select_instance.cpp -- the lowest cost, and the choice among those that come close to it.

#include "host/model/select_instance.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dualgemm {
namespace {

// Costs that exceed the lowest cost by no more than this fraction count as equal to it: the model cannot tell
// smaller differences apart. The model's own error is larger, but similar instances have it in common.
constexpr double kResolution = 0.02;

// Returns whether `left` is to be preferred to `right` at equal cost. Preferred is:
//   - the one without split-K, or with fewer slices: fewer CTAs have to run at the same time, and without
//   split-K all instances add in the same order; most tiles with stream-K have two parts;
//   - then the one with fewer bytes into the shared memory of the busiest SM: where DRAM makes several equal,
//   this one stays faster than DRAM even if the rates into an SM are lower than assumed;
//   - then, for the same reason, the one with less work for the busiest tensor core;
//   - then, with more than one tile per cluster, the one whose accumulators overlap, which hides an epilogue
//   that takes longer than assumed; with one tile per cluster, the one whose accumulators do not overlap,
//   whose mma thread has less to wait for;
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

bool takes_part(const Plan& plan, Allowed allowed) {
  return (plan.tile.split_k == 1 || allowed.split_k) && (!plan.prepared_a() || allowed.prepared_a) &&
         (!plan.tile.stream_k || allowed.stream_k);
}

int32_t select_instance(const InstanceKind& kind, Shape shape, const Machine& machine, Allowed allowed) {
  Candidate candidates[kMaxOfKind];
  size_t count = 0;
  shape.c_type = kind.c_type;
  for (const auto& [instance, index] : instances_of(kind, shape.grouped)) {
    const Plan& plan = instance->plan;
    if (!takes_part(plan, allowed)) continue;
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
