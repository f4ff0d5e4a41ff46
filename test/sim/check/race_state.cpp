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

// Returns earlier work that `work` is not ordered after, which is what none of its predecessors is ordered
// after either.
std::vector<uint64_t> HostOrder::combine(const HostWork& work, bool waited) const {
  std::vector<uint64_t> beside;
  for (const auto& [id, unused] : works_)
    if (id < work.id) beside.push_back(id);
  for (const uint64_t a : work.after) {
    const auto at = works_.find(a);
    if (at == works_.end()) continue;
    const bool complete = !work.programmatic || waited;
    const std::vector<uint64_t>& theirs =
        at->second.programmatic && !complete ? at->second.beside : at->second.beside_waited;
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
  w.beside = combine(work, false);
  w.beside_waited = combine(work, true);
  works_[work.id] = std::move(w);
}

bool HostOrder::before(uint64_t earlier, uint64_t later, bool waited) const {
  const auto at = works_.find(later);
  if (at == works_.end() || works_.count(earlier) == 0) return earlier <= later;
  const auto& beside = waited ? at->second.beside_waited : at->second.beside;
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
