// protocol_image.h -- which copy wrote which bytes of shared memory, through which tensor map, and which of
// them were read before they were written again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/check/mbarrier_protocol.h"
#include "sim/engine/tensor_map.h"

namespace sim::protocol {

class SharedImage {
 public:
  // One copy's bytes in one CTA.
  struct Copy {
    Site by;
    uint64_t address = 0;
    uint32_t bytes = 0;
    bool has_map = false, has_barrier = false;
    bool intact = true;  // no other store has changed its bytes
    TensorMap map;
    std::array<int32_t, 5> coordinates{};
    MbarrierRef barrier;
    uint64_t phase = 0;      // of the barrier, at issue
    std::vector<bool> read;  // chunks of 16 bytes
    uint64_t reader = 0;     // the asynchronous operation that read it last
    const Inst* reader_inst = nullptr;
  };

  SharedImage(const FindingSink& sink, MbarrierProtocol& mbarriers) : sink_(sink), mbarriers_(mbarriers) {}
  void start();
  void accesses(const std::vector<Access>& accesses);
  void issue(const AsyncIssue& issue);
  void cta_exit(uint64_t cta);
  void finish(const char* fault);

  // Returns the copy that wrote this byte last, or null when none did or its bytes were changed since.
  const Copy* find(uint64_t cta, uint64_t address) const;

 private:
  struct Window {
    std::map<uint64_t, Copy> copies;  // by address, disjoint
    uint64_t low = ~uint64_t(0), high = 0;
  };
  // The copy that the latest region lay in, as the next lane's region mostly does, too.
  struct Latest {
    Copy* copy = nullptr;
    uint64_t cta = 0;
  };
  // Counts what became of the copies of one instruction.
  struct Tally {
    uint64_t copies = 0, never = 0, partly = 0;
    Site first_never, first_partly;
    Region never_region, partly_region;  // of the first of each
  };
  template <class Visit>
  void overlapping(const Region& region, Visit&& visit);
  void read(const Region& region, const Site& by);
  void changed(const Region& region);
  void write(const AsyncIssue& issue, const Region& region);
  void retire(uint64_t cta, Copy& copy);

  const FindingSink& sink_;
  MbarrierProtocol& mbarriers_;
  std::unordered_map<uint64_t, Window> windows_;  // by CTA
  Latest latest_;
  std::map<const Inst*, Tally> tallies_;
};

}  // namespace sim::protocol
