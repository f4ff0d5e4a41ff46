// mbarrier.cpp -- transitions of one mbarrier object. A phase is complete when no arrival is pending
// and the tx-count is zero; both are tested after every transition that can bring one of them to zero.
// Bytes that land before they are expected make the tx-count negative for a while:
// the pending arrivals keep the phase open.
#include "sim/engine/mbarrier.h"

#include <string>

#include "sim/fault.h"

namespace sim {

static void require_count(const char* what, int64_t count) {
  if (count < 1 || count > Mbarrier::kMaxCount)
    protocol_fault(std::string(what) + " " + std::to_string(count) + " is outside 1.." +
                   std::to_string(Mbarrier::kMaxCount));
}

static int64_t checked_tx(int64_t tx) {
  if (tx < -Mbarrier::kMaxCount || tx > Mbarrier::kMaxCount)
    protocol_fault("mbarrier tx-count " + std::to_string(tx) + " leaves +-(2^20 - 1)");
  return tx;
}

Mbarrier::Mbarrier(int64_t count) {
  require_count("mbarrier.init count", count);
  expected_ = pending_ = static_cast<int32_t>(count);
}

bool Mbarrier::arrive(int32_t count) {
  require_count("mbarrier arrive count", count);
  if (count > pending_)
    protocol_fault("mbarrier: " + std::to_string(count) + " arrivals, but only " + std::to_string(pending_) +
                   " pending in phase " + std::to_string(phase_));
  pending_ -= count;
  return settle();
}

bool Mbarrier::arrive_drop(int32_t count) {
  require_count("mbarrier arrive_drop count", count);
  if (count > expected_)
    protocol_fault("mbarrier: arrive_drop of " + std::to_string(count) + " lowers the expected count " +
                   std::to_string(expected_) + " below zero");
  // If there are more arrivals than are pending, arrive() reports that, before anything changes.
  if (count <= pending_) expected_ -= count;
  return arrive(count);
}

bool Mbarrier::expect_tx(int64_t bytes) {
  if (bytes < 0) protocol_fault("mbarrier expect_tx of " + std::to_string(bytes) + " bytes");
  tx_ = checked_tx(tx_ + bytes);
  return bytes != 0 && settle();
}

bool Mbarrier::complete_tx(int64_t bytes) {
  if (bytes < 0) protocol_fault("mbarrier complete_tx of " + std::to_string(bytes) + " bytes");
  tx_ = checked_tx(tx_ - bytes);
  return bytes != 0 && settle();
}

bool Mbarrier::settle() {
  if (pending_ != 0 || tx_ != 0) return false;
  ++phase_;
  pending_ = expected_;
  return true;
}

}  // namespace sim
