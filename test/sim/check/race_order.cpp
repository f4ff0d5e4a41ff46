// race_order.cpp -- the ordering rules, by the proxies of the two parties.
#include "sim/check/race_order.h"

#include <algorithm>

#include "sim/decode/program.h"

namespace sim {

using Kind = AsyncIssue::Kind;

static uint64_t cta_of(Component warp) { return thread_of(warp, 0).cta; }

// True when `clock` knows what the lanes of a synchronous touch did to the bytes in common. With
// `program_order`, what the later party's own lane did is known, too.
static bool knows_lanes(const VectorClock& clock, const Touch& earlier, const Touch& later,
                        bool program_order) {
  if (clock.knows(earlier.warp, earlier.lanes, earlier.time)) return true;
  const bool same_warp = earlier.warp == later.warp && program_order;
  if (earlier.same_stores()) {
    // A thread that knows of one of these stores finds these bytes; that several lanes stored them was
    // reported at the stores.
    if (same_warp && (later.lanes & ~earlier.lanes) == 0) return true;
    for (uint32_t rest = earlier.lanes; rest != 0; rest &= rest - 1)
      if (clock.knows(earlier.warp, rest & -rest, earlier.time)) return true;
    return false;
  }
  if (same_warp && earlier.same_pattern(later) &&
      (earlier.stride != Touch::kTogether || (earlier.lanes & (earlier.lanes - 1)) == 0))
    return true;
  for (uint32_t rest = earlier.lanes; rest != 0; rest &= rest - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(rest));
    const LineMask theirs = earlier.bytes_of(lane) & later.mask;
    if (!theirs.any() || clock.knows(earlier.warp, 1u << lane, earlier.time)) continue;
    if (!same_warp) return false;
    for (uint32_t others = later.lanes & ~(1u << lane); others != 0; others &= others - 1)
      if ((later.bytes_of(uint32_t(__builtin_ctz(others))) & theirs).any()) return false;
  }
  return true;
}

static bool known(const VectorClock& clock, const Touch& earlier, const Touch& later, const Region& region,
                  bool program_order) {
  const AsyncOperation* op = earlier.operation;
  if (op == nullptr) return knows_lanes(clock, earlier, later, program_order);
  if (op->known(clock, earlier.write, region)) return true;
  // A reader that knows the end of one of several stores of the same bytes finds these bytes.
  if (op->same_lanes == 0 || !earlier.write || later.write) return false;
  for (uint32_t rest = op->same_lanes | op->lanes; rest != 0; rest &= rest - 1)
    if (clock.knows(op->done, rest & -rest, op->issued)) return true;
  return false;
}

// True when a proxy fence for this memory comes after the earlier touch.
static bool fenced(const ProxyFences& fences, const Touch& earlier, const Touch& later,
                   const Region& region) {
  if (region.memory == Memory::kGlobal) return known(fences.global, earlier, later, region, false);
  if (known(fences.shared, earlier, later, region, false)) return true;
  for (const auto& [cta, clock] : fences.shared_of_cta)
    if (cta == region.cta) return known(clock, earlier, later, region, false);
  return false;
}

static bool same_thread(const Touch& earlier, const Touch& later) {
  return earlier.operation != nullptr && later.operation != nullptr && earlier.warp == later.warp &&
         earlier.operation->thread.lane == later.operation->thread.lane;
}

static bool same_cells(const Region& a, const Region& b) {
  return a.cta == b.cta && a.lane == b.lane && a.lanes == b.lanes && a.column == b.column &&
         a.columns == b.columns;
}

// True for the pairs that execute in order when issued in order.
static bool pipelined(const AsyncOperation& earlier, const AsyncOperation& later) {
  if (!earlier.tensor_core() || earlier.group != later.group || !later.is(Kind::kMma)) return false;
  return earlier.is(Kind::kTmemCopy) || same_cells(earlier.accumulator, later.accumulator);
}

// True when `clock` knows `time` of any lane: what a warp does as a whole, each of its lanes does.
static bool knows_warp(const VectorClock& clock, Component warp, Time time) {
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (clock.knows(warp, 1u << lane, time)) return true;
  return false;
}

// Returns the warps that took or freed the columns; for a pair, those with the same number in both CTAs.
static std::vector<Component> warps_of(const RaceState& state, const Touch& earlier) {
  std::vector<Component> warps{earlier.warp};
  const Thread thread = thread_of(earlier.warp, 0);
  const auto own = state.grid->ctas.find(thread.cta);
  if (earlier.inst == nullptr || !earlier.inst->has(Q::kGroup2) || own == state.grid->ctas.end())
    return warps;
  for (const auto& [index, cta] : state.grid->ctas)
    if (cta.cluster == own->second.cluster && cta.rank == (own->second.rank ^ 1))
      warps.push_back(threads_of({index, thread.warp, 0}));
  return warps;
}

