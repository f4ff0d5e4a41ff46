// integer.cpp -- integer arithmetic: sums, products, quotients, extrema. Everything wraps in its own
// width unless .sat says otherwise. Sums and products are formed in 64 unsigned bits and cut, which is right
// for both signs.
#include <algorithm>
#include <limits>

#include "sim/alu/spelling.h"

namespace sim::alu {
namespace {

constexpr auto kAdd = [](auto a, auto b) { return decltype(a)(uint64_t(a) + uint64_t(b)); };
constexpr auto kSub = [](auto a, auto b) { return decltype(a)(uint64_t(a) - uint64_t(b)); };
constexpr auto kMulLo = [](auto a, auto b) { return decltype(a)(uint64_t(a) * uint64_t(b)); };
constexpr auto kMadLo = [](auto a, auto b, auto c) {
  return decltype(a)(uint64_t(a) * uint64_t(b) + uint64_t(c));
};
constexpr auto kNeg = [](auto a) { return decltype(a)(0 - uint64_t(a)); };
constexpr auto kAbs = [](auto a) { return a < 0 ? decltype(a)(0 - uint64_t(a)) : a; };
constexpr auto kMin = [](auto a, auto b) { return std::min(a, b); };
constexpr auto kMax = [](auto a, auto b) { return std::max(a, b); };
constexpr auto kSad = [](auto a, auto b, auto c) {
  return decltype(a)(uint64_t(c) + (a < b ? uint64_t(b) - uint64_t(a) : uint64_t(a) - uint64_t(b)));
};

template <class T>
using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
constexpr auto kMulHi = [](auto a, auto b) {
  using T = decltype(a);
  return T((Product<T>(a) * Product<T>(b)) >> (sizeof(T) * 8));
};
constexpr auto kMadHi = [](auto a, auto b, auto c) { return kAdd(kMulHi(a, b), c); };

// The ISA does not specify division by zero; an H200 returns all ones as quotient and as remainder. The most
// negative number divided by -1 wraps.
constexpr auto kDiv = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return T(~T(0));
  if (std::is_signed_v<T> && b == T(-1)) return kNeg(a);
  return T(a / b);
};
constexpr auto kRem = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return T(~T(0));
  if (std::is_signed_v<T> && b == T(-1)) return T(0);
  return T(a % b);
};

int32_t clamp_s32(int64_t x) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(x, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}
constexpr auto kAddSat = [](int32_t a, int32_t b) { return clamp_s32(int64_t(a) + b); };
constexpr auto kSubSat = [](int32_t a, int32_t b) { return clamp_s32(int64_t(a) - b); };
constexpr auto kMadHiSat = [](int32_t a, int32_t b, int32_t c) {
  return clamp_s32(int64_t(kMulHi(a, b)) + c);
};
constexpr auto kMinRelu = [](int32_t a, int32_t b) { return std::max(std::min(a, b), 0); };
constexpr auto kMaxRelu = [](int32_t a, int32_t b) { return std::max(std::max(a, b), 0); };

// Factors have 24 bits and are sign- or zero-extended; .hi is bits 16 to 47 of the 48-bit product.
constexpr auto kFactor24 = [](auto a) -> int64_t {
  if constexpr (std::is_signed_v<decltype(a)>) return int32_t(uint32_t(a) << 8) >> 8;
  return int64_t(uint32_t(a) & 0xFFFFFF);
};
constexpr auto kMul24Lo = [](auto a, auto b) { return decltype(a)(kFactor24(a) * kFactor24(b)); };
constexpr auto kMul24Hi = [](auto a, auto b) { return decltype(a)((kFactor24(a) * kFactor24(b)) >> 16); };
constexpr auto kMad24Lo = [](auto a, auto b, auto c) { return kAdd(kMul24Lo(a, b), c); };
constexpr auto kMad24Hi = [](auto a, auto b, auto c) { return kAdd(kMul24Hi(a, b), c); };
constexpr auto kMad24HiSat = [](int32_t a, int32_t b, int32_t c) {
  return clamp_s32(int64_t(kMul24Hi(a, b)) + c);
};

// The type of the same sign and twice the width.
template <class T>
using Doubled = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
template <class T>
uint64_t mul_wide(const AluCode&, const uint64_t* in) {
  return put<Doubled<T>>(Doubled<T>(uint64_t(get<T>(in[0])) * uint64_t(get<T>(in[1]))));
}
template <class T>
uint64_t mad_wide(const AluCode& code, const uint64_t* in) {
  return put<Doubled<T>>(Doubled<T>(mul_wide<T>(code, in) + in[2]));
}

