// tcgen05_ops.cpp -- the tensor core instructions as a program issues them. Descriptors, layouts and
// arithmetic are engine/tensor_core; here are allocation by a warp or a pair of warps, the memory of one or
// two CTAs, and what is pending until when. tcgen05.ld and .st are tmem_ops.cpp.
#include "sim/engine/footprint.h"
#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/exec/tmem_ops.h"
#include "sim/text.h"

namespace sim {

Tmem& Cta::tensor_memory() {
  if (!tmem) tmem = std::make_unique<Tmem>();
  return *tmem;
}

namespace op {
namespace {

// The CTAs that an instruction of this cta_group works on, the even one first.
struct Group {
  Cta* ctas[2] = {nullptr, nullptr};
  int size = 1;
  uint32_t ranks = 0;
  CtaMemory memory[2] = {{nullptr, nullptr}, {nullptr, nullptr}};
};

Group cta_group_of(Exec& x, const Inst& inst) {
  Group group;
  group.size = inst.has(Q::kGroup2) ? 2 : inst.has(Q::kGroup1) ? 1 : 0;
  if (group.size == 0) throw Fault(FaultKind::kUnsupported, "the instruction needs a .cta_group");
  if (x.cta.tensor_group != 0 && x.cta.tensor_group != uint32_t(group.size))
    throw Fault(FaultKind::kProtocol, "a kernel mixes tcgen05 instructions of cta_group::1 and cta_group::2");
  x.cta.tensor_group = uint32_t(group.size);
  if (group.size == 2 && x.cluster.ctas.size() % 2 != 0)
    throw Fault(FaultKind::kProtocol, "cta_group::2 in a cluster of " +
                                          std::to_string(x.cluster.ctas.size()) + ": the CTA has no pair");
  group.ctas[0] = group.size == 2 ? &x.cluster.at(x.cta.rank & ~1u) : &x.cta;
  if (group.size == 2) group.ctas[1] = &x.cluster.at(x.cta.rank | 1u);
  for (int i = 0; i < group.size; ++i) {
    group.ranks |= 1u << group.ctas[i]->rank;
    group.memory[i] = {&group.ctas[i]->shared, &group.ctas[i]->tensor_memory()};
  }
  return group;
}

CpShape cp_shape(const Inst& inst) {
  if (inst.has(Q::kC128x256b)) return CpShape::k128x256b;
  if (inst.has(Q::kC128x128b)) return CpShape::k128x128b;
  if (inst.has(Q::kC4x256b)) return CpShape::k4x256b;
  if (inst.has(Q::kC64x128b) && inst.has(Q::kWarpx2_02_13)) return CpShape::k64x128b_02_13;
  if (inst.has(Q::kC64x128b) && inst.has(Q::kWarpx2_01_23)) return CpShape::k64x128b_01_23;
  if (inst.has(Q::kC32x128b) && inst.has(Q::kWarpx4)) return CpShape::k32x128b_warpx4;
  throw Fault(FaultKind::kUnsupported, "tcgen05.cp shape");
}

// Returns true when the warp of this CTA slept in alloc or dealloc and now wakes. The other CTA of its pair
// has executed the act for both, and may have exited by now.
bool granted(Exec& x, TmemRequest* out) {
  if (x.cta.tmem_request.state != TmemRequest::State::kDone) return false;
  *out = x.cta.tmem_request;
  x.cta.tmem_request = TmemRequest{};
  x.fragment->entered = false;
  return true;
}

// An event about the columns of both CTAs of a pair comes once for each.
void tell_columns(const Exec& x, SyncEvent::Kind kind, const Group& group, uint32_t base, uint32_t columns) {
  if (!x.watched()) return;
  for (int i = 0; i < group.size; ++i) {
    SyncEvent event;
    event.kind = kind;
    event.cta = group.ctas[i]->linear;
    for (const Cta* cta : group.ctas)
      if (group.size == 2 && cta != &x.cta) event.partner = Thread{cta->linear, cta->tmem_request.warp, 0};
    event.object = base;
    event.amount = columns;
    x.report(event, x.mask);
  }
}

// No operation may be under way in tensor memory that is freed. Freeing is an act of the whole group, so this
// is checked when all CTAs of the group have come.
void check_idle(const Exec& x, const Group& group) {
  for (const auto& pending : x.cluster.pending)
    if (pending->kind != AsyncOp::Kind::kCopy && (pending->ranks & group.ranks) != 0)
      throw Fault(FaultKind::kProtocol, "tensor memory is freed while a tcgen05 operation is pending: " +
                                            describe(*pending->inst->statement));
  for (int i = 0; i < group.size; ++i)
    for (const auto& warp : group.ctas[i]->warps) check_transfers(*warp, "tensor memory is freed");
}

// The warp sleeps until anything happens, and then asks again.
void sleep(Exec& x, const Group& group, const TmemRequest& request) {
  const bool first = !x.fragment->entered;
  x.fragment->entered = true;
  Wait w;
  w.kind = Wait::Kind::kTmem;
  x.wait(std::move(w), false);
  if (!first || !x.watched()) return;
  SyncEvent event;
  event.kind = SyncEvent::Kind::kTmemAsk;
  event.cta = x.cta.linear;
  event.object = request.base;
  event.amount = request.columns;
  for (const Cta* cta : group.ctas)
    if (group.size == 2 && cta != &x.cta) event.partner = Thread{cta->linear, 0, 0};
  x.report(event, x.mask);
}

std::string request_text(const Cta& cta) {
  const TmemRequest& request = cta.tmem_request;
  return "CTA rank " + std::to_string(cta.rank) + (request.free ? " frees " : " allocates ") +
         std::to_string(request.columns) + " columns" +
         (request.free ? " from column " + std::to_string(request.base) : "");
}

// alloc and dealloc of a pair happen when a warp of each CTA asks for the same. Returns false when this CTA's
// warp sleeps.
bool meet(Exec& x, const Group& group, const TmemRequest& mine) {
  TmemRequest& own = x.cta.tmem_request;
  const bool asked = own.state == TmemRequest::State::kAsked;
  own = mine;
  own.state = TmemRequest::State::kAsked;
  own.warp = x.warp.index;
  Cta& peer = group.ctas[0] == &x.cta ? *group.ctas[1] : *group.ctas[0];
  TmemRequest& other = peer.tmem_request;
  if (other.state == TmemRequest::State::kAsked) {
    if (other.free != own.free || other.columns != own.columns || (own.free && other.base != own.base))
      throw Fault(FaultKind::kProtocol, "the CTAs of a pair ask for different tensor memory: " +
                                            request_text(x.cta) + ", " + request_text(peer));
    if (own.free) {
      check_idle(x, group);
      for (Cta* cta : group.ctas) cta->tensor_memory().dealloc(int(own.base), int(own.columns));
      tell_columns(x, SyncEvent::Kind::kTmemDealloc, group, own.base, own.columns);
      own.state = other.state = TmemRequest::State::kDone;
    } else {
      const int base = group.ctas[0]->tensor_memory().alloc(int(own.columns));
      if (base >= 0) {
        if (group.ctas[1]->tensor_memory().alloc(int(own.columns)) != base)
          throw Fault(FaultKind::kProtocol, "the tensor memories of a pair are allocated differently");
        own.base = other.base = uint32_t(base);
        tell_columns(x, SyncEvent::Kind::kTmemAlloc, group, own.base, own.columns);
        own.state = other.state = TmemRequest::State::kDone;
      }
    }
  }
  if (own.state != TmemRequest::State::kDone) {
    // Asking again is no change. If it counted as one, two pairs would wake each other for ever.
    if (!asked) x.changed();
    sleep(x, group, mine);
    return false;
  }
  x.changed();
  return true;
}

MmaOp mma_operands(const Exec& x, const Inst& inst, uint32_t lane, int cta_group) {
  MmaOp op;
  op.cta_group = cta_group;
  op.d_tmem = uint32_t(x.address(inst.operands[0], lane));
  if (inst.operands[1].kind == Operand::Kind::kAddress) {
    op.a_in_tmem = true;
    op.a_tmem = uint32_t(x.address(inst.operands[1], lane));
  } else {
    op.a_desc = x.source(inst.operands[1].value, lane);
  }
  op.b_desc = x.source(inst.operands[2].value, lane);
  op.idesc = uint32_t(x.source(inst.operands[3].value, lane));
  op.accumulate = x.source(inst.operands.back().value, lane) != 0;
  if (const Operand& kept = inst.operands[4]; kept.kind == Operand::Kind::kVector) {
    if (kept.items.size() != size_t(4 * cta_group))
      throw Fault(FaultKind::kUnsupported, "the lanes that a tcgen05.mma keeps are " +
                                               std::to_string(kept.items.size()) + " registers, not " +
                                               std::to_string(4 * cta_group));
    for (size_t i = 0; i < kept.items.size(); ++i) op.kept_lanes[i] = uint32_t(x.source(kept.items[i], lane));
  }
  return op;
}

// Add cells of the CTAs of the group, or the same bytes of their shared memories.
void add(std::vector<Region>* regions, const Group& group, const std::vector<CellRange>& cells, bool write) {
  for (int i = 0; i < group.size; ++i)
    for (const CellRange& range : cells) regions->push_back(cell_region(*group.ctas[i], range, write));
}

void add(std::vector<Region>* regions, const Group& group, const std::vector<ByteRange>& bytes) {
  for (int i = 0; i < group.size; ++i)
    for (const ByteRange& range : bytes) {
      Region region;
      region.memory = Memory::kShared;
      region.cta = group.ctas[i]->linear;
      region.address = range.offset;
      region.bytes = range.bytes;
      regions->push_back(region);
    }
}

AsyncIssue mma_facts(const Group& group, const Inst& inst, const MmaOp& op) {
  using Collector = AsyncIssue::Collector;
  AsyncIssue facts;
  facts.kind = AsyncIssue::Kind::kMma;
  facts.cta_group = group.size;
  add(&facts.reads, group, operand_ranges(op, false));
  add(&facts.reads, group, operand_ranges(op, true));
  add(&facts.reads, group, operand_cells(op), false);
  for (int i = 0; i < group.size; ++i)
    for (const CellRange& range : accumulator_cells(op, i)) {
      if (op.accumulate) facts.reads.push_back(cell_region(*group.ctas[i], range, false));
      facts.writes.push_back(cell_region(*group.ctas[i], range, true));
    }
  facts.a_desc = op.a_in_tmem ? op.a_tmem : op.a_desc;
  facts.b_desc = op.b_desc;
  facts.idesc = op.idesc;
  facts.a_in_tmem = op.a_in_tmem;
  facts.accumulate = op.accumulate;
  facts.scaled = op.scale_block != ScaleBlock::kNone;
  facts.collector = inst.has(Q::kCollectorFill)      ? Collector::kFill
                    : inst.has(Q::kCollectorUse)     ? Collector::kUse
                    : inst.has(Q::kCollectorLastUse) ? Collector::kLastUse
                                                     : Collector::kDiscard;
  return facts;
}

void issue(Exec& x, const Inst& inst, const Group& group, uint32_t lane, const MmaOp& op) {
  check_mma(op);
  x.launch_async(
      AsyncOp::Kind::kTensorMma, lane, group.ranks, [op, group] { execute_mma(op, group.memory); },
      x.watched() ? mma_facts(group, inst, op) : AsyncIssue{});
}

}  // namespace

void tcgen05_alloc(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  TmemRequest request;
  int base;
  if (granted(x, &request)) {
    base = int(request.base);
  } else {
    const Group group = cta_group_of(x, inst);
    request.columns = uint32_t(x.uniform(inst.operands[1].value, "the column count"));
    if (group.size == 2) {
      if (!meet(x, group, request)) return;
      granted(x, &request);
      base = int(request.base);
    } else {
      base = x.cta.tensor_memory().alloc(int(request.columns));
      if (base >= 0) tell_columns(x, SyncEvent::Kind::kTmemAlloc, group, uint32_t(base), request.columns);
    }
    if (base < 0) return sleep(x, group, request);
    x.fragment->entered = false;
  }
  const uint32_t lane = uint32_t(__builtin_ctz(x.mask));
  const uint32_t address = uint32_t(base);
  x.store(inst.space, x.address(inst.operands[0], lane), lane, &address, 4);
}

void tcgen05_dealloc(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  TmemRequest mine;
  if (granted(x, &mine)) return;
  const Group group = cta_group_of(x, inst);
  mine.free = true;
  mine.base = uint32_t(x.uniform(inst.operands[0].value, "the tensor memory address"));
  mine.columns = uint32_t(x.uniform(inst.operands[1].value, "the column count"));
  if (group.size == 2) {
    if (!meet(x, group, mine)) return;
    granted(x, &mine);
  } else {
    check_idle(x, group);
    x.cta.tensor_memory().dealloc(int(mine.base), int(mine.columns));
    tell_columns(x, SyncEvent::Kind::kTmemDealloc, group, mine.base, mine.columns);
  }
  x.changed();
}

void tcgen05_relinquish(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  cta_group_of(x, inst);
  x.cta.tensor_memory().relinquish();
  if (!x.watched()) return;
  SyncEvent event;
  event.kind = SyncEvent::Kind::kTmemRelinquish;
  event.cta = x.cta.linear;
  x.report(event, x.mask);
}

void tcgen05_cp(Exec& x, const Inst& inst) {
  const CpShape shape = cp_shape(inst);
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = cta_group_of(x, inst);
    const uint32_t to = uint32_t(x.address(inst.operands[0], lane));
    const uint64_t from = x.source(inst.operands[1].value, lane);
    check_cp(shape, to, from);
    AsyncIssue facts;
    if (x.watched()) {
      facts.kind = AsyncIssue::Kind::kTmemCopy;
      facts.cta_group = group.size;
      add(&facts.reads, group, cp_source(shape, from));
      add(&facts.writes, group, {cp_destination(shape, to)}, true);
      facts.b_desc = from;
    }
    x.launch_async(
        AsyncOp::Kind::kTensorCopy, lane, group.ranks,
        [shape, to, from, group] {
          for (int i = 0; i < group.size; ++i) execute_cp(shape, to, from, group.memory[i]);
        },
        std::move(facts));
  }
}

void tcgen05_mma(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = cta_group_of(x, inst);
    MmaOp op = mma_operands(x, inst, lane, group.size);
    op.kind = MmaKind::kF16;
    issue(x, inst, group, lane, op);
  }
}

