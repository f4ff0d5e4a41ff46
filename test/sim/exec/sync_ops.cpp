// sync_ops.cpp -- barriers of a CTA and of a cluster, fences, and what else threads of a grid agree on.
#include <algorithm>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"

namespace sim {

// Each waiting fragment is given the result of its own generation, because the next generation may complete
// before the fragment reads it.
static void complete(Cta& cta, NamedBarrier& barrier) {
  for (const auto& warp : cta.warps)
    for (const auto& fragment : warp->fragments) {
      const Wait& wait = fragment->wait;
      if (wait.kind == Wait::Kind::kNamedBarrier && &cta.named[wait.barrier] == &barrier &&
          wait.generation == barrier.generation)
        fragment->reduction = barrier.reduction;
    }
  barrier.reduction = Reduction{};
  barrier.arrived = 0;
  barrier.expected = 0;
  barrier.lanes.clear();
  ++barrier.generation;
  ++cta.cluster->events;
}

// Returns true when the barrier completed.
static bool settle(Cta& cta, NamedBarrier& barrier) {
  for (auto it = barrier.lanes.begin(); it != barrier.lanes.end();) {
    const uint32_t live = cta.warps[it->first]->live;
    if ((it->second & live) == live) {
      barrier.arrived += 32;
      it = barrier.lanes.erase(it);
    } else {
      ++it;
    }
  }
  if (barrier.arrived == 0) return false;
  const uint32_t needed = barrier.expected != 0 ? barrier.expected : 32 * cta.live_warps;
  if (barrier.arrived < needed) return false;
  if (barrier.arrived > needed && barrier.expected != 0)
    throw Fault(FaultKind::kProtocol, std::to_string(barrier.arrived) +
                                          " threads arrived at a named barrier of " + std::to_string(needed));
  complete(cta, barrier);
  return true;
}

static bool aligned(const Inst& inst) { return inst.statement->opcode == "bar" || inst.has(Q::kAligned); }

static NamedBarrier& barrier_of(Exec& x, uint32_t id, uint32_t count) {
  if (id >= x.cta.named.size())
    throw Fault(FaultKind::kBounds, "named barrier " + std::to_string(id) + " of 16");
  if (count % 32 != 0)
    throw Fault(FaultKind::kProtocol,
                "named barrier of " + std::to_string(count) + " threads: not a multiple of 32");
  if (count > 32 * x.cta.warps.size())
    throw Fault(FaultKind::kProtocol, "named barrier of " + std::to_string(count) + " threads in a CTA of " +
                                          std::to_string(32 * x.cta.warps.size()));
  NamedBarrier& barrier = x.cta.named[id];
  const bool fresh = barrier.arrived == 0 && barrier.lanes.empty();
  if (!fresh && barrier.expected != count)
    throw Fault(FaultKind::kProtocol,
                "named barrier " + std::to_string(id) + " is used with " + std::to_string(count) +
                    " threads, but those that arrived before named " + std::to_string(barrier.expected));
  return barrier;
}

static void tell(const Exec& x, SyncEvent::Kind kind, uint32_t id, uint64_t generation, uint32_t count) {
  if (!x.watched()) return;
  SyncEvent event;
  event.kind = kind;
  event.cta = x.cta.linear;
  event.object = id;
  event.phase = generation;
  event.amount = count;
  x.report(event, x.mask);
}

// Arrives for the executing lanes. Returns true when that completed the barrier.
static bool arrive(Exec& x, NamedBarrier& barrier, uint32_t id, uint32_t count) {
  tell(x, SyncEvent::Kind::kBarrierArrive, id, barrier.generation, count);
  barrier.expected = count;
  barrier.lanes[x.warp.index] |= x.mask;
  x.changed();
  return settle(x.cta, barrier);
}

// Arrives and waits. Returns false while the executing lanes sleep. `join` adds the values of these lanes to
// the barrier.
template <class Join>
static bool meet(Exec& x, const Inst& inst, uint32_t id, uint32_t count, Join&& join) {
  Fragment& fragment = *x.fragment;
  if (!fragment.entered) {
    if (aligned(inst) && !x.converged()) return false;
    NamedBarrier& barrier = barrier_of(x, id, count);
    join(barrier);
    fragment.generation = barrier.generation;
    // If these lanes complete the barrier, no other lane gives them the result: they take it from the
    // barrier.
    fragment.reduction = barrier.reduction;
    if (!arrive(x, barrier, id, count)) {
      fragment.entered = true;
      Wait w;
      w.kind = Wait::Kind::kNamedBarrier;
      w.barrier = id;
      w.generation = fragment.generation;
      x.wait(std::move(w), false);
      return false;
    }
  }
  fragment.entered = false;
  tell(x, SyncEvent::Kind::kBarrierLeave, id, fragment.generation, count);
  return true;
}

// Reports the generation in which the lanes arrived, in one event for those that share it.
static void tell_cluster(const Exec& x, SyncEvent::Kind kind, uint32_t lanes, Order order) {
  if (!x.watched()) return;
  while (lanes != 0) {
    const uint64_t generation = x.warp.cluster_generation[uint32_t(__builtin_ctz(lanes))];
    uint32_t same = 0;
    SIM_FOR_LANES(lane, lanes) if (x.warp.cluster_generation[lane] == generation) same |= 1u << lane;
    SyncEvent event;
    event.kind = kind;
    event.phase = generation - 1;
    event.order = order;
    event.scope = Scope::kCluster;
    x.report(event, same);
    lanes &= ~same;
  }
}

static bool spelled(const Inst& inst, const char* qualifier) {
  const auto& all = inst.statement->qualifiers;
  return std::find(all.begin(), all.end(), qualifier) != all.end();
}

// Returns the memory that a fence names, 0 when it names none.
static uint8_t spaces_of(const Inst& inst) {
  uint8_t spaces = 0;
  if (spelled(inst, "global")) spaces |= SyncEvent::kGlobalSpace;
  if (spelled(inst, "shared::cta") || spelled(inst, "sync_restrict::shared::cta"))
    spaces |= SyncEvent::kSharedCta;
  if (spelled(inst, "shared::cluster") || spelled(inst, "sync_restrict::shared::cluster"))
    spaces |= SyncEvent::kSharedCluster;
  return spaces;
}

static SyncEvent fence_event(const Inst& inst) {
  using Fence = SyncEvent::Fence;
  SyncEvent event;
  event.kind = SyncEvent::Kind::kFence;
  if (inst.statement->opcode == "tcgen05") {
    event.fence = spelled(inst, "fence::before_thread_sync") ? Fence::kTensorBefore : Fence::kTensorAfter;
  } else if (spelled(inst, "mbarrier_init")) {
    event.fence = Fence::kMbarrierInit;
    event.order = Order::kRelease;
    event.scope = Scope::kCluster;
  } else if (spelled(inst, "alias")) {
    event.fence = Fence::kProxyAlias;
  } else if (spelled(inst, "async") || spelled(inst, "async::generic")) {
    constexpr uint8_t kEverywhere =
        SyncEvent::kGlobalSpace | SyncEvent::kSharedCta | SyncEvent::kSharedCluster;
    event.fence = Fence::kProxyAsync;
    event.order = order_of(inst, Order::kWeak);
    event.scope = scope_of(inst, Scope::kCta);
    event.spaces = spaces_of(inst);
    if (event.spaces == 0) event.spaces = kEverywhere;
  } else if (spelled(inst, "tensormap::generic")) {  // also of tensormap.cp_fenceproxy
    event.fence = Fence::kProxyTensormap;
    event.order = order_of(inst, Order::kAcqRel);
    event.scope = scope_of(inst, Scope::kCta);
  } else {  // fence, acq_rel unless it says otherwise; membar is fence.sc
    event.fence = Fence::kThread;
    event.order = order_of(inst, inst.statement->opcode == "membar" ? Order::kSeqCst : Order::kAcqRel);
    event.scope = scope_of(inst, Scope::kCta);
    event.spaces = spaces_of(inst);
  }
  return event;
}

void check_register_requests(const Exec& x) {
  const Warp& warp = x.warp;
  const std::vector<uint64_t>& mine = warp.register_requests;
  const uint32_t first = warp.index & ~3u;
  if (x.grid.mixed_warpgroups.contains(first)) return;
  for (const auto& other : warp.cta->warps) {
    const std::vector<uint64_t>& theirs = other->register_requests;
    if ((other->index & ~3u) != first) continue;
    const bool both_gone = warp.live == 0 && other->live == 0;
    const size_t common = std::min(mine.size(), theirs.size());
    if (std::equal(mine.begin(), mine.begin() + std::ptrdiff_t(common), theirs.begin()) &&
        (!both_gone || mine.size() == theirs.size()))
      continue;
    x.remark("setmaxnreg-warpgroup",
             "setmaxnreg: the warps of a warpgroup must ask for the same registers, but warps " +
                 std::to_string(warp.index) + " and " + std::to_string(other->index) + " differ",
             "the same setmaxnreg in all four warps");
    x.grid.mixed_warpgroups.insert(first);
    return;
  }
}

void check_named_barriers(Cta& cta) {
  if (cta.live_warps == 0) return;
  for (NamedBarrier& barrier : cta.named) settle(cta, barrier);
}

void check_cluster_barrier(Cluster& cluster) {
  bool any = false;
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps) {
      if ((warp->live & ~warp->cluster_arrived) != 0) return;
      any = any || (warp->live & warp->cluster_arrived) != 0;
    }
  if (!any) return;
  // The next round starts without arrivals; `cluster_generation` says what each lane still has to wait for.
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps) warp->cluster_arrived = 0;
  ++cluster.barrier_generation;
  ++cluster.events;
}

