// opcodes.h -- the table of accepted spellings (a spelling is an opcode with its qualifiers): one row per
// family of an instruction, with the qualifiers it must have, the ones it may have, the shape of its operands
// and its operation. An instruction that is not in the table does not load.
#pragma once

#include "sim/decode/program.h"

namespace sim {

struct OpcodeRow {
  const char* mnemonic;
  const char* required;  // qualifiers that select the row, separated by spaces
  const char* optional;  // further accepted qualifiers; @name is a group of opcodes.cpp
  // The shape of the operands has one letter for each: d is a destination register or sink, D a destination
  // register, sink or vector, p a destination pair or register, s a source, S a source or vector, a an
  // address, l a label, n anything. After `?` all are optional, and `*` accepts any rest.
  const char* operands;
  Operation operation;
};

// Returns the row for a statement, or null when no row has its mnemonic and required qualifiers. Throws Fault
// kUnsupported when a row matches but a qualifier or the operand list does not.
const OpcodeRow* find_row(const ptx::Statement& statement);
bool is_branch(const Inst& inst);
bool ends_path(const Inst& inst);        // exit, ret, trap
bool leaves_normally(const Inst& inst);  // exit, ret

}  // namespace sim
