// targets.cpp -- the table of what only some targets have. Every row is what ptxas 13.0 does: it accepts the
// spelling for these targets and refuses it for lesser ones.
#include "sim/decode/targets.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/decode/program.h"
#include "sim/fault.h"

namespace sim {
namespace {

struct TargetRule {
  const char* opcodes;
  const char* qualifiers;  // all of them, separated by spaces
  // The module's target has to match one of these. A target without a suffix stands for this architecture or
  // a newer one; with 'f' for any family or architecture target of this family that is not older; with 'a'
  // only for the target of this architecture.
  const char* targets;
  size_t operands = 0;  // 0: any number
};

constexpr TargetRule kRules[] = {
    {"tcgen05", "", "100f"},
    {"tcgen05", "scale_vec::2X", "100a 103a"},
    {"tcgen05", "scale_vec::4X", "100a 103a"},
    {"wgmma", "", "90a"},
    {"stmatrix", "", "90"},
    {"setmaxnreg", "", "90a 100f"},
    {"tensormap", "replace", "90a 100f"},
    {"clusterlaunchcontrol", "", "100"},
    {"clusterlaunchcontrol", "multicast::cluster::all", "100f"},
    {"cp", "cta_group::1", "100f"},
    {"cp", "cta_group::2", "100f"},
    // 256-bit accesses
    {"ld st", "v8", "100"},
    {"ld st", "v4 b64", "100"},
    {"ld st", "v4 u64", "100"},
    {"ld st", "v4 s64", "100"},
    {"ld st", "v4 f64", "100"},
    // Arithmetic
    {"add sub mul fma", "f32x2", "100"},
    {"add sub fma", "f32 f16", "100"},
    {"add sub fma", "f32 bf16", "100"},
    {"min max", "f32", "100", 4},
    {"cvt", "rn satfinite tf32", "100"},
    {"cvt", "rz satfinite tf32", "100"},
    {"cvt", "e2m1x2", "100f"},
    {"cvt", "ue8m0x2", "100f"},
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), out.back().size() + 1));
  }
  return out;
}

bool applies(const TargetRule& rule, const ptx::Statement& statement) {
  const auto has_qualifier = [&](std::string_view qualifier) {
    const auto& all = statement.qualifiers;
    return std::find(all.begin(), all.end(), qualifier) != all.end();
  };
  if (rule.operands != 0 && rule.operands != statement.operands.size()) return false;
  if (std::string_view(rule.opcodes).find(statement.opcode) == std::string_view::npos) return false;
  return std::ranges::count(split(rule.opcodes), statement.opcode) != 0 &&
         std::ranges::all_of(split(rule.qualifiers), has_qualifier);
}

bool has(const Target& target, const Target& needed) {
  switch (needed.suffix) {
    case 'a': return target == needed;
    case 'f':
      return target.suffix != '\0' && target.arch >= needed.arch && target.arch / 10 == needed.arch / 10;
    default: return target.arch >= needed.arch;
  }
}

}  // namespace

void check_target(const Target& target, const ptx::Statement& statement) {
  for (const TargetRule& rule : kRules) {
    if (!applies(rule, statement)) continue;
    std::string needed;
    bool found = false;
    for (const std::string_view word : split(rule.targets)) {
      const Target one = parse_target(std::string(word));
      needed += (needed.empty() ? "sm_" : " or sm_") + one.text();
      found |= has(target, one);
    }
    if (found) continue;
    throw Fault(FaultKind::kSyntax, statement.opcode + " in this form needs .target " + needed +
                                        ", the module is for sm_" + target.text() + ": " +
                                        describe(statement));
  }
}

}  // namespace sim
