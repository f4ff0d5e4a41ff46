// recorder.hpp -- keeps every event of a run.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/unit/machine_fixture.hpp"

namespace sim_test {

struct Recorder : sim::Observer {
  std::vector<sim::Access> accessed;
  std::vector<sim::AsyncIssue> issues;
  std::vector<sim::AsyncLanding> landings;
  std::vector<sim::SyncEvent> syncs;
  std::vector<std::string> remarks;  // the rules

  void accesses(const std::vector<sim::Access>& e) override {
    accessed.insert(accessed.end(), e.begin(), e.end());
  }
  void issue(const sim::AsyncIssue& e) override { issues.push_back(e); }
  void land(const sim::AsyncLanding& e) override { landings.push_back(e); }
  void sync(const sim::SyncEvent& e) override { syncs.push_back(e); }
  void remark(const sim::Remark& e) override { remarks.push_back(e.rule); }

  std::vector<sim::SyncEvent> of(sim::SyncEvent::Kind kind) const {
    std::vector<sim::SyncEvent> out;
    for (const sim::SyncEvent& e : syncs)
      if (e.kind == kind) out.push_back(e);
    return out;
  }
  std::vector<sim::AsyncIssue> of(sim::AsyncIssue::Kind kind) const {
    std::vector<sim::AsyncIssue> out;
    for (const sim::AsyncIssue& e : issues)
      if (e.kind == kind) out.push_back(e);
    return out;
  }
};

// Regions become tuples, for comparisons that print what differs.
using Bytes = std::tuple<uint64_t, uint64_t, uint32_t>;  // CTA, address, bytes
using Cells = std::tuple<uint64_t, int, int, int, int>;  // CTA, lane, lanes, column, columns

inline std::vector<Bytes> shared_of(const std::vector<sim::Region>& regions) {
  std::vector<Bytes> out;
  for (const sim::Region& r : regions)
    if (r.memory == sim::Memory::kShared) out.emplace_back(r.cta, r.address, r.bytes);
  return out;
}

inline std::vector<Cells> cells_of(const std::vector<sim::Region>& regions) {
  std::vector<Cells> out;
  for (const sim::Region& r : regions)
    if (r.memory == sim::Memory::kTensor) out.emplace_back(r.cta, r.lane, r.lanes, r.column, r.columns);
  return out;
}

}  // namespace sim_test
