// spin.cpp -- see spin.h.
#include "sim/exec/spin.h"

#include <algorithm>

namespace sim {

void SpinWatch::instruction(const Thread& thread, uint32_t mask, const Inst& inst) {
  Observers::instruction(thread, mask, inst);
  warps_[{thread.cta, thread.warp}].anywhere = {thread, mask, &inst, {}};
}

void SpinWatch::accesses(const std::vector<Access>& all) {
  Observers::accesses(all);
  const Access& one = all[0];
  if (one.region.write) return;
  Load& load = warps_[{one.thread.cta, one.thread.warp}].loads[one.inst];
  load.access = one;
  ++load.count;
}

void SpinWatch::sync(const SyncEvent& event) {
  Observers::sync(event);
  if (event.kind == SyncEvent::Kind::kMbarrierTest)
    warps_[{event.thread.cta, event.thread.warp}].tests_mbarriers = true;
}

// A load that other threads are meant to write is a strong one, unless there is none. Whoever tests an
// mbarrier is known to wait for it.
std::vector<Spin> SpinWatch::seen() const {
  std::vector<Spin> out;
  for (const auto& [id, warp] : warps_) {
    if (warp.tests_mbarriers) continue;
    const auto strong = [](const auto& load) { return load.second.access.order != Order::kWeak; };
    const bool any_strong = std::any_of(warp.loads.begin(), warp.loads.end(), strong);
    const size_t before = out.size();
    for (const auto& load : warp.loads) {
      const Access& a = load.second.access;
      if (load.second.count > 1 && strong(load) == any_strong)
        out.push_back({a.thread, a.mask, a.inst, a.region});
    }
    if (out.size() == before) out.push_back(warp.anywhere);
  }
  return out;
}

}  // namespace sim
