// instances.cpp -- the table of instances: one list for each translation unit that instances.def names.
#include "kernel/instance.h"

namespace dualgemm {

#define INSTANCES(name) extern const InstanceList name;
#include "kernel/instances.def"
#undef INSTANCES

namespace {

#define INSTANCES(name) &name,
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
