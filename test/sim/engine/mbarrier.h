// mbarrier.h -- the state machine of one mbarrier object (PTX ISA "mbarrier"): pending arrivals, expected
// arrivals, tx-count and phase. Each command is one transition. The class knows nothing of threads, addresses
// or clocks; exec/ keeps one for each 8-byte shared-memory object.
#pragma once

#include <cstdint>

namespace sim {

class Mbarrier {
 public:
  static constexpr int32_t kMaxCount = (1 << 20) - 1;  // arrival counts 1..2^20-1, tx-count within +-(2^20-1)

  explicit Mbarrier(int64_t count);  // mbarrier.init; Fault kProtocol outside 1..kMaxCount

  // Each returns true when it completed the phase, and throws Fault kProtocol for more arrivals than are
  // pending and for a tx-count out of range.
  bool arrive(int32_t count = 1);
  bool arrive_drop(int32_t count = 1);  // also lowers the expected count of later phases
  // Raises the tx-count, which completes a phase only when it reaches zero and no arrival is pending.
  bool expect_tx(int64_t bytes);
  bool complete_tx(int64_t bytes);  // lowers it; bytes may land before they are expected

  uint64_t phase() const { return phase_; }  // completed phases so far
  // Answers try_wait.parity: the phase with that parity has completed when the parity of the current phase
  // differs from it.
  bool test_parity(uint32_t parity) const { return (phase_ & 1) != (parity & 1); }
  bool test_phase(uint64_t phase) const { return phase_ > phase; }
  int32_t pending() const { return pending_; }
  int32_t expected() const { return expected_; }
  int64_t tx() const { return tx_; }

 private:
  bool settle();
  int32_t expected_, pending_;
  int64_t tx_ = 0;
  uint64_t phase_ = 0;
};

}  // namespace sim
