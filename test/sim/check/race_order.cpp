// race_order.cpp -- the ordering rules, by the proxies of the two parties.
#include "sim/check/race_order.h"

#include <algorithm>

#include "sim/decode/program.h"

namespace sim {
namespace {

using Kind = AsyncIssue::Kind;

uint64_t cta_of(Component warp) { return thread_of(warp, 0).cta; }

// `clock` knows what the lanes of a synchronous touch did to the bytes in common. The later party's own lane
// is in program order, where that counts.
bool knows_lanes(const VectorClock& clock, const Touch& p, const Touch& c, bool program_order) {
  if (clock.knows(p.warp, p.lanes, p.time)) return true;
  const bool same_warp = p.warp == c.warp && program_order;
  if (same_warp && p.same_pattern(c) && (p.stride != Touch::kTogether || (p.lanes & (p.lanes - 1)) == 0))
    return true;
  for (uint32_t rest = p.lanes; rest != 0; rest &= rest - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(rest));
    const LineMask theirs = p.bytes_of(lane) & c.mask;
    if (!theirs.any() || clock.knows(p.warp, 1u << lane, p.time)) continue;
    if (!same_warp) return false;
    for (uint32_t others = c.lanes & ~(1u << lane); others != 0; others &= others - 1)
      if ((c.bytes_of(uint32_t(__builtin_ctz(others))) & theirs).any()) return false;
  }
  return true;
}

bool known(const VectorClock& clock, const Touch& p, const Touch& c, const Region& region,
           bool program_order) {
  return p.operation != nullptr ? p.operation->known(clock, p.write, region)
                                : knows_lanes(clock, p, c, program_order);
}

// A proxy fence for this memory lies behind the earlier touch.
bool fenced(const Knowledge& k, const Touch& p, const Touch& c, const Region& region) {
  if (region.memory == Memory::kGlobal) return known(k.fenced_global, p, c, region, false);
  if (known(k.fenced_shared, p, c, region, false)) return true;
  for (const auto& [cta, clock] : k.fenced_cta)
    if (cta == region.cta) return known(clock, p, c, region, false);
  return false;
}

bool same_thread(const Touch& p, const Touch& c) {
  return p.operation != nullptr && c.operation != nullptr && p.warp == c.warp &&
         p.operation->thread.lane == c.operation->thread.lane;
}

bool same_cells(const Region& a, const Region& b) {
  return a.cta == b.cta && a.lane == b.lane && a.lanes == b.lanes && a.column == b.column &&
         a.columns == b.columns;
}

// The pairs that execute in order when issued in order.
bool pipelined(const AsyncOperation& p, const AsyncOperation& c) {
  if (!p.tensor_core() || p.group != c.group || !c.is(Kind::kMma)) return false;
  return p.is(Kind::kTmemCopy) || same_cells(p.accumulator, c.accumulator);
}

// What a warp does as a whole is known with any of its lanes.
bool knows_warp(const VectorClock& clock, Component warp, Time time) {
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (clock.knows(warp, 1u << lane, time)) return true;
  return false;
}

// The warps that took or freed the columns: of a pair, those with the same number in both CTAs.
std::vector<Component> warps_of(const RaceState& state, const Touch& p) {
  std::vector<Component> warps{p.warp};
  const Thread thread = thread_of(p.warp, 0);
  const auto own = state.ctas.find(thread.cta);
  if (p.inst == nullptr || !p.inst->has(Q::kGroup2) || own == state.ctas.end()) return warps;
  for (const auto& [index, cta] : state.ctas)
    if (cta.cluster == own->second.cluster && cta.rank == (own->second.rank ^ 1))
      warps.push_back(threads_of({index, thread.warp, 0}));
  return warps;
}

Verdict judge_tensor(const RaceState& state, const Touch& p, const Touch& c, const Knowledge& k,
                     const Region& region) {
  if (p.operation == nullptr || c.operation == nullptr) {
    // Allocation and its end are synchronous: every form of order will do. An allocation of a pair is one act
    // of both CTAs.
    if (p.operation == nullptr && (p.warp == c.warp || cta_of(c.warp) != region.cta)) return {};
    const bool allocation = p.operation == nullptr;
    const std::vector<Component> warps = allocation ? warps_of(state, p) : std::vector<Component>{};
    const auto learned = [&](const VectorClock& clock) {
      if (!allocation) return known(clock, p, c, region, true);
      return std::any_of(warps.begin(), warps.end(),
                         [&](Component warp) { return knows_warp(clock, warp, p.time); });
    };
    for (const VectorClock* clock : {&k.hb, &k.tensor, &k.tensor_edge, &k.any_scope})
      if (learned(*clock)) return {};
    if (learned(k.cause)) return {"tensor-fence", Lack::kRelease};
    return {"race-tensor", allocation ? Lack::kOrder : Lack::kCompletion};
  }
  if (known(k.tensor, p, c, region, false)) return {};
  const bool listed = pipelined(*p.operation, *c.operation);
  const Component issuer = p.warp;
  const uint32_t lane = 1u << p.operation->thread.lane;
  if (listed && (same_thread(p, c) || k.tensor.knows(issuer, lane, p.time))) return {};
  if (same_thread(p, c) && p.operation->tensor_core() && c.operation->tensor_core() &&
      p.operation->group == c.operation->group)
    return {"tensor-unlisted-pair", Lack::kPair};
  const auto through = [&](const VectorClock& clock) {
    return known(clock, p, c, region, false) || (listed && clock.knows(issuer, lane, p.time));
  };
  const Lack fence = through(k.tensor_edge) ? Lack::kAfterFence : Lack::kBeforeFence;
  if (through(k.hb)) return {"tensor-fence", fence};
  if (through(k.any_scope)) return {};  // the scope was reported where the wait was
  // It was over before a relaxed signal that led here: in order, but for the letter.
  if (known(k.cause, p, c, region, false))
    return {"tensor-fence", fence == Lack::kAfterFence ? fence : Lack::kRelease};
  if (through(k.tensor_edge)) return {"race-tensor", Lack::kAfterFence};
  if (k.parked && through(k.parked->hb)) return {"race-tensor", Lack::kBeforeFence};
  return {"race-tensor", Lack::kCompletion};
}

bool morally_strong(const RaceState& state, const Touch& p, const Touch& c) {
  return p.strong && c.strong && p.mask == c.mask &&
         scopes_meet(state, cta_of(p.warp), p.scope, cta_of(c.warp), c.scope);
}

Verdict unordered(const RaceState& state, const Touch& p, const Touch& c, const Knowledge& k,
                  const Region& region) {
  const bool synchronous = p.operation == nullptr && c.operation == nullptr;
  if (synchronous) {
    if (morally_strong(state, p, c)) return {};
    if (p.warp == c.warp && p.time == c.time) return {"warp-same-write", Lack::kInstruction};
  }
  if (known(k.meets, p, c, region, true)) return {"warp-meet-order", Lack::kMeet};
  if (known(k.any_scope, p, c, region, true)) {
    if (!synchronous) return {};  // the scope was reported where the wait was
    return {"race-data", Lack::kScope};
  }
  if (k.parked && known(k.parked->hb, p, c, region, true)) {
    if (p.operation != nullptr && c.operation != nullptr) return {"relaxed-wait", Lack::kAcquire};
    return {synchronous ? "race-data" : "race-async", Lack::kAcquire};
  }
  if (p.operation != nullptr) return {"race-async", Lack::kCompletion};
  return {!synchronous ? "race-async" : p.warp == c.warp ? "race-lanes" : "race-data", Lack::kOrder};
}

}  // namespace

