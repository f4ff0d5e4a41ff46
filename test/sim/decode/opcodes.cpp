// opcodes.cpp -- the opcode table and the matching of a statement against it. Arithmetic is not here:
// resolve_alu knows it. Rows that share a mnemonic are told apart by required qualifiers; the row that
// requires most wins.
#include "sim/decode/opcodes.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "sim/fault.h"

namespace sim {
namespace {

struct Group {
  const char* name;
  const char* members;
};

constexpr Group kGroups[] = {
    {"@type", "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f32x2 f64 pred"},
    {"@space", "global shared shared::cta shared::cluster local const param param::entry param::func"},
    {"@smem", "shared shared::cta shared::cluster"},
    {"@cache",
     "ca cg cs lu cv wb wt nc "
     "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
     "L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B L2::128B L2::256B"},
    {"@sem", "weak relaxed acquire release volatile acq_rel sc"},
    {"@scope", "cta cluster gpu sys"},
    {"@vec", "v2 v4 v8"},
    {"@arith", "add min max and or xor exch cas inc dec"},
    {"@dim", "1d 2d 3d 4d 5d"},
    {"@group", "cta_group::1 cta_group::2"},
    {"@repeat", "x1 x2 x4 x8 x16 x32 x64 x128"},
    {"@ldshape", "32x32b 16x64b 16x128b 16x256b 16x32bx2"},
    {"@cpshape", "128x256b 4x256b 128x128b 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4"},
    {"@wgmma_shape",
     "m64n8k16 m64n16k16 m64n24k16 m64n32k16 m64n40k16 m64n48k16 m64n56k16 m64n64k16 m64n72k16 "
     "m64n80k16 m64n88k16 m64n96k16 m64n104k16 m64n112k16 m64n120k16 m64n128k16 m64n136k16 "
     "m64n144k16 m64n152k16 m64n160k16 m64n168k16 m64n176k16 m64n184k16 m64n192k16 m64n200k16 "
     "m64n208k16 m64n216k16 m64n224k16 m64n232k16 m64n240k16 m64n248k16 m64n256k16"},
    {"@wgmma_byte_shape",
     "m64n8k32 m64n16k32 m64n24k32 m64n32k32 m64n40k32 m64n48k32 m64n56k32 m64n64k32 m64n72k32 "
     "m64n80k32 m64n88k32 m64n96k32 m64n104k32 m64n112k32 m64n120k32 m64n128k32 m64n136k32 m64n144k32 "
     "m64n152k32 m64n160k32 m64n168k32 m64n176k32 m64n184k32 m64n192k32 m64n200k32 m64n208k32 "
     "m64n216k32 m64n224k32 m64n232k32 m64n240k32 m64n248k32 m64n256k32"},
    {"@collector", "collector::a::fill collector::a::use collector::a::lastuse collector::a::discard"},
};

using enum Operation;

constexpr OpcodeRow kRows[] = {
    // Moves and addresses
    {"mov", "", "@type", "DS", mov},
    {"cvta", "", "to @space @type", "ds", cvta},
    {"isspacep", "", "@space", "ds", isspacep},
    {"mapa", "", "@smem @type", "dss", mapa},
    {"getctarank", "", "@smem @type", "ds", getctarank},

    // Loads and stores
    {"ld", "", "@space @sem @scope @cache @vec @type", "Da?s", ld},
    {"ldu", "", "@space @vec @type", "Da", ld},
    {"st", "", "@space @sem @scope @cache @vec @type", "aS?s", st},
    {"atom", "", "@space @sem @scope @arith @vec @type noftz L2::cache_hint", "DaS?ss", atom},
    {"red", "", "@space @sem @scope @arith @vec @type noftz L2::cache_hint", "aS?s", atom},
    {"ldmatrix", "sync aligned m8n8 b16", "x1 x2 x4 trans shared shared::cta", "Da", ldmatrix},
    {"stmatrix", "sync aligned m8n8 b16", "x1 x2 x4 trans shared shared::cta", "aS", stmatrix},
    {"prefetch", "", "@space L1 L2 L2::evict_last L2::evict_normal", "a", prefetch},
    {"prefetch", "tensormap", "param const", "a", prefetch},
    {"prefetchu", "", "L1", "a", prefetch},
    {"createpolicy", "fractional", "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged b64",
     "d?s", createpolicy},

    // Control
    {"bra", "", "uni", "l", bra},
    {"brx", "idx", "uni", "sn", brx},
    {"call", "", "uni", "*", call},
    {"ret", "", "uni", "", ret},
    {"exit", "", "", "", Operation::exit},
    {"trap", "", "", "", trap},
    {"brkpt", "", "", "", trap},

    // Barriers, fences
    {"bar", "sync", "cta aligned", "s?s", bar_sync},
    {"bar", "arrive", "cta aligned", "ss", bar_arrive},
    {"bar", "red", "cta aligned popc and or pred u32", "ds?ss", bar_red},
    {"bar", "warp sync", "", "s", bar_warp},
    {"barrier", "sync", "cta aligned", "s?s", bar_sync},
    {"barrier", "arrive", "cta aligned", "ss", bar_arrive},
    {"barrier", "red", "cta aligned popc and or pred u32", "ds?ss", bar_red},
    {"barrier", "cluster arrive", "release relaxed aligned", "", cluster_arrive},
    {"barrier", "cluster wait", "acquire aligned", "", cluster_wait},
    {"membar", "", "cta gl sys", "", fence},
    {"fence", "",
     "sc acq_rel acquire release @scope sync_restrict::shared::cta sync_restrict::shared::cluster", "",
     fence},
    {"fence", "mbarrier_init", "release cluster", "", fence},
    {"fence", "proxy alias", "", "", fence},
    {"fence", "proxy async", "global shared::cta shared::cluster", "", fence},
    {"fence", "proxy async::generic",
     "acquire release cluster sync_restrict::shared::cta sync_restrict::shared::cluster", "", fence},
    {"fence", "proxy tensormap::generic", "acquire release @scope", "?as", fence},
    {"nanosleep", "", "u32", "s", nanosleep},
    {"griddepcontrol", "launch_dependents", "", "", grid_dependency},
    {"griddepcontrol", "wait", "", "", grid_dependency},
    {"pmevent", "", "mask", "s", nothing},

    // Lanes of a warp
    {"shfl", "sync", "up down bfly idx b32", "psss?s", shfl},
    {"vote", "sync", "all any uni ballot pred b32", "dss", vote},
    {"match", "any sync", "b32 b64", "dss", match_any},
    {"match", "all sync", "b32 b64", "pss", match_all},
    {"elect", "sync", "", "ps", elect},
    {"redux", "sync", "add min max and or xor u32 s32 b32", "dss", redux},
    {"activemask", "", "b32", "d", activemask},

    // mbarrier
    {"mbarrier", "init", "shared shared::cta b64", "as", mbarrier_init},
    {"mbarrier", "inval", "shared shared::cta b64", "a", mbarrier_inval},
    {"mbarrier", "arrive", "@smem release relaxed cta cluster expect_tx noComplete b64", "da?s",
     mbarrier_arrive},
    {"mbarrier", "arrive_drop", "@smem release relaxed cta cluster expect_tx noComplete b64", "da?s",
     mbarrier_arrive_drop},
    {"mbarrier", "expect_tx", "@smem relaxed cta cluster b64", "as", mbarrier_expect_tx},
    {"mbarrier", "complete_tx", "@smem relaxed cta cluster b64", "as", mbarrier_complete_tx},
    {"mbarrier", "try_wait", "shared shared::cta parity acquire relaxed cta cluster b64", "das?s",
     mbarrier_try_wait},
    {"mbarrier", "test_wait", "shared shared::cta parity acquire relaxed cta cluster b64", "das",
     mbarrier_test_wait},
    {"mbarrier", "pending_count", "b64", "ds", mbarrier_pending_count},

    // Copies
    {"cp", "async", "ca cg shared shared::cta global L2::cache_hint L2::64B L2::128B L2::256B", "aas?ss",
     cp_async},
    {"cp", "async commit_group", "", "", cp_async_commit},
    {"cp", "async wait_group", "", "s", cp_async_wait},
    {"cp", "async wait_all", "", "", cp_async_wait},
    {"cp", "async bulk global mbarrier::complete_tx::bytes",
     "shared::cta shared::cluster multicast::cluster L2::cache_hint", "aasa?ss", bulk_load},
    {"cp", "async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes", "", "aasa", bulk_shared},
    {"cp", "async bulk global bulk_group", "shared::cta L2::cache_hint", "aas?s", bulk_store},
    {"cp", "async bulk prefetch", "L2 global L2::cache_hint", "as?s", bulk_prefetch},
    {"cp", "async bulk commit_group", "", "", bulk_commit},
    {"cp", "async bulk wait_group", "read", "s", bulk_wait},
    {"cp", "async bulk tensor global mbarrier::complete_tx::bytes",
     "@dim shared::cta shared::cluster tile multicast::cluster @group L2::cache_hint", "aaa?ss", tensor_load},
    {"cp", "async bulk tensor global bulk_group", "@dim shared::cta tile L2::cache_hint", "aa?s",
     tensor_store},
    {"cp", "async bulk prefetch tensor", "@dim L2 global tile L2::cache_hint", "a?s", tensor_prefetch},
    {"tensormap", "replace tile b1024 global_address b64", "global shared::cta", "as", tensormap_replace},
    {"tensormap", "replace tile b1024 rank b32", "global shared::cta", "as", tensormap_replace},
    {"tensormap", "replace tile b1024 box_dim b32", "global shared::cta", "ass", tensormap_replace},
    {"tensormap", "replace tile b1024 global_dim b32", "global shared::cta", "ass", tensormap_replace},
    {"tensormap", "replace tile b1024 global_stride b64", "global shared::cta", "ass", tensormap_replace},
    {"tensormap", "replace tile b1024 element_stride b32", "global shared::cta", "ass", tensormap_replace},
    {"tensormap", "replace tile b1024 elemtype b32", "global shared::cta", "as", tensormap_replace},
    {"tensormap", "replace tile b1024 interleave_layout b32", "global shared::cta", "as", tensormap_replace},
    {"tensormap", "replace tile b1024 swizzle_mode b32", "global shared::cta", "as", tensormap_replace},
    {"tensormap", "replace tile b1024 fill_mode b32", "global shared::cta", "as", tensormap_replace},
    {"tensormap", "cp_fenceproxy global shared::cta tensormap::generic release sync aligned", "@scope", "aas",
     tensormap_copy},
    {"st", "async", "weak shared::cluster mbarrier::complete_tx::bytes @vec @type", "aSa", st_async},

    {"clusterlaunchcontrol", "try_cancel async mbarrier::complete_tx::bytes b128",
     "shared::cta multicast::cluster::all", "aa", try_cancel},
    {"clusterlaunchcontrol", "query_cancel is_canceled pred b128", "", "ds", query_cancel},
    {"clusterlaunchcontrol", "query_cancel get_first_ctaid v4 b32 b128", "", "Ds", query_cancel},
    {"clusterlaunchcontrol", "query_cancel get_first_ctaid::x b32 b128", "", "ds", query_cancel},
    {"clusterlaunchcontrol", "query_cancel get_first_ctaid::y b32 b128", "", "ds", query_cancel},
    {"clusterlaunchcontrol", "query_cancel get_first_ctaid::z b32 b128", "", "ds", query_cancel},

    {"setmaxnreg", "inc sync aligned u32", "", "s", setmaxnreg},
    {"setmaxnreg", "dec sync aligned u32", "", "s", setmaxnreg},

    // Tensor core of Hopper
    {"wgmma", "mma_async sync aligned f32 f16", "@wgmma_shape", "DSssss?ss", wgmma_mma},
    {"wgmma", "mma_async sync aligned f32 bf16", "@wgmma_shape", "DSssss?ss", wgmma_mma},
    {"wgmma", "mma_async sync aligned f32 e4m3", "@wgmma_byte_shape e5m2", "DSssss?ss", wgmma_mma},
    {"wgmma", "mma_async sync aligned f32 e5m2", "@wgmma_byte_shape e4m3", "DSssss?ss", wgmma_mma},
    {"wgmma", "fence sync aligned", "", "", wgmma_fence},
    {"wgmma", "commit_group sync aligned", "", "", wgmma_commit},
    {"wgmma", "wait_group sync aligned", "", "s", wgmma_wait},

    // Tensor core of Blackwell
    {"tcgen05", "alloc sync aligned", "@group shared::cta b32", "as", tcgen05_alloc},
    {"tcgen05", "dealloc sync aligned", "@group b32", "ss", tcgen05_dealloc},
    {"tcgen05", "relinquish_alloc_permit sync aligned", "@group", "", tcgen05_relinquish},
    {"tcgen05", "cp", "@group @cpshape", "as", tcgen05_cp},
    {"tcgen05", "mma kind::f16", "@group @collector", "anssvs", tcgen05_mma},
    {"tcgen05", "mma block_scale",
     "kind::mxf4 kind::mxf4nvf4 @group block16 block32 scale_vec::2X scale_vec::4X @collector", "anssaas",
     tcgen05_mma_scaled},
    {"tcgen05", "commit mbarrier::arrive::one", "@group shared::cluster multicast::cluster b64", "a?s",
     tcgen05_commit},
    {"tcgen05", "ld sync aligned", "@ldshape @repeat pack::16b b32", "Da?s", tcgen05_ld},
    {"tcgen05", "st sync aligned", "@ldshape @repeat unpack::16b b32", "aS?S", tcgen05_st},
    {"tcgen05", "wait::ld sync aligned", "", "", tcgen05_wait},
    {"tcgen05", "wait::st sync aligned", "", "", tcgen05_wait},
    {"tcgen05", "fence::before_thread_sync", "", "", tcgen05_fence},
    {"tcgen05", "fence::after_thread_sync", "", "", tcgen05_fence},
};

// ---- no orphans: every operation has a row, every qualifier and every group is accepted by one ----

constexpr bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (text.substr(0, end) == word) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

constexpr bool in_a_row(std::string_view word) {
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const OpcodeRow& row) {
    return has_word(row.required, word) || has_word(row.optional, word);
  });
}

