// instance_kinds.cpp -- see instance_kinds.h. The lists are made from the table of instances when the first
// of them is asked for. They lie in static memory, because the library allocates nothing.

#include "host/model/instance_kinds.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace dualgemm {
namespace {

constexpr CType kATypes[] = {CType::kNvfp4, CType::kBf16, CType::kFp16, CType::kFp8};
constexpr size_t kKinds = std::size(kArchitectures) * std::size(kATypes) * size_t{kCTypes} * 2 * 2;

size_t number_of(const InstanceKind& kind) {
  const auto a_type = static_cast<size_t>(std::find(kATypes, std::end(kATypes) - 1, kind.a_type) - kATypes);
  const size_t types = (static_cast<size_t>(kind.arch) * std::size(kATypes) + a_type) * size_t{kCTypes} +
                       static_cast<size_t>(kind.c_type);
  return (types * 2 + kind.general) * 2 + (kind.products == 1);
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
      const EpilogueKind& epilogue = instance.epilogue;
      for (int32_t i = 0; i < epilogue.output_count; ++i) {
        const InstanceKind kind{instance.plan.arch, epilogue.outputs[i].type, epilogue.general,
                                instance.plan.a_type, instance.plan.mma.products};
        List& list = of_kind[number_of(kind)][instance.plan.tile.grouped];
        if (list.count < list.entries.size()) list.entries[list.count++] = {&instance, index};
      }
      ++index;
    }
  }
};

}  // namespace

bool is_kind(const Instance& instance, const InstanceKind& kind) {
  return instance.plan.arch == kind.arch && instance.plan.a_type == kind.a_type &&
         instance.plan.mma.products == kind.products && instance.epilogue.general == kind.general &&
         instance.epilogue.output(kind.c_type);
}

InstanceKind kind_for(Arch arch, const Problem& problem) {
  InstanceKind kind{arch, problem.c_type, problem.general(), problem.a_type, problem.products};
  if (!kind.general) kind.general = instances_of(kind, problem.grouped()).empty();
  return kind;
}

std::span<const IndexedInstance> instances_of(const InstanceKind& kind, bool grouped) {
  static const Lists lists;
  const Lists::List& list = lists.of_kind[number_of(kind)][grouped];
  return {list.entries.data(), list.count};
}

}  // namespace dualgemm