template <auto Op>
AluFn signed_unary(Type t) {
  return of_number<int16_t, int32_t, int64_t>(t, []<class T> { return &apply1<T, Op>; });
}
template <auto Op>
AluFn binary(Type t) {
  return of_number<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(
      t, []<class T> { return &apply2<T, Op>; });
}
template <auto Op>
AluFn ternary(Type t) {
  return of_number<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(
      t, []<class T> { return &apply3<T, Op>; });
}
template <auto Op>
AluFn word_binary(Type t) {
  return of_number<uint32_t, int32_t>(t, []<class T> { return &apply2<T, Op>; });
}
template <auto Op>
AluFn word_ternary(Type t) {
  return of_number<uint32_t, int32_t>(t, []<class T> { return &apply3<T, Op>; });
}

void resolve_sum(Spelling& s, AluCode* code, bool subtract) {
  code->inputs = 2;
  if (!s.take("sat")) {
    code->fn = subtract ? binary<kSub>(code->type) : binary<kAdd>(code->type);
  } else if (code->type == Type::kS32) {
    code->fn = subtract ? &apply2<int32_t, kSubSat> : &apply2<int32_t, kAddSat>;
  }
}

Type doubled(Type t) {
  switch (t) {
    case Type::kU16: return Type::kU32;
    case Type::kS16: return Type::kS32;
    case Type::kU32: return Type::kU64;
    case Type::kS32: return Type::kS64;
    default: return Type::kNone;
  }
}

void resolve_mul(Spelling& s, AluCode* code) {
  code->inputs = 2;
  const Type t = code->type;
  switch (s.take_one_of({"lo", "hi", "wide"})) {
    case 0: code->fn = binary<kMulLo>(t); break;
    case 1: code->fn = binary<kMulHi>(t); break;
    case 2:
      code->dst = doubled(t);
      code->fn = of_number<uint16_t, int16_t, uint32_t, int32_t>(t, []<class T> { return &mul_wide<T>; });
      break;
    default: s.unsupported("an integer product needs .lo, .hi or .wide");
  }
}

void resolve_mad(Spelling& s, AluCode* code) {
  code->inputs = 3;
  const Type t = code->type;
  switch (s.take_one_of({"lo", "hi", "wide"})) {
    case 0: code->fn = ternary<kMadLo>(t); break;
    case 1:
      if (!s.take("sat")) {
        code->fn = ternary<kMadHi>(t);
      } else if (t == Type::kS32) {
        code->fn = &apply3<int32_t, kMadHiSat>;
      }
      break;
    case 2:
      code->dst = doubled(t);
      code->fn = of_number<uint16_t, int16_t, uint32_t, int32_t>(t, []<class T> { return &mad_wide<T>; });
      break;
    default: s.unsupported("an integer product needs .lo, .hi or .wide");
  }
}

void resolve_24(Spelling& s, AluCode* code, bool add) {
  const bool high = s.take("hi");
  if (!high && !s.take("lo")) s.unsupported("a 24-bit product needs .lo or .hi");
  code->inputs = add ? 3 : 2;
  const Type t = code->type;
  if (!add) {
    code->fn = high ? word_binary<kMul24Hi>(t) : word_binary<kMul24Lo>(t);
  } else if (!s.take("sat")) {
    code->fn = high ? word_ternary<kMad24Hi>(t) : word_ternary<kMad24Lo>(t);
  } else if (high && t == Type::kS32) {
    code->fn = &apply3<int32_t, kMad24HiSat>;
  }
}

void resolve_extremum(Spelling& s, AluCode* code, bool minimum) {
  code->inputs = 2;
  if (!s.take("relu")) {
    code->fn = minimum ? binary<kMin>(code->type) : binary<kMax>(code->type);
  } else if (code->type == Type::kS32) {
    code->fn = minimum ? &apply2<int32_t, kMinRelu> : &apply2<int32_t, kMaxRelu>;
  }
}

}  // namespace

bool resolve_integer(Spelling& s, AluCode* code) {
  const Type t = code->type;
  if (!is_integer(t)) return false;
  const std::string_view op = s.opcode();
  const auto is = [&](uint32_t inputs, AluFn fn) { code->inputs = inputs, code->fn = fn; };
  if (op == "add" || op == "sub") resolve_sum(s, code, op == "sub");
  else if (op == "mul") resolve_mul(s, code);
  else if (op == "mad") resolve_mad(s, code);
  else if (op == "mul24" || op == "mad24") resolve_24(s, code, op == "mad24");
  else if (op == "min" || op == "max") resolve_extremum(s, code, op == "min");
  else if (op == "sad") is(3, ternary<kSad>(t));
  else if (op == "div") is(2, binary<kDiv>(t));
  else if (op == "rem") is(2, binary<kRem>(t));
  else if (op == "neg") is(1, signed_unary<kNeg>(t));
  else if (op == "abs") is(1, signed_unary<kAbs>(t));
  else return false;
  s.expect_types(1);
  return true;
}

}  // namespace sim::alu
