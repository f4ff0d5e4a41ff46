// protocol_text.h -- how the protocol checker names things: threads, mbarriers, places in the program, byte
// ranges. They are spelled in one way everywhere, so that findings about one object read alike.
#pragma once

#include <string>

#include "sim/check/finding.h"
#include "sim/text.h"

namespace sim::protocol {

std::string name(const Thread& thread);                  // "CTA 0 warp 4 lane 0"
std::string name(const Thread& thread, uint32_t lanes);  // "CTA 0 warp 4 lanes 0xff" of several
std::string name(const MbarrierRef& barrier);            // "mbarrier 0x400 of CTA 0"
std::string place(const Inst* inst);                // "PTX line 12: `...` (kernel.cu:3)"; "an unknown place"
std::string range(uint64_t first, uint64_t bytes);  // "[0x400, 0x800)"

Site site(const SyncEvent& event);
Site site(const AsyncIssue& issue);
Finding finding(const char* rule_id, std::string summary, const Site& later);

// Visits the threads that an event is about.
template <class Visit>
void for_each_lane(const SyncEvent& event, Visit&& visit) {
  for (uint32_t rest = event.mask != 0 ? event.mask : 1u << event.thread.lane; rest != 0; rest &= rest - 1)
    visit(Thread{event.thread.cta, event.thread.warp, uint32_t(__builtin_ctz(rest))});
}

}  // namespace sim::protocol
