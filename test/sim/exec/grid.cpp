// grid.cpp -- the scheduler. One cluster runs until it is done, cannot move or has used up its slice; only
// then is another one started, up to what the machine holds, so that most grids need the memory of a single
// cluster.
#include <algorithm>

#include "sim/exec/machine.h"

namespace sim {
namespace {

constexpr uint64_t kSlice = 1 << 20;              // warp instructions of a cluster before others get a turn
constexpr uint64_t kSpinBeforeRelease = 8 << 20;  // without visible change, before waiting lanes are set free
constexpr uint64_t kLivelock = 64 << 20;          // without visible change, before the run is given up

// May `op` land now? Copies are independent. Tensor operations of one thread keep the order the ISA promises:
// cp and mma before a later mma, everything before a later commit; the others too while the policy keeps
// issue order.
bool may_land(const Cluster& cluster, size_t index, bool keep_order) {
  const AsyncOp& op = *cluster.pending[index];
  if (!op.queued()) return true;
  for (size_t i = 0; i < index; ++i) {
    const AsyncOp& before = *cluster.pending[i];
    if (!before.queued() || before.issuer != op.issuer || before.warp != op.warp || before.lane != op.lane)
      continue;
    if (before.kind == AsyncOp::Kind::kTensorCommit) {
      if (keep_order) return false;
      continue;
    }
    if (keep_order || op.kind != AsyncOp::Kind::kTensorCopy) return false;
  }
  return true;
}

void land(Cluster& cluster, uint64_t id) {
  const auto found = std::find_if(cluster.pending.begin(), cluster.pending.end(),
                                  [&](const auto& op) { return op->id == id; });
  const std::unique_ptr<AsyncOp> op = std::move(*found);
  cluster.pending.erase(found);
  Grid& grid = *cluster.grid;
  cluster.landing = op.get();
  try {
    op->land();
  } catch (const Fault& fault) {
    throw_at(Fault(fault.kind(), std::string("asynchronous operation: ") + fault.what()), grid,
             *op->issuer->warps[op->warp], 1u << op->lane, *op->inst);
  }
  cluster.landing = nullptr;
  ++cluster.events;
  grid.changed_at = grid.stats.warp_instructions;
  if (grid.observer != nullptr) grid.observer->land({AsyncLanding::Step::kComplete, id});
}

// Lets a cluster move until its slice is used. False: nothing in it could move at all.
bool run_cluster(Cluster& cluster) {
  Grid& grid = *cluster.grid;
  const uint64_t begin = grid.stats.warp_instructions;
  std::vector<Agent> agents;
  std::vector<Warp*> warps;
  bool moved = false;
  while (cluster.live_ctas != 0 && grid.stats.warp_instructions - begin < kSlice) {
    agents.clear();
    warps.clear();
    for (size_t i = 0; i < cluster.pending.size(); ++i)
      if (may_land(cluster, i, grid.policy.keep_tensor_order())) {
        agents.push_back({Agent::Kind::kPiece, cluster.pending[i]->id});
        warps.push_back(nullptr);
      }
    uint64_t index = 0;
    for (const auto& cta : cluster.ctas)
      for (const auto& warp : cta->warps) {
        if (can_run(*warp)) {
          agents.push_back({Agent::Kind::kWarp, index});
          warps.push_back(warp.get());
        }
        ++index;
      }
    if (agents.empty()) return moved;
    moved = true;
    const size_t chosen = grid.policy.next(agents);
    if (agents[chosen].kind != Agent::Kind::kWarp) {
      land(cluster, agents[chosen].id);
      continue;
    }
    run_warp(grid, *warps[chosen], grid.policy.quantum());
    const uint64_t quiet = grid.stats.warp_instructions - grid.changed_at;
    if (quiet > kSpinBeforeRelease) release_a_join(cluster);
    if (quiet > kLivelock)
      throw Fault(FaultKind::kDeadlock,
                  "livelock: " + std::to_string(quiet) +
                      " warp instructions changed nothing that another thread could see\n" +
                      deadlock_report(grid));
  }
  // What is left touches no memory of this cluster any more (checked at exit), but still has to take effect.
  if (cluster.live_ctas == 0)
    while (!cluster.pending.empty()) land(cluster, cluster.pending.front()->id);
  return true;
}

}  // namespace

void Grid::run() {
  const Dim3 &g = config.grid, &c = config.cluster;
  const uint64_t clusters = uint64_t(g.x / c.x) * (g.y / c.y) * (g.z / c.z);
  const size_t limit = size_t(std::max(1, max_active_clusters(kernel.info, config)));
  uint64_t next = 0;
  while (next < clusters || !resident.empty()) {
    if (next < clusters && resident.size() < limit) resident.push_back(start_cluster(*this, next++));
    bool moved = false;
    for (size_t i = 0; i < resident.size();) {
      moved = run_cluster(*resident[i]) || moved;
      if (resident[i]->live_ctas == 0) resident.erase(resident.begin() + std::ptrdiff_t(i));
      else ++i;
    }
    if (moved || (next < clusters && resident.size() < limit)) continue;
    const bool released = std::any_of(resident.begin(), resident.end(),
                                      [](const auto& cluster) { return release_a_join(*cluster); });
    if (!released && !resident.empty())
      throw Fault(FaultKind::kDeadlock,
                  "deadlock in kernel " + kernel.info.name + ": nothing can move\n" + deadlock_report(*this));
  }
}

}  // namespace sim
