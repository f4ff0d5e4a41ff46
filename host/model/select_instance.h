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
// Returns the position in `candidates` of the one to take, or -1 when the span is empty. Among the candidates
// that cost little more than the cheapest, it is the one with the fewest slices of K.
int32_t best_of(std::span<const Candidate> candidates);

// Which instances take part in the choice, in addition to those that always do.
struct Allowed {
  bool split_k = true;
  bool prepared_a = false;  // those that need a workspace, for an A that a pass prepares
  bool stream_k = false;    // those of these that need a larger one, for sums of parts of tiles

  bool operator==(const Allowed&) const = default;
};
// Returns whether instances with this plan do.
bool takes_part(const Plan& plan, Allowed allowed);

// Returns the index of the instance of this kind to take (best_of), or -1 when no instance of this kind runs
// the problem on this machine.
int32_t select_instance(const InstanceKind& kind, Shape shape, const Machine& machine, Allowed allowed = {});

}  // namespace dualgemm
