// alu.h -- arithmetic of one lane: every register-to-register instruction as a pure function of 64-bit lane
// values. Values have the width of their type and are zero-extended to 64 bits (s32 -1 is 0x00000000FFFFFFFF;
// a predicate is 0 or 1; packed pairs are the packed bits). exec/control.cpp applies the functions lane by
// lane; nothing here knows lanes.
#pragma once

#include <cstdint>

#include "sim/parse/module.h"

namespace sim {

using AluFn = uint64_t (*)(const struct AluCode& code, const uint64_t* in);

// An AluCode is one accepted spelling (an opcode with its qualifiers), resolved once when a module is loaded.
struct AluCode {
  AluFn fn = nullptr;
  uint32_t inputs = 0;                // register inputs in operand order
  ptx::Type type = ptx::Type::kNone;  // principal type (the last type qualifier)
  ptx::Type from = ptx::Type::kNone;  // source type of cvt, or of set/setp operands when different
  ptx::Type dst = ptx::Type::kNone;   // type of the destination register as written by the instruction
  uint32_t mods = 0;                  // Mod flags of spelling.h
  uint32_t aux = 0;                   // comparison, boolean operation, lut of lop3, mode of prmt, ...
  uint32_t extra_outputs = 0;  // of setp p|q: the outputs beyond the first; fn2 writes them to out[1..]
  // fn2 is used instead of fn when extra_outputs > 0.
  void (*fn2)(const AluCode& code, const uint64_t* in, uint64_t* out) = nullptr;
};

// Resolves opcode and qualifiers of a register-to-register instruction, except mov and cvta, which name
// spaces. Returns false when the opcode is not arithmetic at all; throws Fault kUnsupported when the opcode
// is arithmetic, but a qualifier or type is not known.
bool resolve_alu(const ptx::Statement& statement, AluCode* out);

// Computes an instruction in whose inputs the bits of `unknown` may have any value. Returns which bits of the
// result, or of each result, depend on them; these bits are zero in `out`. If that cannot be told, it returns
// all bits and does not write `out`. `moved` becomes true if each of the returned bits comes from one place
// of the inputs.
uint64_t undefined_bits(const ptx::Statement& statement, const AluCode& code, const uint64_t* in,
                        const uint64_t* unknown, uint64_t* out, bool* moved);

// True for a comparison whose result follows from its third input, whatever is compared.
bool third_decides(const AluCode& code, const uint64_t* in);

}  // namespace sim
