// exec.h -- the execution of one instruction by one fragment, which is the lanes of a warp that are at it
// together. The function of an operation (handlers.h) gets an Exec. With it the function reads and writes
// values, accesses memory, waits, and tells the observer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/decode/program.h"
#include "sim/exec/grid.h"

namespace sim {

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
  // Poison passes bit by bit through moves, arithmetic, comparisons, shuffles, local memory and loads of
  // tensor memory. Every other use of a value (an address, a guard, a barrier, a store) reads it by source(),
  // for which poison is a fault.
  uint32_t holes(const Value& value) const {  // executing lanes in which bits of the value are poison
    return value.kind == Value::Kind::kRegister ? mask & ~warp.written[value.reg] : 0;
  }
  Bits bits(const Value& value, uint32_t lane) const;
  std::shared_ptr<const Poison> origin(const Value& value, uint32_t lane) const;  // of its poison
  // Returns the origin of poison that this instruction makes.
  std::shared_ptr<const Poison> origin(const std::string& cause, bool copied = false) const;
  void write(const Value& destination, uint32_t lane, Bits bits, std::shared_ptr<const Poison> origin);

  // Rethrows the fault unless the grid goes on.
  void outlive(const Fault& fault, uint32_t lanes) const;

  // Access memory.
  struct Shared {
    Cta* cta;
    uint32_t offset;
  };
  Shared shared(uint64_t address, uint64_t bytes, bool any_rank) const;
  // Takes the spaces shared, shared::cluster and generic.
  Shared shared_of(Space space, uint64_t address, uint64_t bytes) const;
  // How an access is reported to the observer: as a plain access, as one half of a read-modify-write, as the
  // access of a warp that all its lanes make together, or not at all.
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
  // Poison may be stored to local memory and loaded from it, because a spilled register need not hold a
  // value.
  bool local(Space space, uint64_t address) const;
  // Makes poison of the bytes just stored that are poison in the register.
  void store_holes(Space space, uint64_t address, uint32_t lane, const Value& from, uint32_t bytes);
  void copy_local(uint64_t to, uint64_t from, uint32_t lane, uint64_t bytes);  // with its poison
  uint64_t global_of(Space space, uint64_t address) const;  // Fault kBounds unless it is global memory

  // Waiting puts the fragment to sleep. Unless `resume_after`, it executes the instruction again when it
  // wakes.
  void wait(Wait&& w, bool resume_after);
  // Lanes with different member masks part here: those with the mask of the lowest lane execute the
  // instruction, the others execute it after them, and all meet again behind it. Returns false when the
  // fragment sleeps until all lanes of the mask are at this instruction. The observer is told of `event`.
  bool gather(const Value& mask_of, SyncEvent::Kind event = SyncEvent::Kind::kWarpMeet);
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
  // Returns whether an operand of a prefetch has a value. If it has none, a remark says so, by this rule.
  bool prefetches(const Value& value, const char* rule) const;
  // Returns whether all these bytes of global memory are in one allocation, or in the kernel's parameters.
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

// external_ops.cpp
void call_external(Exec& x, const Inst& inst);  // of a function that has no body in the module

// cta.cpp
void exit_lanes(Exec& x);  // the executing lanes leave the kernel

// warp.cpp
void diverge(Exec& x, uint32_t taken, uint32_t target, uint32_t rejoin);

// tmem_ops.cpp
void use_registers(Exec& x, const Inst& inst);  // loads whose registers the instruction names take effect

// wgmma_ops.cpp
void use_wgmma_registers(Exec& x, const Inst& inst);  // Fault kProtocol when the tensor core has one of them

// sync_ops.cpp
void check_register_requests(const Exec& x);  // the warps of a warpgroup ask for the same registers

// memory.cpp: what the qualifiers of an instruction say
Order order_of(const Inst& inst, Order otherwise);
Scope scope_of(const Inst& inst, Scope otherwise);

}  // namespace sim
