// copy_ops.cpp -- asynchronous copies: cp.async, bulk copies, tensor (TMA) copies, st.async. Issuing a copy
// checks everything that is known at that time and poisons the destination; copy.cpp does what happens later.
#include <cstring>

#include "sim/engine/tensor_map.h"
#include "sim/exec/cluster_launch.h"
#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/text.h"

namespace sim::op {
namespace {

using Shared = Exec::Shared;
using Kind = AsyncIssue::Kind;

// An address of shared memory is truncated to the 32 bits of that space if the instruction names its spaces.
// Otherwise it is a shared address or a generic one.
Shared copy_shared(const Exec& x, const Inst& inst, uint64_t address, uint64_t bytes, bool any_rank) {
  if (inst.space != Space::kGeneric) address = uint32_t(address);
  else if (address >> 56 == kSharedWindow >> 56) address -= kSharedWindow;
  return x.shared(address, bytes, any_rank);
}

Shared copy_barrier(const Exec& x, const Inst& inst, const Operand& operand, uint32_t lane) {
  const Shared at = copy_shared(x, inst, x.address(operand, lane), 8, true);
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

// Requires the alignment of the box of a tensor map in shared memory. If the box is misaligned only because a
// schedule has moved the window, the module declares too small an alignment.
void require_box_aligned(const Exec& x, const TensorMap& map, uint64_t offset) {
  const uint32_t shift = x.grid.shared_shift;
  const uint64_t pattern = std::max(128u, 8 * swizzle_span(map.swizzle));
  if (offset % pattern != 0 && (offset - shift) % pattern == 0)
    throw Fault(FaultKind::kAlignment, "a box of a tensor map needs " + std::to_string(pattern) +
                                           "-byte alignment in shared memory, " +
                                           "of which the module declares " +
                                           std::to_string(x.grid.kernel.shared_align));
  require_aligned("shared offset", offset, 128);
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

// Returns the destinations of a copy and the barrier that each one signals. Without .cta_group::2 a copy
// signals in its destination CTA; with it, in the member of the destination's pair that has the parity of the
// CTA that the barrier address names.
std::vector<Copy::Target> targets(Exec& x, const Inst& inst, uint32_t lane, const Shared& to,
                                  const Shared& barrier, uint64_t bytes, size_t mask_operand) {
  const bool pair = inst.has(Q::kGroup2);
  std::vector<Copy::Target> out;
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
  for (const Copy::Target& target : out) {
    target.barrier_cta->mbarrier(target.barrier);
    require_no_mbarrier({target.cta, target.offset}, bytes);
    target.cta->shared.expect(target.offset, bytes);
  }
  return out;
}

TensorMap read_map(Exec& x, const Operand& operand, uint32_t lane, uint64_t* at) {
  const uint64_t address = x.global_of(Space::kGeneric, x.address(operand, lane));
  require_aligned("tensor map address", address, 64);
  uint8_t bytes[128];
  x.grid.memory.read(address, bytes, sizeof bytes);
  *at = address;
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

// Holds the map of a tensor copy, where the map lies, and the coordinates of the box.
struct Box {
  Box(Exec& x, const Inst& inst, const Operand& operand, uint32_t lane)
      : map(read_map(x, operand, lane, &address)),
        coordinates(read_coordinates(x, inst, operand, map, lane)) {}
  // Returns the part of the box that is read or written in global memory.
  std::vector<Copy::Span> spans(uint32_t shared_offset, Transfer transfer) const {
    std::vector<BoxPiece> pieces;
    box_pieces(map, coordinates, shared_offset, transfer, pieces);
    std::vector<Copy::Span> out;
    out.reserve(pieces.size());
    for (const BoxPiece& piece : pieces)
      if (!piece.outside) out.push_back({piece.smem_offset, piece.bytes, piece.global});
    return out;
  }
  AsyncIssue facts(Kind kind) const {
    AsyncIssue facts;
    facts.kind = kind;
    facts.map = &map;
    facts.map_address = address;
    facts.coordinates = coordinates;
    return facts;
  }

  uint64_t address = 0;
  TensorMap map;
  std::array<int32_t, 5> coordinates;
};

AsyncIssue facts_of(Kind kind) {
  AsyncIssue facts;
  facts.kind = kind;
  return facts;
}

std::unique_ptr<Copy> copy_of(uint64_t bytes) {
  auto copy = std::make_unique<Copy>();
  copy->bytes = bytes;
  return copy;
}

void read_shared(Copy& copy, const Shared& from) {
  copy.source = from.cta;
  copy.source_offset = from.offset;
}

}  // namespace

// cp.async.bulk [dst], [src], size, [mbar]{, mask}{, policy}
void bulk_load(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    require_bulk_size(bytes);
    const Shared to =
        copy_shared(x, inst, x.address(inst.operands[0], lane), bytes, inst.space == Space::kSharedCluster);
    const uint64_t from = x.global_of(Space::kGeneric, x.address(inst.operands[1], lane));
    require_aligned("shared offset", to.offset, 16);
    require_aligned("global address", from, 16);
    const Shared barrier = copy_barrier(x, inst, inst.operands[3], lane);
    auto copy = copy_of(bytes);
    copy->targets = targets(x, inst, lane, to, barrier, bytes, 4);
    copy->sources = {{0, uint32_t(bytes), from}};
    x.launch_copy(lane, std::move(copy), facts_of(Kind::kBulkLoad));
  }
}

// cp.async.bulk.shared::cluster.shared::cta [dst], [src], size, [mbar]
void bulk_shared(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    require_bulk_size(bytes);
    const Shared to = copy_shared(x, inst, x.address(inst.operands[0], lane), bytes, true);
    const Shared from = copy_shared(x, inst, x.address(inst.operands[1], lane), bytes, false);
    require_aligned("shared offset", to.offset, 16);
    require_aligned("shared offset", from.offset, 16);
    const Shared barrier = copy_barrier(x, inst, inst.operands[3], lane);
    auto copy = copy_of(bytes);
    copy->targets = targets(x, inst, lane, to, barrier, bytes, 4);
    read_shared(*copy, from);
    x.launch_copy(lane, std::move(copy), facts_of(Kind::kBulkShared));
  }
}

// cp.async.bulk.global.shared::cta.bulk_group [dst], [src], size
void bulk_store(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    require_bulk_size(bytes);
    const uint64_t to = x.global_of(Space::kGeneric, x.address(inst.operands[0], lane));
    const Shared from = copy_shared(x, inst, x.address(inst.operands[1], lane), bytes, false);
    require_aligned("global address", to, 16);
    require_aligned("shared offset", from.offset, 16);
    x.grid.memory.expect(to, bytes);
    auto copy = copy_of(bytes);
    read_shared(*copy, from);
    copy->destinations = {{0, uint32_t(bytes), to}};
    copy->join(x.warp.bulk_groups[lane].join_open());
    x.launch_copy(lane, std::move(copy), facts_of(Kind::kBulkStore));
  }
}

// cp.async.bulk.tensor [dst], [map, {c}], [mbar]{, mask}{, policy}
void tensor_load(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Box box(x, inst, inst.operands[1], lane);
    const uint64_t bytes = box.map.box_bytes();
    const Shared to =
        copy_shared(x, inst, x.address(inst.operands[0], lane), bytes, inst.space == Space::kSharedCluster);
    require_box_aligned(x, box.map, to.offset);
    const Shared barrier = copy_barrier(x, inst, inst.operands[2], lane);
    auto copy = copy_of(bytes);
    copy->sources = box.spans(to.offset, Transfer::kLoad);
    copy->fill = fill_pattern(box.map);
    copy->targets = targets(x, inst, lane, to, barrier, bytes, 3);
    x.launch_copy(lane, std::move(copy), box.facts(Kind::kTensorLoad));
  }
}

