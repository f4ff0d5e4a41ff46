// spin.h -- who runs in a circle: what the warps of a grid load in a round in which nothing changed.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/exec/observer.h"

namespace sim {

// This watches a grid for one round. Everything that it sees goes to the grid's observer, too.
class SpinWatch : public Observers {
 public:
  explicit SpinWatch(Observer* observer) {
    if (observer != nullptr) add(*observer);
  }
  void instruction(const Thread& thread, uint32_t mask, const Inst& inst) override;
  void accesses(const std::vector<Access>& all) override;
  void sync(const SyncEvent& event) override;
  std::vector<Spin> seen() const;  // warp by warp

 private:
  using WarpId = std::pair<uint64_t, uint32_t>;  // CTA in the grid, warp in it
  struct Load {
    Access access;
    uint64_t count = 0;
  };
  struct Warp {
    Spin anywhere;
    std::map<const Inst*, Load> loads;
    bool tests_mbarriers = false;
  };
  std::map<WarpId, Warp> warps_;
};

}  // namespace sim
