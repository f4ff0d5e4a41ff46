// spin.h -- a grid in which nothing changes, watched for one round: what its warps do, and whether it is
// certain that they will do the same for ever.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/exec/grid.h"

namespace sim {

// A warp that was running when the grid was given up, and where: between these lines of the PTX.
struct Running {
  const Warp* warp = nullptr;
  uint32_t mask = 0;
  const Inst* inst = nullptr;  // its last instruction
  uint32_t first_line = 0, last_line = 0;
};

// Everything that this sees goes to the grid's observer, too.
class SpinWatch : public Observers {
 public:
  explicit SpinWatch(Grid& grid);
  void instruction(const Thread& thread, uint32_t mask, const Inst& inst) override;
  void accesses(const std::vector<Access>& all) override;
  void sync(const SyncEvent& event) override;

  // What is known of the warps that can run, if nothing changed and nobody else can move. kCircle: each warp
  // has come back to a state that it was in before, registers included, so that it runs in a circle for ever.
  // kClocks: each warp is in a circle or reads clocks, and may be waiting for a clock to go on.
  enum class Outlook { kUnknown, kClocks, kCircle };
  Outlook outlook() const;
  std::vector<Spin> spins() const;       // warp by warp, where each goes round
  std::vector<Running> running() const;  // those that can run

 private:
  using WarpId = std::pair<uint64_t, uint32_t>;  // CTA in the grid, warp in it
  struct Load {
    Access access;
    uint64_t count = 0;
  };
  struct Seen {
    const Warp* warp = nullptr;
    Spin anywhere;
    std::map<const Inst*, Load> loads;
    bool tests_mbarriers = false;
    uint32_t first_line = ~0u, last_line = 0;
    // A state that the warp was in at this instruction. It is taken anew after ever longer stretches: once it
    // is a state of a circle and the stretch is as long as that, the warp is seen to come back to it.
    std::vector<uint64_t> state;
    const Inst* taken_at = nullptr;
    uint64_t instructions = 0, stretch = 1;
    bool came_back = false;
  };
  const Warp* find(const WarpId& id) const;
  void compare(Seen& seen, const Inst& inst) const;

  Grid& grid_;
  uint64_t begin_;           // warp instruction count
  bool reads_host_ = false;  // a load was of memory that the host may write meanwhile
  std::map<WarpId, Seen> warps_;
};

}  // namespace sim
