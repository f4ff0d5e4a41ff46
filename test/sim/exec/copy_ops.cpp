// copy_ops.cpp -- asynchronous copies: cp.async, bulk copies, tensor (TMA) copies, st.async. Issuing checks
// everything that is known then and poisons the destination; landing reads the source, writes the destination
// and completes the barrier or the group.
#include <cstring>

#include "sim/engine/tensor_map.h"
#include "sim/exec/handlers.h"
#include "sim/exec/machine.h"

namespace sim::op {
namespace {

using Shared = Exec::Shared;

uint32_t bit(const Cta& cta) { return 1u << cta.rank; }

// A shared address of a copy may be written as a 32-bit shared address or as a generic one.
Shared copy_shared(const Exec& x, uint64_t address, uint64_t bytes, bool any_rank) {
  if (address >> 56 == kSharedWindow >> 56) address -= kSharedWindow;
  return x.shared(address, bytes, any_rank);
}

Shared copy_barrier(const Exec& x, const Operand& operand, uint32_t lane) {
  const Shared at = copy_shared(x, x.address(operand, lane), 8, true);
  if (at.offset % 8 != 0)
    throw Fault(FaultKind::kMisaligned,
                "mbarrier at shared offset " + hex(at.offset) + ": not a multiple of 8");
  return at;
}

void require_aligned(const char* what, uint64_t address, uint64_t align) {
  if (address % align != 0)
    throw Fault(FaultKind::kMisaligned,
                std::string(what) + " " + hex(address) + " is not a multiple of " + std::to_string(align));
}

void require_bulk_size(uint64_t bytes) {
  if (bytes == 0 || bytes % 16 != 0)
    throw Fault(FaultKind::kMisaligned,
                "bulk copy of " + std::to_string(bytes) + " bytes: not a multiple of 16");
}

void require_no_mbarrier(const Shared& at, uint64_t bytes) {
  const auto it = at.cta->mbarriers.lower_bound(at.offset >= 7 ? at.offset - 7 : 0);
  if (it != at.cta->mbarriers.end() && it->first < at.offset + bytes)
    throw Fault(FaultKind::kProtocol, "a copy to shared offset " + hex(at.offset) +
                                          " would overwrite the live mbarrier at offset " + hex(it->first));
}

struct Target {
  Cta* cta;
  uint32_t offset;
  Cta* barrier_cta;
  uint32_t barrier;
};

// The destinations of a copy and the barrier each one signals. Without .cta_group::2 a copy signals in its
// destination CTA; with it, in the member of the destination's pair that has the parity of the CTA the
// barrier address names.
std::vector<Target> targets(Exec& x, const Inst& inst, uint32_t lane, const Shared& to, const Shared& barrier,
                            uint64_t bytes, size_t mask_operand) {
  const bool pair = inst.has(Q::kGroup2);
  std::vector<Target> out;
  const auto add = [&](Cta& cta) {
    Cta* signalled = &cta;
    if (pair) signalled = &x.cluster.at((cta.rank & ~1u) | (barrier.cta->rank & 1));
    out.push_back({&cta, to.offset, signalled, barrier.offset});
  };
  if (inst.has(Q::kMulticast)) {
    const uint32_t ranks = uint32_t(x.source(inst.operands.at(mask_operand).value, lane)) & 0xFFFF;
    if (ranks == 0) throw Fault(FaultKind::kProtocol, "multicast to nobody");
    SIM_FOR_LANES(rank, ranks) add(x.cluster.at(rank));
  } else {
    if (pair ? (barrier.cta->rank & ~1u) != (to.cta->rank & ~1u) : barrier.cta != to.cta)
      throw Fault(FaultKind::kProtocol, "the mbarrier is in CTA rank " + std::to_string(barrier.cta->rank) +
                                            ", the destination in CTA rank " + std::to_string(to.cta->rank));
    add(*to.cta);
  }
  for (const Target& target : out) {
    target.barrier_cta->mbarrier(target.barrier);
    require_no_mbarrier({target.cta, target.offset}, bytes);
    target.cta->shared.poison(target.offset, bytes);
  }
  return out;
}

uint32_t ranks_of(const std::vector<Target>& targets) {
  uint32_t ranks = 0;
  for (const Target& target : targets) ranks |= bit(*target.cta) | bit(*target.barrier_cta);
  return ranks;
}

TensorMap read_map(Exec& x, const Operand& operand, uint32_t lane) {
  const uint64_t address = x.global_of(Space::kGeneric, x.address(operand, lane));
  require_aligned("tensor map address", address, 64);
  uint8_t bytes[128];
  x.grid.memory.read(address, bytes, sizeof bytes);
  return decode_tensor_map(bytes);
}

std::array<int32_t, 5> read_coordinates(const Exec& x, const Inst& inst, const Operand& operand,
                                        const TensorMap& map, uint32_t lane) {
  const uint32_t rank = inst.has(Q::kD1)   ? 1
                        : inst.has(Q::kD2) ? 2
                        : inst.has(Q::kD3) ? 3
                        : inst.has(Q::kD4) ? 4
                                           : 5;
  if (operand.items.size() != rank || map.rank != rank)
    throw Fault(FaultKind::kProtocol,
                std::to_string(rank) + "-dimensional copy with " + std::to_string(operand.items.size()) +
                    " coordinates and a tensor map of rank " + std::to_string(map.rank));
  std::array<int32_t, 5> out{};
  for (uint32_t i = 0; i < rank; ++i) out[i] = int32_t(x.source(operand.items[i], lane));
  return out;
}

// Global bytes that a whole run of pieces shares are copied at once: pieces follow each other in global
// memory along a row, so one bounds and validity check serves the row.
struct Run {
  uint64_t global;
  uint32_t bytes;
  size_t first, count;
};

std::vector<Run> global_runs(const std::vector<BoxPiece>& pieces) {
  std::vector<Run> runs;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].outside) continue;
    if (!runs.empty()) {
      Run& last = runs.back();
      if (last.first + last.count == i && last.global + last.bytes == pieces[i].global) {
        last.bytes += pieces[i].bytes;
        ++last.count;
        continue;
      }
    }
    runs.push_back({pieces[i].global, pieces[i].bytes, i, 1});
  }
  return runs;
}

