// bits.cpp -- bit patterns: logic, shifts, fields, counts, permutation, byte dot products.
#include <algorithm>

#include "sim/alu/spelling.h"

namespace sim::alu {
namespace {

constexpr auto kAnd = [](auto a, auto b) { return decltype(a)(a & b); };
constexpr auto kOr = [](auto a, auto b) { return decltype(a)(a | b); };
constexpr auto kXor = [](auto a, auto b) { return decltype(a)(a ^ b); };
constexpr auto kNot = [](auto a) { return decltype(a)(~a); };
constexpr auto kCnot = [](auto a) { return decltype(a)(a == 0 ? 1 : 0); };

// A predicate is one bit.
template <auto Op>
uint64_t predicate_binary(const AluCode&, const uint64_t* in) {
  return Op(in[0], in[1]) & 1;
}
uint64_t predicate_not(const AluCode&, const uint64_t* in) { return ~in[0] & 1; }

template <auto Op>
AluFn pattern_unary(Type t) {
  return of_pattern<uint16_t, uint32_t, uint64_t>(t, []<class T> { return &apply1<T, Op>; });
}
template <auto Op>
AluFn pattern_binary(Type t) {
  if (t == Type::kPred) return &predicate_binary<Op>;
  return of_pattern<uint16_t, uint32_t, uint64_t>(t, []<class T> { return &apply2<T, Op>; });
}

// The amount is 32 bits whatever is shifted; amounts beyond the width shift everything out.
template <class T>
uint64_t shift_left(const AluCode&, const uint64_t* in) {
  const uint32_t n = static_cast<uint32_t>(in[1]);
  return n >= sizeof(T) * 8 ? 0 : put<T>(T(get<T>(in[0]) << n));
}
template <class T>
uint64_t shift_right(const AluCode&, const uint64_t* in) {
  const uint32_t n = static_cast<uint32_t>(in[1]);
  const T a = get<T>(in[0]);
  if (n < sizeof(T) * 8) return put<T>(T(a >> n));
  return put<T>(T(a < T(0) ? -1 : 0));
}

AluFn shift_right_of(Type t) {
  const auto of = []<class T> { return &shift_right<T>; };
  const AluFn pattern = of_pattern<uint16_t, uint32_t, uint64_t>(t, of);
  return pattern ? pattern : of_number<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(t, of);
}

// shf shifts the 64-bit funnel {in[1], in[0]}; .l keeps the high word, .r the low one.
template <bool kLeft, bool kWrap>
uint64_t funnel_shift(const AluCode&, const uint64_t* in) {
  const uint64_t both = (in[1] << 32) | static_cast<uint32_t>(in[0]);
  uint32_t n = static_cast<uint32_t>(in[2]);
  n = kWrap ? n & 31 : std::min(n, 32u);
  return static_cast<uint32_t>(kLeft ? (both << n) >> 32 : both >> n);
}

uint64_t lop3(const AluCode& code, const uint64_t* in) {
  const uint32_t a = static_cast<uint32_t>(in[0]), b = static_cast<uint32_t>(in[1]),
                 c = static_cast<uint32_t>(in[2]);
  uint32_t out = 0;
  for (uint32_t row = 0; row < 8; ++row) {  // row abc of the truth table, bit `row` of the look-up table
    if ((code.aux >> row) & 1) out |= ((row & 4) ? a : ~a) & ((row & 2) ? b : ~b) & ((row & 1) ? c : ~c);
  }
  return out;
}

// Bytes 0-3 are a, 4-7 are b; bit 3 of a selector spreads the sign of the byte over it.
uint64_t permute(uint64_t a, uint64_t b, const uint32_t (&selectors)[4]) {
  const uint64_t bytes = static_cast<uint32_t>(a) | (b << 32);
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t byte = (bytes >> ((selectors[i] & 7) * 8)) & 0xFF;
    if (selectors[i] & 8) byte = (byte & 0x80) ? 0xFF : 0;
    out |= byte << (i * 8);
  }
  return out;
}

uint64_t prmt_index(const AluCode&, const uint64_t* in) {
  const uint32_t c = static_cast<uint32_t>(in[2]);
  return permute(in[0], in[1], {c & 15, (c >> 4) & 15, (c >> 8) & 15, (c >> 12) & 15});
}

enum PermuteMode : uint32_t { kForward4, kBackward4, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };
uint64_t prmt_mode(const AluCode& code, const uint64_t* in) {
  const uint32_t n = in[2] & 3;
  switch (code.aux) {
    case kForward4: return permute(in[0], in[1], {n, n + 1, n + 2, n + 3});
    case kBackward4: return permute(in[0], in[1], {n, (n + 7) & 7, (n + 6) & 7, (n + 5) & 7});
    case kReplicate8: return permute(in[0], in[1], {n, n, n, n});
    case kEdgeLeft: return permute(in[0], in[1], {n, std::max(n, 1u), std::max(n, 2u), 3});
    case kEdgeRight: return permute(in[0], in[1], {0, std::min(n, 1u), std::min(n, 2u), n});
    default: {
      const uint32_t low = (n & 1) * 2;
      return permute(in[0], in[1], {low, low + 1, low, low + 1});
    }
  }
}

// Position and length are cut to 8 bits; only for a 64-bit field an H200 takes all 32 bits of both.
template <class T>
uint64_t bit_field_extract(const AluCode&, const uint64_t* in) {
  constexpr uint64_t kTop = sizeof(T) * 8 - 1, kMask = sizeof(T) == 8 ? 0xFFFFFFFF : 0xFF;
  const T a = get<T>(in[0]);
  const uint64_t position = in[1] & kMask, length = in[2] & kMask;
  using U = std::make_unsigned_t<T>;
  const bool sign =
      std::is_signed_v<T> && length != 0 && ((U(a) >> std::min(position + length - 1, kTop)) & 1);
  U out = 0;
  for (uint64_t i = 0; i <= kTop; ++i) {
    const bool bit = i < length && position + i <= kTop ? ((U(a) >> (position + i)) & 1) : sign;
    out |= U(bit) << i;
  }
  return put<U>(out);
}

template <class T>
uint64_t bit_field_insert(const AluCode&, const uint64_t* in) {
  constexpr uint32_t kWidth = sizeof(T) * 8;
  const uint32_t position = in[2] & 0xFF, length = in[3] & 0xFF;
  T out = get<T>(in[1]);
  for (uint32_t i = 0; i < length && position + i < kWidth; ++i) {
    out = T((out & ~(T(1) << (position + i))) | (((get<T>(in[0]) >> i) & 1) << (position + i)));
  }
  return put<T>(out);
}

// bfind returns the most significant bit that differs from the sign, and -1 when there is none.
template <class T, bool kShiftAmount>
uint64_t find_leading(const AluCode&, const uint64_t* in) {
  using U = std::make_unsigned_t<T>;
  const T a = get<T>(in[0]);
  const U pattern = a < T(0) ? U(~U(a)) : U(a);
  if (pattern == 0) return 0xFFFFFFFF;
  const uint32_t zeros = static_cast<uint32_t>(std::countl_zero(pattern));
  return kShiftAmount ? zeros : sizeof(T) * 8 - 1 - zeros;
}

template <bool kShiftAmount>
AluFn find_leading_of(Type t) {
  return of_number<uint32_t, uint64_t, int32_t, int64_t>(
      t, []<class T> { return &find_leading<T, kShiftAmount>; });
}

template <class T>
uint64_t population(const AluCode&, const uint64_t* in) {
  return static_cast<uint64_t>(std::popcount(get<T>(in[0])));
}
template <class T>
uint64_t leading_zeros(const AluCode&, const uint64_t* in) {
  return static_cast<uint64_t>(std::countl_zero(get<T>(in[0])));
}

constexpr auto kReverse = [](auto a) {
  decltype(a) out = 0;
  for (size_t i = 0; i < sizeof(a) * 8; ++i) out |= ((a >> i) & 1) << (sizeof(a) * 8 - 1 - i);
  return out;
};

template <bool kWrap>
uint64_t bit_mask(const AluCode&, const uint64_t* in) {
  uint32_t position = static_cast<uint32_t>(in[0]), width = static_cast<uint32_t>(in[1]);
  position = kWrap ? position & 31 : std::min(position, 32u);
  width = kWrap ? width & 31 : std::min(width, 32u);
  return static_cast<uint32_t>(((uint64_t{1} << width) - 1) << position);
}

template <class T, bool kWrap>
uint64_t extend(const AluCode&, const uint64_t* in) {
  uint32_t width = static_cast<uint32_t>(in[1]);
  width = kWrap ? width & 31 : std::min(width, 32u);
  if (width == 0) return 0;
  return put<T>(T(T(uint32_t(in[0]) << (32 - width)) >> (32 - width)));
}

// fns finds the |offset|-th set bit from `base`, upwards for positive offsets, downwards for negative ones.
uint64_t find_nth_set(const AluCode&, const uint64_t* in) {
  const uint32_t mask = static_cast<uint32_t>(in[0]);
  int32_t position = static_cast<int32_t>(in[1]);
  const int32_t offset = static_cast<int32_t>(in[2]);
  if (offset == 0)
    return position >= 0 && position < 32 && ((mask >> position) & 1) ? uint32_t(position) : 0xFFFFFFFF;
  const int32_t step = offset > 0 ? 1 : -1;
  for (int64_t left = offset > 0 ? offset : -int64_t(offset); position >= 0 && position < 32;
       position += step) {
    if (((mask >> position) & 1) && --left == 0) return uint32_t(position);
  }
  return 0xFFFFFFFF;
}

// For dp4a and dp2a, bit 0 of aux says that a is signed, bit 1 that b is, bit 2 that dp2a takes the upper
// half of b.
int64_t element(uint64_t v, int index, int width, bool is_signed_element) {
  const uint32_t raw = (v >> (index * width)) & ((1u << width) - 1);
  return is_signed_element && (raw >> (width - 1)) ? int64_t(raw) - (int64_t{1} << width) : int64_t(raw);
}
uint64_t dot4(const AluCode& code, const uint64_t* in) {
  uint64_t sum = in[2];
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<uint64_t>(element(in[0], i, 8, code.aux & 1) * element(in[1], i, 8, code.aux & 2));
  }
  return static_cast<uint32_t>(sum);
}
uint64_t dot2(const AluCode& code, const uint64_t* in) {
  uint64_t sum = in[2];
  for (int i = 0; i < 2; ++i) {
    const int byte = i + ((code.aux & 4) ? 2 : 0);
    sum += static_cast<uint64_t>(element(in[0], i, 16, code.aux & 1) * element(in[1], byte, 8, code.aux & 2));
  }
  return static_cast<uint32_t>(sum);
}

