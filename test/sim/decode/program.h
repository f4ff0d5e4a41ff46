// program.h -- decoded code: what decode/ produces and exec/ runs. An instruction is flat: its operation, its
// operands with registers, constants and variable addresses resolved, its branch target and reconvergence
// point. Every kernel owns a private copy of all code it can reach, and the registers of its functions are
// disjoint, so an index names one thing.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/alu/alu.h"
#include "sim/alu/lanes.h"
#include "sim/decode/kernel_info.h"
#include "sim/engine/numerics.h"
#include "sim/mem/global.h"
#include "sim/parse/module.h"

namespace sim {

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kParam, kShared, kSharedCluster, kLocal };

enum class Special : uint8_t {
#define X(id, text, value) id,
#include "sim/decode/specials.def"
#undef X
};

enum class Q : uint8_t {
#define X(id, text) id,
#include "sim/decode/qualifiers.def"
#undef X
  kCount
};

// An operation is what an instruction does, whatever its spelling.
enum class Operation : uint8_t {
#define X(name) name,
#include "sim/decode/operations.def"
#undef X
  kCount
};

// A value is one scalar operand.
struct Value {
  enum class Kind : uint8_t {
    kSink,      // _
    kRegister,  // reg
    kConstant,  // constant
    kShared,  // shared-window offset `constant` of the executing CTA; its address also carries the CTA's rank
    kParam,   // byte offset `constant` into the kernel's parameters
    kSpecial,  // special
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // predicate complement
  uint8_t bits = 64;     // declared width of the register
  Special special{};
  uint32_t reg = 0;
  uint64_t constant = 0;
};

struct Operand {
  enum class Kind : uint8_t { kValue, kAddress, kVector, kPair, kLabel };
  Kind kind = Kind::kValue;
  Value value;               // kValue; the base of kAddress
  int64_t offset = 0;        // kAddress: displacement; kLabel: code index
  std::vector<Value> items;  // elements of kVector and kPair; coordinates of kAddress
};

// Returns element i of a vector, or the only value.
inline const Value& element(const Operand& operand, size_t i) {
  return operand.kind == Operand::Kind::kVector ? operand.items[i] : operand.value;
}

constexpr uint32_t kNowhere = 0xFFFFFFFF;

struct Inst {
  Operation operation = Operation::nothing;
  const ptx::Statement* statement = nullptr;
  bool guarded = false, guard_negated = false;
  uint32_t guard = 0;
  ptx::Type type = ptx::Type::kNone;     // last type qualifier
  ptx::Type from = ptx::Type::kNone;     // first type qualifier
  Space space = Space::kGeneric;         // first state space
  Space source_space = Space::kGeneric;  // last state space: the same when only one is written
  uint8_t vector = 1;                    // .v2 .v4 .v8
  uint8_t repeat = 0;                    // .x1 .. .x128 of tcgen05.ld/st
  uint16_t columns = 0;                  // N of wgmma.mma_async ...
  DenseFormats formats{};                // ... and the formats of its A and B
  std::bitset<size_t(Q::kCount)> qualifiers;
  std::vector<Operand> operands;
  uint32_t rejoin = kNowhere;     // branches: where diverged lanes meet again
  std::vector<uint32_t> targets;  // brx.idx
  // Those registers of the operands that any wgmma.mma_async of the kernel uses as accumulators or fragments
  // of A, as indices into Kernel::wgmma_registers. For a wgmma.mma_async itself they are in the order of its
  // operands.
  std::vector<uint32_t> wgmma_registers;
  uint32_t callee = kNowhere;  // call: index into Kernel::functions
  AluCode alu;
  LaneLoop lanes = nullptr;  // arithmetic on a whole warp at once, where there is such a form

  bool has(Q q) const { return qualifiers[size_t(q)]; }
};

// A function that a module declares, and that the machine provides.
enum class External : uint8_t { kNone, kPrint, kFailAssertion };

// A device function is part of the code of every kernel that reaches it. Its parameters live in local memory.
struct DeviceFunction {
  std::string name;
  External external = External::kNone;
  uint32_t entry = kNowhere;                                   // unless it is external
  std::vector<std::pair<uint64_t, uint64_t>> params, returns;  // local-memory offset, bytes
};

struct Kernel {
  KernelInfo info;
  // When this is not empty, it says what the simulator lacks for the kernel, which has no code then: a launch
  // of it is refused.
  std::string refused;
  std::vector<Inst> code;
  std::vector<std::string> register_names;
  std::vector<uint32_t> wgmma_registers;  // accumulators and fragments of every wgmma.mma_async, rising
  std::vector<DeviceFunction> functions;
  uint32_t static_smem_end = 0;      // shared-window offset behind the static variables
  uint32_t dynamic_smem_offset = 0;  // aligned as the extern arrays ask
  uint32_t shared_align = 1024;      // what the module may count on, at most 1024; 16 where it says nothing
  uint32_t local_bytes = 0;          // per lane
};

class Program {
 public:
  ptx::Module text;  // statements are referred to by instructions
  std::vector<Kernel> kernels;
  std::vector<KernelInfo> infos;
  std::vector<GlobalVariable> globals;
  std::map<std::string, uint64_t> addresses;  // module-scope global and const variables
  GlobalMemory* memory = nullptr;

  const Kernel* find(const std::string& name) const;
};

// Fills `program.kernels` from `program.text`; global variables already have addresses. Throws Fault kSyntax
// for an instruction that the module's target does not have.
void decode(Program& program);

// Sets Inst::rejoin of every branch in code[first, last), which must be one function, to the branch's
// immediate post-dominator, or to kNowhere when that is the end of the function.
void find_rejoins(std::vector<Inst>& code, uint32_t first, uint32_t last);

}  // namespace sim