static Verdict judge_tensor(const RaceState& state, const Touch& earlier, const Touch& later,
                            const Knowledge& knowledge, const Region& region) {
  if (earlier.operation == nullptr || later.operation == nullptr) {
    // Allocation and deallocation are synchronous, so any form of order is enough. An allocation of a pair is
    // one act of both CTAs.
    if (earlier.operation == nullptr && (earlier.warp == later.warp || cta_of(later.warp) != region.cta))
      return {};
    const bool allocation = earlier.operation == nullptr;
    const std::vector<Component> warps = allocation ? warps_of(state, earlier) : std::vector<Component>{};
    const auto learned = [&](const VectorClock& clock) {
      if (!allocation) return known(clock, earlier, later, region, true);
      return std::any_of(warps.begin(), warps.end(),
                         [&](Component warp) { return knows_warp(clock, warp, earlier.time); });
    };
    for (const VectorClock* clock :
         {&knowledge.happens_before, &knowledge.tensor, &knowledge.tensor_edge, &knowledge.any_scope})
      if (learned(*clock)) return {};
    if (learned(knowledge.cause)) return {"tensor-fence", Lack::kRelease};
    return {"race-tensor", allocation ? Lack::kOrder : Lack::kCompletion};
  }
  if (known(knowledge.tensor, earlier, later, region, false)) return {};
  const bool listed = pipelined(*earlier.operation, *later.operation);
  const Component issuer = earlier.warp;
  const uint32_t lane = 1u << earlier.operation->thread.lane;
  if (listed && (same_thread(earlier, later) || knowledge.tensor.knows(issuer, lane, earlier.time)))
    return {};
  if (same_thread(earlier, later) && earlier.operation->tensor_core() && later.operation->tensor_core() &&
      earlier.operation->group == later.operation->group)
    return {"tensor-unlisted-pair", Lack::kPair};
  const auto through = [&](const VectorClock& clock) {
    return known(clock, earlier, later, region, false) || (listed && clock.knows(issuer, lane, earlier.time));
  };
  const Lack fence = through(knowledge.tensor_edge) ? Lack::kAfterFence : Lack::kBeforeFence;
  if (through(knowledge.happens_before)) return {"tensor-fence", fence};
  if (through(knowledge.any_scope)) return {};  // the scope was reported where the wait was
  // The operation was complete before a relaxed signal that led to this access. So the two are in order, but
  // not by the letter of the ISA.
  if (known(knowledge.cause, earlier, later, region, false))
    return {"tensor-fence", fence == Lack::kAfterFence ? fence : Lack::kRelease};
  const bool edge = through(knowledge.tensor_edge);
  // A commit, or a release, that only a relaxed wait saw: with a fence after that wait it would be in order.
  if (knowledge.but_for_acquire(through)) return {"relaxed-wait", edge ? Lack::kAfterFence : Lack::kAcquire};
  if (edge) return {"race-tensor", Lack::kAfterFence};
  return {"race-tensor", Lack::kCompletion};
}

static bool morally_strong(const RaceState& state, const Touch& earlier, const Touch& later) {
  if (!earlier.strong || !later.strong || !(earlier.mask == later.mask)) return false;
  if (earlier.work == later.work)
    return scopes_meet(state, cta_of(earlier.warp), earlier.scope, cta_of(later.warp), later.scope);
  const Scope needed = state.host.same_device(earlier.work, later.work) ? Scope::kGpu : Scope::kSys;
  return earlier.scope >= needed && later.scope >= needed;
}

static Verdict unordered(const RaceState& state, const Touch& earlier, const Touch& later,
                         const Knowledge& knowledge, const Region& region) {
  const bool synchronous = earlier.operation == nullptr && later.operation == nullptr;
  if (synchronous) {
    if (morally_strong(state, earlier, later)) return {};
    if (earlier.warp == later.warp && (earlier.time == later.time || stores_the_same(earlier, later)))
      return {"warp-same-write", Lack::kInstruction};
  }
  if (known(knowledge.meets, earlier, later, region, true)) return {"warp-meet-order", Lack::kMeet};
  if (known(knowledge.any_scope, earlier, later, region, true)) {
    if (!known(knowledge.narrow, earlier, later, region, true))
      return {synchronous ? "race-data" : "race-async", Lack::kScope};
    if (synchronous) return {"scope-mismatch", Lack::kScope};
    return {};  // the scope was reported where the wait was
  }
  if (knowledge.but_for_acquire(
          [&](const VectorClock& clock) { return known(clock, earlier, later, region, true); }))
    return {synchronous ? "race-data" : "relaxed-wait", Lack::kAcquire};
  if (earlier.operation != nullptr) return {"race-async", Lack::kCompletion};
  return {!synchronous                 ? "race-async"
          : earlier.warp == later.warp ? "race-lanes"
                                       : "race-data",
          Lack::kOrder};
}

// ld.global.nc or ldu of what the other party writes. The cache that it reads through knows of no order.
static bool written_and_non_coherent(const Touch& earlier, const Touch& later) {
  return (later.non_coherent && earlier.write) || (earlier.non_coherent && later.write);
}

