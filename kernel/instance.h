// instance.h -- an instance, which is a compiled kernel as host/ sees it, and the table of all instances. Two
// instances that differ only in the 16-bit type of C mostly share a kernel. Every translation unit of
// instances has a list of its own; the table names the lists (instances.def). All of it is
// constant-initialised, so that a call from a static constructor finds it complete.
#pragma once

#include <cstdint>

#include "kernel/epilogue/kinds.h"
#include "kernel/epilogue/list.h"
#include "kernel/params.h"
#include "kernel/plan.h"

namespace dualgemm {

struct Instance {
  const char* name;        // composed of the plan and the epilogue: "m128n64k256s2_fp16"
  void (*kernel)(Params);  // the __global__ function
  Plan plan;
  EpilogueKind epilogue;
  int32_t smem_bytes;  // dynamic shared memory of a launch
};

struct InstanceList {
  const Instance* first;
  int32_t count;
};

// Returns the instances of some kernels, those of one kernel side by side. Entry<Traits, Output>::kInstance
// is the instance of a kernel that writes Output.
template <template <class, class> class Entry, class Traits, class... Output>
auto instances_of_kernel(List<Output...>) -> List<Entry<Traits, Output>...>;
template <class... Entries>
inline constexpr Instance kInstancesOf[] = {Entries::kInstance...};
template <class... Entries>
consteval InstanceList list_of_entries(List<Entries...>) {
  return {kInstancesOf<Entries...>, sizeof...(Entries)};
}
template <template <class, class> class Entry, class... AllTraits>
consteval InstanceList list_of(List<AllTraits...>) {
  return list_of_entries(typename Joined<decltype(instances_of_kernel<Entry, AllTraits>(
                             typename AllTraits::Output::Instances{}))...>::Type{});
}

// The instances of the library in the order of their ids, which start at 1: the id of instance(i) is i + 1.
int32_t instance_count();
const Instance& instance(int32_t index);

// Makes "for (const Instance& i : instances())" possible, for all instances or for those of one architecture.
class Instances {
 public:
  class Iterator {
   public:
    Iterator(int32_t index, const Arch* arch) : index_(index), arch_(arch) { skip(); }
    const Instance& operator*() const { return instance(index_); }
    Iterator& operator++() {
      ++index_;
      skip();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    void skip() {
      while (arch_ && index_ < instance_count() && instance(index_).plan.arch != *arch_) ++index_;
    }
    int32_t index_;
    const Arch* arch_;
  };
  explicit Instances(const Arch* arch) : arch_(arch) {}
  Iterator begin() const { return {0, arch_}; }
  Iterator end() const { return {instance_count(), arch_}; }

 private:
  const Arch* arch_;  // null: of all
};
inline Instances instances() { return Instances(nullptr); }
inline Instances instances(Arch arch) { return Instances(&limits_of(arch).arch); }

}  // namespace dualgemm