void resolve_dot(Spelling& s, AluCode* code, bool four) {
  s.expect_types(2);
  code->inputs = 3;
  const auto is_word = [](Type t) { return t == Type::kU32 || t == Type::kS32; };
  if (!is_word(s.types()[0]) || !is_word(s.types()[1])) s.unsupported("types are u32 or s32");
  const bool a = is_signed(s.types()[0]), b = is_signed(s.types()[1]);
  code->aux = (a ? 1u : 0u) | (b ? 2u : 0u);
  code->dst = a || b ? Type::kS32 : Type::kU32;
  if (!four) {
    const int half = s.take_one_of({"lo", "hi"});
    if (half < 0) s.unsupported("dp2a needs .lo or .hi");
    code->aux |= half == 1 ? 4u : 0u;
  }
  code->fn = four ? &dot4 : &dot2;
}

void resolve_lop3(Spelling& s, AluCode* code) {
  code->inputs = 3;
  const auto& operands = s.statement().operands;
  if (operands.size() != 5 || operands[4].kind != ptx::Operand::Kind::kInteger) {
    s.unsupported("lop3 needs three sources and a look-up table");
  }
  code->aux = static_cast<uint32_t>(operands[4].value) & 0xFF;
  if (code->type == Type::kB32) code->fn = &lop3;
}

