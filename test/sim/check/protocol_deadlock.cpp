// protocol_deadlock.cpp -- see the header. Who can end a wait is inferred from the past: the warps that
// arrived at the barrier, or delivered to it, in earlier phases and not in this one.
#include "sim/check/protocol_deadlock.h"

#include <algorithm>
#include <utility>

#include "sim/check/protocol_text.h"
#include "sim/decode/program.h"

namespace sim::protocol {

constexpr size_t kMaxLines = 64;

static bool has_qualifier(const Inst* inst, const char* qualifier) {
  if (inst == nullptr || inst->statement == nullptr) return false;
  const auto& q = inst->statement->qualifiers;
  return std::find(q.begin(), q.end(), qualifier) != q.end();
}

// Returns what each warp gave to a phase.
template <class Amount>
static std::map<std::pair<uint64_t, uint32_t>, const Contribution*> givers(const PhaseRecord& phase,
                                                                           Amount amount) {
  std::map<std::pair<uint64_t, uint32_t>, const Contribution*> out;
  for (const Contribution& c : phase.contributions)
    if (amount(c) != 0) out.emplace(std::pair{c.by.thread.cta, c.by.thread.warp}, &c);
  return out;
}

static std::string warp_name(uint64_t cta, uint32_t warp) {
  return "CTA " + std::to_string(cta) + " warp " + std::to_string(warp);
}

void DeadlockExplainer::start(uint32_t threads_per_cta) {
  threads_ = threads_per_cta;
  warps_.clear();
  ctas_.clear();
  clusters_.clear();
  spins_.clear();
}

void DeadlockExplainer::Meeting::arrive(uint64_t in, const WarpId& who, uint32_t lanes) {
  if (in > generation) leave(in - 1);
  here[who] |= lanes;
}

// The first thread that leaves ends the generation for all threads.
void DeadlockExplainer::Meeting::leave(uint64_t from) {
  if (from < generation) return;
  generation = from + 1;
  if (!here.empty()) before = std::exchange(here, {});
}

void DeadlockExplainer::clear(const SyncEvent& event) {
  const auto it = warps_.find({event.thread.cta, event.thread.warp});
  if (it == warps_.end()) return;
  auto& waiting = it->second.waiting;
  for (Waiting& w : waiting) w.lanes &= ~event.mask;
  std::erase_if(waiting, [](const Waiting& w) { return w.lanes == 0; });
}

void DeadlockExplainer::set(Waiting::For what, const SyncEvent& event) {
  clear(event);
  auto& waiting = warps_[{event.thread.cta, event.thread.warp}].waiting;
  for (Waiting& w : waiting)
    if (w.what == what && w.event.inst == event.inst && w.event.mbarrier == event.mbarrier &&
        w.event.object == event.object) {
      w.lanes |= event.mask;
      return;
    }
  waiting.push_back({what, event.mask, event});
}

void DeadlockExplainer::sync(const SyncEvent& event) {
  using Kind = SyncEvent::Kind;
  const WarpId who{event.thread.cta, event.thread.warp};
  switch (event.kind) {
    case Kind::kCtaStart:
      ctas_[event.thread.cta].cluster = uint64_t(event.amount);
      for (uint32_t first = 0; first < threads_; first += 32)
        warps_[{event.thread.cta, first / 32}].live =
            threads_ - first >= 32 ? 0xFFFFFFFF : (1u << (threads_ - first)) - 1;
      break;
    case Kind::kCtaExit:
      ctas_.erase(event.thread.cta);
      warps_.erase(warps_.lower_bound({event.thread.cta, 0}), warps_.lower_bound({event.thread.cta + 1, 0}));
      break;
    case Kind::kExit:
      clear(event);
      if (const auto it = warps_.find(who); it != warps_.end()) it->second.live &= ~event.mask;
      break;
    case Kind::kMbarrierTest: set(Waiting::For::kMbarrier, event); break;
    case Kind::kBarrierArrive: {
      Meeting& meeting = ctas_[event.cta].named[event.object];
      meeting.arrive(event.phase, who, event.mask);
      meeting.asked = event.amount;
      if (!has_qualifier(event.inst, "arrive")) set(Waiting::For::kNamedBarrier, event);
      break;
    }
    case Kind::kClusterArrive:
      clusters_[ctas_[event.thread.cta].cluster].arrive(event.phase, who, event.mask);
      set(Waiting::For::kClusterBarrier, event);
      break;
    case Kind::kBarrierLeave:
      clear(event);
      ctas_[event.cta].named[event.object].leave(event.phase);
      break;
    case Kind::kClusterWait:
      clear(event);
      clusters_[ctas_[event.thread.cta].cluster].leave(event.phase);
      break;
    case Kind::kMbarrierWait: clear(event); break;
    case Kind::kTmemAsk: set(Waiting::For::kColumns, event); break;
    case Kind::kTmemAlloc:
    case Kind::kTmemDealloc:
      clear(event);
      if (event.partner) {
        SyncEvent other = event;
        other.thread = *event.partner;
        clear(other);
      }
      if (event.kind == Kind::kTmemAlloc) ctas_[event.cta].columns[event.object] = event;
      else ctas_[event.cta].columns.erase(event.object);
      break;
    default: break;
  }
}

void DeadlockExplainer::explain_mbarrier(const Waiting& waiting, Reason& out) const {
  out.has_mbarrier = true;
  out.mbarrier = waiting.event.mbarrier;
  const MbarrierRecord* barrier = mbarriers_.find(out.mbarrier);
  if (barrier == nullptr) {
    out.what += "waits for " + name(out.mbarrier) + ", of which no initialisation was seen";
    return;
  }
  const PhaseRecord& open = barrier->open();
  out.what += "waits for phase " + std::to_string(barrier->phase) + " of " + name(out.mbarrier);
  const int64_t arrivals = barrier->pending, bytes = barrier->tx;
  std::string lacking;
  if (arrivals > 0) lacking = plural(arrivals, "arrival");
  if (bytes > 0) lacking += (lacking.empty() ? "" : " and ") + plural(bytes, "byte");
  if (!lacking.empty()) out.what += ", which lacks " + lacking;
  if (bytes < 0) out.what += "; " + plural(-bytes, "byte") + " were delivered that nobody expected";
  out.lines.push_back(phase_line(*barrier, open));
  for (std::string& line : contribution_lines(open)) out.lines.push_back(std::move(line));

  // Finds which warps contributed to the last phase but not to this one.
  const auto missing = [&](const char* what, const auto& amount) {
    const PhaseRecord* last = barrier->before_open();
    if (last == nullptr) return;
    const auto now = givers(open, amount);
    for (const auto& [warp, c] : givers(*last, amount)) {
      if (now.contains(warp)) continue;
      out.lacks.push_back({warp.first, warp.second});
      if (out.missing.empty())
        out.missing = plural(amount(*c), what) + " of " + warp_name(warp.first, warp.second) + " at " +
                      place(c->by.inst) + ", which phase " + std::to_string(last->number) + " had";
      out.lines.push_back("phase " + std::to_string(last->number) + " had " + plural(amount(*c), what) +
                          " of " + warp_name(warp.first, warp.second) + " at " + place(c->by.inst) +
                          ", this one has none of it");
    }
  };
  if (arrivals > 0) missing("arrival", [](const Contribution& c) { return c.arrivals; });
  if (bytes > 0) missing("byte", [](const Contribution& c) { return c.delivered; });
  int64_t in_flight = 0;
  for (const auto& [id, copy] : barrier->copies) in_flight += copy.left;
  if (bytes > in_flight && out.missing.empty())
    out.missing = plural(bytes - in_flight, "byte") + ", which no copy in flight brings";
  if (bytes > in_flight)
    out.lines.push_back("no copy in flight brings the missing " + plural(bytes - in_flight, "byte"));

  if (arrivals > 0 && out.missing.empty())
    out.missing = plural(arrivals, "arrival") + " at " + name(out.mbarrier);
  hint(*barrier, waiting, out);
}

// Adds a hint when the parities fit a known mistake.
void DeadlockExplainer::hint(const MbarrierRecord& barrier, const Waiting& waiting, Reason& out) const {
  const int64_t seen = barrier.seen(waiting.event.thread);
  const PhaseRecord& open = barrier.open();
  if (barrier.phase == 0 && open.arrivals == 0 && open.expected == 0 && open.delivered == 0) {
    out.lines.emplace_back("nobody ever arrived there");
    if (seen == MbarrierRecord::kNever)
      out.advice =
          "a wait for a stage that is free at first has to ask for parity 1; "
          "a wait for data asks for parity 0, and whoever brings the data never did";
  }
  const int64_t next = seen < 0 ? 0 : seen + 1;
  if (!waiting.event.has_parity || next + 1 != int64_t(barrier.phase)) return;
  const std::string asks = ", phase " + std::to_string(next) + " is complete, and parity " +
                           std::to_string(waiting.event.parity) + " asks for the one after it: ";
  if (seen < 0) out.lines.push_back("it saw no phase yet" + asks + "a consumer starts with parity 0");
  else out.lines.push_back("it last saw phase " + std::to_string(seen) + asks + "parity not flipped?");
}

void DeadlockExplainer::explain_meeting(const Meeting* meeting, const std::vector<WarpId>& expected,
                                        Reason& out) const {
  std::string absent;
  for (const WarpId& warp : expected) {
    const auto live = warps_.find(warp);
    if (live == warps_.end() || live->second.live == 0) continue;
    const auto here = meeting == nullptr ? decltype(meeting->here.end()){} : meeting->here.find(warp);
    if (meeting != nullptr && here != meeting->here.end() && (live->second.live & ~here->second) == 0)
      continue;
    absent += (absent.empty() ? "" : ", ") + warp_name(warp.cta, warp.warp);
    out.lacks.push_back(warp);
  }
  if (absent.empty()) return;
  out.lines.push_back("not there: " + absent);
  out.missing = "the arrival of " + absent;
}

void DeadlockExplainer::explain_named(const Waiting& waiting, Reason& out) const {
  const uint64_t cta = waiting.event.cta;
  const auto found = ctas_.find(cta);
  const Meeting& meeting = found->second.named.at(waiting.event.object);
  int64_t arrived = 0;
  std::string who;
  for (const auto& [warp, lanes] : meeting.here) {
    arrived += 32;
    who += (who.empty() ? "" : ", ") + std::to_string(warp.warp);
  }
  out.what += "waits at barrier " + std::to_string(waiting.event.object) + " for " +
              (meeting.asked == 0 ? std::string("all threads") : plural(meeting.asked, "thread")) + ", " +
              std::to_string(arrived) + " are there";
  out.lines.push_back("there: warps " + who);
  std::vector<WarpId> expected;
  if (meeting.asked == 0)
    for (auto it = warps_.lower_bound({cta, 0}); it != warps_.end() && it->first.cta == cta; ++it)
      expected.push_back(it->first);
  else
    for (const auto& [warp, lanes] : meeting.before) expected.push_back(warp);
  explain_meeting(&meeting, expected, out);
  if (out.missing.empty() && meeting.asked > arrived)
    out.missing = plural(meeting.asked - arrived, "thread") + " at barrier " +
                  std::to_string(waiting.event.object) + " of CTA " + std::to_string(cta);
}

void DeadlockExplainer::explain_cluster(Reason& out) const {
  const auto own = ctas_.find(out.who.cta);
  const uint64_t cluster = own == ctas_.end() ? 0 : own->second.cluster;
  out.what += "waits for the cluster barrier";
  std::vector<WarpId> expected;
  for (const auto& [id, warp] : warps_)
    if (const auto cta = ctas_.find(id.cta); cta != ctas_.end() && cta->second.cluster == cluster)
      expected.push_back(id);
  const auto meeting = clusters_.find(cluster);
  explain_meeting(meeting == clusters_.end() ? nullptr : &meeting->second, expected, out);
}

bool DeadlockExplainer::asks_for_columns(uint64_t cta) const {
  for (auto it = warps_.lower_bound({cta, 0}); it != warps_.end() && it->first.cta == cta; ++it)
    for (const Waiting& waiting : it->second.waiting)
      if (waiting.what == Waiting::For::kColumns) return true;
  return false;
}

void DeadlockExplainer::explain_columns(const Waiting& waiting, Reason& out) const {
  const SyncEvent& event = waiting.event;
  const std::string request = has_qualifier(event.inst, "dealloc") ? "tcgen05.dealloc" : "tcgen05.alloc";
  out.what += "waits in " + request + " of " + plural(event.amount, "column");
  if (event.partner && !asks_for_columns(event.partner->cta)) {
    const uint64_t peer = event.partner->cta;
    for (auto it = warps_.lower_bound({peer, 0}); it != warps_.end() && it->first.cta == peer; ++it)
      if (it->second.live != 0) out.lacks.push_back(it->first);
    const std::string name = "CTA " + std::to_string(peer);
    out.what += " for " + name + ", the other one of its pair, which " +
                (out.lacks.empty() ? "has left without asking" : "never asked");
    out.lines.push_back("both CTAs of a pair execute " + request + "; no warp of " + name + " did");
    out.missing = request + " by a warp of " + name;
    return;
  }
  const auto own = ctas_.find(out.who.cta);
  int64_t held = 0;
  if (own != ctas_.end())
    for (const auto& [first, by] : own->second.columns) {
      held += by.amount;
      out.lacks.push_back({by.thread.cta, by.thread.warp});
      out.lines.push_back(name(by.thread) + " allocated columns " + std::to_string(first) + ".." +
                          std::to_string(int64_t(first) + by.amount - 1) + " at " + place(by.inst));
    }
  out.what += " of tensor memory, of which its CTA holds " + std::to_string(held) + " of 512";
  out.missing = "tcgen05.dealloc of columns that the CTA holds";
}

// If nothing changes, every warp sleeps or runs in a circle, so nobody will write what a warp in a circle
// reads.
DeadlockExplainer::Reason DeadlockExplainer::reason(const Spin& spin) {
  Reason out;
  out.who = {spin.thread.cta, spin.thread.warp};
  out.subject = name(spin.thread, spin.mask);
  out.site = {spin.thread, spin.mask, 0, spin.inst};
  out.region = spin.region;
  if (!spin.region) {
    out.what = "runs in a circle and reads nothing there that another thread could write";
    out.missing = "an end of the loop that its own thread brings about";
    return out;
  }
  const Region& r = *spin.region;
  const std::string bytes = (r.memory == Memory::kShared ? "shared " : "global ") +
                            range(r.address, r.bytes) +
                            (r.memory == Memory::kShared ? " of CTA " + std::to_string(r.cta) : "");
  out.what = "reads " + bytes + " again and again, which nobody will write: every other thread has left, " +
             "sleeps, or runs in a circle, too";
  out.missing = "a store to " + bytes + " by a thread that waits for nothing";
  return out;
}

DeadlockExplainer::Reason DeadlockExplainer::reason(const WarpId& who, const Waiting& waiting) const {
  Reason out;
  out.who = who;
  out.site = {waiting.event.thread, waiting.lanes, 0, waiting.event.inst};
  const bool one = (waiting.lanes & (waiting.lanes - 1)) == 0;
  out.subject = warp_name(who.cta, who.warp) +
                (one ? " lane " + std::to_string(waiting.event.thread.lane) : std::string());
  switch (waiting.what) {
    case Waiting::For::kMbarrier: explain_mbarrier(waiting, out); break;
    case Waiting::For::kNamedBarrier: explain_named(waiting, out); break;
    case Waiting::For::kClusterBarrier: explain_cluster(out); break;
    case Waiting::For::kColumns: explain_columns(waiting, out); break;
  }
  return out;
}

// Returns the first cycle of warps that wait for what the next one brings, as a closed walk; empty when there
// is none.
std::vector<DeadlockExplainer::WarpId> DeadlockExplainer::cycle(const std::vector<Reason>& reasons) const {
  std::map<WarpId, std::vector<WarpId>> edges;
  for (const Reason& r : reasons)
    for (const WarpId& to : r.lacks)
      if (to != r.who) edges[r.who].push_back(to);
  std::set<WarpId> done;
  std::vector<WarpId> path;
  const auto walk = [&](const auto& self, const WarpId& at) -> bool {
    const bool closed = std::find(path.begin(), path.end(), at) != path.end();
    path.push_back(at);
    if (closed) {
      path.erase(path.begin(), std::find(path.begin(), path.end(), at));
      return true;
    }
    if (done.insert(at).second)
      for (const WarpId& to : edges[at])
        if (self(self, to)) return true;
    path.pop_back();
    return false;
  };
  for (const Reason& r : reasons)
    if (walk(walk, r.who)) return path;
  return {};
}

// Lists warps of a CTA that wait for the same at the same place as one entry; the CTA of the headline comes
// first.
void DeadlockExplainer::list(const std::vector<Reason>& reasons, uint64_t first_cta, Finding& out) {
  const auto same = [](const Reason& a, const Reason& b) {
    return a.who.cta == b.who.cta && a.what == b.what && a.site.inst == b.site.inst && a.lines == b.lines;
  };
  std::set<std::string> told;
  for (const bool first : {true, false})
    for (size_t i = 0; i < reasons.size(); ++i) {
      const Reason& r = reasons[i];
      const auto alike = [&](const Reason& other) { return same(r, other); };
      const auto begin = reasons.begin(), here = begin + std::ptrdiff_t(i);
      if ((r.who.cta == first_cta) != first || std::any_of(begin, here, alike)) continue;
      std::string subject = r.subject;
      if (std::any_of(here + 1, reasons.end(), alike)) {
        subject = "CTA " + std::to_string(r.who.cta) + " warps " + std::to_string(r.who.warp);
        for (auto it = here + 1; it != reasons.end(); ++it)
          if (alike(*it)) subject += ", " + std::to_string(it->who.warp);
        subject += ": each";
      }
      out.notes.push_back(subject + " " + r.what + " at " + place(r.site.inst));
      for (const std::string& line : r.lines) out.notes.push_back("  " + line);
      if (!r.advice.empty() && told.insert(r.advice).second) out.notes.push_back("  " + r.advice);
    }
}

void DeadlockExplainer::explain() {
  std::vector<Reason> reasons;
  for (const auto& [who, warp] : warps_)
    for (const Waiting& waiting : warp.waiting) reasons.push_back(reason(who, waiting));
  for (const Spin& spin : spins_) reasons.push_back(reason(spin));
  if (reasons.empty()) {
    Finding out = finding("deadlock", "nothing can move, and no wait for a barrier was seen", {});
    out.every_schedule = false;
    sink_(std::move(out));
    return;
  }
  const std::vector<WarpId> ring = cycle(reasons);
  // The headline is a wait at an mbarrier whose bytes do not add up; else a wait in a cycle; else a wait for
  // warps that wait for nothing themselves; else a wait that nobody is known to end; else any wait. Among
  // several of one kind a wait at an mbarrier is preferred, because a barrier of threads only waits for
  // threads that are held elsewhere.
  const auto waits = [&](const WarpId& who) {
    return std::any_of(reasons.begin(), reasons.end(), [&](const Reason& r) { return r.who == who; });
  };
  const auto blame = [&](const Reason& r) {
    const MbarrierRecord* barrier = r.has_mbarrier ? mbarriers_.find(r.mbarrier) : nullptr;
    if (barrier != nullptr && barrier->tx != 0) return 0;
    if (std::find(ring.begin(), ring.end(), r.who) != ring.end()) return r.has_mbarrier ? 1 : 2;
    const bool root = std::none_of(r.lacks.begin(), r.lacks.end(), waits);
    return (r.lacks.empty() ? 5 : root ? 3 : 7) + (r.has_mbarrier ? 0 : 1);
  };
  const Reason& first = *std::min_element(
      reasons.begin(), reasons.end(), [&](const Reason& a, const Reason& b) { return blame(a) < blame(b); });
  Finding out = finding("deadlock", first.subject + " " + first.what, first.site);
  out.every_schedule = false;  // another schedule may avoid this deadlock and show something else
  out.has_mbarrier = first.has_mbarrier;
  out.mbarrier = first.mbarrier;
  out.has_region = first.region.has_value();
  if (first.region) out.region = *first.region;
  out.missing = first.missing;
  if (!ring.empty()) {
    std::string line = "cycle: ";
    for (size_t i = 0; i < ring.size(); ++i)
      line += (i == 0 ? "" : " -> ") + warp_name(ring[i].cta, ring[i].warp);
    out.notes.push_back(line);
  }
  list(reasons, first.who.cta, out);
  if (out.notes.size() > kMaxLines) {
    const size_t more = out.notes.size() - kMaxLines;
    out.notes.resize(kMaxLines);
    out.notes.push_back("... and " + plural(int64_t(more), "line"));
  }
  sink_(std::move(out));
}

}  // namespace sim::protocol
