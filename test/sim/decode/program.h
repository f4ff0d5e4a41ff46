// program.h -- decoded code: what decode/ produces and exec/ runs. An instruction is flat: its handler, its
// operands with registers, constants and variable addresses resolved, its branch target and reconvergence
// point. Every kernel owns a private copy of all code it can reach, with disjoint registers per function, so
// an index names one thing.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/exec/alu.h"
#include "sim/exec/lanes.h"
#include "sim/launch.h"
#include "sim/parse/module.h"

namespace sim {

struct Exec;
struct Inst;
using Handler = void (*)(Exec& x, const Inst& inst);

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kParam, kShared, kSharedCluster, kLocal };

enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kDynamicSmemSize,
  kTotalSmemSize,
  kAggrSmemSize,
};

// The qualifiers handlers ask for at run time; the others are checked at load and then forgotten. In rows by
// subject, which clang-format would run together.
// clang-format off
#define SIM_QUALIFIERS(X) \
  X(kAligned, "aligned") \
  X(kRelaxed, "relaxed") X(kAcquire, "acquire") X(kRelease, "release") \
  X(kParity, "parity") X(kExpectTx, "expect_tx") X(kNoComplete, "noComplete") X(kRead, "read") \
  X(kMulticast, "multicast::cluster") X(kGroup1, "cta_group::1") X(kGroup2, "cta_group::2") \
  X(kCacheHint, "L2::cache_hint") \
  X(kUp, "up") X(kDown, "down") X(kBfly, "bfly") X(kIdx, "idx") \
  X(kAll, "all") X(kAny, "any") X(kUni, "uni") X(kBallot, "ballot") \
  X(kAdd, "add") X(kMin, "min") X(kMax, "max") X(kAnd, "and") X(kOr, "or") X(kXor, "xor") \
  X(kExch, "exch") X(kCas, "cas") X(kInc, "inc") X(kDec, "dec") X(kPopc, "popc") \
  X(kD1, "1d") X(kD2, "2d") X(kD3, "3d") X(kD4, "4d") X(kD5, "5d") \
  X(kKindF16, "kind::f16") X(kKindMxf4, "kind::mxf4") X(kKindMxf4nvf4, "kind::mxf4nvf4") \
  X(kBlock16, "block16") X(kBlock32, "block32") X(kScale2x, "scale_vec::2X") X(kScale4x, "scale_vec::4X") \
  X(kPack, "pack::16b") X(kUnpack, "unpack::16b") \
  X(kS32x32b, "32x32b") X(kS16x64b, "16x64b") X(kS16x128b, "16x128b") X(kS16x256b, "16x256b") \
  X(kS16x32bx2, "16x32bx2") \
  X(kC128x256b, "128x256b") X(kC128x128b, "128x128b") X(kC4x256b, "4x256b") X(kC64x128b, "64x128b") \
  X(kC32x128b, "32x128b") \
  X(kWarpx2_02_13, "warpx2::02_13") X(kWarpx2_01_23, "warpx2::01_23") X(kWarpx4, "warpx4") \
  X(kTo, "to") X(kVolatile, "volatile") \
  X(kAcqRel, "acq_rel") X(kSeqCst, "sc") \
  X(kScopeCta, "cta") X(kScopeCluster, "cluster") X(kScopeGpu, "gpu") X(kScopeSys, "sys") X(kScopeGl, "gl") \
  X(kWaitSt, "wait::st") X(kCg, "cg") \
  X(kCollectorFill, "collector::a::fill") X(kCollectorUse, "collector::a::use") \
  X(kCollectorLastUse, "collector::a::lastuse")

enum class Q : uint8_t {
#define SIM_QUALIFIER_ENUM(id, text) id,
  SIM_QUALIFIERS(SIM_QUALIFIER_ENUM)
#undef SIM_QUALIFIER_ENUM
  kCount
};
// clang-format on

// One scalar operand.
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

constexpr uint32_t kNowhere = 0xFFFFFFFF;

struct Inst {
  Handler handler = nullptr;
  const ptx::Statement* statement = nullptr;
  bool guarded = false, guard_negated = false;
  uint32_t guard = 0;
  ptx::Type type = ptx::Type::kNone;     // last type qualifier
  ptx::Type from = ptx::Type::kNone;     // first type qualifier
  Space space = Space::kGeneric;         // first state space
  Space source_space = Space::kGeneric;  // last state space: the same when only one is written
  uint8_t vector = 1;                    // .v2 .v4 .v8
  uint8_t repeat = 0;                    // .x1 .. .x128 of tcgen05.ld/st
  std::bitset<size_t(Q::kCount)> qualifiers;
  std::vector<Operand> operands;
  uint32_t rejoin = kNowhere;     // branches: where diverged lanes meet again
  std::vector<uint32_t> targets;  // brx.idx
  uint32_t callee = kNowhere;     // call: index into Kernel::functions
  AluCode alu;
  LaneLoop lanes = nullptr;  // arithmetic on a whole warp at once, where there is such a form

  bool has(Q q) const { return qualifiers[size_t(q)]; }
};

// A device function inside a kernel's code. Its parameters live in the caller's local memory.
struct DeviceFunction {
  std::string name;
  uint32_t entry = kNowhere;
  std::vector<std::pair<uint64_t, uint64_t>> params, returns;  // local-memory offset, bytes
};

struct Kernel {
  KernelInfo info;
  std::vector<Inst> code;
  std::vector<std::string> register_names;
  std::vector<DeviceFunction> functions;
  uint32_t static_smem_end = 0;      // shared-window offset behind the static variables
  uint32_t dynamic_smem_offset = 0;  // aligned as the extern arrays ask
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

// Fills `program.kernels` from `program.text`; global variables already have addresses. Fault kUnsupported.
void decode(Program& program);

// Sets Inst::rejoin of every branch in code[first, last), which must be one function:
// the immediate post-dominator.
void find_rejoins(std::vector<Inst>& code, uint32_t first, uint32_t last);

// "PTX line 12: `add.s32 ...` (kernel.cu:3)": how every message names a statement.
std::string describe(const ptx::Statement& statement);

}  // namespace sim