namespace op {

void bar_sync(Exec& x, const Inst& inst) {
  const uint32_t id = uint32_t(x.uniform(inst.operands[0].value, "the barrier number"));
  const uint32_t count =
      inst.operands.size() > 1 ? uint32_t(x.uniform(inst.operands[1].value, "the thread count")) : 0;
  meet(x, inst, id, count, [](NamedBarrier&) {});
}

void bar_arrive(Exec& x, const Inst& inst) {
  if (aligned(inst) && !x.converged()) return;
  const uint32_t id = uint32_t(x.uniform(inst.operands[0].value, "the barrier number"));
  const uint32_t count = uint32_t(x.uniform(inst.operands[1].value, "the thread count"));
  arrive(x, barrier_of(x, id, count), id, count);
}

// bar.red d, a{, b}, p is the barrier with a reduction of p over its threads.
void bar_red(Exec& x, const Inst& inst) {
  const uint32_t id = uint32_t(x.uniform(inst.operands[1].value, "the barrier number"));
  const uint32_t count =
      inst.operands.size() > 3 ? uint32_t(x.uniform(inst.operands[2].value, "the thread count")) : 0;
  const bool met = meet(x, inst, id, count, [&](NamedBarrier& barrier) {
    SIM_FOR_LANES(lane, x.mask) {
      const bool p = x.source(inst.operands.back().value, lane) != 0;
      barrier.reduction.popc += p;
      barrier.reduction.all = barrier.reduction.all && p;
      barrier.reduction.any = barrier.reduction.any || p;
    }
  });
  if (!met) return;
  const Reduction& reduction = x.fragment->reduction;
  const uint64_t result = inst.has(Q::kPopc)  ? reduction.popc
                          : inst.has(Q::kAnd) ? uint64_t(reduction.all)
                                              : uint64_t(reduction.any);
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result);
}

