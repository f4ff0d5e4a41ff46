// operands.cpp -- operands of a statement as registers, constants and addresses.
#include "sim/decode/operands.h"

#include <cstring>

#include "sim/fault.h"
#include "sim/machine.h"

namespace sim {
namespace {

const std::map<std::string, Special>& specials() {
  static const std::map<std::string, Special> table = {
#define X(id, text, value) {text, Special::id},
#include "sim/decode/specials.def"
#undef X
  };
  return table;
}

bool is_float(ptx::Type type) { return type == ptx::Type::kF32 || type == ptx::Type::kF64; }

[[noreturn]] void wrong_width(const ptx::Statement& statement) {
  throw Fault(FaultKind::kUnsupported,
              "a floating-point literal does not fit the type: " + describe(statement));
}

// Returns a literal in the width of the instruction's type. Decimal floating literals are doubles until here;
// 0f... is 32 bits for good, so neither kind may stand where its bits would mean another number.
uint64_t literal(const ptx::Operand& operand, ptx::Type type, const ptx::Statement& statement) {
  if (operand.kind == ptx::Operand::Kind::kFloat) {
    const int width = type == ptx::Type::kNone ? 64 : ptx::bits(type);
    if (operand.bits32) {
      if (width < 32 || type == ptx::Type::kF64) wrong_width(statement);
      return uint32_t(operand.value);
    }
    if (type != ptx::Type::kF32) {
      if (width < 64) wrong_width(statement);
      return uint64_t(operand.value);
    }
    double wide;
    std::memcpy(&wide, &operand.value, sizeof wide);
    const float narrow = float(wide);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
  if (is_float(type)) {
    if (type == ptx::Type::kF32) {
      const float narrow = float(operand.value);
      uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof bits);
      return bits;
    }
    const double wide = double(operand.value);
    uint64_t bits;
    std::memcpy(&bits, &wide, sizeof bits);
    return bits;
  }
  const int width = type == ptx::Type::kNone ? 64 : ptx::bits(type);
  if (width >= 64) return uint64_t(operand.value);
  if (type == ptx::Type::kPred) return operand.value != 0;
  return uint64_t(operand.value) & ((uint64_t(1) << width) - 1);
}

Value resolve_value(const ptx::Operand& operand, ptx::Type type, const NamesInScope& names,
                    const ptx::Statement& statement) {
  using Kind = ptx::Operand::Kind;
  Value value;
  value.negated = operand.negated;
  switch (operand.kind) {
    case Kind::kSink: return value;
    case Kind::kRegister:
      value.kind = Value::Kind::kRegister;
      value.reg = names.first_register + operand.reg;
      value.bits = uint8_t(std::min(64, ptx::bits((*names.registers)[operand.reg].type)));
      return value;
    case Kind::kInteger:
    case Kind::kFloat:
      value.kind = Value::Kind::kConstant;
      value.constant = literal(operand, type, statement);
      return value;
    case Kind::kSpecial: {
      const auto found = specials().find(operand.name);
      if (found == specials().end()) {
        if (operand.name == "WARP_SZ") {
          value.kind = Value::Kind::kConstant;
          value.constant = Machine::kWarpSize;
          return value;
        }
        throw Fault(FaultKind::kUnsupported,
                    "special register " + operand.name + " is not supported: " + describe(statement));
      }
      value.kind = Value::Kind::kSpecial;
      value.special = found->second;
      return value;
    }
    case Kind::kName: {
      const auto found = names.symbols.find(operand.name);
      if (found == names.symbols.end())
        throw Fault(FaultKind::kUnsupported,
                    "the name " + operand.name + " means nothing here: " + describe(statement));
      const Symbol& symbol = found->second;
      value.kind = symbol.kind == Symbol::Kind::kShared  ? Value::Kind::kShared
                   : symbol.kind == Symbol::Kind::kParam ? Value::Kind::kParam
                                                         : Value::Kind::kConstant;
      value.constant = symbol.value + uint64_t(operand.value);
      return value;
    }
    default: throw Fault(FaultKind::kUnsupported, "an operand is not a scalar: " + describe(statement));
  }
}

}  // namespace

Operand resolve_operand(const ptx::Operand& operand, ptx::Type type, const NamesInScope& names,
                        const ptx::Statement& statement) {
  using Kind = ptx::Operand::Kind;
  Operand out;
  const auto items = [&](size_t first, ptx::Type item_type) {
    for (size_t i = first; i < operand.items.size(); ++i)
      out.items.push_back(resolve_value(operand.items[i], item_type, names, statement));
  };
  switch (operand.kind) {
    case Kind::kLabel:
      out.kind = Operand::Kind::kLabel;
      out.offset = operand.value + int64_t(names.first_instruction);
      return out;
    case Kind::kAddress: {
      out.kind = Operand::Kind::kAddress;
      out.offset = operand.value;
      out.value = resolve_value(operand.items[0], ptx::Type::kNone, names, statement);
      // Coordinates are s32: [map, {x, y}] keeps them behind the base, with or without their braces.
      for (size_t i = 1; i < operand.items.size(); ++i) {
        const ptx::Operand& item = operand.items[i];
        if (item.kind == Kind::kVector)
          for (const ptx::Operand& c : item.items)
            out.items.push_back(resolve_value(c, ptx::Type::kS32, names, statement));
        else out.items.push_back(resolve_value(item, ptx::Type::kS32, names, statement));
      }
      return out;
    }
    case Kind::kVector:
      out.kind = Operand::Kind::kVector;
      items(0, type);
      return out;
    case Kind::kRegister:
      out.value = resolve_value(operand, type, names, statement);
      if (const auto high = names.high_halves.find(operand.reg); high != names.high_halves.end()) {
        out.kind = Operand::Kind::kVector;
        out.items = {out.value, out.value};
        out.items[1].reg = high->second;
      }
      return out;
    case Kind::kPair:
      out.kind = Operand::Kind::kPair;
      items(0, type);
      return out;
    default: out.value = resolve_value(operand, type, names, statement); return out;
  }
}

}  // namespace sim
