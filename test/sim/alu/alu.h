// alu.h -- arithmetic of one lane: every register-to-register instruction as a pure function of 64-bit lane
// values. Values are held zero-extended to 64 bits in their own width (s32 -1 is 0x00000000FFFFFFFF; a
// predicate is 0 or 1; packed pairs are the packed bits). exec/control.cpp applies them lane by lane; nothing
// here knows lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/parse/module.h"

namespace sim {

using AluFn = uint64_t (*)(const struct AluCode& code, const uint64_t* in);

// One accepted spelling, resolved once at load.
struct AluCode {
  AluFn fn = nullptr;
  uint32_t inputs = 0;                // register inputs in operand order
  ptx::Type type = ptx::Type::kNone;  // principal type (the last type qualifier)
  ptx::Type from = ptx::Type::kNone;  // source type of cvt, or of set/setp operands when different
  ptx::Type dst = ptx::Type::kNone;   // type of the destination register as written by the instruction
  uint32_t mods = 0;                  // bit set of AluMod-style flags, private to alu.cpp
  uint32_t aux = 0;                   // comparison, boolean operation, lut of lop3, mode of prmt, ...
  uint32_t extra_outputs = 0;  // setp p|q, add.cc ...: outputs beyond the first, written to out[1..] by fn2
  // Used instead of fn when extra_outputs > 0.
  void (*fn2)(const AluCode& code, const uint64_t* in, uint64_t* out) = nullptr;
};

// Resolves opcode and qualifiers of a register-to-register instruction (mov and cvta excluded: they name
// spaces). Returns false when the opcode is not arithmetic at all; Fault kUnsupported when it is but a
// qualifier or type is not known.
bool resolve_alu(const ptx::Statement& statement, AluCode* out);

}  // namespace sim