void bar_warp(Exec& x, const Inst& inst) { x.gather(inst.operands[0].value, SyncEvent::Kind::kWarpSync); }

void cluster_arrive(Exec& x, const Inst& inst) {
  if (inst.has(Q::kAligned) && !x.converged()) return;
  SIM_FOR_LANES(lane, x.mask) {
    uint64_t& generation = x.warp.cluster_generation[lane];
    if (generation != 0)
      throw Fault(FaultKind::kProtocol, "barrier.cluster.arrive twice without barrier.cluster.wait");
    generation = x.cluster.barrier_generation + 1;
  }
  tell_cluster(x, SyncEvent::Kind::kClusterArrive, x.mask, order_of(inst, Order::kRelease));
  x.warp.cluster_arrived |= x.mask;
  x.changed();
  check_cluster_barrier(x.cluster);
}

void cluster_wait(Exec& x, const Inst& inst) {
  if (inst.has(Q::kAligned) && !x.converged()) return;
  uint64_t generation = 0;
  SIM_FOR_LANES(lane, x.mask) {
    if (x.warp.cluster_generation[lane] == 0)
      throw Fault(FaultKind::kProtocol, "barrier.cluster.wait without barrier.cluster.arrive");
    generation = std::max(generation, x.warp.cluster_generation[lane]);
  }
  if (x.cluster.barrier_generation < generation) {
    Wait w;
    w.kind = Wait::Kind::kClusterBarrier;
    w.generation = generation - 1;
    x.wait(std::move(w), false);
    return;
  }
  tell_cluster(x, SyncEvent::Kind::kClusterWait, x.mask, order_of(inst, Order::kAcquire));
  SIM_FOR_LANES(lane, x.mask) x.warp.cluster_generation[lane] = 0;
}

