// race_state.cpp -- look-ups in the race checker's memory, and the order of the host's work.
#include "sim/check/race_state.h"

#include <algorithm>

namespace sim {

bool AsyncOperation::known(const VectorClock& clock, bool write, const Region& region) const {
  if (done != 0) {
    if (clock.knows(done, write ? lanes | same_lanes : lanes, issued)) return true;
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
  const auto at = grid->barriers.find({ref.cta, ref.offset});
  return at == grid->barriers.end() ? nullptr : &at->second;
}

AsyncOperation* RaceState::operation(uint64_t id) {
  if (id == 0) return nullptr;
  const auto at = grid->by_id.find(id);
  return at == grid->by_id.end() ? nullptr : at->second;
}

// Returns the moment that `predecessor` is known to have reached when the work after it has reached `moment`.
// A programmatic launch starts when its predecessor lets it, and its griddepcontrol.wait waits only for that
// predecessor: earlier work is complete only if the predecessor itself waited for it. Any other work waits
// for everything that its stream held before.
HostOrder::Moment HostOrder::moment_of_predecessor(const Work& predecessor, bool programmatic,
                                                   Moment moment) {
  if (!programmatic || moment == kPassed || !predecessor.programmatic) return kPassed;
  const bool waited = moment == kStart ? predecessor.conduct.waits && predecessor.conduct.waits_before_launch
                                       : predecessor.conduct.waits;
  return waited ? kWaited : kStart;
}

// Returns earlier work that need not be complete at that moment: work that no predecessor is ordered after,
// either.
std::vector<uint64_t> HostOrder::combine(uint64_t id, const Work& work, Moment moment) const {
  std::vector<uint64_t> beside;
  for (const auto& [earlier, unused] : works_)
    if (earlier < id) beside.push_back(earlier);
  for (const uint64_t a : moment == kPassed ? work.stream : work.after) {
    const auto at = works_.find(a);
    if (at == works_.end()) continue;
    const bool complete = !work.programmatic || moment != kStart;
    std::vector<uint64_t> room;
    const std::vector<uint64_t>& theirs =
        this->beside(a, moment_of_predecessor(at->second, work.programmatic, moment), room);
    std::erase_if(beside, [&](uint64_t x) {
      if (x > a) return false;
      if (x == a) return complete;
      return !std::binary_search(theirs.begin(), theirs.end(), x);
    });
  }
  return beside;
}

void HostOrder::settle(uint64_t id, Moment moment) {
  const auto at = works_.find(id);
  if (at == works_.end() || (moment != kPassed && !at->second.programmatic)) return;
  auto& settled = at->second.beside[moment];
  if (settled) return;
  settled = combine(id, at->second, moment);
  answers_ = {};
}

const std::vector<uint64_t>& HostOrder::beside(uint64_t id, Moment moment,
                                               std::vector<uint64_t>& room) const {
  const Work& work = works_.at(id);
  const auto& settled = work.beside[work.programmatic ? moment : kPassed];
  if (settled) return *settled;
  return room = combine(id, work, moment);
}

void HostOrder::add(const HostWork& work) {
  Work w;
  w.programmatic = work.programmatic;
  w.what = work.what;
  w.device = work.device;
  // A dependent launch waits only for the grid before it, not for earlier grids that the stream has not
  // waited for, either.
  w.stream = w.after = work.after;
  if (work.programmatic)
    std::erase_if(w.after, [&](uint64_t a) {
      return std::any_of(work.after.begin(), work.after.end(), [&](uint64_t other) {
        const auto at = works_.find(other);
        return at != works_.end() && at->second.programmatic &&
               std::find(at->second.stream.begin(), at->second.stream.end(), a) != at->second.stream.end();
      });
    });
  works_[work.id] = std::move(w);
  answers_ = {};
  settle(work.id, kPassed);
}

void HostOrder::ran(uint64_t work, const GridConduct& conduct) {
  if (const auto at = works_.find(work); at != works_.end()) at->second.conduct = conduct;
  answers_ = {};
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
  Answer& answer = answers_[earlier % answers_.size()];
  if (!answer.known || answer.earlier != earlier || answer.later != later || answer.waited != waited)
    answer = {earlier, later, waited, true, find_before(earlier, later, waited)};
  return answer.before;
}

bool HostOrder::find_before(uint64_t earlier, uint64_t later, bool waited) const {
  const auto at = works_.find(later);
  if (at == works_.end() || works_.count(earlier) == 0) return earlier <= later;
  if (earlier >= later) return false;
  std::vector<uint64_t> room;
  const std::vector<uint64_t>& concurrent = beside(later, waited ? kWaited : kStart, room);
  return !std::binary_search(concurrent.begin(), concurrent.end(), earlier);
}

bool HostOrder::same_device(uint64_t a, uint64_t b) const {
  const auto one = works_.find(a), other = works_.find(b);
  return one != works_.end() && other != works_.end() && one->second.device == other->second.device;
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
