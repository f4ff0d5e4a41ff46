// protocol_text.cpp -- see the header.
#include "sim/check/protocol_text.h"

#include "sim/decode/program.h"

namespace sim::protocol {

std::string name(const Thread& thread) {
  return "CTA " + std::to_string(thread.cta) + " warp " + std::to_string(thread.warp) + " lane " +
         std::to_string(thread.lane);
}

std::string name(const Thread& thread, uint32_t lanes) {
  if ((lanes & (lanes - 1)) == 0) return name(thread);
  return "CTA " + std::to_string(thread.cta) + " warp " + std::to_string(thread.warp) + " lanes " +
         hex(lanes);
}

std::string name(const MbarrierRef& barrier) {
  return "mbarrier " + hex(barrier.offset) + " of CTA " + std::to_string(barrier.cta);
}

std::string place(const Inst* inst) {
  return inst != nullptr && inst->statement != nullptr ? describe(*inst->statement) : "an unknown place";
}

std::string range(uint64_t first, uint64_t bytes) {
  return "[" + hex(first) + ", " + hex(first + bytes) + ")";
}

Site site(const SyncEvent& event) { return {event.thread, event.mask, event.async_id, event.inst}; }

Site site(const AsyncIssue& issue) { return {issue.thread, issue.mask, issue.id, issue.inst}; }

Finding finding(const char* rule_id, std::string summary, const Site& later) {
  Finding out;
  out.rule = &rule(rule_id);
  out.summary = std::move(summary);
  out.later = later;
  return out;
}

}  // namespace sim::protocol
