// instance_kinds.h -- the instances of each kind. A launch looks only at the instances of one kind, so that
// its cost on the host does not rise with the number of outputs, epilogues and architectures in the table.
#pragma once

#include <cstdint>
#include <span>

#include "host/common/problem.h"
#include "kernel/instance.h"

namespace dualgemm {

// A launch may only take instances of its kind, whatever the size of the problem. A general instance belongs
// to several kinds, one for each type of C that it writes.
struct InstanceKind {
  Arch arch;
  CType c_type;
  bool general = false;
  CType a_type = CType::kNvfp4;
  int32_t products = 2;

  bool operator==(const InstanceKind&) const = default;
};
bool is_kind(const Instance& instance, const InstanceKind& kind);

// Returns the kind that computes a problem on an architecture: a plain one if the launch asks for no more
// than a plain one computes and there is one for its types of A and C, else a general one.
InstanceKind kind_for(Arch arch, const Problem& problem);

// Instances of one kind differ only in tiles and rings. A kind may have at most this many.
inline constexpr int32_t kMaxOfKind = 64;

struct IndexedInstance {
  const Instance* instance;
  int32_t index;  // in the table
};
inline constexpr IndexedInstance kNoInstance{nullptr, -1};

// Returns the instances of a kind that are for groups, or those that are not, in the order of the table.
std::span<const IndexedInstance> instances_of(const InstanceKind& kind, bool grouped);

}  // namespace dualgemm
