// grid.cpp -- the scheduler of one grid. Clusters run in rounds: first some begin, up to what the machine
// holds, and then each one runs until it is done, cannot move or has used up its slice. The policy chooses
// how many begin and in which order they run; by default one begins in a round, so that most grids need the
// memory of a single cluster.
#include <algorithm>
#include <optional>
#include <utility>

#include "sim/exec/grid.h"
#include "sim/exec/occupancy.h"
#include "sim/exec/report.h"
#include "sim/exec/spin.h"

namespace sim {
namespace {

// Numbers of warp instructions without a visible change after which waiting lanes are released, and after
// which the grid is watched.
constexpr uint64_t kSpinBeforeRelease = 8 << 20, kSpinBeforeWatch = 1 << 20;
// Slices of a cluster: while others are still to come, and of a grid that is watched the least.
constexpr uint64_t kShortSlice = 1 << 12, kWatchedSlice = 1 << 16;
constexpr uint64_t kSkipped = 1 << 28;  // ticks of the clocks

// Decides which tensor operations may take effect; it is asked for the oldest first. Those of one thread keep
// the order that the ISA promises: cp and mma before a later mma, everything before a later commit. All other
// pairs keep their order only while the policy keeps issue order. The operations of a warpgroup always keep
// their order. Copies are independent.
class TensorOrder {
 public:
  explicit TensorOrder(bool keep_order) : keep_order_(keep_order) {}
  bool admits(const AsyncOp& op) {
    if (!op.queued()) return true;
    auto older = std::find_if(issuers_.begin(), issuers_.end(), [&](const Issuer& issuer) {
      return issuer.cta == op.issuer && issuer.warp == op.warp && issuer.lane == op.lane;
    });
    if (older == issuers_.end()) older = issuers_.insert(older, {op.issuer, op.warp, op.lane});
    const bool free =
        keep_order_ ? !older->work && !older->commits : !older->work || op.kind == AsyncOp::Kind::kTensorCopy;
    (op.kind == AsyncOp::Kind::kTensorCommit ? older->commits : older->work) = true;
    return free;
  }

 private:
  struct Issuer {
    const Cta* cta;
    uint32_t warp, lane;
    bool work = false, commits = false;  // older operations that are pending
  };
  bool keep_order_;
  std::vector<Issuer> issuers_;
};

// Makes one step of the operation: its sources are read, or one more piece lands. Returns true when it has
// completed.
bool step(Grid& grid, AsyncOp& op) {
  const auto report = [&](AsyncLanding::Step what) {
    if (grid.observer == nullptr) return;
    for (const uint64_t part : op.others) grid.observer->land({what, part});
    grid.observer->land({what, op.id});
  };
  const bool reads = op.reads_next();
  if (reads) {
    op.copy->read(grid.memory);
    op.ranks = op.copy->ranks();
  }
  if (!op.sources_read) report(AsyncLanding::Step::kSourcesRead);
  op.sources_read = true;
  if (reads) return false;
  report(AsyncLanding::Step::kPiece);
  if (op.copy) {
    op.copy->piece(grid.memory, grid.policy);
    op.ranks = op.copy->ranks();
    if (!op.copy->complete()) return false;
  } else {
    op.land();
  }
  report(AsyncLanding::Step::kComplete);
  return true;
}

void move_on(Cluster& cluster, size_t index) {
  Grid& grid = *cluster.grid;
  AsyncOp& op = *cluster.pending[index];
  cluster.landing = &op;
  bool complete = false;
  try {
    complete = step(grid, op);
  } catch (const Fault& fault) {
    const Fault what(fault.kind(), std::string("asynchronous operation: ") + fault.what());
    const Warp& issuer = *op.issuer->warps[op.warp];
    if (!grid.outlives(located(what, grid, issuer, 1u << op.lane, *op.inst))) throw what;
    if (op.copy) op.copy->give_up();
    if (grid.observer != nullptr) grid.observer->land({AsyncLanding::Step::kComplete, op.id});
    complete = true;
  }
  cluster.landing = nullptr;
  if (complete) cluster.pending.erase(cluster.pending.begin() + std::ptrdiff_t(index));
  ++cluster.pending_changes;
  ++cluster.events;
  grid.changed_at = grid.stats.warp_instructions;
}

// Moves an operation on between two instructions, where a fault is reported as the issuer's.
void advance(Cluster& cluster, size_t index) {
  const AsyncOp& op = *cluster.pending[index];
  try {
    move_on(cluster, index);
  } catch (const Fault& fault) {
    throw_at(fault, *cluster.grid, *op.issuer->warps[op.warp], 1u << op.lane, *op.inst);
  }
}

// Lists who can move: `agents`, as the policy sees them, and in the same places what they are. There may be
// thousands of operations, so the list is made anew only when operations were added or taken out, or when one
// operation may hold back another.
class Movers {
 public:
  struct Mover {
    Warp* warp;  // null: an operation
    size_t operation;
  };

