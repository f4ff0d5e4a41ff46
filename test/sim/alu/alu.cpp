// alu.cpp -- resolution of arithmetic: taking a spelling apart, asking one family after another, and the
// rounding helpers that the families share. The functions of the families are in integer, bits, float, half,
// compare and convert.
#include "sim/alu/alu.h"

#include <algorithm>
#include <array>
#include <cfenv>

#include "sim/alu/spelling.h"

namespace sim {
namespace alu {

constexpr auto kResolvers = std::to_array(
    {&resolve_integer, &resolve_bits, &resolve_float, &resolve_half, &resolve_compare, &resolve_convert});

// This lists every arithmetic opcode, so that a known opcode with an unknown type is told from an opcode that
// is not arithmetic.
constexpr auto kOpcodes = std::to_array<std::string_view>(
    {"abs",      "add",   "addc", "and",   "bfe",  "bfi",   "bfind", "bmsk",  "brev", "clz", "cnot",
     "copysign", "cos",   "cvt",  "div",   "dp2a", "dp4a",  "ex2",   "fma",   "fns",  "lg2", "lop3",
     "mad",      "mad24", "madc", "max",   "min",  "mul",   "mul24", "neg",   "not",  "or",  "popc",
     "prmt",     "rcp",   "rem",  "rsqrt", "sad",  "selp",  "set",   "setp",  "shf",  "shl", "shr",
     "sin",      "slct",  "sqrt", "sub",   "subc", "szext", "tanh",  "testp", "xor"});

bool is_integer(Type type) { return type >= Type::kB8 && type <= Type::kS64; }
bool is_signed(Type type) { return type >= Type::kS8 && type <= Type::kS64; }
bool is_half(Type type) { return type >= Type::kF16 && type <= Type::kBf16x2; }

void set_host_rounding(Round r) {
  constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(kModes[static_cast<int>(r)]);
}

float to_odd_f32(double x) {
  const float nearest = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(nearest) == x) return nearest;
  if ((std::bit_cast<uint32_t>(nearest) & 1) != 0) return nearest;
  return std::nextafter(nearest, x > static_cast<double>(nearest) ? HUGE_VALF : -HUGE_VALF);
}

double to_odd_f64(bool negative, uint64_t magnitude) {
  const int excess = 64 - std::countl_zero(magnitude) - 53;
  if (excess > 0) {
    const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
    magnitude = (magnitude >> excess) << excess;
    if (lost != 0) magnitude |= uint64_t{1} << excess;
  }
  const double x = static_cast<double>(magnitude);
  return negative ? -x : x;
}

float fma_to_odd_f32(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact: at most 22 significant bits
  const double addend = c;
  double sum = product + addend;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double back = sum - product;  // Knuth's two-sum: error is what the addition lost
  const double error = (product - (sum - back)) + (addend - back);
  if (error != 0 && (std::bit_cast<uint64_t>(sum) & 1) == 0)
    sum = std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
  return to_odd_f32(sum);
}

Spelling::Spelling(const ptx::Statement& statement) : statement_(statement) {
  for (const std::string& qualifier : statement.qualifiers) {
    Type type;
    if (ptx::parse_type(qualifier, &type)) {
      types_.push_back(type);
    } else {
      rest_.push_back(qualifier);
    }
  }
}

bool Spelling::take(std::string_view qualifier) {
  const auto found = std::find(rest_.begin(), rest_.end(), qualifier);
  if (found == rest_.end()) return false;
  rest_.erase(found);
  return true;
}

int Spelling::take_one_of(std::initializer_list<const char*> choices) {
  int index = 0;
  for (const char* choice : choices) {
    if (take(choice)) return index;
    ++index;
  }
  return -1;
}

void Spelling::take_flag(std::string_view qualifier, Mod mod, AluCode* code) {
  if (take(qualifier)) code->mods |= mod;
}

bool Spelling::take_rounding(AluCode* code) {
  const int mode = take_one_of({"rn", "rz", "rm", "rp"});
  if (mode < 0) return false;
  code->mods |= static_cast<uint32_t>(mode);
  return true;
}

void Spelling::expect_types(size_t count) const {
  if (types_.size() != count) unsupported("needs " + std::to_string(count) + " type(s)");
}

void Spelling::finish(AluCode* code) const {
  if (!rest_.empty()) unsupported("qualifier ." + std::string(rest_.front()));
  if (code->fn == nullptr && code->fn2 == nullptr) unsupported("this combination of types and modifiers");
  // lop3 keeps its look-up table in aux, so it has one operand more than inputs.
  const size_t immediates = opcode() == "lop3" ? 1 : 0;
  if (input_count() != code->inputs + immediates) {
    unsupported(std::to_string(code->inputs + immediates) + " source operands expected");
  }
}

void Spelling::unsupported(const std::string& why) const {
  throw Fault(FaultKind::kUnsupported, "unsupported arithmetic (" + why + "): " + describe(statement_));
}

}  // namespace alu

bool resolve_alu(const ptx::Statement& statement, AluCode* out) {
  if (std::find(alu::kOpcodes.begin(), alu::kOpcodes.end(), statement.opcode) == alu::kOpcodes.end())
    return false;
  AluCode code;
  for (const auto resolve : alu::kResolvers) {
    alu::Spelling spelling(statement);
    code = AluCode{};
    code.type = code.from = code.dst = spelling.type();
    if (!resolve(spelling, &code)) continue;
    spelling.finish(&code);
    *out = code;
    return true;
  }
  alu::Spelling(statement).unsupported("no such instruction for these types");
}

}  // namespace sim
