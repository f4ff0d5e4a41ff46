// race.cpp -- touches: accesses gathered by warp instruction, footprints of asynchronous operations, and
// their comparison with what the shadow holds.
#include "sim/check/race.h"

#include <algorithm>
#include <bit>

namespace sim {

using Kind = AsyncIssue::Kind;

constexpr size_t kGlobalLimit = size_t(1) << 20;  // pages and runs kept across grids
constexpr size_t kCrowded = 16;                   // touches of a line from which dominated reads are sought

static bool strong(const Access& a) { return a.atomic || a.order != Order::kWeak; }

// Returns the part of `line` that lies in [from, to).
static LineMask part_of_line(uint64_t line, uint64_t from, uint64_t to) {
  const uint64_t base = line * kLineBytes;
  const uint64_t lo = std::max(from, base), hi = std::min(to, base + kLineBytes);
  return LineMask::range(uint32_t(lo - base), uint32_t(hi - lo));
}

static Proxy proxy_of(Kind kind, Memory memory) {
  if (memory == Memory::kTensor) return Proxy::kTensor;
  return kind == Kind::kCpAsync || kind == Kind::kStAsync ? Proxy::kGeneric : Proxy::kAsync;
}

// True for an earlier read of some of the bytes that need not be kept beside the later read: every access
// that follows the later read follows the earlier one, too.
static bool dominated(const Touch& earlier, const Touch& later, const Knowledge& knowledge,
                      const HostOrder& host) {
  if (earlier.work != later.work && !host.before(earlier.work, later.work, false)) return false;
  if (earlier.proxy != later.proxy || earlier.strong != later.strong) return false;
  if (earlier.non_coherent != later.non_coherent) return false;
  if (earlier.operation == nullptr && later.operation == nullptr)
    return (earlier.warp == later.warp && earlier.same_pattern(later)) ||
           (earlier.work == later.work &&
            knowledge.happens_before.knows(earlier.warp, earlier.lanes, earlier.time));
  return earlier.operation != nullptr && later.operation != nullptr && earlier.operation->done != 0 &&
         earlier.operation->done == later.operation->done &&
         earlier.operation->lanes == later.operation->lanes;
}

void RaceChecker::host(const HostWork& work) {
  ++state_.now;
  state_.host.add(work);
  if (work.kind == HostWork::Kind::kLaunch) return;
  Touch later;
  later.time = state_.now;
  later.work = uint32_t(work.id);
  later.lanes = 1;
  later.host = true;
  for (const Region& region : work.regions) {
    later.write = region.write;
    touch_run({region.address, region.bytes, 0, 1, later}, region, *state_.nothing);
  }
  report_hits();
}

// Other grids may run now, and their order may depend on what this grid has done so far.
void RaceChecker::leave_grid() { state_.host.ran(state_.grid->work, state_.grid->conduct); }

void RaceChecker::start(const GridStart& grid) {
  leave_grid();
  ++state_.now;
  if (!state_.grid.any_under_way() && (grid.work == 0 || state_.global.size() > kGlobalLimit)) {
    state_.global.forget_all();
    state_.operations.clear();
  }
  state_.grid.start(grid.work);
  *state_.grid = GridState{};
  state_.grid->work = grid.work;
  state_.host.started(grid.work);
}

void RaceChecker::resume(uint64_t work) {
  leave_grid();
  state_.grid.resume(work);
}

void RaceChecker::finish(const char*) {
  leave_grid();
  state_.grid.finish();
}

void RaceChecker::accesses(const std::vector<Access>& all) {
  ++state_.now;
  const Access& one = all[0];
  const WarpState& w = state_.warp(one.thread);
  Touch later;
  later.time = state_.now;
  later.warp = w.threads;
  later.work = uint32_t(state_.grid->work);
  later.inst = one.inst;
  later.write = one.region.write;
  later.atomic = one.atomic;
  later.strong = strong(one);
  later.non_coherent = one.non_coherent;
  later.collective = one.collective;
  later.scope = one.order == Order::kVolatile ? Scope::kSys : one.scope;
  const size_t n = all.size();
  for (size_t i = 0; i < n;) {
    const Access& a = all[i];
    const Knowledge* const knowledge = w.knows[a.thread.lane].get();
    const auto follows = [&](size_t j, uint64_t step) {
      const Access& b = all[j];
      return b.region.bytes == a.region.bytes && b.region.cta == a.region.cta &&
             b.region.address == a.region.address + step && w.knows[b.thread.lane].get() == knowledge;
    };
    size_t end = i + 1;
    later.lane0 = uint8_t(a.thread.lane);
    later.lanes = 1u << a.thread.lane;
    later.stride = Touch::kTogether;
    if (!later.strong && (a.region.bytes & (a.region.bytes - 1)) == 0) {
      while (end < n && all[end].thread.lane == a.thread.lane + (end - i) &&
             follows(end, (end - i) * a.region.bytes))
        ++end;
      if (end > i + 1) later.stride = uint8_t(std::countr_zero(a.region.bytes));
    }
    if (!later.strong && end == i + 1 && later.write == (a.digest != 0))
      while (end < n && follows(end, 0) && all[end].digest == a.digest) ++end;
    // Stores of lanes to neighbouring addresses have no byte in common, so their values are not compared.
    later.digest = later.stride == Touch::kTogether ? a.digest : 0;
    for (size_t j = i; j < end; ++j) later.lanes |= 1u << all[j].thread.lane;
    // The bytes of accesses to neighbouring addresses, or all of the same bytes.
    Region region = a.region;
    if (later.stride != Touch::kTogether) region.bytes *= uint32_t(end - i);
    touch(later, region, *knowledge);
    if (later.same_stores() && !later.collective) {
      const uint64_t from = a.region.address;
      hit(later, later, {"warp-same-write", Lack::kInstruction}, a.region, *knowledge, from,
          from + a.region.bytes, {});
    }
    i = end;
  }
  report_hits();
  if (later.strong)
    for (const Access& a : all) publish(a);
  else if (later.write && !state_.grid->published.empty())
    for (const Access& a : all)
      state_.grid->published.erase(
          {a.region.memory, a.region.memory == Memory::kShared ? a.region.cta : 0, a.region.address});
}

// Checks that the owner of shared or tensor memory has begun and has not left.
bool RaceChecker::touchable(const Touch& later, const Region& region, const Knowledge& knowledge) {
  if (region.memory == Memory::kGlobal || thread_of(later.warp, 0).cta == region.cta) return true;
  const auto at = state_.grid->ctas.find(region.cta);
  const bool left = at != state_.grid->ctas.end() && at->second.exited;
  const bool begun =
      region.memory == Memory::kTensor || state_.begun(region.cta, thread_of(later.warp, 0).cta, knowledge);
  if (begun && !left) return true;
  const Verdict verdict =
      left ? Verdict{"exit-access", Lack::kNothing} : Verdict{"cluster-start", Lack::kStart};
  Touch owner;
  owner.warp = component(Part::kThreads, region.cta << 8);
  hit(owner, later, verdict, region, *state_.nothing, region.address, region.address + region.bytes, {});
  return !left;
}

void RaceChecker::touch(const Touch& later, const Region& region, const Knowledge& knowledge) {
  if (!touchable(later, region, knowledge)) return;
  Touch part_of_it = later;
  if (region.memory == Memory::kTensor) {
    part_of_it.mask = LineMask::range(region.lane, region.lanes);
    for (uint32_t column = region.column; column < uint32_t(region.column) + region.columns; ++column)
      touch_line(state_.grid->shadow.tensor(region.cta, column & 511), part_of_it, region, knowledge, column);
  } else {
    const uint64_t from = region.address, to = from + region.bytes;
    for (uint64_t line = from / kLineBytes; line * kLineBytes < to; ++line) {
      part_of_it.mask = part_of_line(line, from, to);
      part_of_it.origin = 0;
      if (part_of_it.stride != Touch::kTogether) {
        // Only some of the lanes side by side are in this line.
        const uint64_t first = std::max(from, line * kLineBytes);
        const uint32_t skipped = uint32_t((first - from) >> part_of_it.stride);
        const uint32_t last =
            uint32_t((std::min(to, (line + 1) * kLineBytes) - 1 - from) >> part_of_it.stride);
        part_of_it.lane0 = uint8_t(later.lane0 + skipped);
        const uint32_t width = last - skipped + 1;
        part_of_it.lanes = (width == 32 ? kAllLanes : ((1u << width) - 1)) << part_of_it.lane0;
        part_of_it.origin =
            int16_t(int64_t(from + (uint64_t(skipped) << part_of_it.stride)) - int64_t(line * kLineBytes));
      }
      if (region.memory == Memory::kShared)
        touch_line(state_.grid->shadow.shared(region.cta, uint32_t(line)), part_of_it, region, knowledge,
                   line * kLineBytes);
      else touch_line(state_.global.line(line), part_of_it, region, knowledge, line * kLineBytes);
    }
    if (region.memory == Memory::kGlobal) compare_with_runs(later, region, knowledge);
  }
}

void RaceChecker::touch_line(Line& line, const Touch& later, const Region& region, const Knowledge& knowledge,
                             uint64_t base) {
  const uint64_t step = region.memory == Memory::kTensor ? 0 : 1;
  const auto compare = [&](const Touch& earlier) {
    if (later.operation != nullptr && earlier.operation == later.operation) return;
    for (const Verdict& verdict : judge(state_, earlier, later, knowledge, region)) {
      if (verdict.rule == nullptr) continue;
      const LineMask common = earlier.mask & later.mask;
      hit(earlier, later, verdict, region, knowledge, base + step * common.first(),
          base + step * common.last() + 1, common);
    }
  };
  line.overtaken.for_each(later.mask, [&](const Touch& earlier) {
    const bool both_wide = earlier.scope >= Scope::kGpu && later.scope >= Scope::kGpu;
    if (later.strong && both_wide && earlier.mask == later.mask) return;
    // A thread that has read the stored value follows the store even without a fence (PTX ISA, Causality
    // order).
    if (!knowledge.cause.knows(earlier.warp, earlier.lanes, earlier.time)) compare(earlier);
  });
  if (later.write) {
    uint32_t same = 0;  // lanes that stored the same
    if (!later.strong && !line.overtaken.empty()) line.overtaken.cut(later.mask);
    line.writes.cut(later.mask, [&](const Touch& earlier) {
      compare(earlier);
      if (stores_the_same(earlier, later)) same |= earlier.lanes;
      if (earlier.strong && later.strong && overtakes(state_, earlier, later, knowledge, region))
        line.overtaken.add(earlier);
    });
    line.reads.cut(later.mask, compare);
    line.writes.add(later).lanes |= same;
  } else {
    line.writes.for_each(later.mask, compare);
    const bool crowded = line.reads.size() >= kCrowded;
    line.reads.replace_within(later.mask, [&](const Touch& earlier) {
      return (crowded || earlier.warp == later.warp) && dominated(earlier, later, knowledge, state_.host);
    });
    line.reads.add(later);
  }
}

void RaceChecker::hit(const Touch& earlier, const Touch& later, const Verdict& verdict, const Region& region,
                      const Knowledge& knowledge, uint64_t from, uint64_t to, LineMask mask) {
  // A kernel that breaks a rule with thousands of operations does so at only a few places of the program.
  if (reported_.contains({&rule(verdict.rule), earlier.inst, later.inst})) return;
  std::vector<size_t>& alike =
      alike_[{verdict.rule, earlier.inst, earlier.operation, region.memory, region.cta}];
  for (const size_t i : alike) {
    Hit& h = hits_[i];
    if (from > h.to || h.from > to) continue;
    h.from = std::min(h.from, from);
    h.to = std::max(h.to, to);
    return;
  }
  alike.push_back(hits_.size());
  hits_.push_back({earlier, verdict, from, to, mask, later, region, &knowledge});
}

void RaceChecker::compare_with_runs(const Touch& later, const Region& region, const Knowledge& knowledge) {
  for (uint64_t at = region.address, end = at + region.bytes; at < end; at = (at | 0xFFFF) + 1) {
    const std::vector<Runs>* runs = state_.global.runs_of(at);
    if (runs == nullptr) continue;
    for (const Runs& run : *runs) {
      if (!(later.write || run.touch.write)) continue;
      if (run.touch.operation != nullptr && run.touch.operation == later.operation) continue;
      const auto [from, to] = run.overlap(region.address, end);
      if (from == to) continue;
      for (const Verdict& verdict : judge(state_, run.touch, later, knowledge, region))
        if (verdict.rule != nullptr) hit(run.touch, later, verdict, region, knowledge, from, to, {});
    }
  }
}

void RaceChecker::touch_run(const Runs& run, const Region& region, const Knowledge& knowledge) {
  for (uint64_t i = 0; i < run.count; ++i) {
    const uint64_t from = run.address + i * run.stride, to = from + run.bytes;
    for (uint64_t line = from / kLineBytes; line * kLineBytes < to; ++line) {
      const Line* touches = state_.global.find(line);
      if (touches == nullptr) continue;
      const LineMask mask = part_of_line(line, from, to);
      touches->for_each(mask, [&](const Touch& earlier) {
        if (!(earlier.write || run.touch.write)) return;
        const LineMask common = earlier.mask & mask;
        Touch later = run.touch;
        later.mask = mask;
        for (const Verdict& verdict : judge(state_, earlier, later, knowledge, region))
          if (verdict.rule != nullptr)
            hit(earlier, later, verdict, region, knowledge, line * kLineBytes + common.first(),
                line * kLineBytes + common.last() + 1, common);
      });
    }
  }
  Region whole = region;
  whole.address = run.address;
  whole.bytes = uint32_t(run.bytes);
  if (state_.global.host_wrote()) compare_with_runs(run.touch, whole, knowledge);
  state_.global.add_runs(run);
}

// Gathers the reads of global memory by an asynchronous operation into strided runs, and touches those.
void RaceChecker::touch_runs(const Touch& later, const std::vector<Region>& regions,
                             const Knowledge& knowledge) {
  std::vector<Runs> runs;
  for (const Region& r : regions) {
    if (r.memory != Memory::kGlobal || r.write) continue;
    if (!runs.empty() && runs.back().bytes == r.bytes) {
      Runs& run = runs.back();
      if (run.count == 1 && r.address > run.address) run.stride = r.address - run.address;
      if (run.stride != 0 && r.address == run.address + run.count * run.stride) {
        ++run.count;
        continue;
      }
    }
    runs.push_back({r.address, r.bytes, 0, 1, later});
  }
  Region region;
  for (const Runs& run : runs) {
    region.address = run.address;
    region.bytes = uint32_t(run.bytes);
    touch_run(run, region, knowledge);
  }
}

void RaceChecker::find_same_stores(const AsyncIssue& issue, AsyncOperation& op) {
  if (issue.instruction == 0) return;
  std::vector<BulkStore>& stores = state_.grid->stores;
  if (state_.grid->store_instruction != issue.instruction) stores.clear();
  state_.grid->store_instruction = issue.instruction;
  auto same = std::find_if(stores.begin(), stores.end(), [&](const BulkStore& store) {
    return store.reads == issue.reads && store.writes == issue.writes;
  });
  if (same == stores.end()) same = stores.insert(same, {&op, 0, issue.reads, issue.writes});
  op.same_store = same->first;
  op.same_lanes = same->lanes;
  same->lanes |= op.lanes;
}

void RaceChecker::issue(const AsyncIssue& issue) {
  ++state_.now;
  WarpState& w = state_.warp(issue.thread);
  AsyncOperation& op = state_.operations.emplace_back();
  state_.grid->by_id[issue.id] = &op;
  const uint32_t lane = issue.thread.lane;
  const Knowledge& knowledge = *w.knows[lane];
  op.kind = issue.kind;
  op.id = issue.id;
  op.thread = issue.thread;
  op.mask = issue.mask;
  op.issued = state_.now;
  op.group = issue.cta_group;
  op.inst = issue.inst;
  op.lanes = 1u << lane;
  op.cause = knowledge.cause;
  op.cause.raise(w.threads, 1u << lane, state_.now);
  const uint64_t number = warp_number(issue.thread);
  switch (issue.kind) {
    case Kind::kBulkStore:
    case Kind::kTensorStore:
      op.done = component(Part::kBulkDone, number);
      op.sources = component(Part::kBulkRead, number);
      w.bulk_lanes |= op.lanes;
      find_same_stores(issue, op);
      break;
    case Kind::kCpAsync:
      op.done = component(Part::kCpAsync, number);
      w.copy_lanes |= op.lanes;
      break;
    case Kind::kMma:
    case Kind::kTmemCopy:
    case Kind::kCommit:
      op.done = component(issue.cta_group == 2 ? Part::kTensor2 : Part::kTensor1, number);
      break;
    case Kind::kTmemLoad:
    case Kind::kTmemStore:
      op.done = component(issue.kind == Kind::kTmemLoad ? Part::kTensorLd : Part::kTensorSt, number);
      op.lanes = kAllLanes;
      break;
    case Kind::kWgmma:
      op.done = component(Part::kWgmma, number);
      op.lanes = kAllLanes;
      w.wgmma_issued.push_back(op.issued);
      break;
    default: break;
  }
  if (issue.kind == Kind::kCommit) {
    op.complete_before = knowledge.happens_before.completions();
    state_.grid->commits[queue_lane(op.done, lane)].push_back({op.issued, &op});
  }
  for (const AsyncIssue::Signal& s : issue.barriers) {
    BarrierState* b = state_.barrier(s.barrier);
    op.signals.push_back({s.barrier, b == nullptr ? 0 : b->id, s.bytes, 0, false});
    if (b != nullptr)
      check_init(*b, s.barrier, {issue.thread, op.mask, op.id, op.inst}, knowledge,
                 !op.generic() && !op.is(Kind::kTryCancel));  // which takes the mbarrier by the generic proxy
  }
  for (const Region& r : issue.writes)
    if (r.memory == Memory::kTensor) {
      op.accumulator = r;
      break;
    }
  issue_regions(issue, op, knowledge);
  report_hits();
}

void RaceChecker::issue_regions(const AsyncIssue& issue, const AsyncOperation& op,
                                const Knowledge& knowledge) {
  Touch later;
  later.time = op.issued;
  later.inst = op.inst;
  later.operation = &op;
  later.warp = threads_of(op.thread);
  later.work = uint32_t(state_.grid->work);
  later.lanes = op.lanes;
  later.lane0 = uint8_t(op.thread.lane);
  if (issue.map != nullptr && issue.map_address != 0) {
    Region map;
    map.address = issue.map_address;
    map.bytes = kLineBytes;
    later.proxy = Proxy::kTensormap;
    touch_run({map.address, map.bytes, 0, 1, later}, map, knowledge);
  }
  const bool runs = issue.kind != Kind::kCpAsync;
  if (runs && !issue.reads.empty()) {
    later.proxy = proxy_of(issue.kind, Memory::kGlobal);
    touch_runs(later, issue.reads, knowledge);
  }
  for (const Region& r : issue.reads) {
    if (runs && r.memory == Memory::kGlobal) continue;
    if (r.memory == Memory::kTensor && r.cta == op.accumulator.cta && r.column == op.accumulator.column &&
        r.columns == op.accumulator.columns && r.lanes == op.accumulator.lanes)
      continue;  // the accumulator: its write says more
    later.proxy = proxy_of(issue.kind, r.memory);
    touch(later, r, knowledge);
  }
  later.write = true;
  for (const Region& r : issue.writes) {
    later.proxy = proxy_of(issue.kind, r.memory);
    touch(later, r, knowledge);
  }
}

void RaceChecker::land(const AsyncLanding& landing) {
  if (landing.step != AsyncLanding::Step::kComplete) return;
  if (AsyncOperation* op = state_.operation(landing.id))
    for (AsyncOperation::Signal& s : op->signals) s.landed = true;
}

// Strong accesses pass knowledge through the place they write and read.
void RaceChecker::publish(const Access& a) {
  WarpState& w = state_.warp(a.thread);
  const uint32_t lane = 1u << a.thread.lane;
  const auto key =
      std::tuple(a.region.memory, a.region.memory == Memory::kShared ? a.region.cta : 0, a.region.address);
  const Scope scope = a.order == Order::kVolatile ? Scope::kSys : a.scope;
  const auto at = state_.grid->published.find(key);
  const KnowledgePtr before = w.knows[a.thread.lane];
  if (at != state_.grid->published.end() && (!a.region.write || a.atomic)) {
    const Publication& publication = at->second;
    state_.update(w, lane, [&](Knowledge& knowledge, uint32_t) {
      if (!scopes_meet(state_, publication.cta, publication.scope, a.thread.cta, scope))
        knowledge.acquire_narrow(publication.by_release, false);
      else if (acquires(a.order)) knowledge.acquire(publication.by_release);
      else knowledge.park(publication.by_release);
    });
  }
  if (!a.region.write) return;
  Knowledge out = releases(a.order) ? before->released(w.threads, lane, state_.now)
                                    : before->released_relaxed(scope, w.threads, lane, state_.now);
  Publication& publication = state_.grid->published[key];
  if (a.atomic) publication.by_release.acquire(out);  // a read-modify-write continues what it read
  else publication.by_release = std::move(out);
  publication.cta = a.thread.cta;
  publication.scope = scope;
}

Stamp RaceChecker::now(const Thread& thread) const { return {threads_of(thread), thread.lane, state_.now}; }

bool RaceChecker::ordered(const Stamp& stamp, const Thread& thread) const {
  if (stamp.thread == threads_of(thread) && stamp.lane == thread.lane) return stamp.time <= state_.now;
  const auto cta = state_.grid->ctas.find(thread.cta);
  if (cta == state_.grid->ctas.end() || thread.warp >= cta->second.warps.size()) return false;
  const auto& w = cta->second.warps[thread.warp];
  return w && w->knows[thread.lane]->cause.knows(stamp.thread, 1u << stamp.lane, stamp.time);
}

}  // namespace sim
