// policy.h -- every choice that the ISA leaves open: which grid and which cluster run, who moves in it, when
// asynchronous work reads its sources, when and in how many pieces it lands (takes effect), whether a wait
// wakes early, who is elected, where shared memory begins. A policy sees identities only; whatever it answers
// is a legal run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {

struct Inst;

struct Agent {
  enum class Kind : uint8_t {
    kWarp,   // a warp runs on
    kRead,   // an asynchronous operation reads its sources
    kPiece,  // ... writes its next piece; operations of the tensor core do everything in one
  };
  Kind kind;
  uint64_t id;                 // kWarp: index within the cluster; else the operation's number, rising
  uint32_t rank = 0;           // CTA in the cluster that runs or issued it
  uint32_t warp = 0;           // in that CTA
  const Inst* inst = nullptr;  // the asynchronous operation; null for warps
};

class Policy {
 public:
  virtual ~Policy() = default;
  // Is called before every grid, or grids that run together, so that the choices of a run depend on nothing
  // that happened before it.
  virtual void start() {}
  // Returns the index of the agent that moves. There is one at least. Operations come first, the oldest
  // before the others, and then the warps in index order.
  virtual size_t next(const std::vector<Agent>& agents) = 0;
  virtual uint32_t quantum() { return 512; }  // instructions a warp may run before the next choice
  // When true, a launched grid waits for later ones until the host gives the device other work or waits for
  // it; launches that nothing orders then run together, and griddepcontrol.wait waits for the grids before.
  virtual bool overlaps_grids() const { return false; }
  // Returns the index of the grid whose turn it is; in its turn a grid runs one round. `grids` are the
  // numbers of those that may be able to move, in rising order, which is that of their launches; there are
  // two at least.
  virtual size_t next_grid(const std::vector<uint64_t>& /*grids*/) { return 0; }
  // Clusters take turns in rounds: in each round every resident cluster runs once, for a slice.
  // Returns the warp instructions of a slice.
  virtual uint64_t slice() { return 1 << 20; }
  // Returns how many clusters begin before a round, from 1 to `room`: the number of those that have not begun
  // and fit on the machine, at least 2. Clusters begin in the order of their numbers.
  virtual uint64_t clusters_to_begin(uint64_t /*room*/) { return 1; }
  // Returns the index of the cluster that runs next. `clusters` are the numbers of those that have not run in
  // this round, in rising order; there are two at least.
  virtual size_t next_cluster(const std::vector<uint64_t>& /*clusters*/) { return 0; }
  // When false, a request to cancel a cluster fails although one has not begun.
  virtual bool cancel() { return true; }
  virtual bool wake_early() { return false; }  // try_wait returns false although nothing changed
  // When true, the operation that was just issued completes before the next instruction, if older ones allow
  // it.
  virtual bool at_once() { return false; }
  // When true, tcgen05 operations of one thread start in issue order. When false, only the pairs that the ISA
  // lists stay ordered.
  virtual bool keep_tensor_order() { return true; }
  // Returns in how many pieces a copy writes `bytes`, all its destinations together. With 1 it lands
  // everywhere at once; otherwise every destination of a multicast lands by itself, and a number that does
  // not divide is rounded.
  virtual uint32_t pieces(uint64_t /*bytes*/) { return 1; }
  virtual uint32_t piece(uint32_t /*left*/) { return 0; }  // which of the `left` pieces lands next
  // Returns the lane that elect.sync elects. It is always the same one of a mask.
  virtual uint32_t leader(uint32_t members) { return uint32_t(__builtin_ctz(members)); }
  // Returns by how many bytes the shared windows of the grid start later: a multiple of `align`, at most
  // kMaxSharedShift.
  static constexpr uint32_t kMaxSharedShift = 8192;
  virtual uint32_t shared_shift(uint32_t /*align*/) { return 0; }
  // When false, diverged lanes meet again only where an instruction asks for it.
  virtual bool reconverge() { return true; }
  // When true, tcgen05.ld reads tensor memory at issue, else when its registers are first used or waited for.
  virtual bool load_early() { return true; }
};

// Gives warps their turns in index order, round and round.
class WarpTurns {
 public:
  size_t next(const std::vector<Agent>& agents, size_t first_warp);

 private:
  uint64_t last_ = ~uint64_t(0);  // nobody yet: the first warp is next
};

// Asynchronous work lands first, oldest first; warps take turns in index order.
class DefaultPolicy : public Policy {
 public:
  void start() override { turns_ = WarpTurns(); }
  size_t next(const std::vector<Agent>& agents) override;

 private:
  WarpTurns turns_;
};

}  // namespace sim
