// warp.h -- the state of a warp: its registers, the fragments into which it diverges, and what it has in
// flight.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/exec/copy.h"
#include "sim/exec/fragment.h"
#include "sim/exec/poison.h"
#include "sim/exec/wgmma.h"
#include "sim/mem/bytes.h"

namespace sim {

struct Cluster;
struct Grid;

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

struct Warp {
  Cta* cta = nullptr;
  uint32_t index = 0, live = 0;
  std::unique_ptr<uint64_t[]> registers;  // 32 lanes a register, with a value where `written` has the lane
  std::vector<uint32_t> written;          // by register: lanes that wrote all bits of it
  // For a register of which a lane did not write all bits: which bits are missing, and where their poison
  // came from, by register * 32 + lane. If there is no entry, the lane wrote no bit of it.
  std::unordered_map<uint64_t, Hole> poisoned;
  // Bytes of `local` with poison, by their offsets. An entry is looked at if `local` says that nobody wrote
  // the byte; without an entry nobody wrote it.
  std::unordered_map<uint64_t, SpilledByte> spilled;
  std::vector<std::unique_ptr<Fragment>> fragments;
  std::vector<std::shared_ptr<Join>> joins;  // with lanes waiting in them
  // Lanes were released although other lanes had not joined them yet: at an .aligned instruction they wait
  // for those.
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

// warp.cpp
bool run_warp(Grid& grid, Warp& warp, uint32_t quantum);  // false: no fragment could run
bool can_run(Warp& warp);
// Breaks a wait between lanes of one warp; false when there is none. With `others_come` the other lanes
// still run.
bool release_a_join(Cluster& cluster, bool others_come = false);
void drop_from_joins(Warp& warp, std::shared_ptr<Join> join, uint32_t lanes);

// tmem_ops.cpp
void check_transfers(const Warp& warp, const char* what);  // Fault kProtocol when one was never waited for

// wgmma_ops.cpp
void check_wgmma_exit(const Warp& warp);  // Fault kProtocol when one was never waited for
std::string wgmma_wait_text(const Warp& warp, uint64_t operations);

}  // namespace sim