// Prefetches by the asynchronous proxy move nothing that a program can see, but they are memory operations.
constexpr const char* kPrefetchMemory = "prefetch-memory";

static void require_in_memory(Exec& x, uint64_t address, uint64_t bytes) {
  if (!x.in_memory(address, bytes))
    x.remark(kPrefetchMemory,
             "a prefetch of " + std::to_string(bytes) + " bytes at " + hex(address) +
                 ", which are not in one allocation",
             "a prefetch that ends where the memory ends");
}

// cp.async.bulk.prefetch [src], size
void bulk_prefetch(Exec& x, const Inst& inst) {
  const Operand &source = inst.operands[0], &size = inst.operands[1];
  if (!x.prefetches(source.value, kPrefetchMemory) || !x.prefetches(size.value, kPrefetchMemory)) return;
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t from = x.address(source, lane), bytes = x.source(size.value, lane);
    if (from % 16 != 0 || bytes % 16 != 0)
      x.remark(kPrefetchMemory,
               "a prefetch of " + std::to_string(bytes) + " bytes at " + hex(from) +
                   ": both have to be multiples of 16",
               "");
    else if (bytes != 0) require_in_memory(x, from, bytes);
  }
}

// cp.async.bulk.prefetch.tensor [map, {c}]. What of a box is outside of its tensor is legal.
void tensor_prefetch(Exec& x, const Inst& inst) {
  const Operand& map = inst.operands[0];
  if (!x.prefetches(map.value, kPrefetchMemory)) return;
  for (const Value& coordinate : map.items)
    if (!x.prefetches(coordinate, "prefetch-outside")) return;
  SIM_FOR_LANES(lane, x.mask) {
    const Box box(x, inst, inst.operands[0], lane);
    for (const Copy::Span& span : box.spans(0, Transfer::kLoad))
      require_in_memory(x, span.global, span.bytes);
    for (uint32_t i = 0; i < box.map.rank; ++i) {
      const int64_t at = box.coordinates[i], size = box.map.box[i];
      if (at < int64_t(box.map.dims[i]) + size && at + 2 * size > 0) continue;
      x.remark("prefetch-outside",
               "a box is prefetched at coordinate " + std::to_string(i) + " = " + std::to_string(at) +
                   " of a tensor that ends at " + std::to_string(box.map.dims[i]),
               "");
    }
  }
}

