// mbarrier_protocol.cpp -- the history of every mbarrier and the rules over it.
//
// These rules are certain for every schedule. Bytes of a copy count in the phase that is open when they land,
// and a copy may land at once or late. If it can land in another phase than the one it was issued in, no
// expected count is right in both cases. Phase n + 1 must not begin to fill before somebody saw phase n
// complete: otherwise the wait for n may find n + 1 complete as well, whose parity is that of n - 1.
#include "sim/check/mbarrier_protocol.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/check/protocol_text.h"

namespace sim::protocol {

constexpr size_t kKeptPhases = 4;

static std::string phase_name(int64_t phase) {
  return phase == MbarrierRecord::kFresh ? "the phase before the first" : "phase " + std::to_string(phase);
}

int64_t MbarrierRecord::seen(const Thread& thread) const {
  for (const Observer& o : observers)
    if (o.cta == thread.cta && o.warp == thread.warp) return o.seen[thread.lane % 32];
  return kNever;
}

// Lanes of a warp that brought the same at the same place are one line.
std::vector<std::string> contribution_lines(const PhaseRecord& phase) {
  std::vector<std::string> lines;
  const auto& all = phase.contributions;
  const auto alike = [](const Contribution& a, const Contribution& b) {
    return a.by.inst == b.by.inst && a.by.thread.cta == b.by.thread.cta &&
           a.by.thread.warp == b.by.thread.warp && a.commit == b.commit;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    Contribution c = all[i];
    const auto same = [&](const Contribution& other) { return alike(c, other); };
    if (std::any_of(all.begin(), all.begin() + std::ptrdiff_t(i), same)) continue;
    uint32_t lanes = 0;
    c.arrivals = c.expected = c.delivered = 0;
    for (size_t j = i; j < all.size(); ++j) {
      if (!same(all[j])) continue;
      c.arrivals += all[j].arrivals;
      c.expected += all[j].expected;
      c.delivered += all[j].delivered;
      lanes |= 1u << all[j].by.thread.lane;
    }
    std::string line;
    if (c.arrivals != 0) line = plural(c.arrivals, "arrival");
    if (c.expected != 0) line += (line.empty() ? "" : ", ") + plural(c.expected, "byte") + " expected";
    if (c.delivered != 0) line += (line.empty() ? "" : ", ") + plural(c.delivered, "byte") + " delivered";
    if (line.empty()) continue;
    lines.push_back("phase " + std::to_string(phase.number) + ": " + line + " by " +
                    name(c.by.thread, lanes) + " at " + place(c.by.inst));
  }
  return lines;
}

std::string phase_line(const MbarrierRecord& barrier, const PhaseRecord& phase) {
  std::string line = "phase " + std::to_string(phase.number) + ": " + std::to_string(phase.arrivals) +
                     " of " + plural(barrier.count, "arrival");
  if (phase.expected != 0 || phase.delivered != 0)
    line += ", " + plural(phase.expected, "byte") + " expected, " + std::to_string(phase.delivered) +
            " delivered";
  return line;
}

void MbarrierProtocol::start() {
  barriers_.clear();
  commits_.clear();
  observed_commits_.clear();
}

const MbarrierRecord* MbarrierProtocol::find(const MbarrierRef& ref) const {
  const auto it = barriers_.find(mbarrier_key(ref));
  return it == barriers_.end() ? nullptr : &it->second;
}

MbarrierRecord* MbarrierProtocol::live(const MbarrierRef& ref) {
  const auto it = barriers_.find(mbarrier_key(ref));
  return it == barriers_.end() ? nullptr : &it->second;
}

void MbarrierProtocol::report(const char* rule_id, const MbarrierRecord& barrier, const std::string& summary,
                              const Site& later, const PhaseRecord* phase, const Site* earlier,
                              bool every_schedule) {
  Finding out = finding(rule_id, summary, later);
  out.has_mbarrier = true;
  out.mbarrier = barrier.ref;
  out.every_schedule = every_schedule;
  if (earlier != nullptr) {
    out.has_earlier = true;
    out.earlier = *earlier;
  }
  if (phase != nullptr) out.notes = contribution_lines(*phase);
  sink_(std::move(out));
}

Contribution& MbarrierProtocol::contribution(MbarrierRecord& barrier, const Site& by, bool commit) {
  PhaseRecord& phase = barrier.open();
  const uint32_t lane = 1u << by.thread.lane;
  auto lanes = std::find_if(phase.contributors.begin(), phase.contributors.end(), [&](const auto& other) {
    return other.inst == by.inst && other.cta == by.thread.cta && other.warp == by.thread.warp &&
           other.commit == commit;
  });
  if (lanes == phase.contributors.end())
    lanes = phase.contributors.insert(lanes, {by.thread.cta, by.thread.warp, by.inst, commit, 0});
  if ((lanes->mask & lane) != 0)
    for (Contribution& c : phase.contributions)
      if (c.by.inst == by.inst && thread_key(c.by.thread) == thread_key(by.thread) && c.commit == commit) {
        c.by.async_id = std::max(c.by.async_id, by.async_id);
        return c;
      }
  lanes->mask |= lane;
  phase.contributions.push_back({by, 0, 0, 0, commit});
  return phase.contributions.back();
}

void MbarrierProtocol::issue(const AsyncIssue& issue) {
  if (issue.kind == AsyncIssue::Kind::kCommit) commits_[issue.id] = site(issue);
  for (const AsyncIssue::Signal& signal : issue.barriers) {
    MbarrierRecord* barrier = live(signal.barrier);
    if (barrier == nullptr) continue;
    if (issue.kind == AsyncIssue::Kind::kCommit && clocks_ != nullptr)
      check_observed(*barrier, issue.thread, site(issue));
    if (signal.bytes == 0) continue;
    barrier->carries_bytes = true;
    MbarrierRecord::Copy& copy = barrier->copies[issue.id];
    copy.by = site(issue);
    copy.phase = barrier->phase;
    copy.left += signal.bytes;
    const PhaseRecord* last = barrier->before_open();
    if (last == nullptr || last->observed || barrier->early_copy_reported) continue;
    barrier->early_copy_reported = true;
    report("mbarrier-copy-before-observed", *barrier,
           "a copy of " + plural(signal.bytes, "byte") + " is issued for phase " +
               std::to_string(barrier->phase) + " of " + name(barrier->ref) + " although nobody saw phase " +
               std::to_string(last->number) + " complete, which expected " + plural(last->expected, "byte"),
           site(issue), last, last->contributions.empty() ? nullptr : &last->contributions.back().by);
  }
}

void MbarrierProtocol::sync(const SyncEvent& event) {
  using Kind = SyncEvent::Kind;
  switch (event.kind) {
    case Kind::kMbarrierInit: {
      MbarrierRecord barrier;
      barrier.ref = event.mbarrier;
      barrier.init = site(event);
      barrier.count = barrier.pending = event.amount;
      barrier.phases.emplace_back();
      if (const int lanes = std::popcount(event.mask); lanes > 1)
        report("mbarrier-init-by-lanes", barrier,
               plural(lanes, "lane") + " of one mbarrier.init name " + name(event.mbarrier), site(event),
               nullptr);
      barriers_.insert_or_assign(mbarrier_key(event.mbarrier), std::move(barrier));
      return;
    }
    case Kind::kMbarrierInval:
      if (const auto it = barriers_.find(mbarrier_key(event.mbarrier)); it != barriers_.end()) {
        end(it->second, site(event));
        barriers_.erase(it);
      }
      return;
    case Kind::kCtaExit: {
      const auto first = barriers_.lower_bound(mbarrier_key(MbarrierRef{event.thread.cta, 0}));
      const auto last = barriers_.lower_bound(mbarrier_key(MbarrierRef{event.thread.cta + 1, 0}));
      for (auto it = first; it != last; ++it) end(it->second, site(event));
      barriers_.erase(first, last);
      return;
    }
    case Kind::kExit: leaving_ = event.thread.cta; return;
    default: break;
  }
  MbarrierRecord* barrier = live(event.mbarrier);
  if (barrier == nullptr) return;
  switch (event.kind) {
    case Kind::kMbarrierArrive:
    case Kind::kMbarrierArriveDrop:
      for_each_lane(event, [&](const Thread& thread) { arrive(*barrier, event, thread); });
      break;
    case Kind::kMbarrierExpectTx:
      contribution(*barrier, site(event), false).expected += event.bytes;
      barrier->open().expected += event.bytes;
      barrier->tx += event.bytes;
      barrier->carries_bytes = true;
      settle(*barrier, site(event));
      break;
    case Kind::kMbarrierCompleteTx: complete_tx(*barrier, event); break;
    case Kind::kMbarrierWait: wait(*barrier, event); break;
    default: break;
  }
}

void MbarrierProtocol::arrive(MbarrierRecord& barrier, const SyncEvent& event, const Thread& thread) {
  Site by = site(event);
  by.thread = thread;
  by.mask = 1u << thread.lane;
  const bool commit = event.async_id != 0;
  if (const auto it = commits_.find(event.async_id); commit && it != commits_.end()) by = it->second;
  Contribution& c = contribution(barrier, by, commit);
  c.arrivals += event.amount;
  c.expected += event.bytes;
  barrier.open().arrivals += event.amount;
  barrier.open().expected += event.bytes;
  barrier.carries_bytes = barrier.carries_bytes || event.bytes != 0;
  if (!commit || (barrier.before_open() != nullptr && !barrier.before_open()->observed))
    check_observed(barrier, thread, by);
  barrier.pending -= event.amount;
  if (event.kind == SyncEvent::Kind::kMbarrierArriveDrop) barrier.count -= event.amount;
  barrier.tx += event.bytes;
  settle(barrier, by);
}

// An arrival of `thread`, or a commit that it issues, for the open phase has to follow a wait that saw the
// phase before it complete. An arrival that merely came later than such a wait in this run may come before it
// in another run.
void MbarrierProtocol::check_observed(MbarrierRecord& barrier, const Thread& thread, const Site& by) {
  const PhaseRecord* last = barrier.before_open();
  if (last == nullptr || barrier.early_arrival_reported) return;
  const auto follows = [&](const Stamp& seen) { return clocks_->ordered(seen, thread); };
  if (last->observed && (clocks_ == nullptr || std::any_of(last->seen.begin(), last->seen.end(), follows)))
    return;
  barrier.early_arrival_reported = true;
  const std::string where =
      "an arrival in phase " + std::to_string(barrier.phase) + " of " + name(barrier.ref);
  const std::string before = "phase " + std::to_string(last->number) + " complete (arrival count " +
                             std::to_string(barrier.count) + ")";
  if (!last->observed)
    report("mbarrier-arrive-before-observed", barrier, where + " although nobody saw " + before, by, last,
           last->contributions.empty() ? nullptr : &last->contributions.back().by);
  else
    report("mbarrier-arrive-before-observed", barrier,
           where + " need not come after a wait that saw " + before, by, last, &last->seen_by);
}

void MbarrierProtocol::complete_tx(MbarrierRecord& barrier, const SyncEvent& event) {
  Site by = site(event);
  if (const auto found = barrier.copies.find(event.async_id); found != barrier.copies.end()) {
    MbarrierRecord::Copy* copy = &found->second;
    by = copy->by;
    if (copy->phase != barrier.phase && !copy->reported) {
      barrier.bytes_reported = true;
      report("mbarrier-bytes-in-other-phase", barrier,
             plural(event.bytes, "byte") + " of a copy issued in phase " + std::to_string(copy->phase) +
                 " of " + name(barrier.ref) + " count in phase " + std::to_string(barrier.phase),
             by, &barrier.open());
    }
    copy->left -= event.bytes;
    if (copy->left <= 0) barrier.copies.erase(found);
  }
  contribution(barrier, by, false).delivered += event.bytes;
  barrier.open().delivered += event.bytes;
  barrier.carries_bytes = true;
  barrier.tx -= event.bytes;
  settle(barrier, by);
}

// As in the machine, a phase is complete when no arrival is pending and the tx-count is zero.
void MbarrierProtocol::settle(MbarrierRecord& barrier, const Site& by) {
  if (barrier.pending > 0 || barrier.tx != 0) return;
  PhaseRecord& done = barrier.open();
  for (auto& [id, copy] : barrier.copies) {
    if (copy.reported || copy.phase != barrier.phase) continue;
    copy.reported = barrier.bytes_reported = true;
    report("mbarrier-bytes-in-other-phase", barrier,
           "phase " + std::to_string(barrier.phase) + " of " + name(barrier.ref) + " completes with " +
               plural(done.expected, "byte") + " expected while " + plural(copy.left, "byte") +
               " of a copy issued for it have not landed",
           by, &done, &copy.by);
  }
  if (const PhaseRecord* last = barrier.before_open(); last != nullptr && !last->observed)
    check_lost_bytes(barrier, *last, by, "before the next phase completed");
  ++barrier.phase;
  barrier.pending = barrier.count;
  if (barrier.phases.size() == kKeptPhases) barrier.phases.pop_front();
  barrier.phases.emplace_back();
  barrier.open().number = barrier.phase;
}

void MbarrierProtocol::wait(MbarrierRecord& barrier, const SyncEvent& event) {
  MbarrierRecord::Observer* warp = nullptr;
  for (MbarrierRecord::Observer& o : barrier.observers)
    if (o.cta == event.thread.cta && o.warp == event.thread.warp) warp = &o;
  if (warp == nullptr) {
    warp = &barrier.observers.emplace_back();
    warp->cta = event.thread.cta;
    warp->warp = event.thread.warp;
    warp->seen.fill(MbarrierRecord::kNever);
  }
  const int64_t seen = int64_t(barrier.phase) - 1;
  if (seen >= 0) {
    PhaseRecord& done = barrier.phases[barrier.phases.size() - 2];
    if (!done.observed)
      for (const Contribution& c : done.contributions)
        if (c.commit) {
          uint64_t& youngest = observed_commits_[thread_key(c.by.thread)];
          youngest = std::max(youngest, c.by.async_id);
        }
    if (!done.observed) done.seen_by = site(event);
    done.observed = true;
  }
  const uint32_t lanes = event.mask != 0 ? event.mask : 1u << event.thread.lane;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    if (clocks_ != nullptr && seen >= 0 && warp->seen[lane] != seen)
      barrier.before_open()->seen.push_back(clocks_->now({event.thread.cta, event.thread.warp, lane}));
    observe(barrier, event, seen, *warp, lane);
  }
}

