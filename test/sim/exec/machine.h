// machine.h -- the state of a running grid: clusters of CTAs, their warps, the fragments (sets of lanes at
// one instruction) into which a warp diverges, and the asynchronous operations in flight. Only exec/ and
// launch.cpp include this. (The GPU as numbers is sim/machine.h.)
//
//   Grid ── Cluster ──┬── Cta ──┬── Warp ──── Fragment {pc, lanes}      runs
//                     │         ├── shared memory, mbarriers, TMEM
//                     │         └── named barriers
//                     └── AsyncOp                                       waits until the policy lands it
//
// In the shared window of a CTA, [0, 1024) is reserved, as on the hardware, and so is what the policy shifts
// the window by; static variables follow, then dynamic memory. A shared address is
// (rank in cluster << 24) | offset, so `address & 0xFEFFFFFF` names the even CTA of a pair.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/decode/program.h"
#include "sim/engine/mbarrier.h"
#include "sim/exec/copy.h"
#include "sim/exec/launch_config.h"
#include "sim/exec/observer.h"
#include "sim/exec/policy.h"
#include "sim/exec/wgmma.h"
#include "sim/fault.h"
#include "sim/machine.h"
#include "sim/mem/bytes.h"
#include "sim/mem/global.h"
#include "sim/mem/tmem.h"
#include "sim/text.h"