void tcgen05_mma_scaled(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = cta_group_of(x, inst);
    MmaOp op = mma_operands(x, inst, lane, group.size);
    const bool block16 = inst.has(Q::kBlock16) || inst.has(Q::kScale4x);
    const bool block32 = inst.has(Q::kBlock32) || inst.has(Q::kScale2x);
    if (inst.has(Q::kKindMxf4nvf4)) {
      op.kind = MmaKind::kMxf4nvf4;
      if (block16 == block32)
        throw Fault(FaultKind::kUnsupported, "kind::mxf4nvf4 needs .block16 or .block32");
      op.scale_block = block16 ? ScaleBlock::kBlock16 : ScaleBlock::kBlock32;
    } else {
      if (block16) throw Fault(FaultKind::kUnsupported, "kind::mxf4 has scale blocks of 32");
      op.kind = MmaKind::kMxf4;
      op.scale_block = ScaleBlock::kBlock32;
    }
    op.sfa_tmem = uint32_t(x.address(inst.operands[4], lane));
    op.sfb_tmem = uint32_t(x.address(inst.operands[5], lane));
    issue(x, inst, group, lane, op);
  }
}

// Without a state space the address is generic, and one outside the window of shared memory is undefined by
// the ISA. ptxas takes the lower half of the register in either case, so hardware takes a shared address as
// well.
static Exec::Shared commit_barrier(const Exec& x, const Inst& inst, uint32_t lane) {
  const uint64_t address = x.address(inst.operands[0], lane);
  if (inst.space != Space::kGeneric || address >> 32 != 0) return x.shared_of(inst.space, address, 8);
  const Exec::Shared at = x.shared(address, 8, true);
  x.remark("commit-shared-address",
           "the address " + hex(address) + " of a tcgen05.commit without a state space is no generic address",
           ".shared::cluster on the instruction, or the generic address of the mbarrier");
  return at;
}