  explicit Movers(Cluster& cluster) : cluster_(cluster) {}
  const std::vector<Agent>& agents() const { return agents_; }
  const Mover& at(size_t index) const { return movers_.at(index); }

  void collect() {
    if (known_ != cluster_.pending_changes) collect_operations();
    agents_.resize(operations_);
    movers_.resize(operations_);
    uint64_t index = 0;
    for (const auto& cta : cluster_.ctas)
      for (const auto& warp : cta->warps) {
        if (can_run(*warp)) {
          agents_.push_back({Agent::Kind::kWarp, index, cta->rank, warp->index});
          movers_.push_back({warp.get(), 0});
        }
        ++index;
      }
  }

  // Moves on the operation at this place of the list.
  void advance(size_t index) {
    const size_t operation = movers_.at(index).operation, before = cluster_.pending.size();
    const bool listed = known_ == cluster_.pending_changes && !cluster_.pending[operation]->queued();
    sim::advance(cluster_, operation);
    if (!listed) return;
    // An operation that holds back no other one changes only its own entry.
    known_ = cluster_.pending_changes;
    if (cluster_.pending.size() == before) {
      agents_[index].kind = kind_of(*cluster_.pending[operation]);
      return;
    }
    agents_.erase(agents_.begin() + std::ptrdiff_t(index));
    movers_.erase(movers_.begin() + std::ptrdiff_t(index));
    --operations_;
    for (size_t i = index; i < operations_; ++i) --movers_[i].operation;
  }

 private:
  static Agent::Kind kind_of(const AsyncOp& op) {
    return op.reads_next() ? Agent::Kind::kRead : Agent::Kind::kPiece;
  }

  void collect_operations() {
    agents_.clear();
    movers_.clear();
    TensorOrder order(cluster_.grid->policy.keep_tensor_order());
    for (size_t i = 0; i < cluster_.pending.size(); ++i) {
      const AsyncOp& op = *cluster_.pending[i];
      if (!order.admits(op)) continue;
      agents_.push_back({kind_of(op), op.id, op.issuer->rank, op.warp, op.inst});
      movers_.push_back({nullptr, i});
    }
    operations_ = agents_.size();
    known_ = cluster_.pending_changes;
  }

