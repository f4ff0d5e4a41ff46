// late_policy.hpp -- asynchronous work lands only when no warp can move.
#pragma once

#include "sim/exec/policy.h"

namespace sim_test {

class LatePolicy : public sim::Policy {
 public:
  size_t next(const std::vector<sim::Agent>& agents) override {
    for (size_t i = 0; i < agents.size(); ++i)
      if (agents[i].kind == sim::Agent::Kind::kWarp) return i;
    return 0;
  }
};

}  // namespace sim_test