// What two touches need in addition to an order, by the proxies that they go through.
static Verdict judge_proxies(const ProxyFences& fences, const Touch& earlier, const Touch& later,
                             const Region& region) {
  if (written_and_non_coherent(earlier, later)) return {"non-coherent-read", Lack::kReadOnly};
  const bool earlier_generic = earlier.operation == nullptr || earlier.operation->generic();
  const bool later_generic = later.operation == nullptr || later.operation->generic();
  if (later.proxy == Proxy::kTensormap) {
    if (!earlier_generic) return {};
    const bool own = cta_of(earlier.warp) == cta_of(later.warp);
    for (const auto& [address, clock] : (own ? fences.tensormap_of_cta : fences.tensormap).seen)
      if (address == region.address && known(clock, earlier, later, region, false)) return {};
    return {"tensormap-fence", Lack::kTensormapFence};
  }
  if (earlier_generic && !later_generic) {
    if (fenced(fences, earlier, later, region)) return {};
    if (earlier.write && later.write) return {"proxy-fence-overwrite", Lack::kProxyFence};
    return {earlier.write ? "proxy-fence" : "proxy-fence-reuse", Lack::kProxyFence};
  }
  if (!earlier_generic && later_generic) {
    if (!earlier.operation->tensor_core() || fenced(fences, earlier, later, region)) return {};
    return {"proxy-fence-operand", Lack::kOperandFence};
  }
  // A completed write is published by its barrier; nothing says across CTAs that a completed read is over.
  if (!earlier_generic && !later_generic && !earlier.write && cta_of(earlier.warp) != cta_of(later.warp))
    return {"async-order-ctas", Lack::kSameProxyOnly};
  return {};
}

// Lanes of one instruction that take the same bytes of shared memory to the same place. Whoever changes the
// source between two of these stores has a race with the store that reads it later. By the ISA two writes of
// the same bytes are a conflict whatever they write, so this is what it is for ordinary stores.
static bool copies_the_same(const Touch& earlier, const Touch& later) {
  return earlier.write && later.write && earlier.operation != nullptr && later.operation != nullptr &&
         earlier.operation->same_store != nullptr &&
         earlier.operation->same_store == later.operation->same_store;
}

bool stores_the_same(const Touch& earlier, const Touch& later) {
  return earlier.digest != 0 && earlier.digest == later.digest && earlier.warp == later.warp &&
         earlier.mask == later.mask && earlier.work == later.work;
}

bool scopes_meet(const RaceState& state, uint64_t cta_a, Scope a, uint64_t cta_b, Scope b) {
  if (cta_a == cta_b) return true;
  const auto one = state.grid->ctas.find(cta_a), other = state.grid->ctas.find(cta_b);
  const bool one_cluster = one != state.grid->ctas.end() && other != state.grid->ctas.end() &&
                           one->second.cluster == other->second.cluster;
  const Scope needed = one_cluster ? Scope::kCluster : Scope::kGpu;
  return a >= needed && b >= needed;
}

bool overtakes(const RaceState& state, const Touch& earlier, const Touch& later, const Knowledge& knowledge,
               const Region& region) {
  if (earlier.operation != nullptr || later.operation != nullptr || later.atomic ||
      !morally_strong(state, earlier, later))
    return false;
  if (earlier.work == later.work) return !known(knowledge.happens_before, earlier, later, region, true);
  const bool waited = knowledge.happens_before.of(component(Part::kGrids, 0)) != 0;
  return !state.host.before(earlier.work, later.work, waited);
}

Verdicts judge(const RaceState& state, const Touch& earlier, const Touch& later, const Knowledge& knowledge,
               const Region& region) {
  if (earlier.host && later.host && earlier.work == later.work) return {};
  if (earlier.collective && earlier.warp == later.warp && earlier.time == later.time) return {};
  if (earlier.work != later.work) {
    const bool waited = knowledge.happens_before.of(component(Part::kGrids, 0)) != 0;
    if (state.host.before(earlier.work, later.work, waited)) {
      // After griddepcontrol.wait the two are ordered, but the write was made while this grid ran.
      if (later.non_coherent && earlier.write && !state.host.before(earlier.work, later.work, false))
        return {{{"non-coherent-read", Lack::kStartsTooSoon}}};
      return {};
    }
    if (morally_strong(state, earlier, later)) return {};
    // If two grids run together, the one that was launched first may do its part later.
    const auto [first, second] = std::minmax(earlier.work, later.work);
    return {{{"race-grids", state.host.before(first, second, true) ? Lack::kGridWait : Lack::kHost}}};
  }
  if (region.memory == Memory::kTensor) return {judge_tensor(state, earlier, later, knowledge, region)};
  if (copies_the_same(earlier, later)) return {{{"warp-same-write", Lack::kInstruction}}};
  if (known(knowledge.happens_before, earlier, later, region, true))
    return {judge_proxies(knowledge.fenced, earlier, later, region)};
  const Verdict order = unordered(state, earlier, later, knowledge, region);
  if (order.rule != nullptr && rule(order.rule).severity == Severity::kError) return {order};
  return {order, judge_proxies(knowledge.fenced_in_any_order, earlier, later, region)};
}

}  // namespace sim
