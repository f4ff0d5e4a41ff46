// equivalent.cpp -- see equivalent.h.
#include "fault/equivalent.h"

#include <fnmatch.h>

namespace fault {
namespace {

struct Entry {
  const char* instance;  // patterns of the shell
  const char* id;
  const char* reason;
};

constexpr Entry kEntries[] = {
    {"*", "delete prefetch.tensormap @ *", "a prefetch is a hint: it orders and changes nothing"},
};

}  // namespace

std::string why_equivalent(const Mutant& mutant) {
  for (const Entry& entry : kEntries)
    if (fnmatch(entry.instance, mutant.instance.c_str(), 0) == 0 &&
        fnmatch(entry.id, mutant.id.c_str(), 0) == 0)
      return entry.reason;
  return {};
}

}  // namespace fault
