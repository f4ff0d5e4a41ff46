// schedule.h -- adversarial schedules by name. Each mode is a family of legal runs that reveals a particular
// kind of mistake; a run is a function of mode and seed only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/exec/policy.h"

namespace sim {

struct Mode {
  const char* name;
  const char* says;
};

const std::vector<Mode>& modes();

// Throws std::invalid_argument for an unknown mode, with its name and the known ones.
std::unique_ptr<Policy> make_policy(const std::string& mode, uint64_t seed);

}  // namespace sim
