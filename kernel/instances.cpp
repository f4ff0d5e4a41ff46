// instances.cpp -- the table of instances: two lists for each source that instances.def names, one for each
// arithmetic of the epilogue.
#include "kernel/instance.h"

#include <algorithm>
#include <iterator>

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

// Where each list begins among all instances. A launch looks instances up, and there are many lists.
struct Starts {
  int32_t of_list[std::size(kLists)];
  int32_t count = 0;

  Starts() {
    int32_t* start = of_list;
    for (const InstanceList* list : kLists) {
      *start++ = count;
      count += list->count;
    }
  }
};

const Starts& starts() {
  static const Starts made;
  return made;
}

}  // namespace

int32_t instance_count() { return starts().count; }

const Instance& instance(int32_t index) {
  // The list of the instance is the last one that begins at the instance or before it. An empty list begins
  // where the next list does.
  const auto& of_list = starts().of_list;
  const auto list = std::upper_bound(std::begin(of_list), std::end(of_list), index) - of_list - 1;
  return kLists[list]->first[index - of_list[list]];
}

}  // namespace dualgemm
