// mixing.cpp -- orders by age, by chance and by priority.
#include "sim/schedule/mixing.h"

#include <algorithm>

namespace sim {

void Reverse::start() {
  Seeded::start();
  streak_ = 0;
}

size_t Reverse::next(const std::vector<Agent>& agents) {
  const size_t warps = first_warp(agents);
  if (warps == agents.size()) {
    streak_ = 0;
    return agents.size() - 1;
  }
  if (++streak_ > kPatience) {
    streak_ = 0;
    return random.below(uint32_t(agents.size()));
  }
  return agents.size() - 1;
}

size_t Mixed::next(const std::vector<Agent>& agents) {
  const uint32_t operations = uint32_t(first_warp(agents)), warps = uint32_t(agents.size()) - operations;
  if (warps == 0 || (operations != 0 && random.one_in(2))) return random.below(operations);
  return operations + random.below(warps);
}

size_t Overlap::next_grid(const std::vector<uint64_t>& grids) {
  constexpr uint32_t kVictims = 4, kSeldom = 64;
  const size_t chosen = random.below(uint32_t(grids.size()));
  const bool victim = grids[chosen] == seed() % kVictims;  // of the first grids; a seed may pick none
  return victim && !random.one_in(kSeldom) ? (chosen + 1) % grids.size() : chosen;
}

void Priorities::start() {
  Seeded::start();
  clusters_ = Random(seed() ^ 0xC1);
  demoted_.clear();
  lowest_ = 0;
  step_ = 0;
  last_ = ~uint64_t(0);
  streak_ = 0;
  // Nobody knows how long the run is, so the steps are spread over its possible magnitudes.
  constexpr int kChanges = 2;
  constexpr uint32_t kMagnitudes = 14;
  changes_.clear();
  for (int i = 0; i < kChanges; ++i) changes_.push_back(1 + random.below(2u << random.below(kMagnitudes)));
}

int64_t Priorities::priority(const Agent& agent) const {
  const auto found = demoted_.find(name(agent));
  return found != demoted_.end() ? found->second : int64_t(mix(seed() ^ mix(name(agent))) >> 1);
}

size_t Priorities::highest(const std::vector<Agent>& agents) const {
  size_t best = 0;
  int64_t most = priority(agents[0]);
  for (size_t i = 1; i < agents.size(); ++i) {
    const int64_t mine = priority(agents[i]);
    if (mine > most) {
      best = i;
      most = mine;
    }
  }
  return best;
}

size_t Priorities::next(const std::vector<Agent>& agents) {
  constexpr uint32_t kSpin = 64;  // a warp that moves more often in a row polls; the others get their chance
  ++step_;
  size_t chosen = highest(agents);
  const bool change = std::find(changes_.begin(), changes_.end(), step_) != changes_.end();
  streak_ = name(agents[chosen]) == last_ ? streak_ + 1 : 0;
  if (change || streak_ > kSpin) {
    demote(agents[chosen]);
    chosen = highest(agents);
    streak_ = 0;
  }
  last_ = name(agents[chosen]);
  return chosen;
}

}  // namespace sim
