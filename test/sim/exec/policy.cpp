// policy.cpp -- the default order: deterministic, and quick to make progress.
#include "sim/exec/policy.h"

namespace sim {

size_t WarpTurns::next(const std::vector<Agent>& agents, size_t first_warp) {
  size_t chosen = first_warp;
  for (size_t i = first_warp; i < agents.size(); ++i)
    if (agents[i].id > last_) {
      chosen = i;
      break;
    }
  last_ = agents[chosen].id;
  return chosen;
}

size_t DefaultPolicy::next(const std::vector<Agent>& agents) {
  return agents.front().kind != Agent::Kind::kWarp ? 0 : turns_.next(agents, 0);
}

}  // namespace sim