namespace sim {

constexpr uint32_t kReservedShared = Machine::kReservedSmemPerBlock;
constexpr uint32_t kRankShift = 24;
// These windows of generic addresses never meet host pointers, whose top 16 bits are clear.
constexpr uint64_t kSharedWindow = uint64_t(1) << 56;
constexpr uint64_t kLocalWindow = uint64_t(2) << 56;

struct Cluster;
struct Cta;
struct Grid;
struct Running;
struct Warp;

// A Join is where the lanes of a divergent branch meet. The lanes that are there wait in `arrived` until it
// equals `expected`.
struct Join {
  uint32_t pc = 0, expected = 0, arrived = 0;
  std::vector<uint32_t> calls;
  std::shared_ptr<Join> parent;
};

struct Wait {
  enum class Kind : uint8_t {
    kNone,
    kMbarrier,
    kNamedBarrier,
    kClusterBarrier,
    kWarp,
    kTmem,
    kGroups,
    kWgmma,
    kRegisters,
    kGrids,
    kTrap  // for nothing: the grid ends
  };
  struct Phase {
    Cta* cta;
    uint32_t offset;
    uint64_t phase;
  };
  Kind kind = Kind::kNone;
  std::vector<Phase> phases;  // kMbarrier: one per distinct barrier
  uint64_t parity = 0;        // kMbarrier, as asked
  uint32_t barrier = 0;       // kNamedBarrier
  uint64_t generation = 0;    // kNamedBarrier, kClusterBarrier; kWgmma: operations that have to be complete
  uint32_t members = 0;       // kWarp
  uint32_t lanes = 0;         // lanes that execute the instruction (the guard may have removed some)
  uint32_t allowed = 0;       // kGroups: groups that may stay pending; kRegisters: of the pool, as needed
  bool bulk = false;          // kGroups
  bool read = false;          // kGroups: only until their sources are read
  bool aligned = false;       // kWarp: at an .aligned instruction, where every live lane has to come
  uint64_t checked_at = 0;    // Cluster::events when it was last found not ready
};

struct Reduction {  // of the predicates given to bar.red
  uint32_t popc = 0;
  bool all = true, any = false;
};

struct Fragment {
  uint32_t pc = 0, mask = 0;
  uint32_t join_pc = kNowhere;  // join->pc, where it is looked at after every instruction
  std::shared_ptr<Join> join;
  std::vector<uint32_t> calls;  // return addresses
  Wait wait;
  bool entered = false;     // has begun an instruction that it executes again when it wakes
  uint64_t generation = 0;  // entered: of the named barrier it arrived at
  Reduction reduction;      // bar.red: the result of that generation
};

// Holds the copies of one thread, in groups.
struct CopyGroups {
  std::shared_ptr<CopyGroup> open;
  std::vector<std::shared_ptr<CopyGroup>> committed;
  const std::shared_ptr<CopyGroup>& join_open() {
    if (!open) open = std::make_shared<CopyGroup>();
    return open;
  }
  void commit() {
    committed.push_back(open ? open : std::make_shared<CopyGroup>());
    open.reset();
  }
  // True when at most the `pending` youngest groups are not done or, with `read`, have not read all their
  // sources.
  bool at_most(uint32_t pending, bool read) const;
};

// A tcgen05.ld or .st of a warp that no tcgen05.wait has covered yet.
struct TmemTransfer {
  uint64_t id = 0;
  const Inst* inst = nullptr;
  bool store = false;
  bool landed = false;
  std::vector<uint32_t> registers;  // a load's destinations, rising
  std::function<void()> land;
};

// Says how a lane's register came to hold poison.
struct Poison {
  const Inst* inst;   // that put it there
  std::string cause;  // "register %r1, which was never written"
  // A load brought it beside bytes with a value, and it was no more than moved since: it may be padding.
  bool copied = false;
};

// Of poison from two places in one register, that which was not merely moved names where it came from.
void merge_origin(std::shared_ptr<const Poison>* into, const std::shared_ptr<const Poison>& more);
// Returns the origin of what was computed of such poison.
std::shared_ptr<const Poison> computed(const std::shared_ptr<const Poison>& from);

constexpr uint64_t kWhole = ~uint64_t(0);  // all bits of a register, however many it has

// A Hole is what a lane's register lacks: the bits that are poison.
struct Hole {
  std::shared_ptr<const Poison> origin;
  uint64_t unknown;
};

// Bits are what a value that may have a hole holds: zero where nothing is known.
struct Bits {
  uint64_t known = 0, unknown = 0;
};

// A byte of local memory that holds poison, and what is known of it.
struct SpilledByte {
  std::shared_ptr<const Poison> origin;
  uint8_t known = 0, unknown = 0xFF;
};

// What a load found that has holes.
struct Load {
  Space space;
  uint64_t address;
  const uint8_t* data;
  const Holes& holes;
};

struct Warp {
  Cta* cta = nullptr;
  uint32_t index = 0, live = 0;
  std::unique_ptr<uint64_t[]> registers;  // 32 lanes a register, with a value where `written` has the lane
  std::vector<uint32_t> written;          // by register: lanes that wrote all bits of it
  // Of the others, which bits are missing and whence their poison came, by register * 32 + lane. Where there
  // is no entry, nobody wrote any.
  std::unordered_map<uint64_t, Hole> poisoned;
  // Bytes of `local` by their offsets, which count where it says that nobody wrote the byte. Where there is
  // no entry either, nobody did.
  std::unordered_map<uint64_t, SpilledByte> spilled;
  std::vector<std::unique_ptr<Fragment>> fragments;
  std::vector<std::shared_ptr<Join>> joins;  // with lanes waiting in them
  // Lanes were let go on although others were to join them: they wait where an instruction is .aligned.
  bool ahead = false;
  size_t turn = 0;
  std::unique_ptr<Bytes> local;  // lane-major
  std::array<CopyGroups, 32> bulk_groups, async_groups;
  uint64_t woken_at = 0;         // Cluster::events when a wait of this warp last woke early ...
  uint32_t woken = 0;            // ... and how often it did since
  uint32_t cluster_arrived = 0;  // lanes that arrived at the cluster barrier, until it completes
  std::array<uint64_t, 32> cluster_generation{};
  std::vector<std::shared_ptr<TmemTransfer>> transfers;
  std::unique_ptr<WgmmaWarp> wgmma;         // made at the first wgmma instruction
  std::vector<uint64_t> register_requests;  // setmaxnreg, in order
  uint32_t registers_held = 0;              // by a thread, 0 where the kernel does not say
  uint64_t clock_read_at = 0;               // warp instruction count when it last read a clock
};

struct NamedBarrier {
  uint64_t generation = 0;
  uint32_t expected = 0;               // threads; 0: all of the CTA
  uint32_t arrived = 0;                // threads, in whole warps
  std::map<uint32_t, uint32_t> lanes;  // by warp: which of its lanes are here
  Reduction reduction;
};

struct TmemRequest {  // tcgen05.alloc/dealloc of a pair: both CTAs must ask for the same
  enum class State : uint8_t { kNone, kAsked, kDone };
  State state = State::kNone;
  bool free = false;
  uint32_t columns = 0, base = 0, warp = 0;
};

struct Cta {
  Cta(Cluster& owner, uint32_t rank_in_cluster, size_t shared_bytes);
  Cluster* cluster;
  uint32_t rank;
  uint64_t linear = 0;  // in the grid
  uint32_t ctaid[3] = {0, 0, 0};
  std::vector<std::unique_ptr<Warp>> warps;
  Bytes shared;
  uint32_t shared_begin = kReservedShared;  // first byte of its window
  std::map<uint32_t, Mbarrier> mbarriers;
  uint32_t mbarrier_low = ~0u, mbarrier_high = 0;  // every live barrier lies in [low, high)
  std::array<NamedBarrier, 16> named;
  std::unique_ptr<Tmem> tmem;  // made at the first use: 256 KiB
  TmemRequest tmem_request;
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;  // made at their first wgmma instruction
  uint32_t register_pool = 0;                          // registers that setmaxnreg.dec released
  uint32_t live_warps = 0;
  bool cancel_failed = false;  // clusterlaunchcontrol.query_cancel has said so to a thread
  uint32_t tensor_group = 0;   // cta_group of the kernel's tcgen05 instructions, 0 before the first
  bool launched_dependents = false;
  bool exited() const { return live_warps == 0; }
  Tmem& tensor_memory();
  Mbarrier& mbarrier(uint32_t offset);  // Fault kProtocol when none was initialised there
};

struct AsyncOp {
  enum class Kind : uint8_t { kCopy, kTensorCopy, kTensorMma, kTensorCommit, kTmemLoad, kTmemStore, kWgmma };
  uint64_t id = 0;
  Kind kind = Kind::kCopy;
  const Inst* inst = nullptr;
  Cta* issuer = nullptr;
  uint32_t warp = 0, lane = 0;
  uint32_t ranks = 0;            // CTAs of the cluster whose memory it still touches
  std::unique_ptr<Copy> copy;    // of a copy, which moves in steps; else null
  std::function<void()> land;    // without a copy: the whole effect, in one step
  bool sources_read = false;     // as the observer was told
  std::vector<uint64_t> others;  // kWgmma: the numbers of the parts of the other warps
  bool reads_next() const { return copy && !copy->sources_read(); }
  std::vector<MbarrierRef> signals;  // the mbarriers its completion will reach
  // True for operations that the tensor core starts in an order among those of their thread or warpgroup.
  bool queued() const {
    return kind == Kind::kTensorCopy || kind == Kind::kTensorMma || kind == Kind::kTensorCommit ||
           kind == Kind::kWgmma;
  }
};

struct Cluster {
  Grid* grid = nullptr;
  uint64_t index = 0;
  uint32_t id[3] = {0, 0, 0};
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<std::unique_ptr<AsyncOp>> pending;  // oldest first
  const AsyncOp* landing = nullptr;               // the one that moves right now
  uint64_t events = 1;  // rises whenever something happens that a wait may depend on
  uint64_t barrier_generation = 0;
  uint32_t live_ctas = 0;
  Cta& at(uint32_t rank);  // Fault kBounds: no such CTA; kProtocol: it has exited
};

struct Grid {
  Grid(const Machine& gpu, const Kernel& k, const LaunchConfig& c, GlobalMemory& m, uint64_t params,
       Policy& p, Observer* o);
  const Machine& machine;
  const Kernel& kernel;
  const LaunchConfig& config;
  GlobalMemory& memory;
  uint64_t param_base;
  Policy& policy;
  Observer* observer;
  std::vector<Access> accesses;  // of the instruction, which the observer has yet to be told
  LaunchStats stats;
  uint32_t shared_shift = 0;  // of every shared window
  std::set<std::pair<const char*, const Inst*>> remarked;
  std::set<uint32_t> mixed_warpgroups;       // whose different setmaxnreg were remarked on
  bool go_on = false, elect_lowest = false;  // LaunchOptions
  uint64_t patience = kDefaultPatience;      // likewise
  bool trapped = false;  // with go_on, a thread has executed a trap, which ends the grid when nobody can move
  // Tells the observer of a fault, which has its place, and returns true when the program goes on behind it,
  // and the grid, too, unless it was a deadlock. Nothing helps against what the simulator does not know.
  bool outlives(const Fault& fault) const;
  uint64_t next_op = 1;
  uint64_t changed_at = 0;   // warp instruction count at the last change another thread could see
  uint64_t watch_after = 0;  // warp instructions without one after which the grid is watched
  uint64_t skipped = 0;      // ticks by which clocks are ahead of the count of warp instructions
  std::vector<std::unique_ptr<Cluster>> resident;
  uint64_t clusters, limit;  // how many it has; how many of them the machine holds at once
  uint64_t begun = 0;        // clusters, in the order of their numbers

