// cluster.h -- the state of a cluster: its CTAs, and the asynchronous operations that have not completed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/exec/copy.h"
#include "sim/exec/cta.h"
#include "sim/exec/observer.h"

namespace sim {

struct AsyncOp {
  enum class Kind : uint8_t { kCopy, kTensorCopy, kTensorMma, kTensorCommit, kTmemLoad, kTmemStore, kWgmma };
  uint64_t id = 0;
  Kind kind = Kind::kCopy;
  const Inst* inst = nullptr;
  Cta* issuer = nullptr;
  uint32_t warp = 0, lane = 0;
  uint32_t ranks = 0;            // CTAs of the cluster whose memory it still touches
  std::unique_ptr<Copy> copy;    // of a copy, which moves in steps; else null
  std::function<void()> land;    // without a copy: the whole effect, in one step
  bool sources_read = false;     // as the observer was told
  std::vector<uint64_t> others;  // kWgmma: the numbers of the parts of the other warps
  bool reads_next() const { return copy && !copy->sources_read(); }
  std::vector<MbarrierRef> signals;  // the mbarriers its completion will reach
  // True for operations that the tensor core starts in an order among those of their thread or warpgroup.
  bool queued() const {
    return kind == Kind::kTensorCopy || kind == Kind::kTensorMma || kind == Kind::kTensorCommit ||
           kind == Kind::kWgmma;
  }
};

struct Cluster {
  Grid* grid = nullptr;
  uint64_t index = 0;
  uint32_t id[3] = {0, 0, 0};
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<std::unique_ptr<AsyncOp>> pending;  // oldest first
  uint64_t pending_changes = 0;                   // rises whenever one is added, moves or is taken out
  const AsyncOp* landing = nullptr;               // the one that moves right now
  uint64_t events = 1;  // rises whenever something happens that a wait may depend on
  uint64_t barrier_generation = 0;
  uint32_t live_ctas = 0;
  Cta& at(uint32_t rank);  // Fault kBounds: no such CTA; kProtocol: it has exited
};

// cta.cpp
std::unique_ptr<Cluster> start_cluster(Grid& grid, uint64_t index);
void check_cluster_barrier(Cluster& cluster);

// grid.cpp
void complete_youngest(Cluster& cluster);  // lands the operation just issued, unless older ones hold it back

}  // namespace sim