void land_box(GlobalMemory& memory, const TensorMap& map, const std::array<int32_t, 5>& coordinates,
              const std::vector<Target>& targets) {
  std::vector<BoxPiece> pieces;
  box_pieces(map, coordinates, targets[0].offset, pieces);
  std::vector<uint8_t> image(map.box_bytes());
  const std::array<uint8_t, 16> fill = fill_pattern(map);
  for (const BoxPiece& piece : pieces)
    if (piece.outside) std::memcpy(image.data() + piece.smem_offset, fill.data(), piece.bytes);
  std::vector<uint8_t> row;
  for (const Run& run : global_runs(pieces)) {
    row.resize(run.bytes);
    memory.read(run.global, row.data(), run.bytes);
    const uint8_t* from = row.data();
    for (size_t i = run.first; i < run.first + run.count; from += pieces[i++].bytes)
      std::memcpy(image.data() + pieces[i].smem_offset, from, pieces[i].bytes);
  }
  for (const Target& target : targets) target.cta->shared.write(target.offset, image.data(), image.size());
}

void signal(const std::vector<Target>& targets, int64_t bytes) {
  for (const Target& target : targets) {
    if (target.cta->exited() || target.barrier_cta->exited())
      throw Fault(FaultKind::kProtocol, "a copy lands in a CTA that has exited");
    sim::mbarrier_complete_tx(*target.barrier_cta, target.barrier, bytes);
  }
}

}  // namespace

// cp.async.bulk [dst], [src], size, [mbar]{, mask}{, policy}
void bulk_load(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    require_bulk_size(bytes);
    const Shared to =
        copy_shared(x, x.address(inst.operands[0], lane), bytes, inst.space == Space::kSharedCluster);
    const uint64_t from = x.global_of(Space::kGeneric, x.address(inst.operands[1], lane));
    require_aligned("shared offset", to.offset, 16);
    require_aligned("global address", from, 16);
    const Shared barrier = copy_barrier(x, inst.operands[3], lane);
    auto all = targets(x, inst, lane, to, barrier, bytes, 4);
    const uint32_t ranks = ranks_of(all);
    x.launch_async(AsyncOp::Kind::kCopy, lane, ranks,
                   [&memory = x.grid.memory, all = std::move(all), from, bytes] {
                     std::vector<uint8_t> data(bytes);
                     memory.read(from, data.data(), bytes);
                     for (const Target& target : all)
                       target.cta->shared.write(target.offset, data.data(), bytes);
                     signal(all, int64_t(bytes));
                   });
  }
}

