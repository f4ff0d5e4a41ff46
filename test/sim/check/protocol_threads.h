// protocol_threads.h -- rules about what threads do with barriers of the CTA, register budgets and, before
// they leave, with the work they started.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "sim/check/finding.h"

namespace sim::protocol {

class ThreadProtocol {
 public:
  explicit ThreadProtocol(const FindingSink& sink) : sink_(sink) {}
  void start(int64_t registers);  // of a CTA
  void issue(const AsyncIssue& issue);
  void sync(const SyncEvent& event);

 private:
  struct Stores {  // bulk groups of one thread
    uint64_t open = 0, committed = 0;
    Site last;
  };
  struct Meeting {  // one generation of a barrier of the CTA
    uint64_t generation = 0;
    bool reduces = false;
    Site first;
  };
  void barrier(const SyncEvent& event);
  void registers(const SyncEvent& event);
  void leave(const SyncEvent& event);
  void cta_exit(uint64_t cta);

  const FindingSink& sink_;
  int64_t registers_ = 0;
  std::map<uint64_t, Stores> stores_;                           // by thread
  std::map<uint64_t, Site> uncommitted_;                        // by thread: the youngest MMA or copy
  std::map<std::pair<uint64_t, uint64_t>, Meeting> meetings_;   // by CTA and barrier
  std::map<std::pair<uint64_t, uint32_t>, SyncEvent> budgets_;  // by CTA and warp
  std::set<uint64_t> pool_reported_;                            // CTAs
};

}  // namespace sim::protocol
