// protocol.h -- the protocol checker: an observer that mirrors barriers, copies and tensor memory from the
// machine's events and reports what breaks a rule of their use. Where the rule allows it, findings hold for
// every schedule. Faults of the machine are not reported a second time, but a deadlock is explained.
//
//   events ──┬─► MbarrierProtocol   phases, arrivals, bytes       ─┐
//            ├─► SharedImage        who wrote which bytes, read?   │
//            ├─► DescriptorCheck    descriptors against maps       ├─► findings
//            ├─► TmemProtocol       scale factors, accumulators    │
//            ├─► CollectorProtocol  which A the tensor core keeps  │
//            ├─► ThreadProtocol     barriers, registers, exits     │
//            └─► DeadlockExplainer  who waits for whom            ─┘
#pragma once

#include "sim/check/collector_protocol.h"
#include "sim/check/descriptor_check.h"
#include "sim/check/finding.h"
#include "sim/check/mbarrier_protocol.h"
#include "sim/check/protocol_deadlock.h"
#include "sim/check/protocol_image.h"
#include "sim/check/protocol_threads.h"
#include "sim/check/tmem_protocol.h"
#include "sim/exec/per_grid.h"

namespace sim {

class ProtocolChecker : public Observer {
 public:
  // `clocks` are those of the race checker, if it observes the run, too; it has to see every event first.
  explicit ProtocolChecker(FindingSink sink, const Clocks* clocks = nullptr);
  void start(const GridStart& grid) override;
  void resume(uint64_t work) override { of_grid_.resume(work); }
  void finish(const char* fault) override;
  void accesses(const std::vector<Access>& accesses) override;
  void issue(const AsyncIssue& issue) override;
  void sync(const SyncEvent& event) override;
  void outlived(FaultKind kind, const std::string& text) override;
  void spins(const Spin& spin) override { of_grid_->deadlock.spins(spin); }
  // True when findings say more about the latest fault than the machine does.
  bool explained() const { return explained_; }

 private:
  struct Protocols {
    Protocols(const FindingSink& sink, const Clocks* clocks);
    protocol::MbarrierProtocol mbarriers;
    protocol::SharedImage image;
    protocol::DescriptorCheck descriptors;
    protocol::TmemProtocol tmem;
    protocol::CollectorProtocol collector;
    protocol::ThreadProtocol threads;
    protocol::DeadlockExplainer deadlock;
  };
  bool explain(const char* fault);
  FindingSink sink_;
  PerGrid<Protocols> of_grid_;
  bool explained_ = false;
};

}  // namespace sim
