// judges.cpp -- see judges.h.
#include "fault/judges.h"

namespace fault {

Judges::Judges(sim::FindingSink) {}
Judges::~Judges() = default;

std::unique_ptr<sim::Policy> policy_of(const Schedule&) { return std::make_unique<sim::DefaultPolicy>(); }

const std::vector<Schedule>& escalation() {
  static const std::vector<Schedule> kAll = {{"default", 0}};
  return kAll;
}

}  // namespace fault