void MbarrierProtocol::observe(MbarrierRecord& barrier, const SyncEvent& event, int64_t seen,
                               MbarrierRecord::Observer& warp, uint32_t lane) {
  const int64_t before = warp.seen[lane];
  if (before != MbarrierRecord::kNever && seen > before + 1 && lane == event.thread.lane) {
    bool someone = true;  // saw every phase between
    for (const PhaseRecord& p : barrier.phases)
      if (int64_t(p.number) > before && int64_t(p.number) < seen) someone = someone && p.observed;
    Site earlier{event.thread, 0, 0, warp.by[lane]};
    report(someone ? "mbarrier-phase-skipped" : "mbarrier-phase-lap", barrier,
           name(event.thread) + " waits for parity " + std::to_string(event.parity) + " of " +
               name(barrier.ref) + " and sees phase " + std::to_string(seen) + "; the last it saw was " +
               phase_name(before) + (someone ? "" : ", and nobody saw what lies between"),
           site(event), nullptr, &earlier, false);
  }
  warp.seen[lane] = seen;
  warp.by[lane] = event.inst;
}

void MbarrierProtocol::consume(const MbarrierRef& ref, uint64_t phase, const Site& by, const Region& region) {
  const MbarrierRecord* barrier = find(ref);
  if (barrier == nullptr || phase != 0) return;
  for (const MbarrierRecord::Observer& o : barrier->observers) {
    const uint32_t lane = by.thread.lane % 32;
    if (o.cta != by.thread.cta || o.warp != by.thread.warp || o.seen[lane] != MbarrierRecord::kFresh)
      continue;
    Site earlier{by.thread, 0, 0, o.by[lane]};
    Finding out = finding("mbarrier-fresh-wait",
                          name(by.thread) + " uses bytes of a copy on " + name(ref) +
                              " after a wait that found the barrier fresh: no phase had completed",
                          by);
    out.has_earlier = out.has_region = out.has_mbarrier = true;
    out.earlier = earlier;
    out.region = region;
    out.mbarrier = ref;
    out.missing = "a wait for parity 0: parity 1 is the phase before the first and counts as complete";
    sink_(std::move(out));
    return;
  }
}

