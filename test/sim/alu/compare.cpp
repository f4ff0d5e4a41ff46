// compare.cpp -- comparisons and selections: setp, set, selp, slct, testp, copysign. The low bits of
// AluCode::aux hold the index of a comparison, the bits above them the Boolean operation that combines it
// with a third operand.
#include <array>

#include "sim/alu/spelling.h"

namespace sim::alu {
namespace {

constexpr auto kComparisons =
    std::to_array<const char*>({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu",
                                "ltu", "leu", "gtu", "geu", "num", "nan"});
enum Comparison : uint32_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLo,
  kLs,
  kHi,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNanTest
};
enum Combination : uint32_t { kCombineNone, kCombineAnd, kCombineOr, kCombineXor };
constexpr uint32_t kCombinationShift = 8;

template <class T>
bool ordered(uint32_t comparison, T a, T b) {
  switch (comparison) {
    case kEq: return a == b;
    case kNe: return a != b;
    case kLt:
    case kLo: return a < b;
    case kLe:
    case kLs: return a <= b;
    case kGt:
    case kHi: return a > b;
    default: return a >= b;
  }
}

// An ordered comparison with a NaN is false, .ne included; the ...u forms are then true.
template <class T>
bool compare(uint32_t comparison, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if (comparison == kNum) return !unordered;
    if (comparison == kNanTest) return unordered;
    if (comparison >= kEqu) return unordered || ordered(comparison - kEqu + kEq, a, b);
    return !unordered && ordered(comparison, a, b);
  } else {
    return ordered(comparison, a, b);
  }
}

// The readers turn a register into the value that is compared.
template <class T>
struct Plain {
  using Value = T;
  static T read(const AluCode& code, uint64_t v) {
    if constexpr (std::is_same_v<T, float>) {
      return has(code, kFtz) ? flush_f32(get<float>(v)) : get<float>(v);
    } else {
      return get<T>(v);
    }
  }
};
struct HalfReader {
  static float read(const AluCode& code, uint64_t v) {
    const uint16_t bits = static_cast<uint16_t>(v);
    return f16_to_f32(has(code, kFtz) ? flush_f16(bits) : bits);
  }
};
struct BrainReader {
  static float read(const AluCode& code, uint64_t v) {
    const uint16_t bits = static_cast<uint16_t>(v);
    return bf16_to_f32(has(code, kFtz) ? flush_bf16(bits) : bits);
  }
};

bool combine(const AluCode& code, bool result, uint64_t third) {
  switch (code.aux >> kCombinationShift) {
    case kCombineAnd: return result && (third & 1);
    case kCombineOr: return result || (third & 1);
    case kCombineXor: return result != ((third & 1) != 0);
    default: return result;
  }
}
uint64_t third_of(const AluCode& code, const uint64_t* in) { return code.inputs == 3 ? in[2] : 0; }

template <class Reader>
bool holds(const AluCode& code, const uint64_t* in) {
  return compare(code.aux & 0xFF, Reader::read(code, in[0]), Reader::read(code, in[1]));
}
template <class Reader>
uint64_t setp_one(const AluCode& code, const uint64_t* in) {
  return combine(code, holds<Reader>(code, in), third_of(code, in));
}
template <class Reader>
void setp_two(const AluCode& code, const uint64_t* in, uint64_t* out) {
  const bool result = holds<Reader>(code, in);
  const uint64_t third = third_of(code, in);
  out[0] = combine(code, result, third);
  out[1] = combine(code, !result, third);
}
// For packed operands, p is the result of the low element and q that of the high one.
template <class Reader>
void setp_pair(const AluCode& code, const uint64_t* in, uint64_t* out) {
  const uint64_t high[2] = {in[0] >> 16, in[1] >> 16};
  const uint64_t third = third_of(code, in);
  out[0] = combine(code, holds<Reader>(code, in), third);
  out[1] = combine(code, holds<Reader>(code, high), third);
}

uint64_t truth(Type dst) {
  switch (dst) {
    case Type::kF32: return 0x3F800000;
    case Type::kF16:
    case Type::kF16x2: return 0x3C00;
    case Type::kBf16:
    case Type::kBf16x2: return 0x3F80;
    case Type::kU16:
    case Type::kS16: return 0xFFFF;
    default: return 0xFFFFFFFF;
  }
}
template <class Reader>
uint64_t set_one(const AluCode& code, const uint64_t* in) {
  return setp_one<Reader>(code, in) ? truth(code.dst) : 0;
}
template <class Reader>
uint64_t set_pair(const AluCode& code, const uint64_t* in) {
  uint64_t out[2];
  setp_pair<Reader>(code, in, out);
  return (out[0] ? truth(code.dst) : 0) | (out[1] ? truth(code.dst) << 16 : 0);
}

template <class Reader>
void bind(AluCode* code, bool predicate, bool two) {
  if (two) {
    code->fn2 = &setp_two<Reader>;
  } else {
    code->fn = predicate ? &setp_one<Reader> : &set_one<Reader>;
  }
}
template <class Reader>
void bind_pair(AluCode* code, bool predicate, bool two) {
  if (predicate && two) code->fn2 = &setp_pair<Reader>;
  if (!predicate && code->dst == code->from) code->fn = &set_pair<Reader>;
}

