// mixing.h -- schedules that mix: asynchronous work and warps in orders that chance or priorities give.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "sim/schedule/seeded.h"

namespace sim {

// Reverse moves the highest warp first and, when none can run, the youngest operation, so that operations
// gather while warps can run. Of the resident clusters the last one runs first, and as many clusters as fit
// on the machine begin together.
class Reverse : public Seeded {
 public:
  using Seeded::Seeded;
  void start() override;
  size_t next(const std::vector<Agent>& agents) override;
  // The slice is short, because clusters that poll use all of it while the cluster that they wait for has not
  // begun.
  uint64_t slice() override { return 1 << 14; }
  uint64_t clusters_to_begin(uint64_t room) override { return room; }
  size_t next_cluster(const std::vector<uint64_t>& clusters) override { return clusters.size() - 1; }
  bool load_early() override { return false; }

 private:
  uint32_t streak_ = 0;
};

// Mixed makes every choice by chance.
class Mixed : public Seeded {
 public:
  using Seeded::Seeded;
  size_t next(const std::vector<Agent>& agents) override;
  uint32_t quantum() override { return some_quantum(); }
  uint64_t slice() override { return some_slice(); }
  bool wake_early() override { return random.one_in(8); }
  bool load_early() override { return random.one_in(2); }
};

// Tear lands copies in many pieces and in any order, every destination of a multicast by itself.
class Tear : public Mixed {
 public:
  using Mixed::Mixed;
  uint32_t pieces(uint64_t) override { return 2 + random.below(7); }
  uint32_t piece(uint32_t left) override { return random.below(left); }
  uint32_t shared_shift(uint32_t align) override { return some_shift(align); }
};

// Diverge keeps diverged lanes apart until an instruction asks for them.
class Diverge : public Mixed {
 public:
  using Mixed::Mixed;
  bool reconverge() override { return false; }
  uint32_t quantum() override { return 1 + random.below(32); }
};

// StrictTensor keeps only the order that the ISA lists between tensor operations of one thread.
class StrictTensor : public Mixed {
 public:
  using Mixed::Mixed;
  bool keep_tensor_order() override { return false; }
};

// Overlap runs grids that nothing orders together, in small turns. The seed says how long a turn is at most,
// and may pick one grid that seldom has one.
class Overlap : public Mixed {
 public:
  explicit Overlap(uint64_t seed) : Mixed(seed), longest_(1u << mix(seed) % 8) {}
  bool overlaps_grids() const override { return true; }
  size_t next_grid(const std::vector<uint64_t>& grids) override;
  uint32_t quantum() override { return 1 + random.below(longest_); }
  uint64_t slice() override { return 1 + random.below(longest_); }
  // A few clusters at a time keep the memory of a run small.
  uint64_t clusters_to_begin(uint64_t room) override {
    return 1 + random.below(uint32_t(std::min<uint64_t>(room, 4)));
  }
  size_t next_cluster(const std::vector<uint64_t>& clusters) override {
    return random.below(uint32_t(clusters.size()));
  }

 private:
  uint32_t longest_;  // turn, in instructions
};

// Priorities is probabilistic concurrency testing: everybody has a random priority and the highest moves; at
// a few random steps the one that would move falls below all others. A mistake that shows only if d = 3 steps
// happen in a certain order is found with a probability that is known and not small.
class Priorities : public Seeded {
 public:
  using Seeded::Seeded;
  void start() override;
  size_t next(const std::vector<Agent>& agents) override;
  uint32_t quantum() override { return some_quantum(); }
  uint64_t slice() override { return some_slice(); }
  // A few clusters at a time keep the memory of a run small.
  uint64_t clusters_to_begin(uint64_t room) override {
    return 1 + clusters_.below(uint32_t(std::min<uint64_t>(room, 4)));
  }
  size_t next_cluster(const std::vector<uint64_t>& clusters) override {
    return clusters_.below(uint32_t(clusters.size()));
  }
  bool cancel() override { return !random.one_in(8); }
  bool wake_early() override { return random.one_in(8); }
  bool load_early() override { return random.one_in(2); }
  uint32_t pieces(uint64_t) override { return random.one_in(2) ? 1 : 1 + random.below(8); }
  uint32_t piece(uint32_t left) override { return random.below(left); }
  uint32_t shared_shift(uint32_t align) override { return some_shift(align); }

 private:
  static uint64_t name(const Agent& agent) { return agent.id * 2 + is_warp(agent); }
  int64_t priority(const Agent& agent) const;
  size_t highest(const std::vector<Agent>& agents) const;
  void demote(const Agent& agent) { demoted_[name(agent)] = --lowest_; }

  Random clusters_{0};  // separate, so that a cluster does the same in a grid of one cluster
  std::unordered_map<uint64_t, int64_t> demoted_;  // all below zero, where nobody begins
  int64_t lowest_ = 0;
  std::vector<uint64_t> changes_;  // steps
  uint64_t step_ = 0, last_ = ~uint64_t(0);
  uint32_t streak_ = 0;
};

}  // namespace sim
