// operands.h -- what the names of a kernel mean: registers, variables with their addresses, special
// registers. The decoder fills it once per kernel and then resolves operands with it.
#pragma once

#include <map>
#include <string>

#include "sim/decode/program.h"

namespace sim {

struct Symbol {
  enum class Kind : uint8_t { kShared, kLocal, kParam, kAddress };
  Kind kind;
  uint64_t value;  // shared-window offset, local offset, parameter offset, global address
};

struct NamesInScope {
  std::map<std::string, Symbol> symbols;
  const std::vector<ptx::Register>* registers = nullptr;  // of the function being decoded
  uint32_t first_register = 0;
  // A register of 128 bits is two of the kernel's: this is the second of each, by its number in the function.
  std::map<uint32_t, uint32_t> high_halves;
  uint32_t first_instruction = 0;  // label targets are relative to the function
};

// Resolves an operand; `type` gives literals their width. Throws Fault kUnsupported for a name, special
// register or literal that has no meaning here.
Operand resolve_operand(const ptx::Operand& operand, ptx::Type type, const NamesInScope& names,
                        const ptx::Statement& statement);

}  // namespace sim
