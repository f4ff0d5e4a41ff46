// judges.cpp -- see judges.h.
#include "mutation/judges.h"

#include "sim/schedule/schedule.h"

namespace mutation {

Judges::Judges(const sim::FindingSink& sink)
    : checkers_({.race = true, .protocol = true, .certificate = false}, sink) {
  for (const auto& checker : checkers_.all()) add(*checker);
}

std::unique_ptr<sim::Policy> policy_of(const Schedule& schedule) {
  return sim::make_policy(schedule.mode, schedule.seed);
}

const std::vector<Schedule>& escalation() {
  static const std::vector<Schedule> all = [] {
    std::vector<Schedule> out = {{"default", 0}, {"late", 0},    {"reverse", 1},       {"tear", 1},
                                 {"diverge", 1}, {"diverge", 2}, {"strict-tensor", 1}, {"one-late", 1}};
    for (uint64_t seed = 1; seed <= 40; ++seed) out.push_back({"random", seed});
    for (uint64_t seed = 2; seed <= 20; ++seed)
      for (const char* mode : {"starve-warp", "one-late", "diverge", "tear"}) out.push_back({mode, seed});
    return out;
  }();
  return all;
}

}  // namespace mutation
