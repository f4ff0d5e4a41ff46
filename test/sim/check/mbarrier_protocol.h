// mbarrier_protocol.h -- every mbarrier as its events tell it: who arrived in which phase, how many bytes
// were expected by whom and delivered by which copy, who saw which phase complete. The machine faults where
// the state machine of a barrier forbids something; this file has the rules that need the history of the
// barrier.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "sim/check/clock.h"
#include "sim/check/finding.h"

namespace sim::protocol {

// What one instruction of one thread, or the copies it issued, gave to one phase.
struct Contribution {
  Site by;
  int64_t arrivals = 0, expected = 0, delivered = 0;
  bool commit = false;  // arrivals of tcgen05.commit
};

struct PhaseRecord {
  uint64_t number = 0;
  int64_t arrivals = 0, expected = 0, delivered = 0;
  bool observed = false;    // some thread saw it complete
  std::vector<Stamp> seen;  // when, by every thread, where clocks can tell
  Site seen_by;             // the first of them
  std::vector<Contribution> contributions;
  // The lanes among the contributors, by warp, instruction and kind: most contribute once.
  struct Lanes {
    uint64_t cta = 0;
    uint32_t warp = 0;
    const Inst* inst = nullptr;
    bool commit = false;
    uint32_t mask = 0;
  };
  std::vector<Lanes> contributors;
};

struct MbarrierRecord {
  static constexpr int64_t kNever = -2, kFresh = -1;  // of Observer::seen: no wait yet; no phase was complete

  // The youngest phase that each lane of a warp has seen complete.
  struct Observer {
    uint64_t cta = 0;
    uint32_t warp = 0;
    std::array<int64_t, 32> seen{};
    std::array<const Inst*, 32> by{};
  };
  // A copy that has been issued and has not delivered all its bytes.
  struct Copy {
    Site by;
    uint64_t phase = 0;  // open when it was issued
    int64_t left = 0;
    bool reported = false;
  };

  MbarrierRef ref;
  Site init;
  int64_t count = 0, pending = 0, tx = 0;
  uint64_t phase = 0;              // the open one
  std::deque<PhaseRecord> phases;  // the open one last, a few before it
  std::vector<Observer> observers;
  std::map<uint64_t, Copy> copies;  // by operation
  bool carries_bytes = false;       // bytes were expected or delivered
  bool early_arrival_reported = false, early_copy_reported = false;
  bool bytes_reported = false;  // some of them counted in another phase than they were meant for

  PhaseRecord& open() { return phases.back(); }
  PhaseRecord* before_open() { return phases.size() > 1 ? &phases[phases.size() - 2] : nullptr; }
  const PhaseRecord& open() const { return phases.back(); }
  const PhaseRecord* before_open() const { return phases.size() > 1 ? &phases[phases.size() - 2] : nullptr; }
  int64_t seen(const Thread& thread) const;
};

// Returns one line per contribution: "phase 0: 1 arrival, 32768 bytes expected by CTA 0 warp 4 lane 0 at
// ...".
std::vector<std::string> contribution_lines(const PhaseRecord& phase);
std::string phase_line(const MbarrierRecord& barrier, const PhaseRecord& phase);

class MbarrierProtocol {
 public:
  // `clocks` tell what follows what in every schedule, and must have seen every event before. When they are
  // null, only the order of this run is judged.
  MbarrierProtocol(const FindingSink& sink, const Clocks* clocks) : sink_(sink), clocks_(clocks) {}
  void start();
  void issue(const AsyncIssue& issue);
  void sync(const SyncEvent& event);
  // Checks a thread's use of bytes that a copy on `barrier`, issued while `phase` was open, has written or
  // will write.
  void consume(const MbarrierRef& barrier, uint64_t phase, const Site& by, const Region& region);
  // Returns true when `fault` says that a CTA left a barrier whose bytes do not add up. Then a new or an
  // earlier finding says why.
  bool explain(const char* fault);

  const MbarrierRecord* find(const MbarrierRef& ref) const;
  const std::map<uint64_t, MbarrierRecord>& all() const { return barriers_; }

 private:
  MbarrierRecord* live(const MbarrierRef& ref);
  Contribution& contribution(MbarrierRecord& barrier, const Site& by, bool commit);
  void arrive(MbarrierRecord& barrier, const SyncEvent& event, const Thread& thread);
  void check_observed(MbarrierRecord& barrier, const Thread& thread, const Site& by);
  void complete_tx(MbarrierRecord& barrier, const SyncEvent& event);
  void settle(MbarrierRecord& barrier, const Site& by);
  void wait(MbarrierRecord& barrier, const SyncEvent& event);
  void observe(MbarrierRecord& barrier, const SyncEvent& event, int64_t seen, MbarrierRecord::Observer& warp,
               uint32_t lane);
  void check_lost_bytes(const MbarrierRecord& barrier, const PhaseRecord& phase, const Site& by,
                        const char* when);
  void end(const MbarrierRecord& barrier, const Site& by);
  void report(const char* rule_id, const MbarrierRecord& barrier, const std::string& summary,
              const Site& later, const PhaseRecord* phase, const Site* earlier = nullptr,
              bool every_schedule = true);

  const FindingSink& sink_;
  const Clocks* clocks_;
  std::map<uint64_t, MbarrierRecord> barriers_;
  uint64_t leaving_ = 0;                           // the CTA whose thread left last
  std::map<uint64_t, Site> commits_;               // issued, by id: the place of the commit
  std::map<uint64_t, uint64_t> observed_commits_;  // by thread: the youngest commit somebody saw arrive
};

}  // namespace sim::protocol
