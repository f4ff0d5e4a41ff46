// together.cpp -- grids that run together. Each grid starts when the grids that it waits for let it start.
// Grids take turns in the order of the policy: in a turn some clusters of the grid begin, and every resident
// cluster of it has its slice. The SMs are shared as by a GPU's block scheduler: a later grid gets those that
// the earlier grids do not need.
#include <algorithm>

#include "sim/exec/grid.h"
#include "sim/exec/report.h"

namespace sim {
namespace {

class Together {
 public:
  explicit Together(const std::vector<Grid*>& grids) : waiting_(grids) {}
  void run();

 private:
  void start_grids();
  void start(Grid& grid);
  void turn_to(Grid& grid);
  // Returns how many clusters of the grid have not begun and fit on the machine.
  uint64_t room(const Grid& grid) const;
  bool can_move(const Grid& grid) const { return !grid.stuck || room(grid) != 0; }
  bool is_alone(const Grid& grid) const;
  Grid& choose();
  void break_deadlock();
  void finish(Grid& grid, const char* fault);
  bool outlive(const Fault& fault);
  void stop(const char* fault);

  std::vector<Grid*> waiting_, running_;  // in the order of their launches
  Grid* current_ = nullptr;               // the one that the events belong to
};

void Together::start(Grid& grid) {
  current_ = &grid;
  grid.memory.set_reach(grid.reach);
  if (grid.observer != nullptr)
    grid.observer->start({&grid.kernel, &grid.config, grid.work, grid.param_base, grid.machine,
                          grid.shared_shift % kReservedShared != 0 ? grid.kernel.shared_align : 0});
  const auto later = [&](const Grid* other) { return other->number > grid.number; };
  running_.insert(std::find_if(running_.begin(), running_.end(), later), &grid);
}

void Together::start_grids() {
  for (size_t i = 0; i < waiting_.size();) {
    Grid& grid = *waiting_[i];
    if (!grid.may_start()) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + std::ptrdiff_t(i));
    start(grid);
  }
}

void Together::turn_to(Grid& grid) {
  if (current_ == &grid) return;
  current_ = &grid;
  grid.memory.set_reach(grid.reach);
  if (grid.observer != nullptr) grid.observer->resume(grid.work);
}

uint64_t Together::room(const Grid& grid) const {
  double taken = 0;  // of the machine
  bool earlier = true;
  for (const Grid* other : running_) {
    if (other == &grid) {
      earlier = false;
      continue;
    }
    if (other->reach.device != grid.reach.device) continue;
    const uint64_t needed = other->resident.size() + (earlier ? other->clusters - other->begun : 0);
    taken += double(std::min(needed, other->limit)) / double(other->limit);
  }
  constexpr double kRounding = 1e-9;
  const uint64_t share = uint64_t(double(grid.limit) * std::max(0.0, 1 - taken) + kRounding);
  const uint64_t resident = grid.resident.size();
  return std::min(grid.clusters - grid.begun, share > resident ? share - resident : 0);
}

bool Together::is_alone(const Grid& grid) const {
  return room(grid) == 0 && std::none_of(running_.begin(), running_.end(), [&](const Grid* other) {
           return other != &grid && can_move(*other);
         });
}

Grid& Together::choose() {
  while (true) {
    std::vector<Grid*> movable;
    std::vector<uint64_t> numbers;
    for (Grid* grid : running_)
      if (can_move(*grid)) {
        movable.push_back(grid);
        numbers.push_back(grid->number);
      }
    if (movable.size() > 1) return *movable.at(movable.front()->policy.next_grid(numbers));
    if (movable.size() == 1) return *movable.front();
    break_deadlock();
  }
}

// The earliest grid waits for no other grid, so the deadlock is its own fault.
void Together::break_deadlock() {
  for (Grid* grid : running_) {
    turn_to(*grid);
    grid->stuck = std::none_of(grid->resident.begin(), grid->resident.end(),
                               [](const auto& cluster) { return release_a_join(*cluster); });
    if (!grid->stuck) return;
  }
  Grid& first = *running_.front();
  turn_to(first);
  throw Fault(FaultKind::kDeadlock, "deadlock in kernel " + first.kernel.info.name + ": nothing can move\n" +
                                        deadlock_report(first));
}

void Together::finish(Grid& grid, const char* fault) {
  std::erase(running_, &grid);
  if (grid.observer != nullptr) grid.observer->finish(fault);
  for (Grid* other : running_) {
    other->stuck = false;
    for (const auto& cluster : other->resident) ++cluster->events;
  }
}

// Returns true if the host's program goes on after this fault; the current grid has then been ended. The
// program goes on after a deadlock that the observer lets pass (Grid::outlives), and after a grid in which
// some threads trapped and the others, which ran on, cannot move or do not end.
bool Together::outlive(const Fault& fault) {
  Grid& grid = *current_;
  const bool still = fault.kind() == FaultKind::kDeadlock || fault.kind() == FaultKind::kGivenUp;
  if (!(grid.trapped && still) && !(fault.kind() == FaultKind::kDeadlock && grid.outlives(fault)))
    return false;
  grid.resident.clear();
  grid.begun = grid.clusters;
  finish(grid, "a fault that its program outlived");
  return true;
}

// The observer is told last about the grid that failed.
void Together::stop(const char* fault) {
  Grid* const failed = current_;
  if (std::find(running_.begin(), running_.end(), failed) == running_.end()) return;
  for (Grid* grid : running_) {
    if (grid == failed || grid->observer == nullptr) continue;
    turn_to(*grid);
    grid->observer->finish("the fault of another grid");
  }
  turn_to(*failed);
  if (failed->observer != nullptr) failed->observer->finish(fault);
}

void Together::run() {
  for (start_grids(); !running_.empty(); start_grids()) {
    try {
      Grid& grid = choose();
      turn_to(grid);
      begin_clusters(grid, room(grid));
      grid.stuck = !run_round(grid, is_alone(grid)) && room(grid) == 0;
      if (grid.over()) finish(grid, nullptr);
    } catch (const std::exception& failure) {
      const auto* fault = dynamic_cast<const Fault*>(&failure);
      if (fault != nullptr && outlive(*fault)) continue;
      stop(failure.what());
      throw;
    }
  }
}

}  // namespace

void run_together(const std::vector<Grid*>& grids) {
  for (size_t i = 0; i < grids.size(); ++i) grids[i]->number = i;
  Together(grids).run();
}

}  // namespace sim