constexpr bool is_accepted(std::string_view qualifier) {
  return in_a_row(qualifier) || std::any_of(std::begin(kGroups), std::end(kGroups), [&](const Group& group) {
           return has_word(group.members, qualifier);
         });
}

constexpr bool has_row(Operation operation) {
  return operation == alu || std::any_of(std::begin(kRows), std::end(kRows),
                                         [&](const OpcodeRow& row) { return row.operation == operation; });
}

#define X(name) static_assert(has_row(Operation::name), "no row of the opcode table means " #name);
#include "sim/decode/operations.def"
#undef X
#define X(id, text) static_assert(is_accepted(text), "no row of the opcode table accepts " text);
#include "sim/decode/qualifiers.def"
#undef X
static_assert(std::all_of(std::begin(kGroups), std::end(kGroups),
                          [](const Group& group) { return in_a_row(group.name); }),
              "no row of the opcode table names one of the groups");

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), out.back().size() + 1));
  }
  return out;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool accepted(std::string_view optional, std::string_view qualifier) {
  if (has_word(optional, qualifier)) return true;
  return std::any_of(std::begin(kGroups), std::end(kGroups), [&](const Group& group) {
    return has_word(optional, group.name) && has_word(group.members, qualifier);
  });
}

bool fits(char shape, const ptx::Operand& operand) {
  using Kind = ptx::Operand::Kind;
  const bool scalar = operand.kind == Kind::kRegister || operand.kind == Kind::kInteger ||
                      operand.kind == Kind::kFloat || operand.kind == Kind::kSpecial ||
                      operand.kind == Kind::kName;
  switch (shape) {
    case 'd': return operand.kind == Kind::kRegister || operand.kind == Kind::kSink;
    case 'D':
      return operand.kind == Kind::kRegister || operand.kind == Kind::kSink || operand.kind == Kind::kVector;
    case 'p':
      return operand.kind == Kind::kRegister || operand.kind == Kind::kSink || operand.kind == Kind::kPair;
    case 's': return scalar;
    case 'S': return scalar || operand.kind == Kind::kVector;
    case 'a': return operand.kind == Kind::kAddress;
    case 'l': return operand.kind == Kind::kLabel;
    default: return true;
  }
}

