// observer.h -- what an observer of the machine sees. Every event is a raw fact in the order in which the
// machine made it: which thread touched which bytes through which proxy, what an asynchronous operation will
// touch (at issue), what it has touched (as it lands, which means that it takes effect), and every
// instruction that orders anything. Events are not interpreted here: check/ decides what is ordered by what.
// An observer cannot change a run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/exec/launch_config.h"
#include "sim/fault.h"
#include "sim/machine.h"

namespace sim {

struct Inst;
struct Kernel;
struct TensorMap;
struct WgmmaOp;

struct Thread {
  uint64_t cta = 0;  // linear index of the CTA in the grid
  uint32_t warp = 0;
  uint32_t lane = 0;
};

enum class Memory : uint8_t { kGlobal, kShared, kTensor };

// How an access reaches memory (PTX ISA "Proxies"). kTensor stands for tcgen05 accesses of tensor memory.
enum class Proxy : uint8_t { kGeneric, kAsync, kTensor, kTensormap };

enum class Scope : uint8_t { kCta, kCluster, kGpu, kSys };

// The memory order of an instruction. kWeak is an ordinary access.
enum class Order : uint8_t { kWeak, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSeqCst };

// A region is bytes of one memory. For kGlobal it is [address, address + bytes) of the host's address space,
// for kShared the same in the shared window of `cta`. For kTensor it is the rectangle of 32-bit cells
// [lane, lane + lanes) x [column, column + columns) of `cta`'s tensor memory; address and bytes are unused.
struct Region {
  Memory memory = Memory::kGlobal;
  bool write = false;
  uint64_t cta = 0;  // kShared, kTensor: linear index of the owner in the grid
  uint64_t address = 0;
  uint32_t bytes = 0;
  uint16_t lane = 0, lanes = 0, column = 0, columns = 0;
  bool operator==(const Region&) const = default;
};

// A load, store or atomic of one lane through the generic proxy. Parameters, constants and local memory are
// private or read-only and are not reported.
struct Access {
  Thread thread;
  uint32_t mask = 0;  // lanes that execute the instruction together
  Region region;
  bool atomic = false;        // read-modify-write; region.write is set
  bool non_coherent = false;  // ld.global.nc, ldu
  bool collective = false;    // one access of the whole warp, told of each lane
  uint64_t digest = 0;        // of a plain store: equal where the bytes stored are equal, never 0
  Order order = Order::kWeak;
  Scope scope = Scope::kSys;
  const Inst* inst = nullptr;
};

struct MbarrierRef {
  uint64_t cta = 0;
  uint32_t offset = 0;
  bool operator==(const MbarrierRef&) const = default;
};

// Numbers for tables by mbarrier and by thread, in the order of the CTAs.
inline uint64_t mbarrier_key(const MbarrierRef& ref) { return ref.cta << 32 | ref.offset; }
inline uint64_t thread_key(const Thread& t) { return t.cta << 16 | uint64_t(t.warp) << 5 | t.lane; }

// Everything that an asynchronous operation will touch, known at issue. It may touch `reads` from now until
// its sources are read, and `writes` from now until it completes.
struct AsyncIssue {
  enum class Kind : uint8_t {
    kBulkLoad,     // cp.async.bulk, global to shared
    kBulkStore,    // cp.async.bulk, shared to global
    kBulkShared,   // cp.async.bulk, shared to shared
    kTensorLoad,   // cp.async.bulk.tensor, global to shared
    kTensorStore,  // cp.async.bulk.tensor, shared to global
    kCpAsync,      // cp.async
    kStAsync,      // st.async
    kTryCancel,    // clusterlaunchcontrol.try_cancel: its response
    kMma,          // tcgen05.mma
    kTmemCopy,     // tcgen05.cp
    kCommit,       // tcgen05.commit: arrives when the thread's earlier kMma and kTmemCopy have completed
    kTmemLoad,     // tcgen05.ld, the whole warp
    kTmemStore,    // tcgen05.st, the whole warp
    kWgmma,        // wgmma.mma_async: the part of one warp, the whole warp
  };
  Kind kind = Kind::kBulkLoad;
  uint64_t id = 0;           // rising within the grid, never reused
  uint64_t instruction = 0;  // the same for what lanes issue by one execution of an instruction; 0: not known
  Thread thread;  // kTmemLoad, kTmemStore, kWgmma: lane is the lowest of the warp, which issues as a whole
  uint32_t mask = 0;
  int cta_group = 0;  // tcgen05: 1 or 2
  std::vector<Region> reads, writes;
  // How completion is learned depends on the kind. Copies that signal mbarriers, and kCommit, name them in
  // `barriers` with the bytes that each is given (for kCommit: one arrival each, bytes 0). kBulkStore and
  // kTensorStore belong to the thread's open bulk group, kCpAsync to its open cp.async group. kTmemLoad and
  // kTmemStore are waited for by tcgen05.wait::ld and ::st, kMma and kTmemCopy by a later kCommit. kWgmma
  // belongs to the warp's open wgmma group.
  struct Signal {
    MbarrierRef barrier;
    int64_t bytes = 0;
  };
  std::vector<Signal> barriers;
  // kTensorLoad and kTensorStore have the decoded map, where it lies, and the coordinates of the box.
  const TensorMap* map = nullptr;
  uint64_t map_address = 0;
  std::array<int32_t, 5> coordinates{};
  // kMma has raw descriptors and flags as issued; with a_in_tmem, a_desc is an address of tensor memory. The
  // b_desc of kTmemCopy is its source.
  uint64_t a_desc = 0, b_desc = 0;
  uint32_t idesc = 0;
  bool a_in_tmem = false, accumulate = false, scaled = false;
  enum class Collector : uint8_t { kDiscard, kFill, kUse, kLastUse };
  Collector collector = Collector::kDiscard;  // of A
  const WgmmaOp* wgmma = nullptr;             // kWgmma: its operands
  const Inst* inst = nullptr;
};

// Names an operation as every message and trace does: "TMA load", or the instruction, "tcgen05.mma".
const char* name_of(AsyncIssue::Kind kind);

// The operation moves on. kSourcesRead comes once before any kPiece; kPiece comes once or, for a copy that
// lands in pieces, several times; kComplete comes once, at the end.
struct AsyncLanding {
  enum class Step : uint8_t { kSourcesRead, kPiece, kComplete };
  Step step = Step::kComplete;
  uint64_t id = 0;
};

struct SyncEvent {
  enum class Kind : uint8_t {
    // For mbarriers, `phase` is the phase that the event counts in, before it may complete.
    kMbarrierInit,  // amount: arrival count; mask: all lanes that named this object
    kMbarrierInval,
    // mask: lanes; amount: arrivals of each, bytes: expected with each (arrive.expect_tx). All count in one
    // phase, which may complete with the last. async_id: that of the kCommit, if it is one
    kMbarrierArrive,
    kMbarrierArriveDrop,
    kMbarrierExpectTx,    // bytes
    kMbarrierCompleteTx,  // bytes; async_id, or 0 for the instruction mbarrier.complete_tx
    // A wait or test saw `phase` complete, which is the youngest completed phase. For a barrier that has
    // completed none, which a wait for parity 1 passes, it is ~0.
    kMbarrierWait,
    kMbarrierTest,  // a wait or test that answered false, or a thread that starts to sleep in try_wait
    // For barriers of the CTA, `object` is the number and `phase` the generation. A thread that arrives and
    // waits gives both events.
    kBarrierArrive,  // amount: threads the barrier was asked for, 0: all of the CTA
    kBarrierLeave,
    kWarpSync,       // bar.warp.sync: all lanes of `mask` together
    kWarpMeet,       // elect, shfl, vote, match, redux: the lanes of `mask` meet; no memory order
    kClusterArrive,  // phase: generation; order kRelease or kRelaxed
    kClusterWait,    // order kAcquire or kRelaxed
    kFence,          // `fence`
    kBulkCommit,     // cp.async.bulk.commit_group: closes the open group of each lane
    kBulkWait,       // amount: groups that may stay pending, read: only their sources were waited for
    kCpAsyncCommit,
    kCpAsyncWait,
    kTmemWaitLd,
    kTmemWaitSt,
    // `object` is the first column and `amount` the columns of `cta`. A pair reports both CTAs, by the warp
    // that asks last; `partner` is the thread that asked in the other CTA.
    kTmemAlloc,
    kTmemDealloc,
    // A warp asks for `amount` columns, or to free them, and sleeps: until the other CTA of its pair, that of
    // `partner`, asks for the same, or until so many are free.
    kTmemAsk,
    kTmemRelinquish,
    // Events of one warp as a whole. What four warps of a warpgroup issue as their n-th kWgmma is one
    // operation, so its end is known to be the end of all four parts.
    kWgmmaFence,       // orders registers only
    kWgmmaCommit,      // closes the open group of the warp
    kWgmmaWait,        // amount: groups that may stay pending
    kTmemUse,          // a register of an unwaited tcgen05.ld is used; async_id: that load
    kGridWait,         // griddepcontrol.wait
    kGridLaunch,       // griddepcontrol.launch_dependents
    kSetMaxRegisters,  // amount: registers asked for
    kExit,             // lanes of `mask` leave the kernel
    // A CTA becomes resident. `object` is the shared bytes of its window, `phase` its rank in the cluster,
    // `amount` the linear index of the cluster.
    kCtaStart,
    kCtaExit,  // its last thread has left
  };
  enum class Fence : uint8_t {
    kNone,
    kThread,  // fence.{acquire,release,acq_rel,sc}, membar: `order`, `scope`
    // fence.proxy.async of `spaces`; with `order` kAcquire or kRelease it is fence.proxy.async::generic,
    // which works one way only.
    kProxyAsync,
    kProxyAlias,      // fence.proxy.alias
    kProxyTensormap,  // fence.proxy.tensormap::generic: `order`; acquire: [address, address + bytes)
    kMbarrierInit,    // fence.mbarrier_init.release.cluster
    kTensorBefore,    // tcgen05.fence::before_thread_sync
    kTensorAfter,     // tcgen05.fence::after_thread_sync
  };
  // The spaces of kProxyAsync, and those of kThread with .sync_restrict, which orders nothing else (0: no
  // restriction).
  static constexpr uint8_t kGlobalSpace = 1, kSharedCta = 2, kSharedCluster = 4;

