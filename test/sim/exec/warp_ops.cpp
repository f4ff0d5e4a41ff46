// warp_ops.cpp -- the instructions by which the lanes of a warp talk to each other.
#include <algorithm>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/text.h"

namespace sim::op {
namespace {

// The values that lanes bring to an instruction that makes one result out of all of them, and where their
// poison came from.
struct Given {
  Given(const Exec& x, const Value& value) {
    SIM_FOR_LANES(lane, x.mask) bits[lane] = x.bits(value, lane);
    if (const uint32_t holes = x.holes(value); holes != 0)
      origin = computed(x.origin(value, uint32_t(__builtin_ctz(holes))));
  }
  Bits bits[32];
  std::shared_ptr<const Poison> origin;
};

bool one_lane(uint32_t mask) { return (mask & (mask - 1)) == 0; }

}  // namespace

// shfl.sync d|p, a, b, c, members (PTX ISA "shfl.sync"): c packs the clamp and the segment mask.
void shfl(Exec& x, const Inst& inst) {
  const Operand& to = inst.operands[0];
  const Value& d = to.kind == Operand::Kind::kPair ? to.items[0] : to.value;
  if (!x.gather(inst.operands[4].value)) return;
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
  if (!x.gather(inst.operands[2].value)) return;
  const Given given(x, source);
  uint32_t ones = 0, zeros = 0;
  SIM_FOR_LANES(lane, x.mask) {
    const Bits& bits = given.bits[lane];
    if (bits.unknown == 0) (bits.known & 1 ? ones : zeros) |= 1u << lane;
  }
  Bits result;
  const auto decide = [&](bool yes, bool no) { result = {yes, uint64_t(!yes && !no)}; };
  if (inst.has(Q::kBallot)) result = {ones, x.mask & ~(ones | zeros)};
  else if (inst.has(Q::kAll)) decide(ones == x.mask, zeros != 0);
  else if (inst.has(Q::kAny)) decide(ones != 0, zeros == x.mask);
  else decide(ones == x.mask || zeros == x.mask || one_lane(x.mask), ones != 0 && zeros != 0);
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, result, given.origin);
}

// Two lanes are known to differ if a bit differs that is known in both, and to be equal if all bits are known
// in both and are equal.
void match_any(Exec& x, const Inst& inst) {
  if (!x.gather(inst.operands[2].value)) return;
  const Given given(x, inst.operands[1].value);
  for (uint32_t lanes = x.mask; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(lanes));
    const Bits& own = given.bits[lane];
    Bits same;
    SIM_FOR_LANES(other, x.mask) {
      const Bits& its = given.bits[other];
      const uint64_t unknown = own.unknown | its.unknown;
      if (((own.known ^ its.known) & ~unknown) != 0) continue;
      (unknown == 0 || other == lane ? same.known : same.unknown) |= 1u << other;
    }
    x.write(inst.operands[0].value, lane, same, given.origin);
  }
}

void match_all(Exec& x, const Inst& inst) {
  if (!x.gather(inst.operands[2].value)) return;
  const Given given(x, inst.operands[1].value);
  uint64_t ones = 0, zeros = 0, unknown = 0;  // of any lane
  SIM_FOR_LANES(lane, x.mask) {
    const Bits& bits = given.bits[lane];
    ones |= bits.known;
    zeros |= ~bits.known & ~bits.unknown;
    unknown |= bits.unknown;
  }
  const bool differ = (ones & zeros) != 0, open = !differ && unknown != 0 && !one_lane(x.mask);
  const Operand& to = inst.operands[0];
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t all = differ ? 0 : x.mask;
    x.write(to.kind == Operand::Kind::kPair ? to.items[0] : to.value, lane, {all, open ? x.mask : 0},
            given.origin);
    if (to.kind == Operand::Kind::kPair) x.write(to.items[1], lane, {!differ, open}, given.origin);
  }
}

// The ISA leaves open which lane is the leader, but for one mask it is always the same.
void elect(Exec& x, const Inst& inst) {
  if (!x.gather(inst.operands[1].value)) return;
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

// The bits of a sum below the lowest poisoned bit are certain. A bit of a conjunction is certain if any lane
// has a zero there, and a bit of a disjunction if any lane has a one.
void redux(Exec& x, const Inst& inst) {
  if (!x.gather(inst.operands[2].value)) return;
  const Given given(x, inst.operands[1].value);
  const bool is_signed = inst.type == ptx::Type::kS32;
  uint32_t result = 0, unknown = 0, ones = 0, zeros = 0;
  bool first = true;
  SIM_FOR_LANES(lane, x.mask) {
    const uint32_t value = uint32_t(given.bits[lane].known), missing = uint32_t(given.bits[lane].unknown);
    if (first) result = value;
    else if (inst.has(Q::kAdd)) result += value;
    else if (inst.has(Q::kAnd)) result &= value;
    else if (inst.has(Q::kOr)) result |= value;
    else if (inst.has(Q::kXor)) result ^= value;
    else if (inst.has(Q::kMin))
      result = is_signed ? uint32_t(std::min(int32_t(result), int32_t(value))) : std::min(result, value);
    else result = is_signed ? uint32_t(std::max(int32_t(result), int32_t(value))) : std::max(result, value);
    first = false;
    unknown |= missing;
    ones |= value;
    zeros |= ~value & ~missing;
  }
  if (inst.has(Q::kAdd)) unknown = uint32_t(-(unknown & -unknown));
  else if (inst.has(Q::kAnd)) unknown &= ~zeros;
  else if (inst.has(Q::kOr)) unknown &= ~ones;
  else if (!inst.has(Q::kXor) && unknown != 0) unknown = ~0u;
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, {result, unknown}, given.origin);
}

void activemask(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, x.mask);
}

}  // namespace sim::op
