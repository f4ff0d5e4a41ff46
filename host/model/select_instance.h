// select_instance.h -- which kernel instance computes a problem. The choice is a pure function of its
// arguments: no CUDA call, no timing, no allocation, no state, so the same problem always gets the same
// kernel and the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "host/model/cost_model.h"
#include "host/model/instance_kinds.h"
#include "host/model/tiling.h"

namespace dualgemm {

// An instance that takes the problem, as the choice looks at it.
struct Candidate {
  int32_t index;  // in the table of instances
  int32_t split_k;
  bool overlapped;  // accumulators share columns
  Cost cost;
};
// Returns the position of the one to take, or -1 when there is none: the simplest of those that come close to
// the lowest cost.
int32_t best_of(std::span<const Candidate> candidates);

// Returns the index of an instance, or -1 when there is none of this kind that takes the problem on this
// machine. Some stay out of it unless they are allowed.
struct Allowed {
  bool split_k = true;
  bool prepared_a = false;  // those that need a workspace, for A prepared by a pass

  bool operator==(const Allowed&) const = default;
};
int32_t select_instance(const InstanceKind& kind, Shape shape, const Machine& machine, Allowed allowed = {});

}  // namespace dualgemm
