// wgmma.h -- what a CTA remembers of the wgmma instructions of its warpgroups. A warpgroup is four warps, the
// first of a rank that four divides; each executes the instructions by itself, all in the same order:
//
//   warp 0   fence  mma 0  mma 1  commit  wait        mma 0 begins when the last of the four has come to it,
//   warp 1   fence  mma 0  mma 1  commit  wait        and is over for all of them at once
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/engine/wgmma.h"

namespace sim {

struct Inst;

constexpr uint32_t kWarpgroup = 4;  // warps

// A wgmma.mma_async from the moment when the first warp comes to it until it has completed.
struct WgmmaGathering {
  WgmmaOp op;
  std::vector<uint64_t> numbers;  // of the parts of the warps, as the observer knows them
  std::vector<float> a;           // of A in registers
};

struct Warpgroup {
  struct Step {  // one wgmma instruction
    const Inst* inst;
    std::shared_ptr<WgmmaGathering> mma;  // wgmma.mma_async only
  };
  std::deque<Step> steps;  // those that some warp has not come to yet; the first has the number `past`
  uint64_t past = 0;
  std::array<uint64_t, kWarpgroup> at{};  // steps that each warp has made
  uint64_t complete = 0;                  // wgmma.mma_async, which complete in order
};

// What a warp has in flight, and what it did with the registers that the tensor core works on.
struct WgmmaWarp {
  struct Use {
    uint64_t mma = 0;            // 1 + number of the latest wgmma.mma_async that has it; 0: none
    bool accumulator = false;    // of that one, else a fragment of A
    uint16_t place = 0;          // of that accumulator ...
    uint16_t columns = 0;        // ... and the N ...
    uint16_t depth = 0;          // ... and the K of that shape
    uint64_t mma_fences = 0;     // wgmma.fence that the warp had executed by then
    const Inst* user = nullptr;  // the latest instruction beside wgmma.mma_async that named it ...
    uint64_t user_fences = 0;    // ... after so many wgmma.fence
    const Inst* mma_inst = nullptr;
  };
  std::vector<Use> uses;         // by index into Kernel::wgmma_registers
  uint64_t fences = 0;           // executed
  uint64_t issued = 0;           // wgmma.mma_async
  uint64_t retired = 0;          // of these, known to be complete by wgmma.wait_group
  std::vector<uint64_t> groups;  // committed: `issued` as it was then
};

}  // namespace sim
