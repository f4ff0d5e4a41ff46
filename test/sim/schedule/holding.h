// holding.h -- schedules that hold some agents back: a held agent moves only when no other agent can.
#pragma once

#include "sim/schedule/seeded.h"

namespace sim {

class Holding : public Seeded {
 public:
  using Seeded::Seeded;
  void start() override;
  size_t next(const std::vector<Agent>& agents) override;

 protected:
  virtual bool holds(const Agent& agent) = 0;

 private:
  WarpTurns turns_;
  std::vector<Agent> free_;
  std::vector<size_t> free_index_, held_index_;
  uint32_t passed_over_ = 0;  // choices in a row in which somebody held could have moved
};

// Late holds all asynchronous work.
class Late : public Holding {
 public:
  using Holding::Holding;
  bool load_early() override { return false; }

 private:
  bool holds(const Agent& agent) override { return !is_warp(agent); }
};

// OneLate holds one class of operations, the n-th of the grid or all of one instruction, whole or only their
// writes. Small seeds go through the instructions, in the order in which they are first seen.
class OneLate : public Holding {
 public:
  explicit OneLate(uint64_t seed);
  void start() override;
  size_t next(const std::vector<Agent>& agents) override;
  bool load_early() override { return !by_instruction_; }

 private:
  bool holds(const Agent& agent) override;
  bool by_instruction_, writes_only_;
  uint64_t which_;
  std::vector<const Inst*> seen_;
};

// Starve holds one warp of every cluster, or one CTA of every cluster with the operations it issued.
class Starve : public Holding {
 public:
  enum class Victim { kWarp, kCta };
  Starve(uint64_t seed, Victim victim) : Holding(seed), kind_(victim) {}
  void start() override;
  size_t next(const std::vector<Agent>& agents) override;

 private:
  bool holds(const Agent& agent) override;
  Victim kind_;
  bool chosen_ = false;
  uint64_t victim_ = 0;
};

}  // namespace sim
