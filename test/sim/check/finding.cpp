// finding.cpp -- the rules of all checkers under their names.
#include "sim/check/finding.h"

#include <algorithm>
#include <stdexcept>

namespace sim {

const std::vector<const Rule*>& all_rules() {
  static const std::vector<const Rule*> all = [] {
    std::vector<const Rule*> out;
    for (const std::vector<Rule>* rules : {&kRaceRules, &kProtocolRules, &kMachineRules})
      for (const Rule& rule : *rules) out.push_back(&rule);
    return out;
  }();
  return all;
}

const Rule& rule(const char* id) {
  const auto& all = all_rules();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Rule* r) { return std::string(r->id) == id; });
  if (found == all.end()) throw std::logic_error(std::string("no rule is called ") + id);
  return **found;
}

}  // namespace sim
