// instance_kinds.cpp -- see instance_kinds.h. The lists are made when one is first asked for, from the table
// alone. They lie in static memory, because the library allocates nothing.

#include "host/instance_kinds.h"

#include <array>
#include <iterator>

namespace dualgemm {
namespace {

constexpr size_t kCTypes = static_cast<size_t>(CType::kFp8) + 1;
constexpr size_t kKinds = std::size(kArchitectures) * kCTypes * 2;

size_t number_of(const InstanceKind& kind) {
  return (static_cast<size_t>(kind.arch) * kCTypes + static_cast<size_t>(kind.c_type)) * 2 + kind.general;
}

struct Lists {
  struct List {
    std::array<IndexedInstance, kMaxOfKind> entries;
    size_t count;
  };
  std::array<std::array<List, 2>, kKinds> of_kind;  // dense and grouped

  Lists() {
    for (auto& [dense, grouped] : of_kind) dense.count = grouped.count = 0;
    int32_t index = 0;
    for (const Instance& instance : instances()) {
      const InstanceKind kind{instance.plan.arch, instance.epilogue.c_type, instance.epilogue.general};
      List& list = of_kind[number_of(kind)][instance.plan.tile.grouped];
      if (list.count < list.entries.size()) list.entries[list.count++] = {&instance, index};
      ++index;
    }
  }
};

}  // namespace

bool is_kind(const Instance& instance, const InstanceKind& kind) {
  return instance.plan.arch == kind.arch && instance.epilogue.c_type == kind.c_type &&
         instance.epilogue.general == kind.general;
}

std::span<const IndexedInstance> instances_of(const InstanceKind& kind, bool grouped) {
  static const Lists lists;
  const Lists::List& list = lists.of_kind[number_of(kind)][grouped];
  return {list.entries.data(), list.count};
}

}  // namespace dualgemm
