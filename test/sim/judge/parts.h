// parts.h -- what a judge is put together from: the schedules and the checkers, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/check/finding.h"
#include "sim/exec/policy.h"

namespace sim {

struct ScheduleMode {
  std::string name, says;
};
const std::vector<ScheduleMode>& schedule_modes();
// std::runtime_error naming the mode when there is none of that name.
std::unique_ptr<Policy> make_schedule(const std::string& mode, uint64_t seed);

struct Checks {
  bool race = true, protocol = true;
};
// "race,protocol", "all", "none". std::runtime_error naming the word that is none of them.
Checks parse_checks(const std::string& text);
std::vector<std::unique_ptr<Observer>> make_checkers(const Checks& checks, const FindingSink& sink);

}  // namespace sim
