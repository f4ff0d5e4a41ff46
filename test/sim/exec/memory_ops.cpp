// memory_ops.cpp -- loads, stores, atomics and the instructions that convert addresses.
#include <algorithm>
#include <cstring>

#include "sim/engine/numerics.h"
#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/text.h"

namespace sim::op {

using ptx::Type;

// Returns the little-endian number at `from`. Bytes copied into a word could not be read as one at once.
static uint64_t number_at(const uint8_t* from, uint32_t bytes) {
  const auto read = [from](auto number) -> uint64_t {
    std::memcpy(&number, from, sizeof number);
    return number;
  };
  switch (bytes) {
    case 1: return read(uint8_t());
    case 2: return read(uint16_t());
    case 4: return read(uint32_t());
    default: return read(uint64_t());
  }
}

static uint64_t sign_extend(uint64_t value, Type type) {
  switch (type) {
    case Type::kS8: return uint64_t(int64_t(int8_t(value)));
    case Type::kS16: return uint64_t(int64_t(int16_t(value)));
    case Type::kS32: return uint64_t(int64_t(int32_t(value)));
    default: return value;
  }
}

static float as_float(uint64_t bits) {
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

static uint32_t float_bits(float value) {
  uint32_t out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

template <typename T>
static T arithmetic(const Inst& inst, T old, T b, T c) {
  if (inst.has(Q::kAdd)) return T(old + b);
  if (inst.has(Q::kMin)) return old < b ? old : b;
  if (inst.has(Q::kMax)) return old > b ? old : b;
  if (inst.has(Q::kInc)) return old >= b ? T(0) : T(old + 1);
  if (inst.has(Q::kDec)) return old == 0 || old > b ? b : T(old - 1);
  if (inst.has(Q::kExch)) return b;
  if (inst.has(Q::kCas)) return old == b ? c : old;
  throw Fault(FaultKind::kUnsupported, "atomic operation without arithmetic");
}

static uint16_t half_add(Type type, uint16_t a, uint16_t b) {
  if (type == Type::kF16 || type == Type::kF16x2)
    return f32_to_f16(f16_to_f32(a) + f16_to_f32(b), Round::kNearestEven);
  return f32_to_bf16(bf16_to_f32(a) + bf16_to_f32(b), Round::kNearestEven);
}

static uint64_t combine(const Inst& inst, uint64_t old, uint64_t b, uint64_t c) {
  if (inst.has(Q::kAnd)) return old & b;
  if (inst.has(Q::kOr)) return old | b;
  if (inst.has(Q::kXor)) return old ^ b;
  switch (inst.type) {
    case Type::kF32:
      if (inst.has(Q::kAdd))
        return float_bits(f32_add(as_float(old), as_float(b), Round::kNearestEven, false));
      break;
    case Type::kF64:
      if (inst.has(Q::kAdd)) {
        double x, y;
        std::memcpy(&x, &old, 8);
        std::memcpy(&y, &b, 8);
        x += y;
        uint64_t out;
        std::memcpy(&out, &x, 8);
        return out;
      }
      break;
    case Type::kF16:
    case Type::kBf16:
      if (inst.has(Q::kAdd)) return half_add(inst.type, uint16_t(old), uint16_t(b));
      break;
    case Type::kF16x2:
    case Type::kBf16x2:
      if (inst.has(Q::kAdd))
        return half_add(inst.type, uint16_t(old), uint16_t(b)) |
               uint32_t(half_add(inst.type, uint16_t(old >> 16), uint16_t(b >> 16))) << 16;
      break;
    case Type::kS32: return uint32_t(arithmetic<int32_t>(inst, int32_t(old), int32_t(b), int32_t(c)));
    case Type::kS64: return uint64_t(arithmetic<int64_t>(inst, int64_t(old), int64_t(b), int64_t(c)));
    case Type::kU32:
    case Type::kB32: return arithmetic<uint32_t>(inst, uint32_t(old), uint32_t(b), uint32_t(c));
    case Type::kU64:
    case Type::kB64: return arithmetic<uint64_t>(inst, old, b, c);
    case Type::kB16: return arithmetic<uint16_t>(inst, uint16_t(old), uint16_t(b), uint16_t(c));
    default: break;
  }
  throw Fault(FaultKind::kUnsupported, "atomic operation on this type");
}

static void check_vector(const Inst& inst, const Operand& operand) {
  const size_t count = operand.kind == Operand::Kind::kVector ? operand.items.size() : 1;
  if (count != inst.vector)
    throw Fault(FaultKind::kUnsupported, "operand has " + std::to_string(count) +
                                             " elements, the instruction " + std::to_string(inst.vector));
}

// Writes the registers of a load that has holes.
static void write_with_holes(Exec& x, const Inst& inst, const Operand& to, uint32_t lane, const Load& load) {
  const uint32_t size = uint32_t(ptx::bits(inst.type)) / 8;
  for (uint32_t i = 0; i < inst.vector; ++i) {
    std::shared_ptr<const Poison> origin;
    const Bits bits = x.loaded(load, lane, i * size, size, &origin);
    x.write(element(to, i), lane, {sign_extend(bits.known, inst.type), sign_extend(bits.unknown, inst.type)},
            std::move(origin));
  }
}

// Returns whether the poison that a store writes is the padding of a structure that is copied: the store also
// writes bytes with a value, a load brought the poison together with bytes with a value, and nobody has
// computed with it. A store of nothing but poison is not such a copy.
static bool copies_padding(const Exec& x, const Operand& from, uint32_t lane, uint32_t elements,
                           uint32_t size) {
  bool values = false;
  for (uint32_t i = 0; i < elements; ++i) {
    const Value& stored = element(from, i);
    const uint64_t unknown = x.bits(stored, lane).unknown;
    for (uint32_t byte = 0; byte < size; ++byte) {
      const uint8_t missing = uint8_t(unknown >> 8 * byte);
      if (missing == 0) values = true;
      else if (missing != 0xFF || !x.origin(stored, lane)->copied) return false;
    }
  }
  return values;
}

void ld(Exec& x, const Inst& inst) {
  const Operand &to = inst.operands[0], &from = inst.operands[1];
  check_vector(inst, to);
  const uint32_t size = uint32_t(ptx::bits(inst.type)) / 8;
  uint8_t buffer[64];
  Holes holes;
  uint64_t scratch[32];
  // Where the address of a lane is poison, the lanes before it are loaded first.
  const uint64_t* const bases = x.holes(from.value) == 0 ? x.sources(from.value, scratch) : nullptr;
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t address = bases != nullptr ? bases[lane] + uint64_t(from.offset) : x.address(from, lane);
    x.load(inst.space, address, lane, buffer, size * inst.vector, Exec::Seen::kPlain, &holes);
    if (holes.bytes != 0) {
      write_with_holes(x, inst, to, lane, {inst.space, address, buffer, holes});
      holes.bytes = 0;
      continue;
    }
    for (uint32_t i = 0; i < inst.vector; ++i)
      x.write(element(to, i), lane, sign_extend(number_at(buffer + i * size, size), inst.type));
  }
}

void st(Exec& x, const Inst& inst) {
  const Operand &to = inst.operands[0], &from = inst.operands[1];
  check_vector(inst, from);
  const uint32_t size = uint32_t(ptx::bits(inst.type)) / 8;
  const uint64_t stored_bits =
      ~uint64_t(0) >> (64 - 8 * std::min(size, 8u));  // of a register that may be wider
  uint32_t holes = 0;
  for (uint32_t i = 0; i < inst.vector; ++i) holes |= x.holes(element(from, i));
  uint8_t buffer[64];
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t address = x.address(to, lane);
    uint32_t poisoned = 0;  // elements
    for (uint32_t i = 0; i < inst.vector; ++i) {
      const Value& stored = element(from, i);
      uint64_t value = 0;
      if ((holes >> lane & 1) == 0) {
        value = x.source(stored, lane);
      } else {
        const Bits bits = x.bits(stored, lane);
        value = bits.known;
        if ((bits.unknown & stored_bits) != 0) poisoned |= 1u << i;
      }
      std::memcpy(buffer + i * size, &value, size);
    }
    if (poisoned != 0 && !x.local(inst.space, address) && !copies_padding(x, from, lane, inst.vector, size)) {
      SIM_FOR_LANES(i, poisoned) x.source(element(from, i), lane);  // a fault; if the grid goes on, a value
      poisoned = 0;
    }
    if (!x.store(inst.space, address, lane, buffer, size * inst.vector)) continue;
    SIM_FOR_LANES(i, poisoned) {
      x.store_holes(inst.space, address + i * size, lane, element(from, i), size);
    }
  }
}

// The lanes of atom d, [a], b{, c} and red [a], b go in order, and each is indivisible.
void atom(Exec& x, const Inst& inst) {
  const bool returns = inst.statement->opcode == "atom";
  const size_t at = returns ? 1 : 0;
  const Operand& b = inst.operands[at + 1];
  const uint32_t size = uint32_t(ptx::bits(inst.type)) / 8;
  check_vector(inst, b);
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t address = x.address(inst.operands[at], lane);
    if (address % (size * inst.vector) != 0)
      throw Fault(FaultKind::kMisaligned,
                  "atomic access of " + std::to_string(size * inst.vector) + " bytes at " + hex(address));
    const uint64_t c = inst.has(Q::kCas) ? x.source(inst.operands[at + 2].value, lane) : 0;
    for (uint32_t i = 0; i < inst.vector; ++i) {
      uint64_t old = 0;
      Holes holes;
      x.load(inst.space, address + i * size, lane, &old, size, Exec::Seen::kAtomic,
             inst.has(Q::kExch) ? &holes : nullptr);  // any other use of the value decides what is stored
      const uint64_t value = combine(inst, old, x.source(element(b, i), lane), c);
      x.store(inst.space, address + i * size, lane, &value, size, Exec::Seen::kNot);
      if (!returns) continue;
      const Value& to = element(inst.operands[0], i);
      if (holes.bytes == 0) {
        x.write(to, lane, old);
      } else {
        std::shared_ptr<const Poison> origin;
        const auto* const data = reinterpret_cast<const uint8_t*>(&old);
        const Bits bits = x.loaded({inst.space, address + i * size, data, holes}, lane, 0, size, &origin);
        x.write(to, lane, bits, std::move(origin));
      }
    }
  }
}