void bind_comparison(AluCode* code, bool predicate, bool two) {
  switch (code->from) {
    case Type::kB16:
    case Type::kU16: return bind<Plain<uint16_t>>(code, predicate, two);
    case Type::kB32:
    case Type::kU32: return bind<Plain<uint32_t>>(code, predicate, two);
    case Type::kB64:
    case Type::kU64: return bind<Plain<uint64_t>>(code, predicate, two);
    case Type::kS16: return bind<Plain<int16_t>>(code, predicate, two);
    case Type::kS32: return bind<Plain<int32_t>>(code, predicate, two);
    case Type::kS64: return bind<Plain<int64_t>>(code, predicate, two);
    case Type::kF32: return bind<Plain<float>>(code, predicate, two);
    case Type::kF64: return bind<Plain<double>>(code, predicate, two);
    case Type::kF16: return bind<HalfReader>(code, predicate, two);
    case Type::kBf16: return bind<BrainReader>(code, predicate, two);
    case Type::kF16x2: return bind_pair<HalfReader>(code, predicate, two);
    case Type::kBf16x2: return bind_pair<BrainReader>(code, predicate, two);
    default: return;
  }
}

void resolve_comparison(Spelling& s, AluCode* code) {
  const bool predicate = s.opcode() == "setp";
  s.expect_types(predicate ? 1 : 2);
  code->from = s.types().back();
  code->dst = predicate ? Type::kPred : s.types().front();
  uint32_t comparison = 0;
  while (comparison < kComparisons.size() && !s.take(kComparisons[comparison])) ++comparison;
  if (comparison == kComparisons.size()) s.unsupported("no comparison");
  if (is_integer(code->from) && comparison >= kEqu) s.unsupported("an unordered comparison of integers");
  if (is_signed(code->from) && comparison >= kLo) s.unsupported("an unsigned comparison of signed integers");
  code->aux = comparison | static_cast<uint32_t>(s.take_one_of({"and", "or", "xor"}) + 1)
                               << kCombinationShift;
  code->inputs = (code->aux >> kCombinationShift) != kCombineNone ? 3 : 2;
  s.take_flag("ftz", kFtz, code);
  const bool two = predicate && s.statement().operands.front().kind == ptx::Operand::Kind::kPair;
  code->extra_outputs = two ? 1 : 0;
  bind_comparison(code, predicate, two);
}

template <class T>
uint64_t select(const AluCode&, const uint64_t* in) {
  return static_cast<T>(in[2] & 1 ? in[0] : in[1]);
}
AluFn select_of(Type t) {
  switch (ptx::bits(t)) {
    case 16: return &select<uint16_t>;
    case 32: return &select<uint32_t>;
    case 64: return &select<uint64_t>;
    default: return nullptr;
  }
}

// slct selects a where c >= 0, and b elsewhere; a NaN selects b.
template <bool kFloat>
uint64_t slct(const AluCode& code, const uint64_t* in) {
  const bool first = kFloat ? Plain<float>::read(code, in[2]) >= 0.0f : get<int32_t>(in[2]) >= 0;
  const uint64_t chosen = first ? in[0] : in[1];
  return ptx::bits(code.dst) == 64 ? chosen : chosen & ((uint64_t{1} << ptx::bits(code.dst)) - 1);
}

enum Test : uint32_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <class T>
uint64_t testp(const AluCode& code, const uint64_t* in) {
  const int kind = std::fpclassify(get<T>(in[0]));
  switch (code.aux) {
    case kFinite: return kind != FP_INFINITE && kind != FP_NAN;
    case kInfinite: return kind == FP_INFINITE;
    case kNumber: return kind != FP_NAN;
    case kNotANumber: return kind == FP_NAN;
    case kNormal: return kind == FP_NORMAL || kind == FP_ZERO;  // the ISA counts zero as normal
    default: return kind == FP_SUBNORMAL;
  }
}

// copysign puts the sign of a on b.
template <int kBits>
uint64_t copy_sign(const AluCode&, const uint64_t* in) {
  constexpr uint64_t kSign = uint64_t{1} << (kBits - 1);
  return (in[0] & kSign) | (in[1] & (kSign - 1));
}

}  // namespace

bool resolve_compare(Spelling& s, AluCode* code) {
  const std::string_view op = s.opcode();
  if (op == "setp" || op == "set") {
    resolve_comparison(s, code);
    return true;
  }
  if (op == "slct") {
    s.expect_types(2);
    code->dst = s.types().front();
    code->from = s.types().back();
    code->inputs = 3;
    s.take_flag("ftz", kFtz, code);
    const bool known = ptx::bits(code->dst) >= 16 && ptx::bits(code->dst) <= 64;
    if (known && code->from == Type::kF32) code->fn = &slct<true>;
    if (known && code->from == Type::kS32) code->fn = &slct<false>;
    return true;
  }
  if (op == "selp") {
    code->inputs = 3;
    code->fn = select_of(code->type);
  } else if (op == "testp") {
    const int test = s.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    if (test < 0) s.unsupported("no test");
    code->aux = static_cast<uint32_t>(test);
    code->inputs = 1;
    code->dst = Type::kPred;
    code->fn = code->type == Type::kF32 ? &testp<float> : code->type == Type::kF64 ? &testp<double> : AluFn{};
  } else if (op == "copysign") {
    code->inputs = 2;
    code->fn = code->type == Type::kF32   ? &copy_sign<32>
               : code->type == Type::kF64 ? &copy_sign<64>
                                          : AluFn{};
  } else {
    return false;
  }
  s.expect_types(1);
  return true;
}

}  // namespace sim::alu

namespace sim {

bool third_decides(const AluCode& code, const uint64_t* in) {
  const uint64_t third = alu::third_of(code, in);
  return alu::combine(code, false, third) == alu::combine(code, true, third);
}

}  // namespace sim
