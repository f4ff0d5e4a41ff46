// host_order.h -- the numbers of host work and what each piece comes after. Work runs in the call that
// enqueues it, except launches that a schedule holds (held.h), so nothing here decides when work runs; this
// file says what CUDA promises about its order, which is less: a stream is in order, events join streams, the
// legacy default stream joins those of its device, a copy between two devices in it joins everything of
// both, and a synchronising call puts everything that the host enqueues later after what it waited for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/exec/observer.h"

namespace sim::shim {

// A frontier is work that must have completed; what that work came after is implied.
using Frontier = std::vector<uint64_t>;
void merge(Frontier& into, const Frontier& from);
bool contains(const Frontier& frontier, uint64_t id);

struct Runtime;
struct Stream;

// One piece of work on its way. It begins when it is enqueued, and the code that executes it announces it
// before.
struct WorkInProgress {
  const char* what = "";
  Frontier after;
  bool programmatic = false;
  int device = 0;   // that does it
  uint64_t id = 0;  // 0 until announced
};

class HostOrder {
 public:
  // Returns what work enqueued now in `stream` comes after.
  Frontier before(Runtime& runtime, const Stream& stream) const;
  // The host waits for `frontier`. That is a piece of host work, after which all later work comes.
  void host_waits(Runtime& runtime, const char* what, Frontier frontier);
  // A call returned only after its own work, such as a synchronous copy, had completed.
  void host_waited(Frontier done) { host_ = std::move(done); }
  // Returns everything that is in any stream of the device.
  Frontier everything(Runtime& runtime, int device) const;
  // All later work of the device comes after `frontier`.
  void hold_back(int device, const Frontier& frontier) { merge(devices_[device].floor, frontier); }
  // The work of a stream that is destroyed remains.
  void orphan(const Stream& stream);

  // The work that is being done now; it is null outside submit().
  WorkInProgress* current = nullptr;
  // Numbers the current work and tells the observer; does nothing for work outside submit().
  uint64_t announce(Runtime& runtime, HostWork::Kind kind, std::vector<Region> regions,
                    const std::string& what = {});

 private:
  struct Device {
    Frontier floor;  // what all work comes after
    Frontier blocking_orphans, other_orphans;
  };
  const Device& of(int device) const;

  uint64_t next_ = 1;
  Frontier host_;
  std::map<int, Device> devices_;
};

// Appends [address, address + n) as regions of global memory.
void append_region(std::vector<Region>& out, uint64_t address, uint64_t n, bool write);

}  // namespace sim::shim