void MbarrierProtocol::check_lost_bytes(const MbarrierRecord& barrier, const PhaseRecord& phase,
                                        const Site& by, const char* when) {
  if (phase.observed || phase.delivered == 0) return;
  report("mbarrier-bytes-unobserved", barrier,
         plural(phase.delivered, "byte") + " landed in phase " + std::to_string(phase.number) + " of " +
             name(barrier.ref) + ", which nobody saw complete " + when,
         by, &phase);
}

// The barrier goes out of use, so nobody will wait for its open phase.
void MbarrierProtocol::end(const MbarrierRecord& barrier, const Site& by) {
  if (const PhaseRecord* last = barrier.before_open()) check_lost_bytes(barrier, *last, by, "before its end");
  for (const PhaseRecord& phase : barrier.phases) {
    if (phase.observed) continue;
    for (const Contribution& c : phase.contributions) {
      if (!c.commit) continue;
      const auto seen = observed_commits_.find(thread_key(c.by.thread));
      const bool overtaken = seen != observed_commits_.end() && seen->second > c.by.async_id;
      report(overtaken ? "mbarrier-commit-overtaken" : "mbarrier-commit-unobserved", barrier,
             "a tcgen05.commit of " + name(c.by.thread) + " arrives in phase " +
                 std::to_string(phase.number) + " of " + name(barrier.ref) +
                 ", which nobody saw complete before its end; " +
                 (overtaken ? "only a later commit" : "no later commit") + " of the thread was waited for",
             c.by, nullptr);
    }
  }
  if (barrier.open().arrivals != 0)
    report("mbarrier-open-at-end", barrier,
           name(barrier.ref) + " ends in phase " + std::to_string(barrier.phase) + " with " +
               std::to_string(barrier.open().arrivals) + " of " + plural(barrier.count, "arrival"),
           by, &barrier.open());
}

// If the bytes of a barrier do not add up, there is one cause. If that cause made a phase complete early, a
// finding has said so already.
bool MbarrierProtocol::explain(const char* fault) {
  bool explained = false;
  for (auto& [unused, barrier] : barriers_) {
    const std::string there = "arrived at the mbarrier at shared offset " + hex(barrier.ref.offset) + " than";
    if (barrier.tx == 0 || barrier.ref.cta != leaving_ || std::strstr(fault, there.c_str()) == nullptr)
      continue;
    explained = true;
    if (barrier.bytes_reported) continue;
    Finding out = finding("mbarrier-byte-balance",
                          name(barrier.ref) + " ends with " +
                              (barrier.tx > 0 ? plural(barrier.tx, "byte") + " more expected than arrived"
                                              : plural(-barrier.tx, "byte") + " more arrived than expected") +
                              " in " + phase_line(barrier, barrier.open()),
                          barrier.init);
    out.has_mbarrier = true;
    out.mbarrier = barrier.ref;
    for (const PhaseRecord& phase : barrier.phases)
      for (std::string& line : contribution_lines(phase)) out.notes.push_back(std::move(line));
    sink_(std::move(out));
  }
  return explained;
}

}  // namespace sim::protocol