  Kind kind = Kind::kExit;
  Thread thread;         // the lowest lane of `mask`
  uint32_t mask = 0;     // lanes this concerns; events that may differ per lane come once per lane
  MbarrierRef mbarrier;  // kMbarrier*
  uint64_t cta = 0;      // kBarrier*, kTmem*: owner
  uint64_t object = 0;
  uint64_t phase = 0;
  int64_t amount = 0, bytes = 0;
  uint64_t async_id = 0;
  std::optional<Thread> partner;  // kTmemAlloc, kTmemDealloc, kTmemAsk of a pair
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
  Fence fence = Fence::kNone;
  uint8_t spaces = 0;
  uint64_t address = 0;
  uint32_t parity = 0;  // kMbarrierWait, kMbarrierTest with .parity: as asked
  bool has_parity = false, read = false;
  bool local_form = false;  // the instruction named its mbarrier through shared::cta
  const Inst* inst = nullptr;
};

// Work of the host is numbered in the order in which it was enqueued. `after` are the numbers of the work
// that must have completed before it, by stream order, events or synchronisation. Work that came before the
// listed work need not be listed.
struct HostWork {
  enum class Kind : uint8_t { kLaunch, kCopy, kSet, kHost };
  Kind kind = Kind::kLaunch;
  uint64_t id = 0;
  std::vector<uint64_t> after;
  // True for a kLaunch that may start before `after` have completed; griddepcontrol.wait waits for them.
  bool programmatic = false;
  std::vector<Region> regions;  // kCopy, kSet, kHost: what it touches
  std::string what;             // "cudaMemcpyAsync", or the kernel's name
  int device = 0;               // that does it
};

struct GridStart {
  const Kernel* kernel = nullptr;
  const LaunchConfig* config = nullptr;
  uint64_t work = 0;  // HostWork::id, 0 when launched without the runtime
  uint64_t param_base = 0;
  Machine machine = kB200;
  // The alignment that the module declares of dynamic shared memory, where the schedule has placed that at no
  // multiple of 1024; else 0.
  uint32_t declared_align = 0;
};

// A remark is about a rule that was broken in a way that hardware tolerates, so that the grid goes on. `rule`
// is the id of one of check/'s rules.
struct Remark {
  const char* rule = nullptr;
  std::string text, missing;
  Thread thread;
  uint32_t mask = 0;
  const Inst* inst = nullptr;
};

// A warp has run for very long while nothing changed, and runs in a circle.
struct Spin {
  Thread thread;
  uint32_t mask = 0;
  const Inst* inst = nullptr;    // a load of the circle, any instruction of one that loads nothing
  std::optional<Region> region;  // what it loads again and again
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void host(const HostWork&) {}
  virtual void start(const GridStart&) {}
  // Several grids can run at a time. Events after start() belong to the grid that started, events after
  // resume() to the grid with this GridStart::work.
  virtual void resume(uint64_t /*work*/) {}
  // `fault` is the text of the fault that ended the grid, null when it ran to its end. A deadlock is a fault.
  virtual void finish(const char* /*fault*/) {}
  virtual void instruction(const Thread& /*lowest lane*/, uint32_t /*mask*/, const Inst&) {}
  // The accesses of the lanes of an instruction, in the order of the lanes. They differ only in lane, place
  // and digest: an instruction with two kinds of accesses reports each kind by itself.
  virtual void accesses(const std::vector<Access>&) {}
  virtual void issue(const AsyncIssue&) {}
  virtual void land(const AsyncLanding&) {}
  virtual void sync(const SyncEvent&) {}
  virtual void remark(const Remark&) {}
  virtual void spins(const Spin&) {}  // before finish() with a livelock
  // A fault that did not end the grid, because LaunchOptions::go_on says so.
  virtual void outlived(FaultKind, const std::string& /*text*/) {}
};

// Passes every event on to several observers.
class Observers : public Observer {
 public:
  void add(Observer& observer) { all_.push_back(&observer); }
#define SIM_TO_ALL(event, parameters, ...)           \
  void event parameters override {                   \
    for (Observer * o : all_) o->event(__VA_ARGS__); \
  }
  SIM_TO_ALL(host, (const HostWork& e), e)
  SIM_TO_ALL(start, (const GridStart& e), e)
  SIM_TO_ALL(resume, (uint64_t work), work)
  SIM_TO_ALL(finish, (const char* e), e)
  SIM_TO_ALL(instruction, (const Thread& t, uint32_t mask, const Inst& inst), t, mask, inst)
  SIM_TO_ALL(accesses, (const std::vector<Access>& e), e)
  SIM_TO_ALL(issue, (const AsyncIssue& e), e)
  SIM_TO_ALL(land, (const AsyncLanding& e), e)
  SIM_TO_ALL(sync, (const SyncEvent& e), e)
  SIM_TO_ALL(remark, (const Remark& e), e)
  SIM_TO_ALL(spins, (const Spin& e), e)
  SIM_TO_ALL(outlived, (FaultKind kind, const std::string& text), kind, text)
#undef SIM_TO_ALL

 private:
  std::vector<Observer*> all_;
};

}  // namespace sim
