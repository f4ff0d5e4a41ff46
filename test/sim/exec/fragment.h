// fragment.h -- a fragment is a set of lanes of a warp at one instruction. A warp that diverges has several,
// which wait for each other where they join. A fragment that waits for anything has a Wait.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/decode/program.h"

namespace sim {

struct Cta;

// A Join is where the lanes of a divergent branch meet. Lanes that have come wait in `arrived` until it
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

// Visits the lanes of a mask, from the lowest.
#define SIM_FOR_LANES(lane, lane_mask)         \
  for (uint32_t rest_ = (lane_mask), lane = 0; \
       rest_ != 0 && ((lane = uint32_t(__builtin_ctz(rest_))), true); rest_ &= rest_ - 1)

}  // namespace sim
