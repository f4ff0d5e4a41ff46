// policy.cpp -- the default order: deterministic, and quick to make progress.
#include "sim/exec/policy.h"

namespace sim {

size_t DefaultPolicy::next(const std::vector<Agent>& agents) {
  size_t oldest = agents.size(), first = agents.size(), following = agents.size();
  for (size_t i = 0; i < agents.size(); ++i) {
    if (agents[i].kind != Agent::Kind::kWarp) {
      if (oldest == agents.size() || agents[i].id < agents[oldest].id) oldest = i;
    } else {
      if (first == agents.size() || agents[i].id < agents[first].id) first = i;
      if (agents[i].id > last_warp_ && (following == agents.size() || agents[i].id < agents[following].id))
        following = i;
    }
  }
  if (oldest != agents.size()) return oldest;
  const size_t chosen = following != agents.size() ? following : first;
  last_warp_ = agents[chosen].id;
  return chosen;
}

}  // namespace sim
