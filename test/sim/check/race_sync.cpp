// race_sync.cpp -- what every synchronising instruction does to the knowledge of the threads concerned.
// Instructions on mbarriers are in race_mbarrier.cpp.
#include <algorithm>

#include "sim/check/race.h"

namespace sim {

using SyncKind = SyncEvent::Kind;
using Fence = SyncEvent::Fence;

void RaceChecker::sync(const SyncEvent& e) {
  ++state_.now;
  switch (e.kind) {
    case SyncKind::kMbarrierInit:
    case SyncKind::kMbarrierInval:
    case SyncKind::kMbarrierArrive:
    case SyncKind::kMbarrierArriveDrop:
    case SyncKind::kMbarrierExpectTx:
    case SyncKind::kMbarrierCompleteTx:
    case SyncKind::kMbarrierWait:
    case SyncKind::kMbarrierTest: return mbarrier(e);
    case SyncKind::kBarrierArrive: return barrier_arrive(e, state_.cta(e.cta).named[e.object][e.phase]);
    case SyncKind::kBarrierLeave: {
      auto& generations = state_.cta(e.cta).named[e.object];
      generations.erase(generations.begin(), generations.lower_bound(e.phase));
      return state_.learn(state_.warp(e.thread), lanes_of(e), generations[e.phase]);
    }
    case SyncKind::kWarpSync: return warp_sync(e);
    case SyncKind::kWarpMeet: return warp_meet(e);
    case SyncKind::kClusterArrive:
      return barrier_arrive(e, state_.grid->clusters[state_.cta(e.thread.cta).cluster][e.phase]);
    case SyncKind::kClusterWait: {
      auto& generations = state_.grid->clusters[state_.cta(e.thread.cta).cluster];
      generations.erase(generations.begin(), generations.lower_bound(e.phase));
      Gathered& record = generations[e.phase];
      WarpState& w = state_.warp(e.thread);
      if (e.order != Order::kRelaxed) return state_.learn(w, lanes_of(e), record);
      return state_.update(w, lanes_of(e), [&](Knowledge& knowledge, uint32_t) { knowledge.park(record); });
    }
    case SyncKind::kFence: return fence(e);
    case SyncKind::kBulkCommit:
    case SyncKind::kBulkWait:
    case SyncKind::kCpAsyncCommit:
    case SyncKind::kCpAsyncWait: return groups(e);
    case SyncKind::kWgmmaCommit:
    case SyncKind::kWgmmaWait: return wgmma_groups(e);
    case SyncKind::kTmemWaitLd:
    case SyncKind::kTmemWaitSt:
    case SyncKind::kTmemAlloc:
    case SyncKind::kTmemDealloc:
    case SyncKind::kTmemUse: return tensor_memory(e);
    case SyncKind::kGridLaunch: return launch_dependents(e);
    case SyncKind::kGridWait:
      state_.grid->conduct.waits = true;
      state_.host.waited(state_.grid->work);
      state_.update(state_.warp(e.thread), lanes_of(e), [](Knowledge& knowledge, uint32_t) {
        knowledge.happens_before.raise(component(Part::kGrids, 0), 1);
      });
      return;
    case SyncKind::kExit: {
      WarpState& w = state_.warp(e.thread);
      Gathered& at_exit = state_.cta(e.thread.cta).at_exit;
      return state_.for_groups(w, lanes_of(e), [&](const KnowledgePtr& knowledge, uint32_t group) {
        at_exit.add(knowledge, w.threads, group, state_.now);
        at_exit.tensor.join(knowledge->tensor);
        if (knowledge->parked) at_exit.park(*knowledge->parked);
      });
    }
    case SyncKind::kCtaStart: {
      CtaState& cta = state_.cta(e.thread.cta);
      cta.started = true;
      cta.cluster = uint64_t(e.amount);
      cta.rank = e.phase;
      return;
    }
    case SyncKind::kCtaExit: return leave_cta(e);
    case SyncKind::kTmemAsk:
    case SyncKind::kTmemRelinquish:
    case SyncKind::kWgmmaFence:
    case SyncKind::kSetMaxRegisters: return;
  }
}

// The first griddepcontrol.launch_dependents of a CTA speaks for it, and any of its threads may be the first.
void RaceChecker::launch_dependents(const SyncEvent& e) {
  state_.cta(e.thread.cta).launched_dependents = true;
  WarpState& w = state_.warp(e.thread);
  for_lanes(lanes_of(e), [&](uint32_t lane) {
    const bool waited = w.knows[lane]->happens_before.of(component(Part::kGrids, 0)) != 0;
    state_.grid->conduct.waits_before_launch = state_.grid->conduct.waits_before_launch && waited;
  });
}

// ---- barriers of threads ----

void RaceChecker::barrier_arrive(const SyncEvent& e, Gathered& record) {
  WarpState& w = state_.warp(e.thread);
  const uint32_t lanes = lanes_of(e);
  state_.for_groups(w, lanes, [&](const KnowledgePtr& knowledge, uint32_t group) {
    if (e.order != Order::kRelaxed) return record.add(knowledge, w.threads, group, state_.now);
    record.acquire(knowledge->released_relaxed(Scope::kCluster, w.threads, group, state_.now));
    record.inits_unfenced.join(knowledge->happens_before);
    record.inits_unfenced.raise(w.threads, group, state_.now);
  });
}

void RaceChecker::warp_sync(const SyncEvent& e) {
  WarpState& w = state_.warp(e.thread);
  Knowledge all;
  state_.for_groups(w, e.mask, [&](const KnowledgePtr& knowledge, uint32_t group) {
    all.acquire_from(*knowledge, w.threads, group, state_.now);
  });
  state_.update(w, e.mask, [&](Knowledge& knowledge, uint32_t) { knowledge.acquire(all); });
}

void RaceChecker::warp_meet(const SyncEvent& e) {
  WarpState& w = state_.warp(e.thread);
  Knowledge all;
  state_.for_groups(w, e.mask, [&](const KnowledgePtr& knowledge, uint32_t group) {
    all.acquire_from(*knowledge, w.threads, group, state_.now);
  });
  state_.update(w, e.mask, [&](Knowledge& knowledge, uint32_t) {
    knowledge.meets.join(all.happens_before);
    knowledge.meets.join(all.meets);
    knowledge.cause.join(all.cause);
    knowledge.fenced_in_any_order.join(all.fenced_in_any_order);
  });
}

// ---- fences ----

void RaceChecker::thread_fence(const SyncEvent& e, Knowledge& knowledge, uint32_t lanes, Component warp) {
  if (acquires(e.order) && knowledge.parked) {
    const KnowledgePtr parked = knowledge.parked;
    knowledge.parked.reset();
    knowledge.acquire(*parked);
  }
  if (e.order == Order::kSeqCst) knowledge.acquire(state_.grid->sequential);
  if (!releases(e.order)) return;
  knowledge.offered = std::make_shared<const Knowledge>(knowledge.released(warp, lanes, state_.now));
  knowledge.offered_scope = e.scope;
  if (e.order == Order::kSeqCst) state_.grid->sequential.acquire(*knowledge.offered);
}

// A fence that works in both directions takes effect at once. A fence that works in one direction either
// makes ready what came before it (release), or takes over what was made ready (acquire). A fence of tensor
// maps concerns the map that it names.
void RaceChecker::proxy_fence(const SyncEvent& e, ProxyFences& fences, VectorClock before, uint32_t lanes) {
  before.raise(threads_of(e.thread), lanes, state_.now);
  if (e.fence == Fence::kProxyTensormap) {
    for (TensormapFences* of_maps : {&fences.tensormap_of_cta, &fences.tensormap}) {
      if (of_maps == &fences.tensormap && e.scope == Scope::kCta) continue;
      if (e.order == Order::kRelease) of_maps->ready.join(before);
      else if (e.bytes >= int64_t(kLineBytes)) of_maps->at(e.address).join(of_maps->ready);
    }
    return;
  }
  const uint8_t spaces = e.spaces == 0 ? 0xFF : e.spaces;
  if (e.order == Order::kRelease) {
    fences.ready.join(before);
  } else if (e.order == Order::kAcquire) {
    if ((spaces & SyncEvent::kSharedCluster) != 0) fences.shared.join(fences.ready);
    else fences.in(e.thread.cta).join(fences.ready);
  } else {
    if ((spaces & SyncEvent::kGlobalSpace) != 0) fences.global.join(before);
    if ((spaces & SyncEvent::kSharedCluster) != 0) fences.shared.join(before);
    else if ((spaces & SyncEvent::kSharedCta) != 0) fences.in(e.thread.cta).join(before);
  }
}

void RaceChecker::fence(const SyncEvent& e) {
  WarpState& w = state_.warp(e.thread);
  state_.update(w, lanes_of(e), [&](Knowledge& knowledge, uint32_t lanes) {
    switch (e.fence) {
      case Fence::kThread: thread_fence(e, knowledge, lanes, w.threads); break;
      case Fence::kProxyAsync:
      case Fence::kProxyTensormap:
        proxy_fence(e, knowledge.fenced, knowledge.happens_before, lanes);
        proxy_fence(e, knowledge.fenced_in_any_order, knowledge.in_any_order(), lanes);
        break;
      case Fence::kMbarrierInit: knowledge.inits.raise(w.threads, lanes, state_.now); break;
      case Fence::kTensorBefore:
        knowledge.tensor_edge.join(knowledge.tensor);
        knowledge.tensor_edge.raise(w.threads, lanes, state_.now);
        break;
      case Fence::kTensorAfter: knowledge.tensor.join(knowledge.tensor_edge); break;
      case Fence::kProxyAlias:
      case Fence::kNone: break;
    }
  });
}

// ---- groups of copies ----

void RaceChecker::groups(const SyncEvent& e) {
  WarpState& w = state_.warp(e.thread);
  const bool bulk = e.kind == SyncKind::kBulkCommit || e.kind == SyncKind::kBulkWait;
  auto& closed = bulk ? w.bulk_groups : w.copy_groups;
  const uint32_t lanes = lanes_of(e) & (bulk ? w.bulk_lanes : w.copy_lanes);
  if (e.kind == SyncKind::kBulkCommit || e.kind == SyncKind::kCpAsyncCommit) {
    for_lanes(lanes, [&](uint32_t lane) { closed[lane].push_back(state_.now); });
    return;
  }
  const uint64_t number = warp_number(e.thread);
  const size_t allowed = size_t(std::max<int64_t>(e.amount, 0));
  uint32_t left = 0;
  for_lanes(lanes, [&](uint32_t lane) { left |= uint32_t(closed[lane].size() > allowed) << lane; });
  while (left != 0) {  // lanes that closed the group at the same time, together
    const auto covered = [&](uint32_t lane) { return closed[lane][closed[lane].size() - 1 - allowed]; };
    const Time time = covered(uint32_t(__builtin_ctz(left)));
    uint32_t together = 0;
    for_lanes(left, [&](uint32_t lane) { together |= uint32_t(covered(lane) == time) << lane; });
    left &= ~together;
    state_.update(w, together, [&](Knowledge& knowledge, uint32_t group) {
      if (!bulk) return knowledge.happens_before.raise(component(Part::kCpAsync, number), group, time);
      knowledge.happens_before.raise(component(Part::kBulkRead, number), group, time);
      if (!e.read) knowledge.happens_before.raise(component(Part::kBulkDone, number), group, time);
    });
  }
}

// ---- wgmma ----

// When a group has completed, its operations are complete for every warp of the warpgroup, because the parts
// of the four warps are one operation. Bytes that the operation read may then be overwritten through either
// proxy, since completion is followed by an implicit proxy fence (PTX ISA 9.7.15.4).
void RaceChecker::wgmma_groups(const SyncEvent& e) {
  constexpr uint32_t kWarpgroup = 4;
  WarpState& w = state_.warp(e.thread);
  if (e.kind == SyncKind::kWgmmaCommit) return w.wgmma_groups.push_back(w.wgmma_issued.size());
  const size_t allowed = size_t(std::max<int64_t>(e.amount, 0));
  if (w.wgmma_groups.size() <= allowed) return;
  const size_t complete = w.wgmma_groups[w.wgmma_groups.size() - 1 - allowed];
  if (complete == 0) return;
  Thread part = e.thread;
  for (uint32_t i = 0; i < kWarpgroup; ++i) {
    part.warp = e.thread.warp / kWarpgroup * kWarpgroup + i;
    const std::vector<Time>& issued = state_.warp(part).wgmma_issued;
    if (issued.size() < complete) continue;
    state_.update(w, lanes_of(e), [&](Knowledge& knowledge, uint32_t) {
      knowledge.happens_before.raise(component(Part::kWgmma, warp_number(part)), issued[complete - 1]);
    });
  }
}

// ---- tensor memory ----

void RaceChecker::tensor_memory(const SyncEvent& e) {
  WarpState& w = state_.warp(e.thread);
  if (e.kind == SyncKind::kTmemWaitLd || e.kind == SyncKind::kTmemWaitSt) {
    const Component queue =
        component(e.kind == SyncKind::kTmemWaitLd ? Part::kTensorLd : Part::kTensorSt, warp_number(e.thread));
    state_.update(w, lanes_of(e), [&](Knowledge& knowledge, uint32_t) {
      knowledge.happens_before.raise(queue, state_.now);
      knowledge.tensor.raise(queue, state_.now);
      knowledge.cause.raise(queue, state_.now);
    });
    return;
  }
  if (e.kind == SyncKind::kTmemUse) {
    const AsyncOperation* load = state_.operation(e.async_id);
    Finding f;
    f.rule = &rule("tensor-use-before-wait");
    f.summary = "a register of tcgen05.ld is used before tcgen05.wait::ld";
    f.later = site_of(e);
    if (load != nullptr) {
      f.has_earlier = true;
      f.earlier = {load->thread, load->mask, load->id, load->inst};
    }
    f.missing = "tcgen05.wait::ld between the load and the use";
    // One load has many registers, each with a first use. Only the first of these uses is reported.
    report(std::move(f), load == nullptr ? nullptr : load->inst, nullptr);
    return;
  }
  // Allocation and deallocation concern whole columns. A pair does each of them in one act, when a warp of
  // each CTA has come, and the act follows everything that either warp knows.
  const Thread owner = e.partner && e.partner->cta == e.cta ? *e.partner : e.thread;
  Knowledge knowledge = *w.knows[e.thread.lane];
  if (e.partner) {
    const Knowledge& theirs = state_.knowledge(*e.partner);
    knowledge.acquire(theirs);
    knowledge.tensor.join(theirs.tensor);
  }
  Touch later;
  later.time = state_.now;
  later.warp = threads_of(owner);
  later.work = uint32_t(state_.grid->work);
  later.lanes = kAllLanes;
  later.inst = e.inst;
  later.write = true;
  later.proxy = Proxy::kTensor;
  Region columns;
  columns.memory = Memory::kTensor;
  columns.write = true;
  columns.cta = e.cta;
  columns.lanes = 128;
  columns.column = uint16_t(e.object);
  columns.columns = uint16_t(e.amount);
  touch(later, columns, knowledge);
  report_hits();
}

// ---- the end of a CTA ----

void RaceChecker::leave_cta(const SyncEvent& e) {
  const uint64_t index = e.thread.cta;
  CtaState& cta = state_.cta(index);
  Touch end;
  end.time = state_.now;
  end.warp = component(Part::kThreads, index << 8);
  end.work = uint32_t(state_.grid->work);
  end.write = true;
  end.inst = e.inst;
  end.lanes = 1;
  state_.grid->shadow.for_each_line(index, [&](Memory memory, uint32_t line, Line& touches) {
    Region region;
    region.memory = memory;
    region.cta = index;
    region.address = uint64_t(line) * kLineBytes;
    region.column = uint16_t(line);
    region.columns = 1;
    touches.for_each(LineMask::range(0, kLineBytes), [&](const Touch& earlier) {
      // alloc or dealloc, perhaps of the pair.
      if (earlier.operation == nullptr && memory == Memory::kTensor) return;
      // A store that its thread did not wait for is a finding of its own: store-unwaited-at-exit.
      if (earlier.operation != nullptr && earlier.operation->sources != 0) return;
      const bool remote = thread_of(earlier.warp, 0).cta != index;
      const bool over =
          earlier.operation != nullptr
              ? earlier.operation->known(cta.at_exit.happens_before, earlier.write, region) ||
                    earlier.operation->known(cta.at_exit.tensor, earlier.write, region) ||
                    earlier.operation->known(cta.at_exit.any_scope, earlier.write, region)
              : !remote || cta.at_exit.happens_before.knows(earlier.warp, earlier.lanes, earlier.time) ||
                    cta.at_exit.narrow.knows(earlier.warp, earlier.lanes, earlier.time);
      if (over) return;
      const bool kept = earlier.operation != nullptr && earlier.operation->is(AsyncIssue::Kind::kCpAsync);
      Verdict verdict{kept ? "cp-async-unwaited-at-exit" : "exit-pending",
                      earlier.operation != nullptr ? Lack::kCompletion : Lack::kOrder, true};
      const auto known = [&](const VectorClock& clock) {
        return earlier.operation->known(clock, earlier.write, region);
      };
      if (earlier.operation != nullptr && cta.at_exit.but_for_acquire(known))
        verdict = {"relaxed-wait", Lack::kAcquire, true};
      const uint64_t from = memory == Memory::kTensor ? line : region.address + earlier.mask.first();
      const uint64_t to = memory == Memory::kTensor ? line + 1 : region.address + earlier.mask.last() + 1;
      hit(earlier, end, verdict, region, cta.at_exit, from, to, earlier.mask);
    });
  });
  report_hits();
  if (!cta.launched_dependents && cta.at_exit.happens_before.of(component(Part::kGrids, 0)) == 0)
    state_.grid->conduct.waits_before_launch = false;
  cta.exited = true;
  cta.warps.clear();
  cta.named.clear();
  cta.at_exit = {};
  state_.grid->shadow.forget(index);
}

}  // namespace sim