// cp.async.bulk.tensor.global.shared::cta.bulk_group [map, {c}], [src]
void tensor_store(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Box box(x, inst, inst.operands[0], lane);
    const uint64_t bytes = box.map.box_bytes();
    const Shared from = copy_shared(x, inst, x.address(inst.operands[1], lane), bytes, false);
    require_box_aligned(x, box.map, from.offset);
    auto copy = copy_of(bytes);
    read_shared(*copy, from);
    copy->destinations = box.spans(from.offset, Transfer::kStore);
    for (const Copy::Span& span : copy->destinations) x.grid.memory.expect(span.global, span.bytes);
    copy->join(x.warp.bulk_groups[lane].join_open());
    x.launch_copy(lane, std::move(copy), box.facts(Kind::kTensorStore));
  }
}

static void report_groups(Exec& x, SyncEvent::Kind kind, uint32_t allowed = 0, bool read = false) {
  SyncEvent event;
  event.kind = kind;
  event.amount = allowed;
  event.read = read;
  x.report(event, x.mask);
}

// Returns false when the lanes sleep; they execute the instruction again when their groups are done.
static bool wait_groups(Exec& x, std::array<CopyGroups, 32>& groups, Wait&& wait) {
  bool done = true;
  SIM_FOR_LANES(lane, x.mask) done = done && groups[lane].at_most(wait.allowed, wait.read);
  if (!done) {
    wait.kind = Wait::Kind::kGroups;
    x.wait(std::move(wait), false);
    return false;
  }
  // Groups that completed are forgotten, so that a thread that stores for ever keeps a short list.
  SIM_FOR_LANES(lane, x.mask) {
    auto& committed = groups[lane].committed;
    while (!committed.empty() && committed.front()->pending == 0) committed.erase(committed.begin());
  }
  return true;
}

// Returns the bytes that cp.async takes from its source. The optional operand is a byte count or, as a
// predicate, means "ignore the source".
static uint64_t taken_bytes(const Exec& x, const Value& limit, uint32_t lane, uint64_t bytes) {
  const uint64_t value = x.source(limit, lane);
  if (limit.kind == Value::Kind::kRegister && limit.bits == 1) return value != 0 ? 0 : bytes;
  if (value > bytes) throw Fault(FaultKind::kProtocol, "cp.async reads more than it writes");
  return value;
}

void bulk_commit(Exec& x, const Inst&) {
  SIM_FOR_LANES(lane, x.mask) x.warp.bulk_groups[lane].commit();
  report_groups(x, SyncEvent::Kind::kBulkCommit);
}

void bulk_wait(Exec& x, const Inst& inst) {
  Wait wait;
  wait.allowed = uint32_t(x.uniform(inst.operands[0].value, "the group count"));
  wait.bulk = true;
  wait.read = inst.has(Q::kRead);
  const uint32_t allowed = wait.allowed;
  if (wait_groups(x, x.warp.bulk_groups, std::move(wait)))
    report_groups(x, SyncEvent::Kind::kBulkWait, allowed, inst.has(Q::kRead));
}