  // Of grids that run together.
  uint64_t number = 0;                 // among them, in the order of their launches
  uint64_t work = 0;                   // HostWork::id
  Reach reach;                         // set in the memory while it moves
  std::vector<const Grid*> after;      // have to end before it starts
  std::vector<const Grid*> preceding;  // have to let it start, and to end before griddepcontrol.wait returns
  uint64_t releasing_ctas = 0;         // executed griddepcontrol.launch_dependents, or have left without it
  bool stuck = false;                  // could not move when its turn was last
  bool over() const { return begun == clusters && resident.empty(); }
  bool may_start() const;
  bool preceding_over() const;
  // Takes the first cluster that has not begun out of the launch and returns its first CTA, if there is one
  // and the policy lets the request succeed.
  std::optional<Dim3> cancel_cluster();
};

// What a handler works with: one instruction of one fragment.
struct Exec {
  Grid& grid;
  Cluster& cluster;
  Cta& cta;
  Warp& warp;
  Fragment* fragment;
  uint32_t mask = 0;     // lanes that execute, guard applied
  uint32_t next_pc = 0;  // a handler that waits or jumps changes it

  // Read and write values. Fault kPoison says that a lane never wrote the register.
  uint64_t source(const Value& value, uint32_t lane) const;
  const uint64_t* sources(const Value& value, uint64_t scratch[32]) const;
  uint64_t uniform(const Value& value, const char* what) const;  // Fault kProtocol when lanes differ
  uint64_t address(const Operand& operand, uint32_t lane) const;
  void write(const Value& destination, uint32_t lane, uint64_t bits);
  // Poison passes bit by bit through moves, arithmetic, predicates, shuffles, local memory and loads of
  // tensor memory; where it decides anything else, source() is asked, and that is a fault.
  uint32_t holes(const Value& value) const {  // executing lanes in which bits of the value are poison
    return value.kind == Value::Kind::kRegister ? mask & ~warp.written[value.reg] : 0;
  }
  Bits bits(const Value& value, uint32_t lane) const;
  std::shared_ptr<const Poison> origin(const Value& value, uint32_t lane) const;  // of its poison
  // Returns the origin of poison that this instruction makes.
  std::shared_ptr<const Poison> origin(const std::string& cause, bool copied = false) const;
  void write(const Value& destination, uint32_t lane, Bits bits, std::shared_ptr<const Poison> origin);

