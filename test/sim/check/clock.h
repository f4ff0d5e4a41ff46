// clock.h -- who knows what has happened. Time is the number of the event; a vector clock holds, for every
// component (a thread, an mbarrier, a queue of asynchronous operations), the time up to which that
// component's past is known. Threads stand in blocks of 32 lanes: a block that is known evenly is one number.
// Clocks are shared until one is changed, so that copying one and joining equal ones cost nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/exec/observer.h"

namespace sim {

using Time = uint64_t;  // 0: before everything
constexpr uint32_t kAllLanes = 0xFFFFFFFF;

// What a component of a clock stands for. The component's value is a Time, except where noted.
enum class Part : uint8_t {
  kThreads,   // a warp: what its lanes did up to then, in program order
  kTensor1,   // a thread's tcgen05.mma and .cp of cta_group::1: complete up to then
  kTensor2,   // ... of cta_group::2
  kBulkRead,  // a thread's bulk groups: sources read
  kBulkDone,  // ... complete
  kCpAsync,   // a thread's cp.async groups: complete
  kTensorLd,  // a warp's tcgen05.ld: complete
  kTensorSt,  // a warp's tcgen05.st: complete
  kWgmma,     // a warp's parts of wgmma.mma_async: complete up to then
  kMbarrier,  // an mbarrier between init and inval: number of phases known to be complete
  kGrids,     // griddepcontrol.wait was passed: 1
};

using Component = uint64_t;
inline Component component(Part part, uint64_t number, uint32_t lane = 0) {
  return uint64_t(part) << 56 | number << 8 | lane;
}

class VectorClock {
 public:
  bool empty() const { return data_ == nullptr; }
  Time of(Component c) const;
  // For kThreads, this is true when every lane of `lanes` is known up to `time`.
  bool knows(Component c, uint32_t lanes, Time time) const;
  bool knows(Component c, Time time) const { return of(c) >= time; }
  bool mentions(Component first, Component last) const;  // any component from first to last
  void raise(Component c, Time time);
  void raise(Component c, uint32_t lanes, Time time);
  void join(const VectorClock& other);
  // Returns what the clock says of asynchronous operations, without what it says of threads.
  VectorClock completions() const;
  bool same(const VectorClock& other) const { return data_ == other.data_; }  // the very same object

 private:
  using Lanes = std::array<Time, 32>;
  struct Entry {
    Component key = 0;
    Time time = 0;                 // the least of the lanes
    std::shared_ptr<Lanes> lanes;  // null: all lanes alike; changed only while nobody shares it
  };
  using Entries = std::vector<Entry>;  // sorted by key
  static Time least(const Lanes& lanes);
  static bool covers(const Entry& a, const Entry& b);
  static void lift(Entry& a, const Entry& b);
  struct Coverage {
    bool covers = true, covered = true;  // the first says all that the second does; and the other way
  };
  static Coverage compare(const Entries& a, const Entries& b);
  const Entry* find(Component c) const;
  Entry& own(Component c);  // a private copy of the entries, with this one
  std::shared_ptr<Entries> data_;
};

// A stamp is a moment of a thread. Checkers that reason about order ask Clocks whether another thread knows
// of that moment.
struct Stamp {
  Component thread = 0;
  uint32_t lane = 0;
  Time time = 0;
};

class Clocks {
 public:
  virtual ~Clocks() = default;
  // Returns the moment that covers everything `thread` has done so far, the event being delivered included.
  virtual Stamp now(const Thread& thread) const = 0;
  // True when the stamped moment comes before whatever `thread` does next in every schedule, because a chain
  // of synchronisation of any strength lies between them. This says nothing about which values memory shows.
  virtual bool ordered(const Stamp& stamp, const Thread& thread) const = 0;
};

}  // namespace sim
