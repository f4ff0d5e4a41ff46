// tcgen05_ops.cpp -- the tensor core instructions as a program issues them. Descriptors, layouts and
// arithmetic are engine/tensor_core; here are allocation by a warp or a pair of warps, the memory of one or
// two CTAs, and what is pending until when. tcgen05.ld and .st take effect when they are issued, which is a
// legal moment: a register or cell they produce is only used after them.
#include "sim/engine/tensor_core.h"
#include "sim/exec/handlers.h"
#include "sim/exec/machine.h"

namespace sim {

Tmem& Cta::tensor_memory() {
  if (!tmem) tmem = std::make_unique<Tmem>();
  return *tmem;
}

namespace op {
namespace {

// The CTAs an instruction of this cta_group works on, the even one first.
struct Group {
  Cta* ctas[2] = {nullptr, nullptr};
  int size = 1;
  uint32_t ranks = 0;
  CtaMemory memory[2] = {{nullptr, nullptr}, {nullptr, nullptr}};
};

Group group_of(Exec& x, const Inst& inst) {
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

LdShape ld_shape(const Inst& inst) {
  if (inst.has(Q::kS32x32b)) return LdShape::k32x32b;
  if (inst.has(Q::kS16x64b)) return LdShape::k16x64b;
  if (inst.has(Q::kS16x128b)) return LdShape::k16x128b;
  if (inst.has(Q::kS16x256b)) return LdShape::k16x256b;
  if (inst.has(Q::kS16x32bx2)) return LdShape::k16x32bx2;
  throw Fault(FaultKind::kUnsupported, "tcgen05.ld/st shape");
}

// The warp of this CTA that slept in alloc or dealloc wakes: its pair has done it for both, and may be gone
// by now.
bool granted(Exec& x, TmemRequest* out) {
  if (x.cta.tmem_request.state != TmemRequest::State::kDone) return false;
  *out = x.cta.tmem_request;
  x.cta.tmem_request = TmemRequest{};
  return true;
}

// alloc and dealloc of a pair happen when a warp of each CTA asks for the same; false: this CTA's warp
// sleeps.
bool meet(Exec& x, const Group& group, const TmemRequest& mine) {
  TmemRequest& own = x.cta.tmem_request;
  own = mine;
  own.state = TmemRequest::State::kAsked;
  Cta& peer = group.ctas[0] == &x.cta ? *group.ctas[1] : *group.ctas[0];
  TmemRequest& other = peer.tmem_request;
  if (other.state == TmemRequest::State::kAsked) {
    if (other.free != own.free || other.columns != own.columns || (own.free && other.base != own.base))
      throw Fault(FaultKind::kProtocol,
                  "the CTAs of a pair ask for different tensor memory: " + std::to_string(own.columns) +
                      " and " + std::to_string(other.columns) + " columns");
    if (own.free) {
      for (Cta* cta : group.ctas) cta->tensor_memory().dealloc(int(own.base), int(own.columns));
      own.state = other.state = TmemRequest::State::kDone;
    } else {
      const int base = group.ctas[0]->tensor_memory().alloc(int(own.columns));
      if (base >= 0) {
        if (group.ctas[1]->tensor_memory().alloc(int(own.columns)) != base)
          throw Fault(FaultKind::kProtocol, "the tensor memories of a pair are allocated differently");
        own.base = other.base = uint32_t(base);
        own.state = other.state = TmemRequest::State::kDone;
      }
    }
  }
  if (own.state != TmemRequest::State::kDone) {
    x.changed();
    Wait w;
    w.kind = Wait::Kind::kTmem;
    x.wait(std::move(w), false);
    return false;
  }
  x.changed();
  return true;
}

MmaOp operands_of(const Exec& x, const Inst& inst, uint32_t lane, int cta_group) {
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
  return op;
}

void issue(Exec& x, const Group& group, uint32_t lane, const MmaOp& op) {
  check_mma(op);
  x.launch_async(AsyncOp::Kind::kTensorMma, lane, group.ranks,
                 [op, group] { execute_mma(op, group.memory); });
}

void require_whole_warp(const Exec& x) {
  x.require_converged();
  if (x.mask != 0xFFFFFFFF)
    throw Fault(FaultKind::kProtocol, "the instruction needs all 32 lanes of a warp, but some have exited");
}

}  // namespace

void tcgen05_alloc(Exec& x, const Inst& inst) {
  require_whole_warp(x);
  TmemRequest request;
  int base;
  if (granted(x, &request)) {
    base = int(request.base);
  } else {
    const Group group = group_of(x, inst);
    request.columns = uint32_t(x.uniform(inst.operands[1].value, "the column count"));
    if (group.size == 2) {
      if (!meet(x, group, request)) return;
      granted(x, &request);
      base = int(request.base);
    } else {
      base = x.cta.tensor_memory().alloc(int(request.columns));
    }
    if (base < 0) {
      Wait w;
      w.kind = Wait::Kind::kTmem;
      x.wait(std::move(w), false);
      return;
    }
  }
  const uint32_t lane = uint32_t(__builtin_ctz(x.mask));
  const uint32_t address = uint32_t(base);
  x.store(inst.space, x.address(inst.operands[0], lane), lane, &address, 4);
}

void tcgen05_dealloc(Exec& x, const Inst& inst) {
  require_whole_warp(x);
  TmemRequest mine;
  if (granted(x, &mine)) return;
  const Group group = group_of(x, inst);
  mine.free = true;
  mine.base = uint32_t(x.uniform(inst.operands[0].value, "the tensor memory address"));
  mine.columns = uint32_t(x.uniform(inst.operands[1].value, "the column count"));
  for (const auto& pending : x.cluster.pending)
    if (pending->kind != AsyncOp::Kind::kCopy && (pending->ranks & group.ranks) != 0)
      throw Fault(FaultKind::kProtocol, "tensor memory is freed while a tcgen05 operation is pending: " +
                                            describe(*pending->inst->statement));
  if (group.size == 2) {
    if (!meet(x, group, mine)) return;
    granted(x, &mine);
  } else {
    x.cta.tensor_memory().dealloc(int(mine.base), int(mine.columns));
  }
  x.changed();
}

void tcgen05_relinquish(Exec& x, const Inst& inst) {
  require_whole_warp(x);
  group_of(x, inst);
  x.cta.tensor_memory().relinquish();
}

void tcgen05_cp(Exec& x, const Inst& inst) {
  const CpShape shape = cp_shape(inst);
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = group_of(x, inst);
    const uint32_t to = uint32_t(x.address(inst.operands[0], lane));
    const uint64_t from = x.source(inst.operands[1].value, lane);
    x.launch_async(AsyncOp::Kind::kTensorCopy, lane, group.ranks, [shape, to, from, group] {
      for (int i = 0; i < group.size; ++i) execute_cp(shape, to, from, group.memory[i]);
    });
  }
}

void tcgen05_mma(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = group_of(x, inst);
    MmaOp op = operands_of(x, inst, lane, group.size);
    op.kind = MmaKind::kF16;
    issue(x, group, lane, op);
  }
}

void tcgen05_mma_scaled(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Group group = group_of(x, inst);
    MmaOp op = operands_of(x, inst, lane, group.size);
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
    issue(x, group, lane, op);
  }
}

