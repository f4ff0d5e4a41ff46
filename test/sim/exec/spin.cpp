// spin.cpp -- see spin.h.
#include "sim/exec/spin.h"

#include <algorithm>

namespace sim {

// True for instructions that change only state that is compared below, or whose effect counts as a change.
static bool is_compared(Operation operation) {
  switch (operation) {
    case Operation::alu:
    case Operation::mov:
    case Operation::cvta:
    case Operation::isspacep:
    case Operation::mapa:
    case Operation::getctarank:
    case Operation::createpolicy:
    case Operation::ld:
    case Operation::st:
    case Operation::atom:
    case Operation::prefetch:
    case Operation::bulk_prefetch:
    case Operation::ldmatrix:
    case Operation::bra:
    case Operation::brx:
    case Operation::call:
    case Operation::ret:
    case Operation::bar_warp:
    case Operation::fence:
    case Operation::nanosleep:
    case Operation::nothing:
    case Operation::activemask:
    case Operation::elect:
    case Operation::match_all:
    case Operation::match_any:
    case Operation::redux:
    case Operation::shfl:
    case Operation::vote:
    case Operation::mbarrier_try_wait:
    case Operation::mbarrier_test_wait:
    case Operation::mbarrier_pending_count: return true;
    default: return false;
  }
}

// Puts the state of a warp into words and hands them to `put` until that returns false. What the warp does
// next depends on these words and on memory. Local memory is not among the words, since an instruction that
// changes it counts as a change. The time at which the warp last read a clock is among them, so that a warp
// that has read a clock again is never in the same state.
template <class Put>
static bool put_state(const Warp& warp, Put&& put) {
  const auto put_all = [&](const auto&... words) { return (put(uint64_t(words)) && ...); };
  const auto put_calls = [&](const std::vector<uint32_t>& calls) {
    return put(calls.size()) &&
           std::all_of(calls.begin(), calls.end(), [&](uint32_t call) { return put(call); });
  };
  std::vector<const Join*> joins;
  const auto put_joins = [&](const Join* join) {
    for (; join != nullptr; join = join->parent.get()) {
      const size_t known = size_t(std::find(joins.begin(), joins.end(), join) - joins.begin());
      if (!put(known)) return false;
      if (known < joins.size()) return true;
      joins.push_back(join);
      if (!put_all(join->pc, join->expected, join->arrived) || !put_calls(join->calls)) return false;
    }
    return put(~uint64_t(0));
  };
  if (!put_all(warp.live, warp.ahead, warp.turn, warp.woken, warp.clock_read_at, warp.transfers.size(),
               warp.fragments.size(), warp.joins.size()))
    return false;
  for (const auto& fragment : warp.fragments) {
    const Wait& wait = fragment->wait;
    if (!put_all(fragment->pc, fragment->mask, fragment->entered, fragment->generation, wait.kind, wait.lanes,
                 wait.members, wait.aligned) ||
        !put_calls(fragment->calls) || !put_joins(fragment->join.get()))
      return false;
  }
  for (const auto& join : warp.joins)
    if (!put_joins(join.get())) return false;
  for (size_t reg = 0; reg < warp.written.size(); ++reg) {
    if (!put(warp.written[reg])) return false;
    SIM_FOR_LANES(lane, warp.live & warp.written[reg])
    if (!put(warp.registers[reg * 32 + lane])) return false;
    if (warp.poisoned.empty()) continue;
    SIM_FOR_LANES(lane, warp.live & ~warp.written[reg]) {
      const auto hole = warp.poisoned.find(reg * 32 + lane);
      const uint64_t unknown = hole == warp.poisoned.end() ? kWhole : hole->second.unknown;
      if (!put_all(unknown, unknown == kWhole ? 0 : warp.registers[reg * 32 + lane] & ~unknown)) return false;
    }
  }
  return true;
}

SpinWatch::SpinWatch(Grid& grid) : grid_(grid), begin_(grid.stats.warp_instructions) {
  if (grid.observer != nullptr) add(*grid.observer);
}

const Warp* SpinWatch::find(const WarpId& id) const {
  for (const auto& cluster : grid_.resident)
    for (const auto& cta : cluster->ctas)
      if (cta->linear == id.first) return cta->warps[id.second].get();
  return nullptr;
}

void SpinWatch::compare(Seen& seen, const Inst& inst) const {
  if (!is_compared(inst.operation)) {
    seen.taken_at = nullptr;
    return;
  }
  ++seen.instructions;
  if (seen.taken_at == &inst) {
    size_t at = 0;
    seen.came_back =
        put_state(*seen.warp,
                  [&](uint64_t word) { return at < seen.state.size() && seen.state[at++] == word; }) &&
        at == seen.state.size();
  }
  if (seen.taken_at != nullptr && seen.instructions < seen.stretch) return;
  if (seen.instructions >= seen.stretch) seen.stretch *= 2;
  seen.instructions = 0;
  seen.taken_at = &inst;
  seen.state.clear();
  put_state(*seen.warp, [&](uint64_t word) {
    seen.state.push_back(word);
    return true;
  });
}

void SpinWatch::instruction(const Thread& thread, uint32_t mask, const Inst& inst) {
  Observers::instruction(thread, mask, inst);
  const WarpId id{thread.cta, thread.warp};
  Seen& seen = warps_[id];
  if (seen.warp == nullptr) seen.warp = find(id);
  seen.anywhere = {thread, mask, &inst, {}};
  const uint32_t line = inst.statement->site.ptx_line;
  seen.first_line = std::min(seen.first_line, line);
  seen.last_line = std::max(seen.last_line, line);
  if (!seen.came_back) compare(seen, inst);
}

void SpinWatch::accesses(const std::vector<Access>& all) {
  Observers::accesses(all);
  for (const Access& access : all) {
    if (access.region.memory != Memory::kGlobal) continue;
    const auto* whole = grid_.memory.find(access.region.address, access.region.bytes);
    reads_host_ = reads_host_ || whole == nullptr || whole->device == kNoDevice;
  }
  const Access& one = all[0];
  if (one.region.write && !one.atomic) return;
  Load& load = warps_[{one.thread.cta, one.thread.warp}].loads[one.inst];
  load.access = one;
  ++load.count;
}

void SpinWatch::sync(const SyncEvent& event) {
  Observers::sync(event);
  if (event.kind == SyncEvent::Kind::kMbarrierTest)
    warps_[{event.thread.cta, event.thread.warp}].tests_mbarriers = true;
}

SpinWatch::Outlook SpinWatch::outlook() const {
  if (grid_.changed_at >= begin_ || reads_host_) return Outlook::kUnknown;
  Outlook outlook = Outlook::kCircle;
  for (const auto& cluster : grid_.resident) {
    if (!cluster->pending.empty()) return Outlook::kUnknown;
    for (const auto& cta : cluster->ctas)
      for (const auto& warp : cta->warps) {
        if (!warp->joins.empty()) return Outlook::kUnknown;  // whose lanes are yet to be set free
        if (!can_run(*warp)) continue;
        const auto seen = warps_.find({cta->linear, warp->index});
        if (seen != warps_.end() && seen->second.came_back) continue;
        if (warp->clock_read_at < begin_) return Outlook::kUnknown;
        outlook = Outlook::kClocks;
      }
  }
  return outlook;
}

// Returns the loads of each circle: only the strong ones if there are any, since programs read what other
// threads write by strong loads. Warps that test an mbarrier are left out, because it is known that they wait
// for it.
std::vector<Spin> SpinWatch::spins() const {
  std::vector<Spin> out;
  for (const auto& [id, warp] : warps_) {
    if (warp.tests_mbarriers) continue;
    const auto strong = [](const auto& load) { return load.second.access.order != Order::kWeak; };
    const bool any_strong = std::any_of(warp.loads.begin(), warp.loads.end(), strong);
    const size_t before = out.size();
    for (const auto& load : warp.loads) {
      const Access& a = load.second.access;
      if (load.second.count > 1 && strong(load) == any_strong)
        out.push_back({a.thread, a.mask, a.inst, a.region});
    }
    if (out.size() == before) out.push_back(warp.anywhere);
  }
  return out;
}

std::vector<Running> SpinWatch::running() const {
  std::vector<Running> out;
  for (const auto& [id, seen] : warps_)
    if (const Warp* warp = find(id); warp != nullptr && seen.anywhere.inst != nullptr)
      out.push_back({warp, seen.anywhere.mask, seen.anywhere.inst, seen.first_line, seen.last_line});
  return out;
}

}  // namespace sim
