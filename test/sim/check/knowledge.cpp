// knowledge.cpp -- how knowledge passes from thread to thread.
#include "sim/check/knowledge.h"

#include <algorithm>

namespace sim {

static VectorClock& clock_of(std::vector<std::pair<uint64_t, VectorClock>>& clocks, uint64_t key) {
  auto at = std::lower_bound(clocks.begin(), clocks.end(), key,
                             [](const auto& entry, uint64_t wanted) { return entry.first < wanted; });
  if (at == clocks.end() || at->first != key) at = clocks.insert(at, {key, VectorClock{}});
  return at->second;
}

static bool alike(const std::pair<uint64_t, VectorClock>& a, const std::pair<uint64_t, VectorClock>& b) {
  return a.first == b.first && a.second.same(b.second);
}

VectorClock& TensormapFences::at(uint64_t address) { return clock_of(seen, address); }

void TensormapFences::join(const TensormapFences& other) {
  ready.join(other.ready);
  for (const auto& [address, clock] : other.seen) at(address).join(clock);
}

bool TensormapFences::same(const TensormapFences& other) const {
  return ready.same(other.ready) &&
         std::equal(seen.begin(), seen.end(), other.seen.begin(), other.seen.end(), alike);
}

VectorClock& ProxyFences::in(uint64_t cta) { return clock_of(shared_of_cta, cta); }

void ProxyFences::join(const ProxyFences& other) {
  global.join(other.global);
  shared.join(other.shared);
  for (const auto& [cta, clock] : other.shared_of_cta) in(cta).join(clock);
  ready.join(other.ready);
  tensormap_of_cta.join(other.tensormap_of_cta);
  tensormap.join(other.tensormap);
}

bool ProxyFences::same(const ProxyFences& other) const {
  return global.same(other.global) && shared.same(other.shared) &&
         std::equal(shared_of_cta.begin(), shared_of_cta.end(), other.shared_of_cta.begin(),
                    other.shared_of_cta.end(), alike) &&
         ready.same(other.ready) && tensormap_of_cta.same(other.tensormap_of_cta) &&
         tensormap.same(other.tensormap);
}

VectorClock Knowledge::in_any_order() const {
  VectorClock all = happens_before;
  for (const VectorClock* clock : {&cause, &meets, &any_scope, &unacquired}) all.join(*clock);
  if (parked) all.join(parked->in_any_order());
  return all;
}

void Knowledge::acquire(const Knowledge& released) {
  happens_before.join(released.happens_before);
  fenced.join(released.fenced);
  any_scope.join(released.any_scope);
  narrow.join(released.narrow);
  meets.join(released.meets);
  unacquired.join(released.unacquired);
  if (released.parked) {
    unacquired.join(released.parked->happens_before);
    unacquired.join(released.parked->unacquired);
  }
  acquire_relaxed(released);
}

void Knowledge::acquire_relaxed(const Knowledge& released) {
  tensor_edge.join(released.tensor_edge);
  inits.join(released.inits);
  inits_unfenced.join(released.inits_unfenced);
  cause.join(released.cause);
  fenced_in_any_order.join(released.fenced_in_any_order);
}

void Knowledge::acquire_narrow(const Knowledge& released, bool reported) {
  any_scope.join(released.happens_before);
  any_scope.join(released.any_scope);
  narrow.join(released.narrow);
  if (reported) narrow.join(released.happens_before);
  acquire_relaxed(released);
}

void Knowledge::park(const Knowledge& released) {
  acquire_relaxed(released);
  Knowledge all = parked ? *parked : Knowledge{};
  all.acquire(released);
  parked = std::make_shared<const Knowledge>(std::move(all));
}

void Knowledge::acquire_from(const Knowledge& from, Component warp, uint32_t lanes, Time now) {
  acquire(from);
  happens_before.raise(warp, lanes, now);
  cause.raise(warp, lanes, now);
}

Knowledge Knowledge::released(Component warp, uint32_t lanes, Time now) const {
  Knowledge out;
  out.acquire_from(*this, warp, lanes, now);
  return out;
}

bool Knowledge::same(const Knowledge& o) const {
  return happens_before.same(o.happens_before) && fenced.same(o.fenced) && tensor.same(o.tensor) &&
         tensor_edge.same(o.tensor_edge) && inits.same(o.inits) && inits_unfenced.same(o.inits_unfenced) &&
         narrow.same(o.narrow) && any_scope.same(o.any_scope) && meets.same(o.meets) &&
         unacquired.same(o.unacquired) && cause.same(o.cause) &&
         fenced_in_any_order.same(o.fenced_in_any_order) && parked == o.parked && offered == o.offered;
}

Knowledge Knowledge::released_relaxed(Scope scope, Component warp, uint32_t lanes, Time now) const {
  Knowledge out;
  if (offered && offered_scope >= scope) out = *offered;
  else if (offered) out.any_scope = offered->happens_before;
  out.acquire_relaxed(*this);
  out.cause.raise(warp, lanes, now);
  return out;
}

void Gathered::add(const KnowledgePtr& from, Component warp, uint32_t lanes, Time now) {
  if (from == added_) {
    happens_before.raise(warp, lanes, now);
    cause.raise(warp, lanes, now);
  } else {
    acquire_from(*from, warp, lanes, now);
    added_ = from;
  }
}

KnowledgePtr Gathered::teach(const KnowledgePtr& before) {
  if (before == before_) return learned_;
  before_ = before;
  auto after = std::make_shared<Knowledge>(*before);
  after->acquire(*this);
  if (after->same(*before)) learned_ = before;
  else if (!learned_ || !after->same(*learned_)) learned_ = std::move(after);
  return learned_;
}

}  // namespace sim