// cp.async.bulk.shared::cluster.shared::cta [dst], [src], size, [mbar]
void bulk_shared(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    require_bulk_size(bytes);
    const Shared to = copy_shared(x, x.address(inst.operands[0], lane), bytes, true);
    const Shared from = copy_shared(x, x.address(inst.operands[1], lane), bytes, false);
    require_aligned("shared offset", to.offset, 16);
    require_aligned("shared offset", from.offset, 16);
    const Shared barrier = copy_barrier(x, inst.operands[3], lane);
    auto all = targets(x, inst, lane, to, barrier, bytes, 4);
    const uint32_t ranks = ranks_of(all) | bit(x.cta);
    x.launch_async(AsyncOp::Kind::kCopy, lane, ranks, [all = std::move(all), from, bytes] {
      const uint8_t* data = from.cta->shared.view(from.offset, bytes);
      const std::vector<uint8_t> image(data, data + bytes);
      for (const Target& target : all) target.cta->shared.write(target.offset, image.data(), bytes);
      signal(all, int64_t(bytes));
    });
  }
}

// cp.async.bulk.global.shared::cta.bulk_group [dst], [src], size
void bulk_store(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    require_bulk_size(bytes);
    const uint64_t to = x.global_of(Space::kGeneric, x.address(inst.operands[0], lane));
    const Shared from = copy_shared(x, x.address(inst.operands[1], lane), bytes, false);
    require_aligned("global address", to, 16);
    require_aligned("shared offset", from.offset, 16);
    x.grid.memory.poison(to, bytes);
    std::shared_ptr<int> group = x.warp.bulk_groups[lane].join_open();
    ++*group;
    x.launch_async(AsyncOp::Kind::kCopy, lane, bit(x.cta), [&memory = x.grid.memory, group, from, to, bytes] {
      memory.write(to, from.cta->shared.view(from.offset, bytes), bytes);
      --*group;
      ++from.cta->cluster->events;
    });
  }
}

// cp.async.bulk.tensor [dst], [map, {c}], [mbar]{, mask}{, policy}
void tensor_load(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const TensorMap map = read_map(x, inst.operands[1], lane);
    const auto coordinates = read_coordinates(x, inst, inst.operands[1], map, lane);
    const uint64_t bytes = map.box_bytes();
    const Shared to =
        copy_shared(x, x.address(inst.operands[0], lane), bytes, inst.space == Space::kSharedCluster);
    require_aligned("shared offset", to.offset, 128);
    const Shared barrier = copy_barrier(x, inst.operands[2], lane);
    auto all = targets(x, inst, lane, to, barrier, bytes, 3);
    const uint32_t ranks = ranks_of(all);
    x.launch_async(AsyncOp::Kind::kCopy, lane, ranks,
                   [&memory = x.grid.memory, map, coordinates, all = std::move(all), bytes] {
                     land_box(memory, map, coordinates, all);
                     signal(all, int64_t(bytes));
                   });
  }
}

// cp.async.bulk.tensor.global.shared::cta.bulk_group [map, {c}], [src]
void tensor_store(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const TensorMap map = read_map(x, inst.operands[0], lane);
    const auto coordinates = read_coordinates(x, inst, inst.operands[0], map, lane);
    const uint64_t bytes = map.box_bytes();
    const Shared from = copy_shared(x, x.address(inst.operands[1], lane), bytes, false);
    require_aligned("shared offset", from.offset, 128);
    std::shared_ptr<int> group = x.warp.bulk_groups[lane].join_open();
    ++*group;
    std::vector<BoxPiece> pieces;
    box_pieces(map, coordinates, from.offset, pieces);
    for (const BoxPiece& piece : pieces)
      if (!piece.outside) x.grid.memory.poison(piece.global, piece.bytes);
    x.launch_async(AsyncOp::Kind::kCopy, lane, bit(x.cta),
                   [&memory = x.grid.memory, group, from, pieces = std::move(pieces)] {
                     for (const BoxPiece& piece : pieces)
                       if (!piece.outside)
                         memory.write(piece.global,
                                      from.cta->shared.view(from.offset + piece.smem_offset, piece.bytes),
                                      piece.bytes);
                     --*group;
                     ++from.cta->cluster->events;
                   });
  }
}

void bulk_commit(Exec& x, const Inst&) { SIM_FOR_LANES(lane, x.mask) x.warp.bulk_groups[lane].commit(); }

