// module.h -- PTX text as plain structs, which the parser produces and decode/ reads. Nothing here knows what
// an opcode means. Scoped names are already resolved: `{ }` blocks may redeclare registers and labels, so
// every register has a dense index within its function and every label is an instruction index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sim::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF32x2,
  kF64,
};
constexpr int bits(Type type) {
  switch (type) {
    case Type::kNone: return 0;
    case Type::kPred: return 1;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8: return 8;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBf16: return 16;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBf16x2: return 32;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
    case Type::kF32x2: return 64;
    case Type::kB128: return 128;
  }
  return 0;
}
bool parse_type(const std::string& text, Type* out);  // "u32", without the dot

// A site says where an instruction comes from.
struct Site {
  uint32_t ptx_line = 0;  // 1-based line of the PTX text
  // "sm100/mma.cuh:41 in mma_role <- sm100/dual_gemm.cuh:80", taken from .loc and .file. It may be empty.
  std::string source;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // reg
    kInteger,   // value (two's complement 64-bit)
    kFloat,     // value holds the bits; bits32 true for 0f..., false for 0d... and decimal literals (as f64)
    kSpecial,   // name: "%tid.x"
    kName,      // name: a variable, parameter or function used as a value
    kLabel,     // value: instruction index within the function
    // [base + offset] or [base + offset, {coordinates}]: items[0] is the base (register, name or integer),
    // value the offset, items[1..] the coordinates in order when present.
    kAddress,
    kVector,  // {items...}
    kSink,    // _
    kPair,    // items[0]|items[1]
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // !p or -x on a predicate or name
  bool bits32 = false;
  uint32_t reg = 0;
  int64_t value = 0;
  std::string name;
  std::vector<Operand> items;
};

// A statement is one instruction as it is written.
struct Statement {
  std::string opcode;  // "cp"
  // {"async", "bulk", "tensor", "2d", ...}; "shared::cta" stays one item.
  std::vector<std::string> qualifiers;
  std::vector<Operand> operands;  // destination first, as written
  bool guarded = false, guard_negated = false;
  uint32_t guard = 0;  // predicate register
  Site site;
  std::string text;  // the statement as written, for messages
};

// Names a statement as every message does: "PTX line 12: `add.s32 ...` (kernel.cu:3)".
std::string describe(const Statement& statement);

struct Register {
  std::string name;
  Type type;
};

struct Variable {  // .global .const .shared .local, .param
  std::string name;
  std::string space;  // "global", "const", "shared", "local", "param"
  Type type = Type::kNone;
  uint64_t size = 0, align = 1;  // bytes; size 0 for an unsized extern array
  bool is_extern = false;
  uint32_t ptx_line = 0;
  // Offsets of elements and their bits, for those that have a value. The others are zero for global/const,
  // poison for shared/local.
  std::vector<std::pair<uint64_t, uint64_t>> initial;
};

struct Function {
  std::string name;
  bool is_entry = false, is_declaration = false;
  uint32_t ptx_line = 0;
  std::vector<Variable> params, returns;
  std::vector<Variable> locals;     // .local, .shared and .param variables declared inside, names made unique
  std::vector<Register> registers;  // dense
  std::vector<Statement> body;
  std::map<std::string, std::vector<uint32_t>> branch_targets;  // .branchtargets tables: label indices
  uint32_t max_ntid[3] = {0, 0, 0}, req_ntid[3] = {0, 0, 0}, req_cluster[3] = {0, 0, 0};
  uint32_t max_registers = 0, min_ctas = 0;  // .maxnreg, .minnctapersm
  bool explicit_cluster = false;
};

struct Module {
  std::string version, target;
  std::vector<Variable> variables;  // module scope
  std::vector<Function> functions;
};

// Throws Fault kSyntax, or kUnsupported for a directive or type that the simulator does not have, with line,
// column and a caret under the offending token.
Module parse(const std::string& text);

}  // namespace sim::ptx