  Cluster& cluster_;
  std::vector<Agent> agents_;  // operations, then warps
  std::vector<Mover> movers_;
  size_t operations_ = 0;
  uint64_t known_ = ~uint64_t(0);  // the changes of `pending` that the list has seen
};

// Operations may outlive their CTAs, whose memory stays until these operations are complete. check_exit makes
// sure that only operations that may do so are left.
bool finished(const Cluster& cluster) { return cluster.live_ctas == 0 && cluster.pending.empty(); }

// Returns how many warp instructions changed nothing that another thread could see.
uint64_t quiet_for(const Grid& grid) { return grid.stats.warp_instructions - grid.changed_at; }

// Lets a cluster move until its slice is used. Returns false when nothing in it could move at all.
bool run_cluster(Cluster& cluster, uint64_t slice) {
  Grid& grid = *cluster.grid;
  const uint64_t begin = grid.stats.warp_instructions;
  Movers movers(cluster);
  bool moved = false;
  while (!finished(cluster) && grid.stats.warp_instructions - begin < slice) {
    movers.collect();
    if (movers.agents().empty()) return moved;
    moved = true;
    const size_t chosen = grid.policy.next(movers.agents());
    Warp* const warp = movers.at(chosen).warp;
    if (warp == nullptr) {
      movers.advance(chosen);
      continue;
    }
    run_warp(grid, *warp, grid.policy.quantum());
    if (quiet_for(grid) > kSpinBeforeRelease) release_a_join(cluster, true);
  }
  return true;
}

// Every resident cluster runs once, for a slice of so many instructions, or as the policy says. Returns false
// when nothing could move.
bool run_clusters(Grid& grid, std::optional<uint64_t> slice = {}) {
  std::vector<Cluster*> clusters;
  std::vector<uint64_t> numbers;
  for (const auto& cluster : grid.resident) {
    clusters.push_back(cluster.get());
    numbers.push_back(cluster->index);
  }
  bool moved = false;
  while (!clusters.empty()) {
    const size_t chosen = clusters.size() > 1 ? grid.policy.next_cluster(numbers) : 0;
    const uint64_t length = slice ? *slice : std::clamp<uint64_t>(grid.policy.slice(), 1, grid.patience);
    moved = run_cluster(*clusters.at(chosen), length) || moved;
    clusters.erase(clusters.begin() + std::ptrdiff_t(chosen));
    numbers.erase(numbers.begin() + std::ptrdiff_t(chosen));
    std::erase_if(grid.resident, [](const auto& cluster) { return finished(*cluster); });
  }
  return moved;
}

// Runs one more round and looks at what keeps the warps running. Where their states recur and no other
// cluster, grid or copy can change that, it is a fault. Where they only wait for time to pass, it passes.
// Else they go on, for a longer stretch before the next look, until patience ends.
bool run_watched(Grid& grid, bool alone) {
  SpinWatch watch(grid);
  Observer* const observer = std::exchange(grid.observer, &watch);
  bool moved = false;
  try {
    const uint64_t share = quiet_for(grid) / 16 / std::max<size_t>(1, grid.resident.size());
    moved = run_clusters(grid, std::max(kWatchedSlice, share));
  } catch (...) {
    grid.observer = observer;
    throw;
  }
  grid.observer = observer;
  const uint64_t quiet = quiet_for(grid);
  const SpinWatch::Outlook outlook = alone ? watch.outlook() : SpinWatch::Outlook::kUnknown;
  if (outlook == SpinWatch::Outlook::kCircle) {
    const std::vector<Spin> spins = watch.spins();
    if (observer != nullptr)
      for (const Spin& spin : spins) observer->spins(spin);
    throw Fault(FaultKind::kDeadlock,
                "livelock: " + std::to_string(quiet) +
                    " warp instructions changed nothing that another thread could see\n" +
                    deadlock_report(grid, spins));
  }
  if (quiet > grid.patience) throw given_up(grid, quiet, watch.running());
  if (outlook == SpinWatch::Outlook::kClocks) grid.skipped += kSkipped;
  else grid.watch_after = 2 * quiet;
  return moved;
}

}  // namespace

void begin_clusters(Grid& grid, uint64_t room) {
  uint64_t count = room > 1 ? std::clamp<uint64_t>(grid.policy.clusters_to_begin(room), 1, room) : room;
  for (; count > 0; --count) grid.resident.push_back(start_cluster(grid, grid.begun++));
}

bool run_round(Grid& grid, bool alone) {
  const uint64_t quiet = quiet_for(grid);
  if (quiet <= kSpinBeforeWatch) grid.watch_after = kSpinBeforeWatch;
  if (quiet > grid.patience || (alone && quiet > grid.watch_after)) return run_watched(grid, alone);
  // Clusters that wait for a cluster that has not begun do not run for long.
  if (!alone && quiet > kSpinBeforeWatch) return run_clusters(grid, kShortSlice);
  return run_clusters(grid);
}

void complete_youngest(Cluster& cluster) {
  TensorOrder order(cluster.grid->policy.keep_tensor_order());
  bool free = true;
  for (const auto& op : cluster.pending) free = order.admits(*op);
  const size_t index = cluster.pending.size() - 1;
  while (free && cluster.pending.size() > index) move_on(cluster, index);
}

Grid::Grid(const Machine& gpu, const Kernel& k, const LaunchConfig& c, GlobalMemory& m, uint64_t params,
           Policy& p, Observer* o)
    : machine(gpu),
      kernel(k),
      config(c),
      memory(m),
      param_base(params),
      policy(p),
      observer(o),
      clusters(uint64_t(c.grid.x / c.cluster.x) * (c.grid.y / c.cluster.y) * (c.grid.z / c.cluster.z)),
      limit(uint64_t(std::max(1, max_active_clusters(gpu, k.info, c)))) {}

bool Grid::may_start() const {
  const auto lets_start = [](const Grid* grid) {
    const Dim3& c = grid->config.cluster;
    return grid->over() || grid->releasing_ctas == grid->clusters * c.x * c.y * c.z;
  };
  return std::all_of(after.begin(), after.end(), std::mem_fn(&Grid::over)) &&
         std::all_of(preceding.begin(), preceding.end(), lets_start);
}

bool Grid::preceding_over() const {
  return std::all_of(preceding.begin(), preceding.end(), std::mem_fn(&Grid::over));
}

std::optional<Dim3> Grid::cancel_cluster() {
  if (begun == clusters || !policy.cancel()) return {};
  const Dim3& c = config.cluster;
  const uint64_t index = begun++, nx = config.grid.x / c.x, ny = config.grid.y / c.y;
  releasing_ctas += c.x * c.y * c.z;  // CTAs of a cluster that was taken out do not delay a dependent grid
  return Dim3{uint32_t(index % nx) * c.x, uint32_t(index / nx % ny) * c.y, uint32_t(index / nx / ny) * c.z};
}

}  // namespace sim