bool scopes_meet(const RaceState& state, uint64_t cta_a, Scope a, uint64_t cta_b, Scope b) {
  if (cta_a == cta_b) return true;
  const auto one = state.ctas.find(cta_a), other = state.ctas.find(cta_b);
  const bool one_cluster =
      one != state.ctas.end() && other != state.ctas.end() && one->second.cluster == other->second.cluster;
  const Scope needed = one_cluster ? Scope::kCluster : Scope::kGpu;
  return a >= needed && b >= needed;
}

Verdict judge(const RaceState& state, const Touch& p, const Touch& c, const Knowledge& k,
              const Region& region) {
  if (p.host && c.host && p.work == c.work) return {};
  if (p.work != c.work) {
    const bool waited = k.hb.of(component(Part::kGrids, 0)) != 0;
    if (state.host.before(p.work, c.work, waited)) return {};
    return {"race-grids", state.host.before(p.work, c.work, true) ? Lack::kGridWait : Lack::kHost};
  }
  if (region.memory == Memory::kTensor) return judge_tensor(state, p, c, k, region);
  if (!known(k.hb, p, c, region, true)) return unordered(state, p, c, k, region);
  const bool p_generic = p.operation == nullptr || p.operation->generic();
  const bool c_generic = c.operation == nullptr || c.operation->generic();
  if (c.proxy == Proxy::kTensormap) {
    if (!p_generic) return {};
    for (const auto& [address, clock] : k.tensormap)
      if (address == region.address && known(clock, p, c, region, false)) return {};
    return {"tensormap-fence", Lack::kTensormapFence};
  }
  if (p_generic && !c_generic) {
    if (fenced(k, p, c, region)) return {};
    if (p.write && c.write) return {"proxy-fence-overwrite", Lack::kProxyFence};
    return {p.write ? "proxy-fence" : "proxy-fence-reuse", Lack::kProxyFence};
  }
  if (!p_generic && c_generic) {
    if (!p.operation->tensor_core() || fenced(k, p, c, region)) return {};
    return {"proxy-fence-operand", Lack::kOperandFence};
  }
  // A completed write is published by its barrier; that a completed read is over is not said across CTAs.
  if (!p_generic && !c_generic && !p.write && cta_of(p.warp) != cta_of(c.warp))
    return {"async-order-ctas", Lack::kSameProxyOnly};
  return {};
}

}  // namespace sim
