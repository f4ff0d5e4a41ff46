// protocol_threads.cpp -- see the header.
#include "sim/check/protocol_threads.h"

#include <algorithm>

#include "sim/check/protocol_text.h"
#include "sim/decode/program.h"

namespace sim::protocol {

constexpr int kThreadBits = 16;

static uint64_t key(uint64_t cta, uint32_t warp, uint32_t lane) {
  return cta << kThreadBits | uint64_t(warp) << 5 | lane;
}
static uint64_t key(const Thread& t) { return key(t.cta, t.warp, t.lane); }

static bool reduces(const Inst* inst) {
  if (inst == nullptr || inst->statement == nullptr) return false;
  const auto& q = inst->statement->qualifiers;
  return std::find(q.begin(), q.end(), "red") != q.end();
}

void ThreadProtocol::start(int64_t registers) {
  registers_ = registers;
  stores_.clear();
  uncommitted_.clear();
  meetings_.clear();
  budgets_.clear();
  pool_reported_.clear();
}

void ThreadProtocol::issue(const AsyncIssue& issue) {
  using Kind = AsyncIssue::Kind;
  switch (issue.kind) {
    case Kind::kBulkStore:
    case Kind::kTensorStore: {
      Stores& stores = stores_[key(issue.thread)];
      ++stores.open;
      stores.last = site(issue);
      break;
    }
    case Kind::kMma:
    case Kind::kTmemCopy: uncommitted_[key(issue.thread)] = site(issue); break;
    case Kind::kCommit: uncommitted_.erase(key(issue.thread)); break;
    default: break;
  }
}

void ThreadProtocol::sync(const SyncEvent& event) {
  using Kind = SyncEvent::Kind;
  switch (event.kind) {
    case Kind::kBarrierArrive: barrier(event); break;
    case Kind::kSetMaxRegisters: registers(event); break;
    case Kind::kExit: leave(event); break;
    case Kind::kCtaExit: cta_exit(event.thread.cta); break;
    case Kind::kBulkCommit:
    case Kind::kBulkWait:
      for (uint32_t lane = 0; lane < 32 && !stores_.empty(); ++lane) {
        if ((event.mask >> lane & 1) == 0) continue;
        const auto it = stores_.find(key(event.thread.cta, event.thread.warp, lane));
        if (it == stores_.end()) continue;
        Stores& stores = it->second;
        if (event.kind == Kind::kBulkCommit) {
          ++stores.committed;  // an empty group counts as one
          stores.open = 0;
        } else {
          stores.committed = std::min(stores.committed, uint64_t(event.amount));
        }
        if (stores.open == 0 && stores.committed == 0) stores_.erase(it);
      }
      break;
    default: break;
  }
}

void ThreadProtocol::barrier(const SyncEvent& event) {
  const bool red = reduces(event.inst);
  const auto [it, fresh] =
      meetings_.try_emplace({event.cta, event.object}, Meeting{event.phase, red, site(event)});
  Meeting& meeting = it->second;
  if (fresh || meeting.generation != event.phase) {
    meeting = {event.phase, red, site(event)};
    return;
  }
  if (meeting.reduces == red) return;
  Finding out = finding("barrier-mixes-red",
                        "barrier " + std::to_string(event.object) + " of CTA " + std::to_string(event.cta) +
                            " is used by bar.red and by another form in the same generation",
                        site(event));
  out.has_earlier = true;
  out.earlier = meeting.first;
  sink_(std::move(out));
  meeting.reduces = red;  // once per change
}

// The pool of a CTA is what its warps hold. Warps that never named a budget are not counted, so the sum is a
// lower bound.
void ThreadProtocol::registers(const SyncEvent& event) {
  const uint64_t cta = event.thread.cta;
  budgets_[{cta, event.thread.warp}] = event;
  int64_t sum = 0;
  std::vector<std::string> lines;
  for (auto it = budgets_.lower_bound({cta, 0}); it != budgets_.end() && it->first.first == cta; ++it) {
    sum += it->second.amount * 32;
    lines.push_back("warp " + std::to_string(it->first.second) + ": " + std::to_string(it->second.amount) +
                    " registers a thread at " + place(it->second.inst));
  }
  if (sum <= registers_ || !pool_reported_.insert(cta).second) return;
  Finding out = finding("setmaxnreg-pool",
                        "the warps of CTA " + std::to_string(cta) + " ask for " + std::to_string(sum) +
                            " registers together; it has " + std::to_string(registers_),
                        site(event));
  out.notes = std::move(lines);
  sink_(std::move(out));
}

void ThreadProtocol::leave(const SyncEvent& event) {
  for (uint32_t lane = 0; lane < 32 && !stores_.empty(); ++lane) {
    if ((event.mask >> lane & 1) == 0) continue;
    const auto it = stores_.find(key(event.thread.cta, event.thread.warp, lane));
    if (it == stores_.end()) continue;
    const Stores& stores = it->second;
    Finding out = finding(
        "store-unwaited-at-exit",
        name(stores.last.thread) + " exits with " +
            (stores.open != 0 ? plural(int64_t(stores.open), "bulk store") + " in no group"
                              : plural(int64_t(stores.committed), "bulk group") + " it did not wait for"),
        site(event));
    out.has_earlier = true;
    out.earlier = stores.last;
    out.missing = "cp.async.bulk.wait_group.read 0 before the exit";
    sink_(std::move(out));
    stores_.erase(it);
  }
}

void ThreadProtocol::cta_exit(uint64_t cta) {
  const auto first = uncommitted_.lower_bound(key(cta, 0, 0)),
             last = uncommitted_.lower_bound(key(cta + 1, 0, 0));
  for (auto it = first; it != last; ++it) {
    Finding out = finding(
        "tcgen05-uncommitted",
        name(it->second.thread) + " issues tcgen05 work that no tcgen05.commit of it follows", it->second);
    out.missing = "tcgen05.commit, and a wait for its arrival";
    sink_(std::move(out));
  }
  uncommitted_.erase(first, last);
  meetings_.erase(meetings_.lower_bound({cta, 0}), meetings_.lower_bound({cta + 1, 0}));
  budgets_.erase(budgets_.lower_bound({cta, 0}), budgets_.lower_bound({cta + 1, 0}));
}

}  // namespace sim::protocol