// Memory is sequentially consistent here; a fence is an event for observers only.
void fence(Exec& x, const Inst& inst) {
  if (!x.watched()) return;
  SyncEvent event = fence_event(inst);
  const bool of_map = event.fence == SyncEvent::Fence::kProxyTensormap && event.order == Order::kAcquire;
  if (!of_map || inst.operands.empty()) {
    x.report(event, x.mask);
    return;
  }
  SIM_FOR_LANES(lane, x.mask) {
    event.address = x.address(inst.operands[0], lane);
    event.bytes = int64_t(x.source(inst.operands[1].value, lane));
    x.report(event, 1u << lane);
  }
}

void grid_dependency(Exec& x, const Inst& inst) {
  const bool waits = spelled(inst, "wait");
  if (waits && !x.grid.preceding_over()) {
    Wait w;
    w.kind = Wait::Kind::kGrids;
    x.wait(std::move(w), false);
    return;
  }
  if (!waits && !x.cta.launched_dependents) {
    x.cta.launched_dependents = true;
    ++x.grid.releasing_ctas;
  }
  SyncEvent event;
  event.kind = waits ? SyncEvent::Kind::kGridWait : SyncEvent::Kind::kGridLaunch;
  x.report(event, x.mask);
}

void nanosleep(Exec&, const Inst&) {}

// A CTA begins with the registers of its warps and an empty pool. What .dec releases goes to the pool, and
// .inc waits until the pool has what it asks for; nothing says that a warp that exits gives its registers
// back. The values of registers stay as they are: it is the task of ptxas to use only registers that the
// thread has.
void setmaxnreg(Exec& x, const Inst& inst) {
  if (!x.converged()) return;
  const uint32_t count = uint32_t(x.uniform(inst.operands[0].value, "the register count"));
  uint32_t& held = x.warp.registers_held;
  const bool more = inst.has(Q::kInc);
  const auto wrong = [&](const std::string& text) {
    throw Fault(FaultKind::kProtocol, "setmaxnreg of " + std::to_string(count) + ": " + text);
  };
  if (!x.fragment->entered) {
    if (count < 24 || count > 256 || count % 8 != 0) wrong("the count is a multiple of 8 between 24 and 256");
    if (held == 0) wrong("the kernel has neither .maxnreg nor .maxntid, which say what its threads hold");
    if (more ? count < held : count > held)
      wrong(std::string(more ? ".inc" : ".dec") + " by threads that hold " + std::to_string(held) +
            " registers");
    x.warp.register_requests.push_back(count);
    check_register_requests(x);
    SyncEvent event;
    event.kind = SyncEvent::Kind::kSetMaxRegisters;
    event.amount = int64_t(count);
    x.report(event, x.mask);
  }
  const uint32_t moved = (more ? count - held : held - count) * uint32_t(Machine::kWarpSize);
  x.fragment->entered = more && x.cta.register_pool < moved;
  if (x.fragment->entered) {
    Wait w;
    w.kind = Wait::Kind::kRegisters;
    w.allowed = moved;
    x.wait(std::move(w), false);
    return;
  }
  x.cta.register_pool = more ? x.cta.register_pool - moved : x.cta.register_pool + moved;
  held = count;
  x.changed();
}

}  // namespace op
}  // namespace sim