// Prefetches move nothing that a program can see. A prefetch of an address without memory does no harm.
void prefetch(Exec& x, const Inst& inst) {
  constexpr const char* kRule = "prefetch-outside";
  const Operand& operand = inst.operands[0];
  if (!x.prefetches(operand.value, kRule)) return;
  if (inst.space != Space::kGeneric && inst.space != Space::kGlobal) return;
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t address = x.address(operand, lane);
    const uint64_t window = address >> 56;
    if (window == kSharedWindow >> 56 || window == kLocalWindow >> 56 || x.in_memory(address, 1)) continue;
    x.remark(kRule, "a prefetch of " + hex(address) + ", which is outside every allocation", "");
  }
}

void cvta(Exec& x, const Inst& inst) {
  const uint64_t window = inst.space == Space::kShared || inst.space == Space::kSharedCluster ? kSharedWindow
                          : inst.space == Space::kLocal                                       ? kLocalWindow
                                                                                              : 0;
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t from = x.source(inst.operands[1].value, lane);
    uint64_t to = from + window;
    if (inst.has(Q::kTo)) {
      const uint64_t top = from >> 56;
      if (top != window >> 56)
        throw Fault(FaultKind::kBounds,
                    "generic address " + hex(from) + " is not in the state space it is converted to");
      to = from - window;
    }
    x.write(inst.operands[0].value, lane, to);
  }
}

