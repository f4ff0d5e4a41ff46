// holding.cpp -- which agents are held. All others move as by default.
#include "sim/schedule/holding.h"

#include <algorithm>

namespace sim {

void Holding::start() {
  Seeded::start();
  turns_ = WarpTurns();
  passed_over_ = 0;
}

size_t Holding::next(const std::vector<Agent>& agents) {
  free_.clear();
  free_index_.clear();
  held_index_.clear();
  for (size_t i = 0; i < agents.size(); ++i) {
    if (holds(agents[i])) {
      held_index_.push_back(i);
      continue;
    }
    free_.push_back(agents[i]);
    free_index_.push_back(i);
  }
  const auto usual = [&](const std::vector<Agent>& some) {
    return is_warp(some.front()) ? turns_.next(some, 0) : 0;
  };
  if (free_.empty() || held_index_.empty()) {
    passed_over_ = 0;
    return usual(agents);
  }
  if (++passed_over_ > kPatience) {
    passed_over_ = 0;
    return held_index_[random.below(uint32_t(held_index_.size()))];
  }
  return free_index_[usual(free_)];
}

OneLate::OneLate(uint64_t seed) : Holding(seed), by_instruction_(seed % 4 != 3), writes_only_(mix(seed) & 1) {
  constexpr uint64_t kInstructions = 24;  // more than a kernel usually has; beyond them nothing is held
  const uint64_t turn = seed / 4;
  if (by_instruction_) {
    which_ = (3 * turn + seed % 4) % kInstructions;
  } else {
    const uint64_t scale = mix(seed ^ 1) % 12;  // the first few operations, or any of some thousand
    which_ = 1 + mix(seed ^ 2) % (uint64_t(2) << scale);
  }
}

void OneLate::start() {
  Holding::start();
  seen_.clear();
}

size_t OneLate::next(const std::vector<Agent>& agents) {
  for (const Agent& agent : agents)
    if (!is_warp(agent) && std::find(seen_.begin(), seen_.end(), agent.inst) == seen_.end())
      seen_.push_back(agent.inst);
  return Holding::next(agents);
}

bool OneLate::holds(const Agent& agent) {
  if (is_warp(agent) || (writes_only_ && agent.kind == Agent::Kind::kRead)) return false;
  return by_instruction_ ? which_ < seen_.size() && seen_[which_] == agent.inst : agent.id == which_;
}

void Starve::start() {
  Holding::start();
  chosen_ = false;
}

// Every warp of a cluster can run when it begins, so the first choice shows them all.
size_t Starve::next(const std::vector<Agent>& agents) {
  if (!chosen_) {
    uint64_t most = 0;
    for (const Agent& agent : agents)
      if (is_warp(agent)) most = std::max(most, kind_ == Victim::kWarp ? agent.id : uint64_t(agent.rank));
    victim_ = seed() % (most + 1);
    chosen_ = true;
  }
  return Holding::next(agents);
}

bool Starve::holds(const Agent& agent) {
  return kind_ == Victim::kCta ? agent.rank == victim_ : is_warp(agent) && agent.id == victim_;
}

}  // namespace sim
