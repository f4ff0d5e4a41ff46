// grid.h -- the state of a running grid. Only exec/ and launch.cpp include this. (The GPU as numbers is
// sim/machine.h.)
//
//   Grid ── Cluster ──┬── Cta ──┬── Warp ──── Fragment {pc, lanes}      runs
//                     │         ├── shared memory, mbarriers, TMEM
//                     │         └── named barriers
//                     └── AsyncOp                                       waits until the policy lands it
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/decode/program.h"
#include "sim/exec/cluster.h"
#include "sim/exec/launch_config.h"
#include "sim/exec/observer.h"
#include "sim/exec/policy.h"
#include "sim/fault.h"
#include "sim/machine.h"
#include "sim/mem/global.h"

namespace sim {

struct Grid {
  Grid(const Machine& gpu, const Kernel& k, const LaunchConfig& c, GlobalMemory& m, uint64_t params,
       Policy& p, Observer* o);
  const Machine& machine;
  const Kernel& kernel;
  const LaunchConfig& config;
  GlobalMemory& memory;
  uint64_t param_base;
  Policy& policy;
  Observer* observer;
  std::vector<Access> accesses;  // of the instruction, which the observer has yet to be told
  LaunchStats stats;
  uint32_t shared_shift = 0;  // of every shared window
  std::set<std::pair<const char*, const Inst*>> remarked;
  std::set<uint32_t> mixed_warpgroups;       // whose different setmaxnreg were remarked on
  bool go_on = false, elect_lowest = false;  // LaunchOptions
  uint64_t patience = kDefaultPatience;      // likewise
  std::FILE *out = stdout, *err = stderr;    // likewise
  bool trapped = false;  // with go_on, a thread has executed a trap, which ends the grid when nobody can move
  // Tells the observer of a fault, which has its place, and returns true when the program goes on behind it,
  // and the grid, too, unless it was a deadlock. After something that the simulator does not know, neither
  // goes on.
  bool outlives(const Fault& fault) const;
  uint64_t next_op = 1;
  uint64_t changed_at = 0;   // warp instruction count at the last change another thread could see
  uint64_t watch_after = 0;  // warp instructions without one after which the grid is watched
  uint64_t skipped = 0;      // ticks by which clocks are ahead of the count of warp instructions
  std::vector<std::unique_ptr<Cluster>> resident;
  uint64_t clusters, limit;  // how many it has; how many of them the machine holds at once
  uint64_t begun = 0;        // clusters, in the order of their numbers

  // For grids that run together.
  uint64_t number = 0;                 // among them, in the order of their launches
  uint64_t work = 0;                   // HostWork::id
  Reach reach;                         // set in the memory while it moves
  std::vector<const Grid*> after;      // have to end before it starts
  std::vector<const Grid*> preceding;  // have to let it start, and to end before griddepcontrol.wait returns
  uint64_t releasing_ctas = 0;         // executed griddepcontrol.launch_dependents, or have left without it
  bool stuck = false;                  // could not move when its turn was last
  bool over() const { return begun == clusters && resident.empty(); }
  bool may_start() const;
  bool preceding_over() const;
  // Takes the first cluster that has not begun out of the launch and returns its first CTA, if there is one
  // and the policy lets the request succeed.
  std::optional<Dim3> cancel_cluster();
};

// grid.cpp
// Begins as many clusters as the policy says. `room` is how many have not begun and fit on the machine.
void begin_clusters(Grid& grid, uint64_t room);
// Gives every resident cluster its slice, in the order of the policy. Returns false when nothing could move
// at all. `alone` says that no other grid can move, and that no further cluster can begin.
bool run_round(Grid& grid, bool alone);

// together.cpp
void run_together(const std::vector<Grid*>& grids);  // in the order of their launches

}  // namespace sim
