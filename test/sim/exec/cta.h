// cta.h -- the state of a CTA: its warps, shared memory, mbarriers, tensor memory and named barriers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/engine/mbarrier.h"
#include "sim/exec/warp.h"
#include "sim/exec/windows.h"
#include "sim/mem/bytes.h"
#include "sim/mem/tmem.h"

namespace sim {

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

// cta.cpp
void check_exit(Cta& cta);            // rules at the end of a CTA
void check_named_barriers(Cta& cta);  // completes barriers that only exited warps were missing from

// Change barriers for handlers and for landing operations; the latter are reported as Cluster::landing.
void mbarrier_complete_tx(Cta& cta, uint32_t offset, int64_t bytes);
void mbarrier_arrive(Cta& cta, uint32_t offset, int32_t count);

}  // namespace sim
