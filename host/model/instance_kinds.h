// instance_kinds.h -- the instances of each kind. A launch looks at those of one kind alone, so that what it
// costs the host does not rise with the outputs, epilogues and architectures that the table has.
#pragma once

#include <cstdint>
#include <span>

#include "host/common/problem.h"
#include "kernel/instance.h"

namespace dualgemm {

// An instance that a launch may take has to be of this kind, whatever the size of the problem. A general
// instance is of several, one for each type of C that it writes.
struct InstanceKind {
  Arch arch;
  CType c_type;
  bool general = false;
  CType a_type = CType::kNvfp4;
  int32_t products = 2;

  bool operator==(const InstanceKind&) const = default;
};
bool is_kind(const Instance& instance, const InstanceKind& kind);

// Returns the kind that computes a problem on an architecture: a plain one if that is all that is asked for,
// unless there is none for these types of A and C.
InstanceKind kind_for(Arch arch, const Problem& problem);

// Instances of one kind differ in tiles and rings alone. There may be this many.
inline constexpr int32_t kMaxOfKind = 64;

struct IndexedInstance {
  const Instance* instance;
  int32_t index;  // in the table
};
inline constexpr IndexedInstance kNoInstance{nullptr, -1};

// Returns the instances of a kind that are for groups, or those that are not, in the order of the table.
std::span<const IndexedInstance> instances_of(const InstanceKind& kind, bool grouped);

}  // namespace dualgemm
