// tuned.h -- the choice by measured times: entries of a tuning file (common/tuning_file.h), and which of them
// a problem takes. Like the choice by the model it is a pure function of its arguments.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "host/model/instance_kinds.h"
#include "host/model/select_instance.h"
#include "host/model/tiling.h"

namespace dualgemm {

// This is what the entries of one weight have in common. They differ in their rows.
struct TunedWeights {
  InstanceKind kind;
  bool grouped;
  int32_t problems;  // of the batch, or groups, empty ones counted
  int32_t n, k;

  bool operator==(const TunedWeights&) const = default;
};

struct TunedEntry {
  TunedWeights weights;
  int64_t rows;   // of A, of all problems together
  int32_t index;  // of the instance, in the table
  int32_t line;   // of the file
};

// Returns whether one entry stands before another in the order that select_tuned expects.
bool comes_before(const TunedEntry& left, const TunedEntry& right);

// Returns the index of the instance that the entries, in their order, say for a problem, or -1 where the
// model is to choose; `rows` are those of all problems together. dualgemm.h has the rule.
int32_t select_tuned(std::span<const TunedEntry> entries, const TunedWeights& weights, int64_t rows,
                     Shape shape, const Machine& machine, Allowed allowed);

}  // namespace dualgemm