void resolve_shf(Spelling& s, AluCode* code) {
  code->inputs = 3;
  const bool left = s.take("l");
  if (!left && !s.take("r")) s.unsupported("shf needs .l or .r");
  const bool wrap = s.take("wrap");
  if (!wrap && !s.take("clamp")) s.unsupported("shf needs .clamp or .wrap");
  if (code->type != Type::kB32) return;
  code->fn = left ? (wrap ? &funnel_shift<true, true> : &funnel_shift<true, false>)
                  : (wrap ? &funnel_shift<false, true> : &funnel_shift<false, false>);
}

void resolve_prmt(Spelling& s, AluCode* code) {
  code->inputs = 3;
  const int mode = s.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (code->type != Type::kB32) return;
  code->aux = static_cast<uint32_t>(std::max(mode, 0));
  code->fn = mode < 0 ? &prmt_index : &prmt_mode;
}

void resolve_field(Spelling& s, AluCode* code) {
  const Type t = code->type;
  if (s.opcode() == "bfe") {
    code->inputs = 3;
    code->fn =
        of_number<uint32_t, uint64_t, int32_t, int64_t>(t, []<class T> { return &bit_field_extract<T>; });
    return;
  }
  code->inputs = 4;
  code->fn = of_pattern<uint32_t, uint64_t>(t, []<class T> { return &bit_field_insert<T>; });
}

