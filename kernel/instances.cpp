// instances.cpp -- the table of instances: two lists for each source that instances.def names, one for each
// arithmetic of the epilogue.
#include "kernel/instance.h"

namespace dualgemm {

#define INSTANCES(name) extern const InstanceList name##_plain, name##_general;
#include "kernel/instances.def"
#undef INSTANCES

namespace {

#define INSTANCES(name) &name##_plain, &name##_general,
constinit const InstanceList* const kLists[] = {
#include "kernel/instances.def"
};
#undef INSTANCES

}  // namespace

int32_t instance_count() {
  int32_t count = 0;
  for (const InstanceList* list : kLists) count += list->count;
  return count;
}

const Instance& instance(int32_t index) {
  const InstanceList* const* list = kLists;
  for (; index >= (*list)->count; ++list) index -= (*list)->count;
  return (*list)->first[index];
}

}  // namespace dualgemm
