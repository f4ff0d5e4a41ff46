// race_mbarrier.cpp -- what the operations on an mbarrier do to the knowledge of the threads concerned.
#include <algorithm>

#include "sim/check/race.h"

namespace sim {

using SyncKind = SyncEvent::Kind;

void RaceChecker::mbarrier(const SyncEvent& e) {
  if (e.kind == SyncKind::kMbarrierInit) return mbarrier_init(e);
  BarrierState* b = state_.barrier(e.mbarrier);
  if (b == nullptr) {  // the machine reports that; only a peer that need not have begun is reported here
    if (e.async_id != 0 || state_.begun(e.mbarrier.cta, e.thread.cta, state_.knowledge(e.thread))) return;
    Finding f;
    f.rule = &rule("cluster-start");
    f.summary =
        "an mbarrier of CTA " + std::to_string(e.mbarrier.cta) + " is used, which need not have started";
    f.later = site_of(e);
    f.has_mbarrier = true;
    f.mbarrier = e.mbarrier;
    f.missing = kStart;
    return report(std::move(f), nullptr, e.inst);
  }
  if (e.async_id == 0) {
    const bool arrives = e.kind == SyncKind::kMbarrierArrive || e.kind == SyncKind::kMbarrierArriveDrop;
    const uint32_t lanes = arrives ? lanes_of(e) : 1u << e.thread.lane;
    state_.for_groups(state_.warp(e.thread), lanes, [&](const KnowledgePtr& knowledge, uint32_t group) {
      // The thread that initialised the barrier knows more about it than the other threads.
      const Thread& by = b->init_thread;
      const bool own = by.cta == e.thread.cta && by.warp == e.thread.warp;
      const uint32_t others = own ? group & ~(1u << by.lane) : group;
      Site site = site_of(e);
      site.thread.lane = uint32_t(__builtin_ctz(others != 0 ? others : group));
      check_init(*b, e.mbarrier, site, *knowledge, false);
    });
  }
  switch (e.kind) {
    case SyncKind::kMbarrierInval: state_.grid->barriers.erase({e.mbarrier.cta, e.mbarrier.offset}); return;
    case SyncKind::kMbarrierArrive:
    case SyncKind::kMbarrierArriveDrop: return mbarrier_arrive(e, *b);
    case SyncKind::kMbarrierCompleteTx: return mbarrier_complete_tx(e, *b);
    case SyncKind::kMbarrierWait: return mbarrier_wait(e, *b);
    default: return;
  }
}

void RaceChecker::mbarrier_init(const SyncEvent& e) {
  WarpState& w = state_.warp(e.thread);
  BarrierState b;
  b.id = component(Part::kMbarrier, state_.next_barrier++);
  b.init_thread = e.thread;
  b.init_inst = e.inst;
  b.init = state_.now;
  state_.grid->barriers[{e.mbarrier.cta, e.mbarrier.offset}] = std::move(b);
  Touch later;
  later.time = state_.now;
  later.warp = w.threads;
  later.work = uint32_t(state_.grid->work);
  later.lanes = 1u << e.thread.lane;
  later.lane0 = uint8_t(e.thread.lane);
  later.inst = e.inst;
  later.write = true;
  Region object;
  object.memory = Memory::kShared;
  object.cta = e.mbarrier.cta;
  object.address = e.mbarrier.offset;
  object.bytes = 8;
  object.write = true;
  touch(later, object, *w.knows[e.thread.lane]);
  report_hits();
}

// The initialisation is an ordinary write. A thread sees it across any edge of its memory order; the
// asynchronous proxy, which counts bytes and arrivals there, only across a fence.
void RaceChecker::check_init(BarrierState& b, const MbarrierRef& ref, const Site& site,
                             const Knowledge& knowledge, bool asynchronous) {
  const Component initialiser = threads_of(b.init_thread);
  const uint32_t lane = 1u << b.init_thread.lane;
  const auto knows = [&](const VectorClock& clock) { return clock.knows(initialiser, lane, b.init); };
  const bool own = site.thread.cta == b.init_thread.cta && site.thread.warp == b.init_thread.warp &&
                   site.thread.lane == b.init_thread.lane;
  const bool seen = own || knows(knowledge.happens_before) || knows(knowledge.inits);
  asynchronous = asynchronous && !b.used_by_async_proxy;
  b.used_by_async_proxy = b.used_by_async_proxy || asynchronous;
  Finding f;
  if (seen) {
    const auto fenced = [&] {
      const auto& of_cta = knowledge.fenced.shared_of_cta;
      return knows(knowledge.inits) || knows(knowledge.fenced.shared) ||
             std::any_of(of_cta.begin(), of_cta.end(),
                         [&](const auto& entry) { return entry.first == ref.cta && knows(entry.second); });
    };
    if (!asynchronous || fenced()) return;
    f.rule = &rule("mbarrier-init-fence");
    f.summary = "an asynchronous operation uses an mbarrier whose initialisation no fence has followed";
  } else if (knows(knowledge.inits_unfenced)) {
    f.rule = &rule("mbarrier-init-fence");
    f.summary =
        "an mbarrier is used whose initialisation only a relaxed arrival at the cluster barrier follows";
  } else {
    f.rule = &rule("mbarrier-init-order");
    f.summary = "an mbarrier is used by a thread that need not see its initialisation";
  }
  f.later = site;
  f.has_earlier = true;
  f.earlier = {b.init_thread, lane, 0, b.init_inst};
  f.has_mbarrier = true;
  f.mbarrier = ref;
  f.missing = f.rule->severity == Severity::kStrict
                  ? "fence.mbarrier_init.release.cluster after mbarrier.init, by its thread"
              : site.thread.cta == b.init_thread.cta
                  ? "a barrier of the CTA between mbarrier.init and the use"
                  : "a cluster barrier between mbarrier.init and the use, with release, "
                    "or relaxed after fence.mbarrier_init.release.cluster by the thread that initialised";
  if (!state_.begun(ref.cta, site.thread.cta, knowledge))
    f.notes.push_back("CTA " + std::to_string(ref.cta) + " need not even have started");
  report(std::move(f), b.init_inst, site.inst);
}

void RaceChecker::mbarrier_arrive(const SyncEvent& e, BarrierState& b) {
  Arrivals& phase = b.open[e.phase];
  if (const AsyncOperation* op = state_.operation(e.async_id)) {
    // A commit: all operations of the thread's tensor queue are complete, and so are the operations that
    // these had to follow, which are the copies whose bytes they read. The scope does not matter.
    Knowledge done;
    if (op->done != 0) {
      done.happens_before.raise(op->done, op->lanes, op->issued);
      done.tensor_edge = done.happens_before;
      done.tensor_edge.raise(threads_of(op->thread), op->lanes, op->issued);  // a fence before it is implied
      done.happens_before.join(op->complete_before);
    }
    done.cause = op->cause;
    phase.here.acquire(done);
    for (AsyncOperation::Signal& s : state_.operation(e.async_id)->signals)
      if (s.ref == e.mbarrier) s.phases = e.phase + 1;
    return;
  }
  WarpState& w = state_.warp(e.thread);
  const bool relaxed = e.order == Order::kRelaxed;
  Gathered* to = &phase.here;
  if (e.thread.cta != e.mbarrier.cta && e.scope >= Scope::kCluster) {
    to = &phase.remote;
    phase.has_remote = true;
    phase.remote_site = site_of(e);
  } else if (e.thread.cta != e.mbarrier.cta) {
    to = &phase.narrow;
    phase.has_narrow = true;
    phase.narrow_site = site_of(e);
  }
  state_.for_groups(w, lanes_of(e), [&](const KnowledgePtr& knowledge, uint32_t group) {
    if (relaxed) to->acquire(knowledge->released_relaxed(e.scope, w.threads, group, state_.now));
    else to->add(knowledge, w.threads, group, state_.now);
  });
}

// This publishes the bytes of a copy, but nothing that its issuer did before.
void RaceChecker::mbarrier_complete_tx(const SyncEvent& e, BarrierState& b) {
  AsyncOperation* op = state_.operation(e.async_id);
  if (op == nullptr) return;
  for (AsyncOperation::Signal& s : op->signals) {
    if (!(s.ref == e.mbarrier)) continue;
    s.barrier = b.id;
    s.phases = std::max(s.phases, e.phase + 1);
    s.left -= e.bytes;
    s.landed = s.landed || s.left <= 0;
  }
  Arrivals& phase = b.open[e.phase];
  phase.here.cause.join(op->cause);
  // A thread of another CTA stored these bytes, and only a wait of cluster scope sees them. By the letter of
  // the ISA a wait for the bytes of a multicast needs cluster scope, too, but known kernels wait for those at
  // CTA scope.
  if (op->is(AsyncIssue::Kind::kStAsync) && op->thread.cta != e.mbarrier.cta) {
    phase.has_remote = true;
    phase.remote_site = {op->thread, op->mask, op->id, op->inst};
  }
}

void RaceChecker::mbarrier_wait(const SyncEvent& e, BarrierState& b) {
  WarpState& w = state_.warp(e.thread);
  for_lanes(lanes_of(e), [&](uint32_t lane) { w.waited[lane] = {true, e.mbarrier, e.phase}; });
  const uint64_t phases = e.phase + 1;  // 0: the phase before the first
  while (!b.open.empty() && b.open.begin()->first < phases) {
    Arrivals& a = b.open.begin()->second;
    b.complete.here.acquire(a.here);
    b.complete.remote.acquire(a.remote);
    b.complete.narrow.acquire(a.narrow);
    b.complete.has_remote = a.has_remote;
    b.complete.has_narrow = a.has_narrow;
    if (a.has_remote) b.complete.remote_site = a.remote_site;
    if (a.has_narrow) b.complete.narrow_site = a.narrow_site;
    b.open.erase(b.open.begin());
  }
  if (phases == 0) return;
  const bool wide = e.scope >= Scope::kCluster;
  const bool relaxed = e.order == Order::kRelaxed;
  b.complete.here.happens_before.raise(b.id, phases);
  // Lanes that knew the same and see the same still share one object for what they know, although they report
  // one by one.
  const std::tuple seen(b.id, phases, relaxed, wide);
  const KnowledgePtr before = w.knows[e.thread.lane];
  if (before == waited_.before && seen == waited_.seen && lanes_of(e) == 1u << e.thread.lane) {
    w.knows[e.thread.lane] = waited_.after;
  } else {
    Knowledge learned = b.complete.here;
    if (wide) learned.acquire(b.complete.remote);
    state_.update(w, lanes_of(e), [&](Knowledge& knowledge, uint32_t) {
      relaxed ? knowledge.park(learned) : knowledge.acquire(learned);
      if (!wide) knowledge.acquire_narrow(b.complete.remote, true);
      knowledge.acquire_narrow(b.complete.narrow, true);
    });
    waited_ = {before, w.knows[e.thread.lane], seen};
  }
  const bool mismatch = b.complete.has_narrow || (b.complete.has_remote && !wide);
  if (!mismatch) return;
  Finding f;
  f.rule = &rule("scope-mismatch");
  const Site& arrival = b.complete.has_narrow ? b.complete.narrow_site : b.complete.remote_site;
  f.summary = b.complete.has_narrow ? "an arrival of CTA scope from another CTA gives the waiter no order"
                                    : "a wait of CTA scope takes no order from another CTA";
  f.later = site_of(e);
  f.has_earlier = true;
  f.earlier = arrival;
  f.has_mbarrier = true;
  f.mbarrier = e.mbarrier;
  f.missing = b.complete.has_narrow ? ".release.cluster on the arrival" : ".acquire.cluster on the wait";
  report(std::move(f), arrival.inst, e.inst);
}

}  // namespace sim