void resolve_extension(Spelling& s, AluCode* code) {
  code->inputs = 2;
  const bool wrap = s.take("wrap");
  if (!wrap && !s.take("clamp")) s.unsupported("needs .clamp or .wrap");
  const Type t = code->type;
  if (s.opcode() == "bmsk") {
    if (t == Type::kB32) code->fn = wrap ? &bit_mask<true> : &bit_mask<false>;
    return;
  }
  if (t == Type::kU32) code->fn = wrap ? &extend<uint32_t, true> : &extend<uint32_t, false>;
  if (t == Type::kS32) code->fn = wrap ? &extend<int32_t, true> : &extend<int32_t, false>;
}

// popc and clz count into u32 whatever their source; bfind too.
void resolve_count(Spelling& s, AluCode* code) {
  code->inputs = 1;
  code->dst = Type::kU32;
  const bool wide = code->type == Type::kB64;
  if (s.opcode() == "bfind") {
    code->fn = s.take("shiftamt") ? find_leading_of<true>(code->type) : find_leading_of<false>(code->type);
  } else if (!wide && code->type != Type::kB32) {
    return;
  } else if (s.opcode() == "popc") {
    code->fn = wide ? &population<uint64_t> : &population<uint32_t>;
  } else {
    code->fn = wide ? &leading_zeros<uint64_t> : &leading_zeros<uint32_t>;
  }
}

}  // namespace

bool resolve_bits(Spelling& s, AluCode* code) {
  const std::string_view op = s.opcode();
  const Type t = code->type;
  if (op == "dp4a" || op == "dp2a") {
    resolve_dot(s, code, op == "dp4a");
    return true;
  }
  const auto is = [&](uint32_t inputs, AluFn fn) { code->inputs = inputs, code->fn = fn; };
  if (op == "and") is(2, pattern_binary<kAnd>(t));
  else if (op == "or") is(2, pattern_binary<kOr>(t));
  else if (op == "xor") is(2, pattern_binary<kXor>(t));
  else if (op == "not") is(1, t == Type::kPred ? &predicate_not : pattern_unary<kNot>(t));
  else if (op == "cnot") is(1, pattern_unary<kCnot>(t));
  else if (op == "shl")
    is(2, of_pattern<uint16_t, uint32_t, uint64_t>(t, []<class T> { return &shift_left<T>; }));
  else if (op == "shr") is(2, shift_right_of(t));
  else if (op == "shf") resolve_shf(s, code);
  else if (op == "lop3") resolve_lop3(s, code);
  else if (op == "prmt") resolve_prmt(s, code);
  else if (op == "bfe" || op == "bfi") resolve_field(s, code);
  else if (op == "bmsk" || op == "szext") resolve_extension(s, code);
  else if (op == "popc" || op == "clz" || op == "bfind") resolve_count(s, code);
  else if (op == "brev")
    is(1, of_pattern<uint32_t, uint64_t>(t, []<class T> { return &apply1<T, kReverse>; }));
  else if (op == "fns") is(3, t == Type::kB32 ? &find_nth_set : AluFn{});
  else return false;
  s.expect_types(1);
  return true;
}

}  // namespace sim::alu
