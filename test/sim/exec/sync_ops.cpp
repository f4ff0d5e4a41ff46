// sync_ops.cpp -- barriers of a CTA and of a cluster, fences, and the instructions by which lanes of a warp
// talk.
#include <algorithm>

#include "sim/exec/handlers.h"
#include "sim/exec/machine.h"

namespace sim {
namespace {

void complete(Cta& cta, NamedBarrier& barrier) {
  barrier.last_popc = barrier.popc;
  barrier.last_all = barrier.all;
  barrier.last_any = barrier.any;
  barrier.popc = 0;
  barrier.all = true;
  barrier.any = false;
  barrier.arrived = 0;
  barrier.expected = 0;
  barrier.lanes.clear();
  ++barrier.generation;
  ++cta.cluster->events;
}

// True when the barrier completed.
bool settle(Cta& cta, NamedBarrier& barrier) {
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

// Arrives for the executing lanes; true when that completed the barrier.
bool arrive(Exec& x, const Inst& inst, uint32_t id, uint32_t count) {
  if (inst.statement->opcode == "bar" || inst.has(Q::kAligned)) x.require_converged();
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
  barrier.expected = count;
  barrier.lanes[x.warp.index] |= x.mask;
  x.changed();
  return settle(x.cta, barrier);
}

Wait named_wait(uint32_t id, uint64_t generation) {
  Wait w;
  w.kind = Wait::Kind::kNamedBarrier;
  w.barrier = id;
  w.generation = generation;
  return w;
}

}  // namespace

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
  // Lanes that arrived keep their flag until they wait; `generation` tells the next round apart.
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
  const uint64_t generation = id < x.cta.named.size() ? x.cta.named[id].generation : 0;
  if (!arrive(x, inst, id, count)) x.wait(named_wait(id, generation), true);
}

void bar_arrive(Exec& x, const Inst& inst) {
  arrive(x, inst, uint32_t(x.uniform(inst.operands[0].value, "the barrier number")),
         uint32_t(x.uniform(inst.operands[1].value, "the thread count")));
}

// bar.red d, a{, b}, p: the barrier, and a reduction of p over its threads.
void bar_red(Exec& x, const Inst& inst) {
  const uint32_t id = uint32_t(x.uniform(inst.operands[1].value, "the barrier number"));
  if (!x.fragment->entered) {
    const uint32_t count =
        inst.operands.size() > 3 ? uint32_t(x.uniform(inst.operands[2].value, "the thread count")) : 0;
    if (id >= x.cta.named.size())
      throw Fault(FaultKind::kBounds, "named barrier " + std::to_string(id) + " of 16");
    NamedBarrier& barrier = x.cta.named[id];
    SIM_FOR_LANES(lane, x.mask) {
      const bool p = x.source(inst.operands.back().value, lane) != 0;
      barrier.popc += p;
      barrier.all = barrier.all && p;
      barrier.any = barrier.any || p;
    }
    const uint64_t generation = barrier.generation;
    if (!arrive(x, inst, id, count)) {
      x.fragment->entered = true;
      x.wait(named_wait(id, generation), false);
      return;
    }
  }
  x.fragment->entered = false;
  const NamedBarrier& barrier = x.cta.named[id];
  const uint64_t result = inst.has(Q::kPopc)  ? barrier.last_popc
                          : inst.has(Q::kAnd) ? uint64_t(barrier.last_all)
                                              : uint64_t(barrier.last_any);
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result);
}

void bar_warp(Exec& x, const Inst& inst) {
  x.gather(uint32_t(x.uniform(inst.operands[0].value, "the member mask")));
}

void cluster_arrive(Exec& x, const Inst& inst) {
  if (inst.has(Q::kAligned)) x.require_converged();
  if ((x.warp.cluster_arrived & x.mask) != 0)
    throw Fault(FaultKind::kProtocol, "barrier.cluster.arrive twice without barrier.cluster.wait");
  SIM_FOR_LANES(lane, x.mask) x.warp.cluster_generation[lane] = x.cluster.barrier_generation + 1;
  x.warp.cluster_arrived |= x.mask;
  x.changed();
  check_cluster_barrier(x.cluster);
}

void cluster_wait(Exec& x, const Inst& inst) {
  if (inst.has(Q::kAligned)) x.require_converged();
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
  SIM_FOR_LANES(lane, x.mask) x.warp.cluster_generation[lane] = 0;
}

// Memory is sequentially consistent here; a fence is an event for observers only.
void fence(Exec&, const Inst&) {}

void nanosleep(Exec&, const Inst&) {}