  // Throws the fault on unless the grid goes on.
  void outlive(const Fault& fault, uint32_t lanes) const;

  // Access memory.
  struct Shared {
    Cta* cta;
    uint32_t offset;
  };
  Shared shared(uint64_t address, uint64_t bytes, bool any_rank) const;
  // Takes the spaces shared, shared::cluster and generic.
  Shared shared_of(Space space, uint64_t address, uint64_t bytes) const;
  // Says what the observer is told of an access: the access as it is, one half of a read-modify-write, the
  // access of a warp that all its lanes make as one, or nothing.
  enum class Seen : uint8_t { kPlain, kAtomic, kCollective, kNot };
  // Poison is a fault unless the caller asks for holes, which are for loaded().
  void load(Space space, uint64_t address, uint32_t lane, void* out, uint32_t bytes, Seen seen = Seen::kPlain,
            Holes* holes = nullptr);
  // Returns false where the grid goes on without the store.
  bool store(Space space, uint64_t address, uint32_t lane, const void* in, uint32_t bytes,
             Seen seen = Seen::kPlain);
  // Returns what `bytes` bytes of a load with holes hold, which is `at` bytes into it, and whence its poison
  // came.
  Bits loaded(const Load& load, uint32_t lane, uint32_t at, uint32_t bytes,
              std::shared_ptr<const Poison>* origin) const;
  // Local memory takes poison and gives it back: a spilled register need not hold a value.
  bool local(Space space, uint64_t address) const;
  // Makes poison of the bytes just stored that are poison in the register.
  void store_holes(Space space, uint64_t address, uint32_t lane, const Value& from, uint32_t bytes);
  void copy_local(uint64_t to, uint64_t from, uint32_t lane, uint64_t bytes);  // with its poison
  uint64_t global_of(Space space, uint64_t address) const;  // Fault kBounds unless it is global memory