// commit [mbar]{, mask} makes one arrival when everything that this thread issued before has completed.
void tcgen05_commit(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = cta_group_of(x, inst);
    const Exec::Shared at = commit_barrier(x, inst, lane);
    if (at.offset % 8 != 0)
      throw Fault(FaultKind::kMisaligned,
                  "mbarrier at shared offset " + hex(at.offset) + ": not a multiple of 8");
    uint32_t ranks = 1u << at.cta->rank;
    if (inst.has(Q::kMulticast)) {
      if (inst.operands.size() < 2) throw Fault(FaultKind::kUnsupported, "multicast needs a mask");
      ranks = uint32_t(x.source(inst.operands[1].value, lane)) & 0xFFFF;
      if (ranks == 0) throw Fault(FaultKind::kProtocol, "multicast to nobody");
    }
    AsyncIssue facts;
    facts.kind = AsyncIssue::Kind::kCommit;
    facts.cta_group = group.size;
    SIM_FOR_LANES(rank, ranks) {
      Cta& cta = x.cluster.at(rank);
      cta.mbarrier(at.offset);
      facts.barriers.push_back({{cta.linear, at.offset}, 0});
    }
    x.launch_async(
        AsyncOp::Kind::kTensorCommit, lane, ranks,
        [&cluster = x.cluster, ranks, offset = at.offset] {
          SIM_FOR_LANES(rank, ranks) sim::mbarrier_arrive(cluster.at(rank), offset, 1);
        },
        std::move(facts));
  }
}

void tcgen05_fence(Exec& x, const Inst& inst) { fence(x, inst); }

}  // namespace op
}  // namespace sim