void isspacep(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t address = x.source(inst.operands[1].value, lane);
    const uint64_t top = address >> 56;
    const bool params =
        address >= x.grid.param_base && address < x.grid.param_base + x.grid.kernel.info.param_bytes;
    bool is = false;
    switch (inst.space) {
      case Space::kShared:
        is = top == kSharedWindow >> 56 && (address - kSharedWindow) >> kRankShift == x.cta.rank;
        break;
      case Space::kSharedCluster: is = top == kSharedWindow >> 56; break;
      case Space::kLocal: is = top == kLocalWindow >> 56; break;
      case Space::kParam: is = params; break;
      case Space::kGlobal: is = top == 0 && !params; break;
      default: throw Fault(FaultKind::kUnsupported, "isspacep of this state space");
    }
    x.write(inst.operands[0].value, lane, is);
  }
}

// mapa{.shared::cluster} returns the same offset in another CTA of the cluster.
void mapa(Exec& x, const Inst& inst) {
  const uint64_t window = inst.space == Space::kGeneric ? kSharedWindow : 0;
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t from = x.source(inst.operands[1].value, lane);
    const uint64_t rank = x.source(inst.operands[2].value, lane);
    if (rank >= x.cluster.ctas.size())
      throw Fault(FaultKind::kBounds, "mapa to CTA rank " + std::to_string(rank) + " of a cluster of " +
                                          std::to_string(x.cluster.ctas.size()));
    const uint64_t offset = (from - window) & ((uint64_t(1) << kRankShift) - 1);
    x.write(inst.operands[0].value, lane, window + (rank << kRankShift) + offset);
  }
}

void getctarank(Exec& x, const Inst& inst) {
  const uint64_t window = inst.space == Space::kGeneric ? kSharedWindow : 0;
  SIM_FOR_LANES(lane, x.mask)
  x.write(inst.operands[0].value, lane, (x.source(inst.operands[1].value, lane) - window) >> kRankShift);
}

}  // namespace sim::op
