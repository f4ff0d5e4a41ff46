// certificate.cpp -- see the header.
#include "sim/check/certificate.h"

#include <algorithm>

#include "sim/check/protocol_text.h"

namespace sim {

static std::string phase_before(uint64_t open) {
  return open == 0 ? std::string("the phase before the first") : "phase " + std::to_string(open - 1);
}

size_t Certificate::certified() const {
  return size_t(
      std::count_if(barriers.begin(), barriers.end(), [](const Barrier& b) { return b.certified(); }));
}

void Certifier::start(const GridStart& grid) {
  run_.start(grid.work);
  *run_ = Run{};
}

// A run that ended in a fault proves nothing.
void Certifier::finish(const char* fault) {
  run_->out.complete = fault == nullptr;
  for (auto& [ref, state] : run_->live) {
    refuse(state, "the run ended while the barrier was in use");
    run_->out.barriers.push_back(state.result);
  }
  run_->live.clear();
  run_.finish();
}

void Certifier::refuse(State& state, const std::string& reason) {
  if (state.result.reason.empty()) state.result.reason = reason;
}

// Is called when `by` does, or starts, something without which the open phase cannot complete.
void Certifier::mutation(State& state, const Thread& by, const char* what) {
  state.touched = true;
  bool after_a_wait = state.phase == 0;
  for (Wait& w : state.waits) {
    if (w.covered && after_a_wait) continue;
    if (!clocks_.ordered(w.stamp, by)) continue;
    w.covered = after_a_wait = true;
  }
  if (!after_a_wait)
    refuse(state, std::string(what) + " of " + protocol::name(by) + " in phase " +
                      std::to_string(state.phase) + " comes after no wait that saw phase " +
                      std::to_string(state.phase - 1));
}

void Certifier::settle(State& state) {
  if (state.pending > 0 || state.tx != 0) return;
  for (const Wait& w : state.waits) {
    if (w.covered) continue;
    refuse(state, "the wait of " + protocol::name(w.thread) + " for " + phase_before(state.phase) +
                      " comes before nothing that phase " + std::to_string(state.phase) + " needs");
    if (!state.lag_reported) state.lags.try_emplace(thread_key(w.thread), Lag{state.phase, w.inst});
  }
  for (const auto& [id, flight] : state.flights)
    if (flight.phase == state.phase)
      refuse(state, "phase " + std::to_string(state.phase) + " completes without an operation issued for it");
  state.waits.clear();
  state.touched = false;
  state.pending = state.count;
  ++state.phase;
}

// Nothing that the barrier needs followed the wait of this thread. If the thread were slow, the barrier would
// go on without it, and the thread's next wait might take one phase for another, or never end.
void Certifier::report_lag(State& state, const Lag& lag, const Thread& thread, const Inst* inst) {
  state.lag_reported = true;
  Finding out = protocol::finding(
      "mbarrier-lagging-waiter",
      protocol::name(thread) + " waits again on " + protocol::name(state.result.barrier) + ", whose phase " +
          std::to_string(lag.phase) + " could complete before the thread saw " + phase_before(lag.phase),
      {thread, 0, 0, inst});
  out.has_earlier = out.has_mbarrier = true;
  out.earlier = {thread, 0, 0, lag.inst};
  out.mbarrier = state.result.barrier;
  out.missing = "an arrival that follows this thread's wait, on what phase " + std::to_string(lag.phase) +
                " needs to complete";
  state.lags.clear();  // `lag` is one of them
  sink_(std::move(out));
}

void Certifier::wait(State& state, const SyncEvent& event) {
  protocol::for_each_lane(event, [&](const Thread& thread) {
    uint64_t& seen = state.seen[thread_key(thread)];
    const uint64_t expected = seen;
    if (state.phase > expected + 1)
      refuse(state, protocol::name(thread) + " waits for " + phase_before(state.phase) +
                        " without having seen " + phase_before(state.phase - 1));
    seen = state.phase;
    state.waits.push_back({thread, clocks_.now(thread), event.inst, false});
    if (state.lag_reported) return;
    if (const auto lag = state.lags.find(thread_key(thread)); lag != state.lags.end())
      report_lag(state, lag->second, thread, event.inst);
  });
}

// Is called when an asynchronous operation arrives, or counts its bytes, as its issue announced.
void Certifier::landed(State& state, uint64_t id, int64_t amount, const char* what) {
  const auto it = state.flights.find(id);
  if (it == state.flights.end()) {
    refuse(state, std::string(what) + " in phase " + std::to_string(state.phase) + " by no known operation");
    return;
  }
  if (it->second.phase != state.phase)
    refuse(state, std::string(what) + " issued in phase " + std::to_string(it->second.phase) +
                      " counts in phase " + std::to_string(state.phase));
  it->second.left -= amount;
  if (it->second.left <= 0) state.flights.erase(it);
}

void Certifier::issue(const AsyncIssue& issue) {
  for (const AsyncIssue::Signal& signal : issue.barriers) {
    const auto it = run_->live.find(mbarrier_key(signal.barrier));
    if (it == run_->live.end()) continue;
    State& state = it->second;
    const bool commit = issue.kind == AsyncIssue::Kind::kCommit;
    State::Flight& flight = state.flights[issue.id];
    flight.phase = state.phase;
    flight.left += commit ? 1 : signal.bytes;
    mutation(state, issue.thread, commit ? "a commit" : "a copy");
  }
}

void Certifier::sync(const SyncEvent& event) {
  using Kind = SyncEvent::Kind;
  if (event.kind == Kind::kMbarrierInit) {
    State state;
    state.result.barrier = event.mbarrier;
    state.result.init = event.inst;
    state.count = state.pending = event.amount;
    run_->live.insert_or_assign(mbarrier_key(event.mbarrier), std::move(state));
    return;
  }
  if (event.kind == Kind::kCtaExit) {
    const auto first = run_->live.lower_bound(mbarrier_key(MbarrierRef{event.thread.cta, 0}));
    const auto last = run_->live.lower_bound(mbarrier_key(MbarrierRef{event.thread.cta + 1, 0}));
    for (auto it = first; it != last; ++it) end(it->second);
    run_->live.erase(first, last);
    return;
  }
  const auto it = run_->live.find(mbarrier_key(event.mbarrier));
  if (it == run_->live.end()) return;
  State& state = it->second;
  switch (event.kind) {
    case Kind::kMbarrierInval:
      end(state);
      run_->live.erase(it);
      break;
    case Kind::kMbarrierArrive:
    case Kind::kMbarrierArriveDrop:
      protocol::for_each_lane(event, [&](const Thread& thread) {
        if (event.async_id != 0) landed(state, event.async_id, event.amount, "a commit");
        else mutation(state, thread, "an arrival");
        state.pending -= event.amount;
        if (event.kind == Kind::kMbarrierArriveDrop) state.count -= event.amount;
        state.tx += event.bytes;
      });
      settle(state);
      break;
    case Kind::kMbarrierExpectTx:
      mutation(state, event.thread, "an expect_tx");
      state.tx += event.bytes;
      settle(state);
      break;
    case Kind::kMbarrierCompleteTx:
      if (event.async_id != 0) landed(state, event.async_id, event.bytes, "a copy");
      else mutation(state, event.thread, "a complete_tx");
      state.tx -= event.bytes;
      settle(state);
      break;
    case Kind::kMbarrierWait: wait(state, event); break;
    default: break;
  }
}

void Certifier::end(State& state) {
  if (state.touched) refuse(state, "it ends in the middle of phase " + std::to_string(state.phase));
  state.result.phases = state.phase;
  run_->out.barriers.push_back(state.result);
}

}  // namespace sim