  // Waiting puts the fragment to sleep. Unless `resume_after`, it executes the instruction again when it
  // wakes.
  void wait(Wait&& w, bool resume_after);
  // Returns false when the fragment sleeps until all lanes of `members` are at this instruction. `event` is
  // what the observer is told.
  bool gather(uint32_t members, SyncEvent::Kind event = SyncEvent::Kind::kWarpMeet);
  bool converged();  // .aligned; false: asleep until the other live lanes are here
  bool meet(uint32_t members, bool aligned);
  uint32_t elected_lane() const;  // the only executing lane; Fault kProtocol when there are more
  void changed() {
    ++cluster.events;
    grid.changed_at = grid.stats.warp_instructions;
  }
  Thread thread(uint32_t lane) const { return {cta.linear, warp.index, lane}; }
  bool watched() const { return grid.observer != nullptr; }
  void tell_accesses() const;                           // those so far, before anything else is told
  void report(SyncEvent& event, uint32_t lanes) const;  // fills thread, mask and inst
  // Tells the observer of a rule that the instruction breaks, once for each instruction.
  void remark(const char* rule, const std::string& text, const char* missing) const;
  // Says whether what a prefetch is about has a value; where it has none, that is remarked on, by this rule.
  bool prefetches(const Value& value, const char* rule) const;
  // Says whether all these bytes of global memory are in one allocation, or in the kernel's parameters.
  bool in_memory(uint64_t address, uint64_t bytes);
  bool wakes_early();  // try_wait returns although nothing changed: a few times, never for ever
  // `facts` describe the operation to the observer; thread, number and instruction are filled in.
  void launch_async(AsyncOp::Kind kind, uint32_t lane, uint32_t ranks, std::function<void()> land,
                    AsyncIssue&& facts = {});
  void launch_copy(uint32_t lane, std::unique_ptr<Copy> copy, AsyncIssue&& facts);
  // Several warps issue one operation, each its part: every warp announces its own, and the last one launches
  // the whole as that of warp `first`. announce() tells the observer and returns the number of the part.
  uint64_t announce(uint32_t lane, AsyncIssue&& facts);
  void launch_parts(AsyncOp::Kind kind, uint32_t first, const std::vector<uint64_t>& numbers,
                    std::function<void()> land);

