// race_state.cpp -- look-ups in the race checker's memory, and the order of the host's work.
#include "sim/check/race_state.h"

#include <algorithm>

namespace sim {

bool AsyncOperation::known(const VectorClock& clock, bool write, const Region& region) const {
  if (done != 0) {
    if (clock.knows(done, lanes, issued)) return true;
    return !write && sources != 0 && clock.knows(sources, lanes, issued);
  }
  if (signals.empty()) return false;
  // A copy to several CTAs signals each on a barrier of its own or of the other CTA of its pair.
  const auto matches = [&](const Signal& s, int how) {
    return how == 0   ? region.memory == Memory::kShared && write && s.ref.cta == region.cta
           : how == 1 ? region.memory == Memory::kShared && write && (s.ref.cta ^ 1) == region.cta
                      : true;
  };
  for (int how = 0; how < 3; ++how) {
    bool any = false, all = true;
    for (const Signal& s : signals) {
      if (!matches(s, how)) continue;
      any = true;
      all = all && s.landed && s.phases != 0 && clock.of(s.barrier) >= s.phases;
    }
    if (any) return all;
  }
  return false;
}

WarpState& RaceState::warp(const Thread& t) {
  CtaState& c = cta(t.cta);
  if (t.warp >= c.warps.size()) c.warps.resize(t.warp + 1);
  auto& slot = c.warps[t.warp];
  if (!slot) {
    slot = std::make_unique<WarpState>();
    slot->threads = threads_of(t);
    slot->knows.fill(nothing);
  }
  return *slot;
}

BarrierState* RaceState::barrier(const MbarrierRef& ref) {
  const auto at = barriers.find({ref.cta, ref.offset});
  return at == barriers.end() ? nullptr : &at->second;
}

AsyncOperation* RaceState::operation(uint64_t id) {
  const auto at = by_id.find(id);
  return at == by_id.end() ? nullptr : at->second;
}

// Returns the work that need not be over when `predecessor` has come as far as the work after it asks for at
// the moment. A programmatic launch starts when its predecessor lets it, and its griddepcontrol.wait waits
// for that one alone: what was before it is over only if it waited itself. Any other work waits for all of
// its stream.
const std::vector<uint64_t>& HostOrder::beside_predecessor(const Work& predecessor, bool programmatic,
                                                           Moment moment) const {
  if (!programmatic || moment == kPassed || !predecessor.programmatic) return predecessor.beside[kPassed];
  const bool waited = moment == kStart ? predecessor.conduct.waits && predecessor.conduct.waits_before_launch
                                       : predecessor.conduct.waits;
  return predecessor.beside[waited ? kWaited : kStart];
}

// Returns earlier work that need not be over at the moment, which is what none of its predecessors is ordered
// after either.
std::vector<uint64_t> HostOrder::combine(const HostWork& work, Moment moment) const {
  std::vector<uint64_t> beside;
  for (const auto& [id, unused] : works_)
    if (id < work.id) beside.push_back(id);
  for (const uint64_t a : work.after) {
    const auto at = works_.find(a);
    if (at == works_.end()) continue;
    const bool complete = !work.programmatic || moment != kStart;
    const std::vector<uint64_t>& theirs = beside_predecessor(at->second, work.programmatic, moment);
    std::erase_if(beside, [&](uint64_t x) {
      if (x > a) return false;
      if (x == a) return complete;
      return !std::binary_search(theirs.begin(), theirs.end(), x);
    });
  }
  return beside;
}

void HostOrder::add(const HostWork& work) {
  Work w;
  w.programmatic = work.programmatic;
  w.what = work.what;
  // What a dependent launch waits for is the grid before it alone, not those that the stream has not come
  // past either.
  HostWork direct = work;
  if (work.programmatic)
    std::erase_if(direct.after, [&](uint64_t a) {
      return std::any_of(work.after.begin(), work.after.end(), [&](uint64_t other) {
        const auto at = works_.find(other);
        return at != works_.end() && at->second.programmatic &&
               std::find(at->second.stream.begin(), at->second.stream.end(), a) != at->second.stream.end();
      });
    });
  w.stream = work.after;
  w.after = direct.after;
  w.beside[kStart] = combine(direct, kStart);
  w.beside[kWaited] = combine(direct, kWaited);
  w.beside[kPassed] = combine(work, kPassed);
  works_[work.id] = std::move(w);
}

void HostOrder::ran(uint64_t work, const GridConduct& conduct) {
  if (const auto at = works_.find(work); at != works_.end()) at->second.conduct = conduct;
}

bool HostOrder::follows_early_launch(uint64_t work) const {
  const auto at = works_.find(work);
  if (at == works_.end() || !at->second.programmatic) return false;
  return std::any_of(at->second.after.begin(), at->second.after.end(), [&](uint64_t a) {
    const auto before = works_.find(a);
    return before != works_.end() && before->second.programmatic && before->second.conduct.waits &&
           !before->second.conduct.waits_before_launch;
  });
}

bool HostOrder::before(uint64_t earlier, uint64_t later, bool waited) const {
  const auto at = works_.find(later);
  if (at == works_.end() || works_.count(earlier) == 0) return earlier <= later;
  const auto& beside = at->second.beside[waited ? kWaited : kStart];
  return earlier < later && !std::binary_search(beside.begin(), beside.end(), earlier);
}

const std::string& HostOrder::what(uint64_t work) const {
  static const std::string none = "work of the host";
  const auto at = works_.find(work);
  return at == works_.end() || at->second.what.empty() ? none : at->second.what;
}

bool HostOrder::programmatic(uint64_t work) const {
  const auto at = works_.find(work);
  return at != works_.end() && at->second.programmatic;
}

}  // namespace sim
