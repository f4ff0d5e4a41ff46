// finding.cpp -- see finding.h.
#include "sim/check/finding.h"

#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace sim {

const Rule& rule(const char* id) {
  static const auto by_id = [] {
    std::unordered_map<std::string_view, const Rule*> out;
    for (const Rule& one : kAllRules) out[one.id] = &one;
    return out;
  }();
  const auto found = by_id.find(id);
  if (found == by_id.end()) throw std::logic_error(std::string("no rule is called ") + id);
  return *found->second;
}

Finding finding_of(const Remark& remark) {
  Finding out;
  out.rule = &rule(remark.rule);
  out.summary = remark.text;
  out.later = {remark.thread, remark.mask, 0, remark.inst};
  out.missing = remark.missing;
  return out;
}

}  // namespace sim
