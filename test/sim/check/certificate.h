// certificate.h -- which mbarriers behave the same in every schedule. One run with its order of events can
// show it: when, for each phase g of a barrier,
//   - arrivals and bytes are exact: every copy counts in the phase it was issued in,
//   - every arrival and every copy of phase g + 1 comes after some wait that saw g,
//   - every wait that saw g comes before something that phase g + 1 needs to complete,
//   - every thread that waits sees phase after phase,
// then no schedule in which the threads take the same paths can complete a phase early, or let a wait mistake
// one phase for another: the barrier needs no search. "Comes after" is what the clocks say, not the time of
// this run. Paths that depend on the answer of a single test_wait are outside this argument.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/check/clock.h"
#include "sim/check/finding.h"
#include "sim/exec/per_grid.h"

namespace sim {

struct Certificate {
  struct Barrier {
    MbarrierRef barrier;
    const Inst* init = nullptr;
    uint64_t phases = 0;  // completed
    std::string reason;   // why not; empty: certified
    bool certified() const { return reason.empty(); }
  };
  std::vector<Barrier> barriers;  // in the order in which they went out of use
  bool complete = false;          // the grid ran to its end
  size_t certified() const;
};

// The Certifier observes a run. It asks `clocks` about every event it is shown, so the clocks must see the
// event first.
class Certifier : public Observer {
 public:
  // `sink` is told of threads that wait on although nothing holds the barrier back for them.
  Certifier(const Clocks& clocks, FindingSink sink) : clocks_(clocks), sink_(std::move(sink)) {}
  void start(const GridStart&) override;
  void resume(uint64_t work) override { run_.resume(work); }
  void finish(const char* fault) override;
  void issue(const AsyncIssue& issue) override;
  void sync(const SyncEvent& event) override;
  // Returns that of the grid that ended last.
  const Certificate& certificate() const { return run_->out; }

 private:
  struct Wait {
    Thread thread;
    Stamp stamp;
    const Inst* inst = nullptr;
    bool covered = false;  // before a mutation of the open phase
  };
  struct Lag {  // a wait that no phase waited for
    uint64_t phase = 0;
    const Inst* inst = nullptr;
  };
  struct State {
    Certificate::Barrier result;
    int64_t count = 0, pending = 0, tx = 0;
    uint64_t phase = 0;
    bool touched = false;               // the open phase has seen an arrival or bytes
    std::vector<Wait> waits;            // that saw the phase before the open one
    std::map<uint64_t, uint64_t> seen;  // by thread: phases complete when it waited last
    std::map<uint64_t, Lag> lags;       // by thread
    bool lag_reported = false;
    struct Flight {
      uint64_t phase = 0;  // in which it was issued
      int64_t left = 0;    // bytes, or the arrival of a commit
    };
    std::map<uint64_t, Flight> flights;  // by operation
  };
  void refuse(State& state, const std::string& reason);
  void mutation(State& state, const Thread& by, const char* what);
  void settle(State& state);
  void wait(State& state, const SyncEvent& event);
  void report_lag(State& state, const Lag& lag, const Thread& thread, const Inst* inst);
  void landed(State& state, uint64_t id, int64_t amount, const char* what);
  void end(State& state);

  const Clocks& clocks_;
  FindingSink sink_;
  struct Run {  // of a grid
    std::map<uint64_t, State> live;
    Certificate out;
  };
  PerGrid<Run> run_;
};

}  // namespace sim
