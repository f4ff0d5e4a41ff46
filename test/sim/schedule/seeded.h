// seeded.h -- what the schedules have in common: random bits that are the same on every machine, and the
// choices that most of them make in the same way.
#pragma once

#include <cstdint>

#include "sim/exec/policy.h"

namespace sim {

// splitmix64, a fixed function of its argument that is as good as random.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t bits() { return mix(state_++); }
  uint32_t below(uint32_t limit) { return uint32_t((bits() >> 32) * limit >> 32); }  // limit > 0
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

inline bool is_warp(const Agent& agent) { return agent.kind == Agent::Kind::kWarp; }
size_t first_warp(const std::vector<Agent>& agents);  // agents.size() when none can run

// A schedule must not hold an agent back for ever: a warp that polls memory never sleeps, and would wait for
// ever for agents that it keeps from moving. After this many choices in a row, another agent moves.
constexpr uint32_t kPatience = 1000;

// Seeded elects any lane, but always the same one of a mask, and makes all other choices as by default.
class Seeded : public Policy {
 public:
  explicit Seeded(uint64_t seed) : random(seed), seed_(seed) {}
  void start() override { random = Random(seed_); }
  uint32_t leader(uint32_t members) override;

 protected:
  uint64_t seed() const { return seed_; }
  uint32_t some_quantum() { return 8u << random.below(6); }
  uint64_t some_slice() { return uint64_t(256) << random.below(10); }
  uint32_t some_shift(uint32_t align) const {
    const uint32_t whole = uint32_t(mix(seed_ ^ 0x51) % (kMaxSharedShift / 1024)) * 1024;
    return whole + uint32_t(mix(seed_ ^ 0x52) % (1024 / align + 1)) * align;
  }
  Random random;

 private:
  uint64_t seed_;
};

}  // namespace sim
