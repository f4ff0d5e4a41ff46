// instance.h -- a compiled kernel as host/ sees it, and the table of all there are. Every translation unit of
// instances has a list of its own; the table names the lists (instances.def). All of it is
// constant-initialised, so that a call from a static constructor finds it complete.
#pragma once

#include <cstdint>

#include "kernel/epilogue/kinds.h"
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

// These are the instances of the library in the order of their ids, which start at 1: the id of instance(i)
// is i + 1.
int32_t instance_count();
const Instance& instance(int32_t index);

// This makes "for (const Instance& i : instances())" possible.
class Instances {
 public:
  class Iterator {
   public:
    explicit Iterator(int32_t index) : index_(index) {}
    const Instance& operator*() const { return instance(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    int32_t index_;
  };
  Iterator begin() const { return Iterator(0); }
  Iterator end() const { return Iterator(instance_count()); }
};
inline Instances instances() { return {}; }

}  // namespace dualgemm