// In cp.async [dst], [src], 4|8|16{, source bytes | ignore}, the rest of the destination is zero.
void cp_async(Exec& x, const Inst& inst) {
  const size_t plain = inst.operands.size() - (inst.has(Q::kCacheHint) ? 1 : 0);
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t bytes = x.source(inst.operands[2].value, lane);
    if (bytes != 16 && (inst.has(Q::kCg) || (bytes != 4 && bytes != 8)))
      throw Fault(FaultKind::kProtocol, "cp.async of " + std::to_string(bytes) + " bytes");
    const uint64_t taken = plain > 3 ? taken_bytes(x, inst.operands[3].value, lane, bytes) : bytes;
    const Shared to = copy_shared(x, inst, x.address(inst.operands[0], lane), bytes, false);
    const uint64_t from = x.global_of(Space::kGeneric, x.address(inst.operands[1], lane));
    require_aligned("shared offset", to.offset, bytes);
    require_aligned("global address", from, bytes);
    require_no_mbarrier(to, bytes);
    to.cta->shared.expect(to.offset, bytes);
    auto copy = copy_of(bytes);
    if (taken != 0) copy->sources = {{0, uint32_t(taken), from}};
    copy->targets.push_back({to.cta, to.offset});
    copy->join(x.warp.async_groups[lane].join_open());
    x.launch_copy(lane, std::move(copy), facts_of(Kind::kCpAsync));
  }
}

void cp_async_commit(Exec& x, const Inst&) {
  SIM_FOR_LANES(lane, x.mask) x.warp.async_groups[lane].commit();
  report_groups(x, SyncEvent::Kind::kCpAsyncCommit);
}

void cp_async_wait(Exec& x, const Inst& inst) {
  Wait wait;
  if (!inst.operands.empty()) {
    wait.allowed = uint32_t(x.uniform(inst.operands[0].value, "the group count"));
  } else if (!x.fragment->entered) {  // wait_all is commit_group and wait_group 0
    cp_async_commit(x, inst);
  }
  const uint32_t allowed = wait.allowed;
  const bool done = wait_groups(x, x.warp.async_groups, std::move(wait));
  x.fragment->entered = !done;
  if (done) report_groups(x, SyncEvent::Kind::kCpAsyncWait, allowed);
}

// In st.async [a], value, [mbar], both addresses are in the same CTA.
void st_async(Exec& x, const Inst& inst) {
  const Operand& from = inst.operands[1];
  const uint32_t size = uint32_t(ptx::bits(inst.type)) / 8, bytes = size * inst.vector;
  SIM_FOR_LANES(lane, x.mask) {
    std::vector<uint8_t> data(bytes);
    for (uint32_t i = 0; i < inst.vector; ++i) {
      const uint64_t value =
          x.source(from.kind == Operand::Kind::kVector ? from.items.at(i) : from.value, lane);
      std::memcpy(data.data() + i * size, &value, size);
    }
    const Shared to = copy_shared(x, inst, x.address(inst.operands[0], lane), bytes, true);
    require_aligned("shared offset", to.offset, bytes);
    auto copy = copy_of(bytes);
    copy->targets = targets(x, inst, lane, to, copy_barrier(x, inst, inst.operands[2], lane), bytes, 3);
    copy->image = std::move(data);
    x.launch_copy(lane, std::move(copy), facts_of(Kind::kStAsync));
  }
}

// try_cancel.async [a], [mbar]: whether a cluster that has not begun is taken out of the launch is decided
// when the request is carried out, and the 16 bytes that say it land as those of a copy do.
void try_cancel(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    if (x.cta.cancel_failed)
      throw Fault(FaultKind::kProtocol,
                  "clusterlaunchcontrol.try_cancel by a CTA that has seen an earlier one fail");
    const Shared to = copy_shared(x, inst, x.address(inst.operands[0], lane), kCancelBytes, false);
    const Shared barrier = copy_barrier(x, inst, inst.operands[1], lane);
    require_aligned("shared offset", to.offset, kCancelBytes);
    if (barrier.cta != &x.cta)
      throw Fault(FaultKind::kBounds, "the mbarrier of a clusterlaunchcontrol.try_cancel is in another CTA");
    auto copy = copy_of(kCancelBytes);
    const size_t last = inst.has(Q::kMulticastAll) ? x.cluster.ctas.size() : 1;
    for (size_t rank = 0; rank < last; ++rank) {
      Cta& cta = inst.has(Q::kMulticastAll) ? x.cluster.at(uint32_t(rank)) : x.cta;
      cta.mbarrier(barrier.offset);
      require_no_mbarrier({&cta, to.offset}, kCancelBytes);
      cta.shared.expect(to.offset, kCancelBytes);
      copy->targets.push_back({&cta, to.offset, &cta, barrier.offset});
    }
    copy->answer = [&grid = x.grid] { return cancel_response(grid.cancel_cluster()); };
    x.launch_copy(lane, std::move(copy), facts_of(Kind::kTryCancel));
  }
}

}  // namespace sim::op