// shfl.sync d|p, a, b, c, members (PTX ISA "shfl.sync"): c packs the clamp and the segment mask.
void shfl(Exec& x, const Inst& inst) {
  const Operand& to = inst.operands[0];
  const Value& d = to.kind == Operand::Kind::kPair ? to.items[0] : to.value;
  if (!x.gather(uint32_t(x.uniform(inst.operands[4].value, "the member mask")))) return;
  uint64_t result[32] = {};
  uint32_t defined = 0;
  SIM_FOR_LANES(lane, x.mask) {
    const uint32_t b = uint32_t(x.source(inst.operands[2].value, lane)) & 31;
    const uint32_t c = uint32_t(x.source(inst.operands[3].value, lane));
    const uint32_t clamp = c & 31, segment = c >> 8 & 31;
    const uint32_t low = lane & segment, high = low | (clamp & ~segment);
    int from = int(lane);
    bool inside;
    if (inst.has(Q::kUp)) {
      from -= int(b);
      inside = from >= int(high);
    } else if (inst.has(Q::kDown)) {
      from += int(b);
      inside = from <= int(high);
    } else if (inst.has(Q::kBfly)) {
      from ^= int(b);
      inside = from <= int(high);
    } else {
      from = int(low | (b & ~segment));
      inside = from <= int(high);
    }
    if (!inside) from = int(lane);
    if (x.mask >> from & 1) {
      result[lane] = x.source(inst.operands[1].value, uint32_t(from));
      defined |= 1u << lane;
    }
    if (to.kind == Operand::Kind::kPair) x.write(to.items[1], lane, inside);
  }
  SIM_FOR_LANES(lane, x.mask) {
    if (defined >> lane & 1) x.write(d, lane, result[lane]);
    else x.poison(d, lane);  // the source lane does not take part
  }
}

void vote(Exec& x, const Inst& inst) {
  const Value& source = inst.operands[1].value;
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  uint32_t set = 0;
  SIM_FOR_LANES(lane, x.mask) set |= uint32_t(x.source(source, lane) & 1) << lane;
  const uint64_t result = inst.has(Q::kBallot) ? set
                          : inst.has(Q::kAll)  ? uint64_t(set == x.mask)
                          : inst.has(Q::kAny)  ? uint64_t(set != 0)
                                               : uint64_t(set == 0 || set == x.mask);
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result);
}

void match_any(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  uint64_t values[32] = {};
  SIM_FOR_LANES(lane, x.mask) values[lane] = x.source(inst.operands[1].value, lane);
  for (uint32_t lanes = x.mask; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(lanes));
    uint32_t same = 0;
    SIM_FOR_LANES(other, x.mask) if (values[other] == values[lane]) same |= 1u << other;
    x.write(inst.operands[0].value, lane, same);
  }
}

void match_all(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  const uint64_t first = x.source(inst.operands[1].value, uint32_t(__builtin_ctz(x.mask)));
  bool all = true;
  SIM_FOR_LANES(lane, x.mask) all = all && x.source(inst.operands[1].value, lane) == first;
  const Operand& to = inst.operands[0];
  SIM_FOR_LANES(lane, x.mask) {
    x.write(to.kind == Operand::Kind::kPair ? to.items[0] : to.value, lane, all ? x.mask : 0);
    if (to.kind == Operand::Kind::kPair) x.write(to.items[1], lane, all);
  }
}

// The ISA leaves the leader open but fixed for a mask: here the lowest lane.
void elect(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[1].value, "the member mask")))) return;
  const uint32_t leader = uint32_t(__builtin_ctz(x.mask));
  const Operand& to = inst.operands[0];
  SIM_FOR_LANES(lane, x.mask) {
    if (to.kind == Operand::Kind::kPair) {
      x.write(to.items[0], lane, leader);
      x.write(to.items[1], lane, lane == leader);
    } else {
      x.write(to.value, lane, leader);
    }
  }
}

void redux(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  uint32_t result = 0;
  bool first = true;
  SIM_FOR_LANES(lane, x.mask) {
    const uint32_t value = uint32_t(x.source(inst.operands[1].value, lane));
    const bool is_signed = inst.type == ptx::Type::kS32;
    if (first) result = value;
    else if (inst.has(Q::kAdd)) result += value;
    else if (inst.has(Q::kAnd)) result &= value;
    else if (inst.has(Q::kOr)) result |= value;
    else if (inst.has(Q::kXor)) result ^= value;
    else if (inst.has(Q::kMin))
      result = is_signed ? uint32_t(std::min(int32_t(result), int32_t(value))) : std::min(result, value);
    else result = is_signed ? uint32_t(std::max(int32_t(result), int32_t(value))) : std::max(result, value);
    first = false;
  }
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result);
}

void activemask(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, x.mask);
}

// Register budgets have no effect on what a program computes; the rules of the operand do.
void setmaxnreg(Exec& x, const Inst& inst) {
  x.require_converged();
  const uint64_t count = x.source(inst.operands[0].value, uint32_t(__builtin_ctz(x.mask)));
  if (count < 24 || count > 256 || count % 8 != 0)
    throw Fault(FaultKind::kProtocol, "setmaxnreg of " + std::to_string(count) +
                                          ": the count is a multiple of 8 between 24 and 256");
}

}  // namespace op
}  // namespace sim
