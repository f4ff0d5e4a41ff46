// undefined.cpp -- which bits of a result depend on input bits that nobody knows. An answer may name too many
// bits, never too few: a bit that it does not name has the same value whatever the unknown bits hold.
#include <algorithm>
#include <array>

#include "sim/alu/spelling.h"

namespace sim {
namespace {

using ptx::Type;

constexpr uint32_t kInputs = 6;
constexpr uint64_t kAll = ~uint64_t(0);

uint64_t ones(int width) { return width >= 64 ? kAll : (uint64_t(1) << width) - 1; }

// In these operations a bit of the result depends on at most one bit of each input. The inputs from number
// `controls` on say which bit that is (an amount, a selector, a position), and have to be known.
struct Wired {
  std::string_view opcode;
  uint32_t controls;
};
constexpr auto kWired = std::to_array<Wired>({{"and", kInputs},
                                              {"or", kInputs},
                                              {"xor", kInputs},
                                              {"not", kInputs},
                                              {"lop3", kInputs},
                                              {"selp", kInputs},
                                              {"brev", kInputs},
                                              {"shl", 1},
                                              {"shr", 1},
                                              {"szext", 1},
                                              {"shf", 2},
                                              {"prmt", 2},
                                              {"bfe", 1},
                                              {"bfi", 2}});

struct Question {
  const ptx::Statement& statement;
  const AluCode& code;
  uint64_t known[kInputs], unknown[kInputs];
  uint32_t unclear = 0;  // inputs with unknown bits

  bool is(std::string_view opcode) const { return statement.opcode == opcode; }
  bool says(std::string_view qualifier) const {
    return std::find(statement.qualifiers.begin(), statement.qualifiers.end(), qualifier) !=
           statement.qualifiers.end();
  }
};

bool is_wired(const Question& q) {
  if (q.is("cvt"))  // between integers it cuts, and fills with zeros or the sign
    return q.code.inputs == 1 && alu::is_integer(q.code.from) && alu::is_integer(q.code.dst) &&
           !alu::has(q.code, alu::kSat);
  const auto found =
      std::find_if(kWired.begin(), kWired.end(), [&](const Wired& w) { return q.is(w.opcode); });
  return found != kWired.end() && q.unclear >> found->controls == 0;
}

// Tries all zeros and all ones in every unclear input, in each combination: that is everything that one bit
// of each can be.
uint64_t try_all(const Question& q, uint64_t* out) {
  uint64_t tried[kInputs], varying = 0;
  std::copy_n(q.known, kInputs, tried);
  for (uint32_t set = q.unclear;; set = (set - 1) & q.unclear) {
    for (uint32_t i = 0; i < q.code.inputs; ++i)
      tried[i] = set >> i & 1 ? q.known[i] | q.unknown[i] : q.known[i];
    const uint64_t result = q.code.fn(q.code, tried);
    if (set == q.unclear) out[0] = result;
    varying |= result ^ out[0];
    if (set == 0) break;
  }
  out[0] &= ~varying;
  return varying;
}

// A bit of a sum, of a difference or of the lower part of a product depends on no higher bit of the inputs:
// so all bits below the lowest unknown bit are certain. In a product, a factor that ends in n zeros moves
// that limit up by n; a factor of zero makes all bits certain.
bool wraps(const Question& q) {
  constexpr auto kOpcodes =
      std::to_array<std::string_view>({"add", "sub", "neg", "mul", "mad", "mul24", "mad24"});
  return alu::is_integer(q.code.type) && !q.says("sat") &&
         std::any_of(kOpcodes.begin(), kOpcodes.end(), [&](std::string_view o) { return q.is(o); });
}
uint64_t above_lowest(const Question& q) {
  constexpr int kNowhere = 256;
  const auto lowest = [](uint64_t bits) { return bits == 0 ? kNowhere : std::countr_zero(bits); };
  const auto from = [&](uint32_t i) { return lowest(q.unknown[i]); };
  const auto zeros = [&](uint32_t i) { return lowest(q.known[i] | q.unknown[i]); };
  int first = kNowhere;
  uint32_t addends = 0;
  if (q.statement.opcode.starts_with("m")) {
    first = std::min(from(0) + zeros(1), from(1) + zeros(0));
    if (q.says("hi") && first < 128) first = 0;
    addends = 2;
  }
  for (uint32_t i = addends; i < q.code.inputs; ++i) first = std::min(first, from(i));
  return first >= 64 ? 0 : kAll << first;
}

// Each input and the result have two numbers, or two inputs become the two packed numbers of the result: each
// half of the result has inputs of its own.
struct Halves {
  int from, to;  // bits of one half
};
Halves halves(const Question& q) {
  const auto is_pair = [](Type t) { return t == Type::kF16x2 || t == Type::kBf16x2 || t == Type::kF32x2; };
  if (is_pair(q.code.from) || is_pair(q.code.dst) || (q.is("cvt") && q.code.inputs == 2 && !q.says("pack")))
    return {ptx::bits(q.code.from) / 2, ptx::bits(q.code.dst) / 2};
  return {0, 0};
}
uint64_t by_halves(const Question& q, Halves h) {
  uint64_t out = 0;
  for (const bool upper : {false, true}) {
    bool touched = false;
    if (q.is("cvt") && q.code.inputs == 2) touched = q.unknown[upper ? 0 : 1] != 0;
    else
      for (uint32_t i = 0; i < q.code.inputs; ++i)
        touched = touched || (q.unknown[i] >> (upper ? h.from : 0) & ones(h.from)) != 0;
    if (touched) out |= ones(h.to) << (upper ? h.to : 0);
  }
  return out;
}

}  // namespace

uint64_t undefined_bits(const ptx::Statement& statement, const AluCode& code, const uint64_t* in,
                        const uint64_t* unknown, uint64_t* out, bool* moved) {
  Question q{statement, code, {}, {}};
  const uint64_t read = q.is("cvt") ? ones(ptx::bits(code.from)) : kAll;  // of a register that may be wider
  for (uint32_t i = 0; i < code.inputs; ++i) {
    q.unknown[i] = unknown[i] & read;
    q.known[i] = in[i] & ~unknown[i];
    q.unclear |= uint32_t(q.unknown[i] != 0) << i;
  }
  *moved = q.unclear != 0 && is_wired(q);
  if (*moved) return try_all(q, out);
  uint64_t mask = kAll;
  if (q.unclear == 0) mask = 0;
  else if (q.is("setp") || q.is("set")) mask = q.unclear >> 2 == 0 && third_decides(code, q.known) ? 0 : kAll;
  else if (wraps(q)) mask = above_lowest(q);
  else if (const Halves h = halves(q); h.to != 0) mask = by_halves(q, h);
  if (mask == kAll) return mask;
  if (code.extra_outputs == 0) out[0] = code.fn(code, q.known);
  else code.fn2(code, q.known, out);
  out[0] &= ~mask;
  return mask;
}

}  // namespace sim