 private:
  void load_checked(Space space, uint64_t address, uint32_t lane, void* out, uint32_t bytes, Seen seen,
                    Holes* holes);
  void store_checked(Space space, uint64_t address, uint32_t lane, const void* in, uint32_t bytes, Seen seen);
  uint64_t in_local(uint64_t address, uint32_t lane) const;  // its place in the local memory of the warp
  void make_up(uint32_t reg, uint32_t lane) const;  // a value where there is none, if the grid goes on
  void issue(std::unique_ptr<AsyncOp> op, AsyncIssue&& facts);
  void start(std::unique_ptr<AsyncOp> op);
};

#define SIM_FOR_LANES(lane, lane_mask)         \
  for (uint32_t rest_ = (lane_mask), lane = 0; \
       rest_ != 0 && ((lane = uint32_t(__builtin_ctz(rest_))), true); rest_ &= rest_ - 1)

// cta.cpp
std::unique_ptr<Cluster> start_cluster(Grid& grid, uint64_t index);
void exit_lanes(Exec& x);             // the executing lanes leave the kernel
void check_exit(Cta& cta);            // rules at the end of a CTA
void check_named_barriers(Cta& cta);  // completes barriers that only exited warps were missing from
void check_cluster_barrier(Cluster& cluster);

// warp.cpp
bool run_warp(Grid& grid, Warp& warp, uint32_t quantum);  // false: no fragment could run
bool can_run(Warp& warp);
void diverge(Exec& x, uint32_t taken, uint32_t target, uint32_t rejoin);
// Breaks a wait between lanes of one warp; false when there is none. With `others_come` the other lanes
// still run.
bool release_a_join(Cluster& cluster, bool others_come = false);
void drop_from_joins(Warp& warp, std::shared_ptr<Join> join, uint32_t lanes);

// tmem_ops.cpp
void use_registers(Exec& x, const Inst& inst);  // loads whose registers the instruction names take effect
void check_transfers(const Warp& warp, const char* what);  // Fault kProtocol when one was never waited for

// wgmma_ops.cpp
void use_wgmma_registers(Exec& x, const Inst& inst);  // Fault kProtocol when the tensor core has one of them
void check_wgmma_exit(const Warp& warp);              // Fault kProtocol when one was never waited for
std::string wgmma_wait_text(const Warp& warp, uint64_t operations);

// sync_ops.cpp
void check_register_requests(const Exec& x);  // the warps of a warpgroup ask for the same registers

// memory.cpp: what the qualifiers of an instruction say
Order order_of(const Inst& inst, Order otherwise);
Scope scope_of(const Inst& inst, Scope otherwise);

// grid.cpp
void complete_youngest(Cluster& cluster);  // lands the operation just issued, unless older ones hold it back
// Begins as many clusters as the policy says. `room` is how many have not begun and fit on the machine.
void begin_clusters(Grid& grid, uint64_t room);
// Gives every resident cluster its slice, in the order of the policy. Returns false when nothing could move
// at all. `alone` says that no other grid can move, and that no further cluster can begin.
bool run_round(Grid& grid, bool alone);

// together.cpp
void run_together(const std::vector<Grid*>& grids);  // in the order of their launches

// Change barriers for handlers and for landing operations; the latter are reported as Cluster::landing.
void mbarrier_complete_tx(Cta& cta, uint32_t offset, int64_t bytes);
void mbarrier_arrive(Cta& cta, uint32_t offset, int32_t count);

// report.cpp
std::string deadlock_report(const Grid& grid, const std::vector<Spin>& spins = {});
Fault given_up(const Grid& grid, uint64_t quiet, const std::vector<Running>& running);
Fault located(const Fault& fault, const Grid& grid, const Warp& warp, uint32_t lanes, const Inst& inst);
[[noreturn]] void throw_at(const Fault& fault, const Grid& grid, const Warp& warp, uint32_t lanes,
                           const Inst& inst);
std::string where(const Grid& grid, const Cta& cta);
std::string pending_bytes(const Mbarrier& barrier);  // or how many too many have arrived

}  // namespace sim
