// observer.h -- what a watcher of the machine sees: instructions, memory accesses and synchronisation, in the
// order they take effect. A race checker or a tracer derives from Observer; nothing it does can change a run.
#pragma once

#include <cstdint>

namespace sim {

struct Inst;

struct Actor {
  uint64_t cta = 0;  // linear index of the CTA in the grid
  uint32_t warp = 0;
  uint32_t lane = 0;
  uint64_t async_id = 0;  // not 0: an asynchronous operation that this thread issued
};

struct AccessEvent {
  enum class Memory : uint8_t { kGlobal, kShared, kLocal, kTensor };
  Actor actor;
  Memory memory;
  uint64_t cta = 0;      // whose shared or tensor memory
  uint64_t address = 0;  // host address, shared-window offset, local offset or TMEM address
  uint64_t bytes = 0;
  bool write = false;
  const Inst* inst = nullptr;
};

struct SyncEvent {
  enum class Kind : uint8_t {
    kMbarrierInit,
    kMbarrierArrive,
    kMbarrierExpectTx,
    kMbarrierCompleteTx,
    kMbarrierObserved,
    kBarrierArrive,
    kBarrierLeave,
    kClusterArrive,
    kClusterLeave,
    kFence,
    kIssue,
    kLand,
    kGroupWait,
    kExit,
  };
  Kind kind;
  Actor actor;
  uint64_t cta = 0;  // whose barrier
  uint64_t object =
      0;  // shared offset of an mbarrier, number of a named barrier, id of an asynchronous operation
  int64_t amount = 0;  // arrivals or bytes
  const Inst* inst = nullptr;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void instruction(const Actor& /*first lane*/, uint32_t /*mask*/, const Inst&) {}
  virtual void access(const AccessEvent&) {}
  virtual void sync(const SyncEvent&) {}
};

}  // namespace sim