// commit [mbar]{, mask}: one arrival when everything this thread issued before has completed.
void tcgen05_commit(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    group_of(x, inst);
    const Exec::Shared at = x.shared_of(inst.space, x.address(inst.operands[0], lane), 8);
    if (at.offset % 8 != 0)
      throw Fault(FaultKind::kMisaligned,
                  "mbarrier at shared offset " + hex(at.offset) + ": not a multiple of 8");
    uint32_t ranks = 1u << at.cta->rank;
    if (inst.has(Q::kMulticast)) {
      if (inst.operands.size() < 2) throw Fault(FaultKind::kUnsupported, "multicast needs a mask");
      ranks = uint32_t(x.source(inst.operands[1].value, lane)) & 0xFFFF;
      if (ranks == 0) throw Fault(FaultKind::kProtocol, "multicast to nobody");
    }
    SIM_FOR_LANES(rank, ranks) x.cluster.at(rank).mbarrier(at.offset);
    x.launch_async(AsyncOp::Kind::kTensorCommit, lane, ranks,
                   [&cluster = x.cluster, ranks, offset = at.offset] {
                     SIM_FOR_LANES(rank, ranks) sim::mbarrier_arrive(cluster.at(rank), offset, 1);
                   });
  }
}

namespace {

struct TmemAccess {
  LdShape shape;
  uint32_t address;
  int half_split, registers;
  bool packed;
};

TmemAccess access_of(Exec& x, const Inst& inst, const Operand& address, const Operand& values,
                     size_t split_operand) {
  require_whole_warp(x);
  TmemAccess access;
  access.shape = ld_shape(inst);
  access.packed = inst.has(Q::kPack) || inst.has(Q::kUnpack);
  access.address = uint32_t(x.address(address, 0));
  for (uint32_t lane = 1; lane < 32; ++lane)
    if (uint32_t(x.address(address, lane)) != access.address)
      throw Fault(FaultKind::kProtocol, "the tensor memory address differs between the lanes of a warp");
  access.half_split = 0;
  const bool split = access.shape == LdShape::k16x32bx2;
  if (inst.operands.size() != (split ? 3u : 2u))
    throw Fault(FaultKind::kUnsupported,
                split ? "16x32bx2 needs its half split" : "half split of a shape without one");
  if (split) access.half_split = int(x.uniform(inst.operands[split_operand].value, "the half split"));
  access.registers = ld_registers(access.shape, inst.repeat);
  const size_t given = values.kind == Operand::Kind::kVector ? values.items.size() : 1;
  if (access.registers < 0 || size_t(access.registers) != given)
    throw Fault(FaultKind::kUnsupported,
                "the shape and repeat count do not match " + std::to_string(given) + " registers");
  return access;
}

const Value& element(const Operand& operand, int i) {
  return operand.kind == Operand::Kind::kVector ? operand.items[size_t(i)] : operand.value;
}

}  // namespace