bool operands_fit(const char* pattern, const std::vector<ptx::Operand>& operands) {
  bool optional = false;
  size_t i = 0;
  for (const char* p = pattern; *p; ++p) {
    if (*p == '*') return true;
    if (*p == '?') {
      optional = true;
      continue;
    }
    if (*p == 'v' && (i == operands.size() || operands[i].kind != ptx::Operand::Kind::kVector)) continue;
    if (i == operands.size()) return optional;
    if (!fits(*p, operands[i])) return false;
    ++i;
  }
  return i == operands.size();
}

}  // namespace

const OpcodeRow* find_row(const ptx::Statement& statement) {
  const OpcodeRow* best = nullptr;
  size_t best_required = 0;
  for (const OpcodeRow& row : kRows) {
    // Most rows have another first letter, and this is asked for every row.
    if (statement.opcode[0] != row.mnemonic[0] || statement.opcode != row.mnemonic) continue;
    const std::vector<std::string_view> required = words(row.required);
    const bool all = std::all_of(required.begin(), required.end(),
                                 [&](std::string_view word) { return contains(statement.qualifiers, word); });
    if (all && (best == nullptr || required.size() > best_required)) {
      best = &row;
      best_required = required.size();
    }
  }
  if (best == nullptr) return nullptr;
  for (const std::string& qualifier : statement.qualifiers)
    if (!has_word(best->required, qualifier) && !accepted(best->optional, qualifier))
      throw Fault(FaultKind::kUnsupported, "qualifier ." + qualifier + " of " + statement.opcode +
                                               " is not supported: " + describe(statement));
  if (!operands_fit(best->operands, statement.operands))
    throw Fault(FaultKind::kUnsupported, "operands do not fit the instruction: " + describe(statement));
  return best;
}

bool is_branch(const Inst& inst) { return inst.operation == bra || inst.operation == brx; }
bool leaves_normally(const Inst& inst) { return inst.operation == Operation::exit || inst.operation == ret; }
bool ends_path(const Inst& inst) { return leaves_normally(inst) || inst.operation == trap; }

}  // namespace sim
