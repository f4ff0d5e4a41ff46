// warp_ops.cpp -- the instructions by which the lanes of a warp talk to each other.
#include <algorithm>

#include "sim/exec/handlers.h"
#include "sim/exec/machine.h"

namespace sim::op {

// shfl.sync d|p, a, b, c, members (PTX ISA "shfl.sync"): c packs the clamp and the segment mask.
void shfl(Exec& x, const Inst& inst) {
  const Operand& to = inst.operands[0];
  const Value& d = to.kind == Operand::Kind::kPair ? to.items[0] : to.value;
  if (!x.gather(uint32_t(x.uniform(inst.operands[4].value, "the member mask")))) return;
  const Value& given = inst.operands[1].value;
  const uint32_t holes = x.holes(given);
  Bits result[32];
  std::shared_ptr<const Poison> poisoned[32];
  SIM_FOR_LANES(lane, x.mask) {
    const uint32_t b = uint32_t(x.source(inst.operands[2].value, lane)) & 31;
    const uint32_t c = uint32_t(x.source(inst.operands[3].value, lane));
    const uint32_t clamp = c & 31, segment = c >> 8 & 31;
    const uint32_t low = lane & segment, high = low | (clamp & ~segment);
    int from = int(lane);
    bool inside;
    if (inst.has(Q::kUp)) {
      from -= int(b);
      inside = from >= int(high);
    } else if (inst.has(Q::kDown)) {
      from += int(b);
      inside = from <= int(high);
    } else if (inst.has(Q::kBfly)) {
      from ^= int(b);
      inside = from <= int(high);
    } else {
      from = int(low | (b & ~segment));
      inside = from <= int(high);
    }
    if (!inside) from = int(lane);
    if (holes >> from & 1) poisoned[lane] = x.origin(given, uint32_t(from));
    if (x.mask >> from & 1) {
      result[lane] = x.bits(given, uint32_t(from));
    } else {
      result[lane].unknown = kWhole;
      poisoned[lane] = x.origin("the lane it was to come from did not take part");
    }
    if (to.kind == Operand::Kind::kPair) x.write(to.items[1], lane, inside);
  }
  SIM_FOR_LANES(lane, x.mask) x.write(d, lane, result[lane], std::move(poisoned[lane]));
}

void vote(Exec& x, const Inst& inst) {
  const Value& source = inst.operands[1].value;
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  uint32_t set = 0;
  SIM_FOR_LANES(lane, x.mask) set |= uint32_t(x.source(source, lane) & 1) << lane;
  const uint64_t result = inst.has(Q::kBallot) ? set
                          : inst.has(Q::kAll)  ? uint64_t(set == x.mask)
                          : inst.has(Q::kAny)  ? uint64_t(set != 0)
                                               : uint64_t(set == 0 || set == x.mask);
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result);
}

void match_any(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  uint64_t values[32] = {};
  SIM_FOR_LANES(lane, x.mask) values[lane] = x.source(inst.operands[1].value, lane);
  for (uint32_t lanes = x.mask; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(lanes));
    uint32_t same = 0;
    SIM_FOR_LANES(other, x.mask) if (values[other] == values[lane]) same |= 1u << other;
    x.write(inst.operands[0].value, lane, same);
  }
}

void match_all(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  const uint64_t first = x.source(inst.operands[1].value, uint32_t(__builtin_ctz(x.mask)));
  bool all = true;
  SIM_FOR_LANES(lane, x.mask) all = all && x.source(inst.operands[1].value, lane) == first;
  const Operand& to = inst.operands[0];
  SIM_FOR_LANES(lane, x.mask) {
    x.write(to.kind == Operand::Kind::kPair ? to.items[0] : to.value, lane, all ? x.mask : 0);
    if (to.kind == Operand::Kind::kPair) x.write(to.items[1], lane, all);
  }
}

// The ISA leaves the leader open but fixed for a mask.
void elect(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[1].value, "the member mask")))) return;
  const uint32_t leader =
      x.grid.elect_lowest ? uint32_t(__builtin_ctz(x.mask)) : x.grid.policy.leader(x.mask);
  if (leader >= 32 || (x.mask >> leader & 1) == 0)
    throw std::logic_error("the policy elects lane " + std::to_string(leader) + ", not one of " +
                           hex(x.mask));
  const Operand& to = inst.operands[0];
  SIM_FOR_LANES(lane, x.mask) {
    if (to.kind == Operand::Kind::kPair) {
      x.write(to.items[0], lane, leader);
      x.write(to.items[1], lane, lane == leader);
    } else {
      x.write(to.value, lane, leader);
    }
  }
}

void redux(Exec& x, const Inst& inst) {
  if (!x.gather(uint32_t(x.uniform(inst.operands[2].value, "the member mask")))) return;
  uint32_t result = 0;
  bool first = true;
  SIM_FOR_LANES(lane, x.mask) {
    const uint32_t value = uint32_t(x.source(inst.operands[1].value, lane));
    const bool is_signed = inst.type == ptx::Type::kS32;
    if (first) result = value;
    else if (inst.has(Q::kAdd)) result += value;
    else if (inst.has(Q::kAnd)) result &= value;
    else if (inst.has(Q::kOr)) result |= value;
    else if (inst.has(Q::kXor)) result ^= value;
    else if (inst.has(Q::kMin))
      result = is_signed ? uint32_t(std::min(int32_t(result), int32_t(value))) : std::min(result, value);
    else result = is_signed ? uint32_t(std::max(int32_t(result), int32_t(value))) : std::max(result, value);
    first = false;
  }
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result);
}

void activemask(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, x.mask);
}

}  // namespace sim::op
