// place.h -- what one place of a program is. Unrolling and inlining copy an instruction, and each copy is an
// instruction of its own in the PTX. A reader looks at one place of the source, so the copies count as one.
#pragma once

#include <string>

#include "sim/decode/program.h"

namespace sim {

// Returns the same key for two instructions of one kernel at one place: they have the same chain of source
// lines, the same opcode and the same qualifiers; registers and guards may differ. Without line information
// every instruction is a place of its own. The arguments are those of ptx::Statement.
std::string place_key(const std::string& source, uint32_t ptx_line, const std::string& text);

// True for two instructions of one kernel at one place.
bool at_one_place(const Inst* a, const Inst* b);

}  // namespace sim