namespace {

void wait_groups(Exec& x, uint32_t allowed, bool bulk) {
  bool done = true;
  auto& groups = bulk ? x.warp.bulk_groups : x.warp.async_groups;
  SIM_FOR_LANES(lane, x.mask) done = done && groups[lane].at_most(allowed);
  if (done) {
    // Groups that landed are forgotten, so that a thread that stores for ever keeps a short list.
    SIM_FOR_LANES(lane, x.mask) {
      auto& committed = groups[lane].committed;
      while (!committed.empty() && *committed.front() == 0) committed.erase(committed.begin());
    }
    return;
  }
  Wait w;
  w.kind = Wait::Kind::kGroups;
  w.allowed = allowed;
  w.bulk = bulk;
  x.wait(std::move(w), true);
}

// The bytes cp.async takes from its source. The optional operand is a byte count or, as a predicate, "ignore
// the source".
uint64_t taken_bytes(const Exec& x, const Value& limit, uint32_t lane, uint64_t bytes) {
  const uint64_t value = x.source(limit, lane);
  if (limit.kind == Value::Kind::kRegister && limit.bits == 1) return value != 0 ? 0 : bytes;
  if (value > bytes) throw Fault(FaultKind::kProtocol, "cp.async reads more than it writes");
  return value;
}

}  // namespace

// A landing reads and writes at once, so .read and the full wait end at the same moment.
void bulk_wait(Exec& x, const Inst& inst) {
  wait_groups(x, uint32_t(x.uniform(inst.operands[0].value, "the group count")), true);
}

// cp.async [dst], [src], 4|8|16{, source bytes | ignore}: the rest of the destination is zero.
void cp_async(Exec& x, const Inst& inst) {
  const size_t plain = inst.operands.size() - (inst.has(Q::kCacheHint) ? 1 : 0);
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    if (bytes != 16 && (inst.has(Q::kCg) || (bytes != 4 && bytes != 8)))
      throw Fault(FaultKind::kProtocol, "cp.async of " + std::to_string(bytes) + " bytes");
    const uint64_t taken = plain > 3 ? taken_bytes(x, inst.operands[3].value, lane, bytes) : bytes;
    const Shared to = copy_shared(x, x.address(inst.operands[0], lane), bytes, false);
    const uint64_t from = x.global_of(Space::kGeneric, x.address(inst.operands[1], lane));
    require_aligned("shared offset", to.offset, bytes);
    require_aligned("global address", from, bytes);
    require_no_mbarrier(to, bytes);
    to.cta->shared.poison(to.offset, bytes);
    std::shared_ptr<int> group = x.warp.async_groups[lane].join_open();
    ++*group;
    x.launch_async(AsyncOp::Kind::kCopy, lane, bit(x.cta),
                   [&memory = x.grid.memory, group, to, from, bytes, taken] {
                     uint8_t data[16] = {};
                     if (taken != 0) memory.read(from, data, taken);
                     to.cta->shared.write(to.offset, data, bytes);
                     --*group;
                     ++to.cta->cluster->events;
                   });
  }
}

void cp_async_commit(Exec& x, const Inst&) { SIM_FOR_LANES(lane, x.mask) x.warp.async_groups[lane].commit(); }

void cp_async_wait(Exec& x, const Inst& inst) {
  if (inst.operands.empty()) {  // wait_all is commit_group and wait_group 0
    cp_async_commit(x, inst);
    wait_groups(x, 0, false);
  } else {
    wait_groups(x, uint32_t(x.uniform(inst.operands[0].value, "the group count")), false);
  }
}

// st.async [a], value, [mbar]: both in the same CTA.
void st_async(Exec& x, const Inst& inst) {
  const Operand& from = inst.operands[1];
  const uint32_t size = uint32_t(ptx::bits(inst.type)) / 8, bytes = size * inst.vector;
  SIM_FOR_LANES(lane, x.mask) {
    std::array<uint8_t, 32> data{};
    for (uint32_t i = 0; i < inst.vector; ++i) {
      const uint64_t value =
          x.source(from.kind == Operand::Kind::kVector ? from.items.at(i) : from.value, lane);
      std::memcpy(data.data() + i * size, &value, size);
    }
    const Shared to = copy_shared(x, x.address(inst.operands[0], lane), bytes, true);
    require_aligned("shared offset", to.offset, bytes);
    auto all = targets(x, inst, lane, to, copy_barrier(x, inst.operands[2], lane), bytes, 3);
    const uint32_t ranks = ranks_of(all);
    x.launch_async(AsyncOp::Kind::kCopy, lane, ranks, [all = std::move(all), data, bytes] {
      for (const Target& target : all) target.cta->shared.write(target.offset, data.data(), bytes);
      signal(all, bytes);
    });
  }
}

}  // namespace sim::op