void tcgen05_ld(Exec& x, const Inst& inst) {
  const TmemAccess a = access_of(x, inst, inst.operands[1], inst.operands[0], 2);
  const Tmem& tmem = x.cta.tensor_memory();
  const int warp = int(x.warp.index);
  if (a.shape == LdShape::k32x32b && !a.packed) {  // one row of cells per lane
    uint32_t row[Tmem::kColumns];
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const Cell first = ld_cell(a.shape, inst.repeat, a.address, warp, int(lane), 0, 0, false, 0);
      tmem.read_row(first.lane, first.column, a.registers, row);
      for (int j = 0; j < a.registers; ++j) x.write(element(inst.operands[0], j), lane, row[j]);
    }
    return;
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int j = 0; j < a.registers; ++j) {
      uint32_t value = 0;
      for (int half = 0; half < (a.packed ? 2 : 1); ++half) {
        const Cell cell =
            ld_cell(a.shape, inst.repeat, a.address, warp, int(lane), j, a.half_split, a.packed, half);
        const uint32_t bits = tmem.read(cell.lane, cell.column);
        value |= a.packed ? (bits & 0xFFFF) << (16 * half) : bits;
      }
      x.write(element(inst.operands[0], j), lane, value);
    }
}

void tcgen05_st(Exec& x, const Inst& inst) {
  const Operand& values = inst.operands.back();
  const TmemAccess a = access_of(x, inst, inst.operands[0], values, 1);
  Tmem& tmem = x.cta.tensor_memory();
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int j = 0; j < a.registers; ++j) {
      const uint32_t value = uint32_t(x.source(element(values, j), lane));
      for (int half = 0; half < (a.packed ? 2 : 1); ++half) {
        const Cell cell = ld_cell(a.shape, inst.repeat, a.address, int(x.warp.index), int(lane), j,
                                  a.half_split, a.packed, half);
        tmem.write(cell.lane, cell.column, a.packed ? (value >> (16 * half)) & 0xFFFF : value);
      }
    }
}

void tcgen05_wait(Exec& x, const Inst& inst) {
  require_whole_warp(x);
  fence(x, inst);
}

void tcgen05_fence(Exec& x, const Inst& inst) { fence(x, inst); }

}  // namespace op
}  // namespace sim
