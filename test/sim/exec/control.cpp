// control.cpp -- moves, arithmetic and control flow.
#include <algorithm>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/text.h"

namespace sim::op {
namespace {

// Where bits of an input are poison, so are those bits of the result that they may change. The other lanes go
// on.
void pass_poison_on(Exec& x, const Inst& inst, uint32_t lanes) {
  const Operand& to = inst.operands[0];
  const std::vector<Value> whole{to.value};
  const std::vector<Value>& results = to.kind == Operand::Kind::kPair ? to.items : whole;
  SIM_FOR_LANES(lane, lanes) {
    uint64_t in[6] = {}, unknown[6] = {}, out[4] = {};
    std::shared_ptr<const Poison> origin;
    for (uint32_t i = 0; i < inst.alu.inputs; ++i) {
      const Value& from = inst.operands[i + 1].value;
      const Bits bits = x.bits(from, lane);
      in[i] = bits.known;
      unknown[i] = bits.unknown;
      if (bits.unknown != 0) merge_origin(&origin, x.origin(from, lane));
    }
    bool moved;
    const uint64_t missing = undefined_bits(*inst.statement, inst.alu, in, unknown, out, &moved);
    if (!moved) origin = computed(origin);
    for (size_t i = 0; i < results.size(); ++i) x.write(results[i], lane, {out[i], missing}, origin);
  }
  x.mask &= ~lanes;
}

// Computes the values of some lanes of a register, one by one.
template <uint32_t kInputs>
void compute_lanes(const AluCode& code, uint32_t lanes, const uint64_t* const* sources, uint64_t* values) {
  SIM_FOR_LANES(lane, lanes) {
    uint64_t in[kInputs];
    for (uint32_t i = 0; i < kInputs; ++i) in[i] = sources[i][lane];
    values[lane] = code.fn(code, in);
  }
}

void copy_hole(Exec& x, const Value& to, uint32_t lane, const Value& from) {
  x.write(to, lane, x.bits(from, lane), x.origin(from, lane));
}

}  // namespace

void alu(Exec& x, const Inst& inst) {
  const AluCode& code = inst.alu;
  uint32_t holes = 0;
  for (uint32_t i = 0; i < code.inputs; ++i) holes |= x.holes(inst.operands[i + 1].value);
  if (holes != 0) pass_poison_on(x, inst, holes);
  if (x.mask == 0) return;
  uint64_t scratch[6][32];
  const uint64_t* sources[6] = {};
  uint64_t in[6], out[4];
  for (uint32_t i = 0; i < code.inputs; ++i) sources[i] = x.sources(inst.operands[i + 1].value, scratch[i]);
  const Operand& destination = inst.operands[0];
  if (code.extra_outputs == 0) {
    const Value& d = destination.value;
    if (d.kind != Value::Kind::kRegister) return;
    uint64_t* values = &x.warp.registers[d.reg * 32];
    if (inst.lanes != nullptr && x.mask == 0xFFFFFFFF) {
      inst.lanes(values, sources[0], sources[1], sources[2]);
      x.warp.written[d.reg] = x.mask;
      return;
    }
    switch (code.inputs) {
      case 1: compute_lanes<1>(code, x.mask, sources, values); break;
      case 2: compute_lanes<2>(code, x.mask, sources, values); break;
      case 3: compute_lanes<3>(code, x.mask, sources, values); break;
      default: compute_lanes<4>(code, x.mask, sources, values);  // none has more
    }
    x.warp.written[d.reg] |= x.mask;
    return;
  }
  SIM_FOR_LANES(lane, x.mask) {
    for (uint32_t i = 0; i < code.inputs; ++i) in[i] = sources[i][lane];
    code.fn2(code, in, out);
    if (destination.kind == Operand::Kind::kPair)
      for (size_t i = 0; i < destination.items.size(); ++i) x.write(destination.items[i], lane, out[i]);
    else x.write(destination.value, lane, out[0]);
  }
}

void mov(Exec& x, const Inst& inst) {
  const Operand &to = inst.operands[0], &from = inst.operands[1];
  if (inst.type == ptx::Type::kB128) {  // two halves on both sides
    if (to.items.size() != 2 || from.items.size() != 2)
      throw Fault(FaultKind::kUnsupported, "mov.b128 of other parts than two of 64 bits");
    for (size_t i = 0; i < to.items.size(); ++i) {
      const uint32_t holes = x.holes(from.items[i]);
      SIM_FOR_LANES(lane, holes) copy_hole(x, to.items[i], lane, from.items[i]);
      SIM_FOR_LANES(lane, x.mask & ~holes) x.write(to.items[i], lane, x.source(from.items[i], lane));
    }
  } else if (to.kind == Operand::Kind::kVector) {  // unpack: first element from the low bits
    const int part = ptx::bits(inst.type) / int(to.items.size());
    const uint32_t holes = x.holes(from.value);
    SIM_FOR_LANES(lane, holes) {
      const Bits bits = x.bits(from.value, lane);
      const auto origin = x.origin(from.value, lane);
      for (size_t i = 0; i < to.items.size(); ++i)
        x.write(to.items[i], lane, {bits.known >> (int(i) * part), bits.unknown >> (int(i) * part)}, origin);
    }
    SIM_FOR_LANES(lane, x.mask & ~holes) {
      const uint64_t value = x.source(from.value, lane);
      for (size_t i = 0; i < to.items.size(); ++i) x.write(to.items[i], lane, value >> (int(i) * part));
    }
  } else if (from.kind == Operand::Kind::kVector) {  // pack
    const int part = ptx::bits(inst.type) / int(from.items.size());
    const uint64_t part_mask = part >= 64 ? ~uint64_t(0) : (uint64_t(1) << part) - 1;
    uint32_t holes = 0;
    for (const Value& item : from.items) holes |= x.holes(item);
    SIM_FOR_LANES(lane, holes) {
      Bits all;
      std::shared_ptr<const Poison> origin;
      for (size_t i = 0; i < from.items.size(); ++i) {
        const Bits bits = x.bits(from.items[i], lane);
        all.known |= (bits.known & part_mask) << (int(i) * part);
        all.unknown |= (bits.unknown & part_mask) << (int(i) * part);
        if (bits.unknown != 0) merge_origin(&origin, x.origin(from.items[i], lane));
      }
      x.write(to.value, lane, all, origin);
    }
    SIM_FOR_LANES(lane, x.mask & ~holes) {
      uint64_t value = 0;
      for (size_t i = 0; i < from.items.size(); ++i)
        value |= (x.source(from.items[i], lane) & part_mask) << (int(i) * part);
      x.write(to.value, lane, value);
    }
  } else {
    uint64_t scratch[32];
    if (const uint32_t holes = x.holes(from.value); holes != 0) {
      SIM_FOR_LANES(lane, holes) copy_hole(x, to.value, lane, from.value);
      x.mask &= ~holes;
    }
    const uint64_t* values = x.sources(from.value, scratch);
    if (x.mask == 0xFFFFFFFF && to.value.kind == Value::Kind::kRegister) {
      const uint64_t keep = to.value.bits < 64 ? (uint64_t(1) << to.value.bits) - 1 : ~uint64_t(0);
      uint64_t* out = &x.warp.registers[to.value.reg * 32];
      for (int lane = 0; lane < 32; ++lane) out[lane] = values[lane] & keep;
      x.warp.written[to.value.reg] = x.mask;
      return;
    }
    SIM_FOR_LANES(lane, x.mask) x.write(to.value, lane, values[lane]);
  }
}

void bra(Exec& x, const Inst& inst) {
  if (x.mask == x.fragment->mask) {
    x.next_pc = inst.targets[0];
    return;
  }
  for (const std::string& qualifier : inst.statement->qualifiers)
    if (qualifier == "uni")
      throw Fault(FaultKind::kProtocol, "bra.uni, but only lanes " + hex(x.mask) + " take it");
  diverge(x, x.mask, inst.targets[0], inst.rejoin);
}

void brx(Exec& x, const Inst& inst) {
  const auto target = [&](uint32_t lane) {
    const uint64_t index = x.source(inst.operands[0].value, lane);
    if (index >= inst.targets.size())
      throw Fault(FaultKind::kBounds, "branch index " + std::to_string(index) + " is outside the table of " +
                                          std::to_string(inst.targets.size()));
    return inst.targets[index];
  };
  // Peel one group of lanes per target; the last group keeps this fragment unless a guard left lanes behind.
  uint32_t rest = x.mask;
  while (rest != 0) {
    const uint32_t to = target(uint32_t(__builtin_ctz(rest)));
    uint32_t group = 0;
    SIM_FOR_LANES(lane, rest) if (target(lane) == to) group |= 1u << lane;
    rest &= ~group;
    if (group == x.fragment->mask) x.next_pc = to;
    else if (inst.has(Q::kUni))
      throw Fault(FaultKind::kProtocol, "brx.idx.uni, but only lanes " + hex(group) + " take this target");
    else diverge(x, group, to, inst.rejoin);
  }
}

void call(Exec& x, const Inst& inst) {
  const DeviceFunction& callee = x.grid.kernel.functions[inst.callee];
  if (callee.external != External::kNone) return call_external(x, inst);
  if (x.mask != x.fragment->mask) throw Fault(FaultKind::kUnsupported, "call under a divergent guard");
  for (size_t i = 0; i < callee.params.size(); ++i) {
    const Operand& argument = inst.operands[callee.returns.size() + i];
    const auto& [offset, bytes] = callee.params[i];
    SIM_FOR_LANES(lane, x.mask) {
      if (argument.value.kind == Value::Kind::kRegister) {
        const Bits value = x.bits(argument.value, lane);
        x.store(Space::kLocal, offset, lane, &value.known, uint32_t(bytes));
        x.store_holes(Space::kLocal, offset, lane, argument.value, uint32_t(bytes));
      } else {
        x.copy_local(offset, x.source(argument.value, lane), lane, bytes);
      }
    }
  }
  x.fragment->calls.push_back(x.fragment->pc);
  x.next_pc = callee.entry;
}

void ret(Exec& x, const Inst&) {
  if (x.mask != x.fragment->mask)
    throw Fault(FaultKind::kUnsupported, "ret of a function under a divergent guard");
  const uint32_t call_pc = x.fragment->calls.back();
  x.fragment->calls.pop_back();
  const Inst& site = x.grid.kernel.code[call_pc];
  const DeviceFunction& callee = x.grid.kernel.functions[site.callee];
  for (size_t i = 0; i < callee.returns.size(); ++i) {
    const Value& result = site.operands[i].value;
    const auto& [offset, bytes] = callee.returns[i];
    SIM_FOR_LANES(lane, x.mask) {
      if (result.kind == Value::Kind::kRegister) {
        uint8_t data[8] = {};
        Holes holes;
        x.load(Space::kLocal, offset, lane, data, uint32_t(bytes), Exec::Seen::kPlain, &holes);
        std::shared_ptr<const Poison> origin;
        const Bits value = x.loaded({Space::kLocal, offset, data, holes}, lane, 0, uint32_t(bytes), &origin);
        x.write(result, lane, value, std::move(origin));
      } else if (result.kind != Value::Kind::kSink) {
        x.copy_local(x.source(result, lane), offset, lane, bytes);
      }
    }
  }
  x.next_pc = call_pc + 1;
}

void exit(Exec& x, const Inst&) {
  const uint32_t lanes = x.mask;
  Warp& warp = x.warp;
  try {
    check_transfers(warp, "lanes exit");
  } catch (const Fault& fault) {
    x.outlive(fault, lanes);
    warp.transfers.clear();
  }
  exit_lanes(x);
  try {
    check_wgmma_exit(warp);
  } catch (const Fault& fault) {
    x.outlive(fault, lanes);
  }
  if (warp.live == 0) check_register_requests(x);
}

void trap(Exec&, const Inst& inst) {
  throw Fault(FaultKind::kTrap, "the program executed " + inst.statement->opcode);
}

void nothing(Exec&, const Inst&) {}

// The policy word only steers caches; any constant does.
void createpolicy(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, uint64_t(1) << 60);
}

}  // namespace sim::op
