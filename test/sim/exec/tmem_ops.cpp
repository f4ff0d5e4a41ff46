// tmem_ops.cpp -- tcgen05.ld, .st and .wait: registers to tensor memory and back. Both are asynchronous: a
// load takes its value at some moment between its issue and tcgen05.wait::ld, a store takes its registers at
// issue and reaches the cells at some moment before tcgen05.wait::st. The policy chooses whether loads and
// stores take effect at issue or late. Hardware gives the right value to an instruction that uses a load's
// register before the wait, so such a use makes the load take effect.
#include "sim/exec/tmem_ops.h"

#include <algorithm>

#include "sim/exec/handlers.h"

namespace sim {

static void end_early(Exec& x, TmemTransfer& transfer) {
  if (transfer.landed) return;
  auto& pending = x.cluster.pending;
  const auto op =
      std::find_if(pending.begin(), pending.end(), [&](const auto& p) { return p->id == transfer.id; });
  pending.erase(op);
  ++x.cluster.pending_changes;
  transfer.landed = true;
  transfer.land();
  x.changed();
  if (!x.watched()) return;
  x.grid.observer->land({AsyncLanding::Step::kSourcesRead, transfer.id});
  x.grid.observer->land({AsyncLanding::Step::kPiece, transfer.id});
  x.grid.observer->land({AsyncLanding::Step::kComplete, transfer.id});
}

static bool names(const Operand& operand, const std::vector<uint32_t>& registers) {
  const auto is_one = [&](const Value& value) {
    return value.kind == Value::Kind::kRegister &&
           std::binary_search(registers.begin(), registers.end(), value.reg);
  };
  return is_one(operand.value) || std::any_of(operand.items.begin(), operand.items.end(), is_one);
}

void use_registers(Exec& x, const Inst& inst) {
  auto& transfers = x.warp.transfers;
  for (size_t i = 0; i < transfers.size();) {
    const std::shared_ptr<TmemTransfer> transfer = transfers[i];
    if (std::none_of(inst.operands.begin(), inst.operands.end(),
                     [&](const Operand& operand) { return names(operand, transfer->registers); })) {
      ++i;
      continue;
    }
    end_early(x, *transfer);
    transfers.erase(transfers.begin() + std::ptrdiff_t(i));
    if (!x.watched()) continue;
    SyncEvent event;
    event.kind = SyncEvent::Kind::kTmemUse;
    event.cta = x.cta.linear;
    event.async_id = transfer->id;
    x.report(event, x.mask);
  }
}

void check_transfers(const Warp& warp, const char* what) {
  if (warp.transfers.empty()) return;
  const TmemTransfer& first = *warp.transfers.front();
  throw Fault(FaultKind::kProtocol, std::string(what) + ", but warp " + std::to_string(warp.index) +
                                        " has not waited for " + describe(*first.inst->statement));
}

namespace op {

bool whole_warp(Exec& x) {
  if (!x.converged()) return false;
  if (x.mask != 0xFFFFFFFF)
    throw Fault(FaultKind::kProtocol, "the instruction needs all 32 lanes of a warp, but some have exited");
  return true;
}

Region cell_region(const Cta& cta, const CellRange& cells, bool write) {
  Region region;
  region.memory = Memory::kTensor;
  region.write = write;
  region.cta = cta.linear;
  region.lane = uint16_t(cells.lane);
  region.lanes = uint16_t(cells.lanes);
  region.column = uint16_t(cells.column);
  region.columns = uint16_t(cells.columns);
  return region;
}

namespace {

struct TmemAccess {
  LdShape shape;
  int repeat;
  uint32_t address;
  int half_split, registers;
  bool packed;
};

LdShape ld_shape(const Inst& inst) {
  if (inst.has(Q::kS32x32b)) return LdShape::k32x32b;
  if (inst.has(Q::kS16x64b)) return LdShape::k16x64b;
  if (inst.has(Q::kS16x128b)) return LdShape::k16x128b;
  if (inst.has(Q::kS16x256b)) return LdShape::k16x256b;
  if (inst.has(Q::kS16x32bx2)) return LdShape::k16x32bx2;
  throw Fault(FaultKind::kUnsupported, "tcgen05.ld/st shape");
}

TmemAccess access_of(Exec& x, const Inst& inst, const Operand& address, const Operand& values,
                     size_t split_operand) {
  TmemAccess access;
  access.shape = ld_shape(inst);
  access.repeat = inst.repeat;
  access.packed = inst.has(Q::kPack) || inst.has(Q::kUnpack);
  access.address = uint32_t(x.address(address, 0));
  for (uint32_t lane = 1; lane < 32; ++lane)
    if (uint32_t(x.address(address, lane)) != access.address)
      throw Fault(FaultKind::kProtocol, "the tensor memory address differs between the lanes of a warp");
  // The quarter that the address names is ignored: the warp's own quarter is taken. So is a lane inside of
  // the lanes that the shape takes as a whole.
  const uint32_t lane = access.address >> 16 & 127, own = x.warp.index % 4 * 32;
  const uint32_t lanes = uint32_t(ld_lanes(access.shape)), first = own + (lanes == 16 ? lane & 16 : 0);
  if (lane != first)
    x.remark("tmem-lane-bits",
             "the address names lane " + std::to_string(lane) + " of tensor memory, but warp " +
                 std::to_string(x.warp.index) + " accesses lanes " + std::to_string(first) + ".." +
                 std::to_string(first + lanes - 1) + ", whatever the address says",
             lanes == 16 ? "the lane of the address: 32 * (warp % 4), or 16 more"
                         : "the lane of the address: 32 * (warp % 4)");
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

Cell cell_of(const TmemAccess& a, const Warp& warp, uint32_t lane, int j, int half) {
  return ld_cell(a.shape, a.repeat, a.address, int(warp.index), int(lane), j, a.half_split, a.packed, half);
}

// Cells that nobody wrote make the register poison. It is no error to load more cells than are used.
void read_cells(Warp& warp, const Inst& inst, const TmemAccess& a) {
  const Operand& to = inst.operands[0];
  const Tmem& tmem = warp.cta->tensor_memory();
  const auto write = [&](int j, uint32_t lane, uint32_t bits) {
    const Value& destination = element(to, j);
    if (destination.kind != Value::Kind::kRegister) return;
    warp.registers[destination.reg * 32 + lane] = bits;
    warp.written[destination.reg] |= 1u << lane;
  };
  const auto poison = [&](int j, uint32_t lane, const Cell& cell, Bits bits = {0, kWhole}) {
    const Value& destination = element(to, j);
    if (destination.kind != Value::Kind::kRegister) return;
    write(j, lane, uint32_t(bits.known));
    warp.written[destination.reg] &= ~(1u << lane);
    const std::string cause = "TMEM lane " + std::to_string(cell.lane) + " column " +
                              std::to_string(cell.column) + " was never written";
    warp.poisoned[uint64_t(destination.reg) * 32 + lane] = {
        std::make_shared<const Poison>(Poison{&inst, cause}), bits.unknown};
  };
  uint32_t row[Tmem::kColumns];
  uint8_t valid[Tmem::kColumns];
  if (a.shape == LdShape::k32x32b && !a.packed) {  // one row of cells per lane
    const Cell begin = cell_of(a, warp, 0, 0, 0);
    tmem.check(begin.lane, begin.column, a.registers);  // which holds for all lanes
    uint64_t sink[32];
    uint64_t* registers[Tmem::kColumns];
    for (int j = 0; j < a.registers; ++j) {
      const Value& destination = element(to, j);
      const bool kept = destination.kind == Value::Kind::kRegister;
      registers[j] = kept ? &warp.registers[destination.reg * 32] : sink;
      if (kept) warp.written[destination.reg] = 0xFFFFFFFF;  // but for poison
    }
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const Cell first = cell_of(a, warp, lane, 0, 0);
      const int whole = tmem.read_row_with_poison(first.lane, first.column, a.registers, row, valid);
      for (int j = 0; j < whole; ++j) registers[j][lane] = row[j];
      for (int j = whole; j < a.registers; ++j)
        if (valid[j] != 0) write(j, lane, row[j]);
        else poison(j, lane, {first.lane, first.column + j});
    }
    return;
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int j = 0; j < a.registers; ++j) {
      const Cell first = cell_of(a, warp, lane, j, 0);
      const int cells = a.packed ? 2 : 1;
      const int whole = tmem.read_row_with_poison(first.lane, first.column, cells, row, valid);
      const Cell missing{first.lane, first.column + whole};
      if (!a.packed) {
        if (whole == cells) write(j, lane, row[0]);
        else poison(j, lane, missing);
        continue;
      }
      Bits bits;
      for (int half = 0; half < 2; ++half)
        (valid[half] != 0 ? bits.known : bits.unknown) |=
            uint64_t(valid[half] != 0 ? row[half] & 0xFFFF : 0xFFFF) << (16 * half);
      if (bits.unknown == 0xFFFFFFFF) bits.unknown = kWhole;
      if (whole == cells) write(j, lane, uint32_t(bits.known));
      else poison(j, lane, missing, bits);
    }
}

// `values` are those of all registers, lane by lane.
void write_cells(Warp& warp, const std::vector<uint32_t>& values, const TmemAccess& a) {
  Tmem& tmem = warp.cta->tensor_memory();
  const uint32_t* next = values.data();
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int j = 0; j < a.registers; ++j, ++next)
      for (int half = 0; half < (a.packed ? 2 : 1); ++half) {
        const Cell cell = cell_of(a, warp, lane, j, half);
        tmem.write(cell.lane, cell.column, a.packed ? (*next >> (16 * half)) & 0xFFFF : *next);
      }
}

AsyncIssue facts_of(const Exec& x, const TmemAccess& a, bool store) {
  AsyncIssue facts;
  facts.kind = store ? AsyncIssue::Kind::kTmemStore : AsyncIssue::Kind::kTmemLoad;
  facts.mask = x.mask;
  for (const CellRange& cells :
       ld_cells(a.shape, a.repeat, a.address, int(x.warp.index), a.half_split, a.packed))
    (store ? facts.writes : facts.reads).push_back(cell_region(x.cta, cells, store));
  return facts;
}

// Starts a transfer, which is in flight from now on or over at once.
void start(Exec& x, const Inst& inst, const TmemAccess& a, std::shared_ptr<TmemTransfer> transfer) {
  const bool late = !x.grid.policy.load_early();
  transfer->inst = &inst;
  transfer->id = x.grid.next_op;
  x.warp.transfers.push_back(transfer);
  // The cells of a late transfer are checked now, not when it lands: then an illegal cell is a fault of this
  // instruction in every schedule.
  AsyncIssue facts;
  if (late || x.watched()) {
    facts = facts_of(x, a, transfer->store);
    for (const Region& cells : transfer->store ? facts.writes : facts.reads)
      x.cta.tensor_memory().check(cells.lane, cells.column, cells.columns);
  }
  x.launch_async(
      transfer->store ? AsyncOp::Kind::kTmemStore : AsyncOp::Kind::kTmemLoad, 0, 1u << x.cta.rank,
      [transfer] {
        transfer->land();
        transfer->landed = true;
      },
      std::move(facts));
  if (!late) end_early(x, *transfer);
}

}  // namespace

void tcgen05_ld(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  const Operand& to = inst.operands[0];
  const TmemAccess a = access_of(x, inst, inst.operands[1], to, 2);
  auto transfer = std::make_shared<TmemTransfer>();
  for (int j = 0; j < a.registers; ++j)
    if (element(to, j).kind == Value::Kind::kRegister) transfer->registers.push_back(element(to, j).reg);
  std::sort(transfer->registers.begin(), transfer->registers.end());
  transfer->land = [&warp = x.warp, &inst, a] { read_cells(warp, inst, a); };
  start(x, inst, a, std::move(transfer));
}

void tcgen05_st(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  const Operand& from = inst.operands.back();
  const TmemAccess a = access_of(x, inst, inst.operands[0], from, 1);
  std::vector<uint32_t> values;
  values.reserve(size_t(32 * a.registers));
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int j = 0; j < a.registers; ++j) values.push_back(uint32_t(x.source(element(from, j), lane)));
  auto transfer = std::make_shared<TmemTransfer>();
  transfer->store = true;
  transfer->land = [&warp = x.warp, values = std::move(values), a] { write_cells(warp, values, a); };
  start(x, inst, a, std::move(transfer));
}

// Waits for the loads, or the stores, of the executing warp: those that have not landed yet land now.
void tcgen05_wait(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  const bool stores = inst.has(Q::kWaitSt);
  auto& transfers = x.warp.transfers;
  for (const auto& transfer : transfers)
    if (transfer->store == stores) end_early(x, *transfer);
  std::erase_if(transfers, [&](const auto& transfer) { return transfer->store == stores; });
  if (!x.watched()) return;
  SyncEvent event;
  event.kind = stores ? SyncEvent::Kind::kTmemWaitSt : SyncEvent::Kind::kTmemWaitLd;
  event.cta = x.cta.linear;
  x.report(event, x.mask);
}

}  // namespace op
}  // namespace sim
