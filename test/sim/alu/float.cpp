// float.cpp -- f32, f32x2 and f64 arithmetic. IEEE operations are exact in every rounding mode;
// approximate ones come from engine/numerics. NaN results of f32 are canonical; those of f64 are one of the
// operands, made quiet, with its sign and payload. NaN results, and the numbers that .ftz flushes, are those
// of an H200.

#include "sim/alu/spelling.h"

namespace sim::alu {

constexpr auto kAddFloat = [](auto a, auto b) { return a + b; };
constexpr auto kSubFloat = [](auto a, auto b) { return a - b; };
constexpr auto kMulFloat = [](auto a, auto b) { return a * b; };
constexpr auto kDivFloat = [](auto a, auto b) { return a / b; };
constexpr auto kFma = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto kSqrt = [](auto a) { return std::sqrt(a); };
constexpr auto kReciprocal = [](auto a) { return decltype(a)(1) / a; };

static bool flushes(const AluCode& code) { return has(code, kFtz); }

static uint64_t finish_f32(const AluCode& code, float x) {
  if (flushes(code)) x = flush_f32(x);
  return put(has(code, kSat) ? saturate_unit(x) : x);
}
// An H200 flushes products and quotients that are subnormal before they are rounded, which are those that
// truncation leaves subnormal or zero. A fused product is assumed to do the same.
template <class F>
static uint64_t finish_tiny_f32(const AluCode& code, F operation) {
  float x = operation(round_of(code));
  if (flushes(code) && std::fabs(x) == 0x1p-126f) {
    const float truncated = operation(Round::kZero);
    if (std::fabs(truncated) < 0x1p-126f) x = std::copysign(0.0f, truncated);
  }
  return finish_f32(code, x);
}
static float input_f32(const AluCode& code, uint64_t v) {
  const float x = get<float>(v);
  return flushes(code) ? flush_f32(x) : x;
}

static uint64_t add_f32(const AluCode& code, const uint64_t* in) {
  return finish_f32(code, f32_add(get<float>(in[0]), get<float>(in[1]), round_of(code), flushes(code)));
}
static uint64_t sub_f32(const AluCode& code, const uint64_t* in) {
  return finish_f32(code, f32_add(get<float>(in[0]), -get<float>(in[1]), round_of(code), flushes(code)));
}
static uint64_t mul_f32(const AluCode& code, const uint64_t* in) {
  return finish_tiny_f32(
      code, [&](Round r) { return f32_mul(input_f32(code, in[0]), input_f32(code, in[1]), r, false); });
}
static uint64_t fma_f32(const AluCode& code, const uint64_t* in) {
  return finish_tiny_f32(code, [&](Round r) {
    return f32_fma(input_f32(code, in[0]), input_f32(code, in[1]), input_f32(code, in[2]), r, false);
  });
}

// Quotients and roots, in any rounding mode of the host.
template <auto Op>
static uint64_t rounded1_f32(const AluCode& code, const uint64_t* in) {
  return finish_f32(code, rounded<float>(round_of(code), Op, input_f32(code, in[0])));
}
template <auto Op>
static uint64_t rounded2_f32(const AluCode& code, const uint64_t* in) {
  return finish_tiny_f32(
      code, [&](Round r) { return rounded<float>(r, Op, input_f32(code, in[0]), input_f32(code, in[1])); });
}
template <auto Op>
static uint64_t rounded1_f64(const AluCode& code, const uint64_t* in) {
  return put(rounded<double>(round_of(code), Op, get<double>(in[0])));
}
// If both operands are NaN, a sum or product takes the second, a quotient the first.
template <auto Op, bool kFirst = false>
static uint64_t rounded2_f64(const AluCode& code, const uint64_t* in) {
  for (const uint64_t operand : {in[kFirst ? 0 : 1], in[kFirst ? 1 : 0]})
    if (is_nan_f64(operand)) return operand | kQuiet64;
  return put(rounded<double>(round_of(code), Op, get<double>(in[0]), get<double>(in[1])));
}
// fma takes the NaN of the second operand if there is one, then that of the third.
static uint64_t fma_f64(const AluCode& code, const uint64_t* in) {
  for (const uint64_t operand : {in[1], in[2], in[0]})
    if (is_nan_f64(operand)) return operand | kQuiet64;
  return put(
      rounded<double>(round_of(code), kFma, get<double>(in[0]), get<double>(in[1]), get<double>(in[2])));
}

// The common case, rounding to nearest without modifiers, is one operation of the host.
template <auto Op>
static AluFn plain_or(const AluCode& code, AluFn general) {
  return code.mods == 0 ? &apply2<float, Op> : general;
}

template <float (*Function)(float, bool)>
static uint64_t approximate(const AluCode& code, const uint64_t* in) {
  return put(Function(get<float>(in[0]), flushes(code)));
}
static uint64_t tanh_f32(const AluCode&, const uint64_t* in) { return put(tanh_approx(get<float>(in[0]))); }

static uint64_t div_full_f32(const AluCode& code, const uint64_t* in) {
  return put(div_full(get<float>(in[0]), get<float>(in[1]), flushes(code)));
}
// The quotient is a * (1 / b): for 2^126 < |b| < 2^128 the reciprocal flushes to zero, so the quotient is 0,
// and NaN when a is infinite.
static uint64_t div_approx_f32(const AluCode& code, const uint64_t* in) {
  const float a = get<float>(in[0]), b = get<float>(in[1]);
  const float size = std::fabs(b);
  if (size > 0x1p126f && std::isfinite(size)) {
    return put(f32_mul(a, std::copysign(0.0f, b), Round::kNearestEven, flushes(code)));
  }
  return put(div_full(a, b, flushes(code)));
}

// The f64 approximations flush subnormals and keep the upper 32 bits of the result.
template <auto Op>
static uint64_t approximate_f64(const AluCode&, const uint64_t* in) {
  double x = get<double>(in[0]);
  if (std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0.0, x);
  double y = Op(x);
  if (std::isnan(y)) return uint64_t{kNan32} << 32;
  if (std::fpclassify(y) == FP_SUBNORMAL) y = std::copysign(0.0, y);
  return put(y) & 0xFFFFFFFF00000000;
}
constexpr auto kReciprocalRoot = [](double x) { return 1.0 / std::sqrt(x); };

static uint64_t abs_f32(const AluCode& code, const uint64_t* in) {
  uint32_t x = static_cast<uint32_t>(in[0]) & 0x7FFFFFFF;
  if (x > 0x7F800000) return kNan32;
  if (flushes(code) && x < 0x00800000) x = 0;
  return x;
}
static uint64_t neg_f32(const AluCode& code, const uint64_t* in) {
  uint32_t x = static_cast<uint32_t>(in[0]) ^ 0x80000000;
  if ((x & 0x7FFFFFFF) > 0x7F800000) return kNan32;
  if (flushes(code) && (x & 0x7F800000) == 0) x &= 0x80000000;
  return x;
}
static uint64_t abs_f64(const AluCode&, const uint64_t* in) {
  return is_nan_f64(in[0]) ? in[0] | kQuiet64 : in[0] & ~(uint64_t{1} << 63);
}
static uint64_t neg_f64(const AluCode&, const uint64_t* in) {
  return is_nan_f64(in[0]) ? in[0] | kQuiet64 : in[0] ^ (uint64_t{1} << 63);
}

// -0 is below +0. A NaN loses against a number, unless the instruction has .NaN.
template <class T>
static T extremum2(T a, T b, bool minimum, bool propagate_nan) {
  if (std::isnan(a) || std::isnan(b)) {
    if (propagate_nan) return std::isnan(a) ? a : b;
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) == minimum ? a : b;
  return (a < b) == minimum ? a : b;
}
template <bool kMinimum>
static uint64_t extremum_f32(const AluCode& code, const uint64_t* in) {
  float x = input_f32(code, in[0]);
  bool negative = std::signbit(x);
  if (has(code, kXorSign) || has(code, kAbsolute)) x = std::fabs(x);
  for (uint32_t i = 1; i < code.inputs; ++i) {
    float y = input_f32(code, in[i]);
    negative ^= std::signbit(y);
    if (has(code, kXorSign) || has(code, kAbsolute)) y = std::fabs(y);
    x = extremum2(x, y, kMinimum, has(code, kPropagateNan));
  }
  if (has(code, kXorSign) && !std::isnan(x)) x = std::copysign(x, negative ? -1.0f : 1.0f);
  return put(x);
}
template <bool kMinimum>
static uint64_t extremum_f64(const AluCode&, const uint64_t* in) {
  const uint64_t result = put(extremum2(get<double>(in[0]), get<double>(in[1]), kMinimum, false));
  return is_nan_f64(result) ? result | kQuiet64 : result;
}

// In add.f32.f16 d, a, c and fma.f32.bf16 d, a, b, c the factors are narrow and the sum is not.
template <AluFn Function, float (*Widen)(uint16_t), uint32_t kNarrow>
static uint64_t mixed(const AluCode& code, const uint64_t* in) {
  uint64_t wide[3] = {in[0], in[1], code.inputs == 3 ? in[2] : 0};
  for (uint32_t i = 0; i < kNarrow; ++i) wide[i] = put(Widen(static_cast<uint16_t>(in[i])));
  return Function(code, wide);
}

static void resolve_mixed(Spelling& s, AluCode* code) {
  s.take_rounding(code);
  s.take_flag("sat", kSat, code);
  const bool half = s.types()[1] == Type::kF16;
  code->inputs = s.opcode() == "fma" ? 3 : 2;
  code->dst = Type::kF32;
  if (s.opcode() == "add")
    code->fn = half ? &mixed<&add_f32, &f16_to_f32, 1> : &mixed<&add_f32, &bf16_to_f32, 1>;
  if (s.opcode() == "sub")
    code->fn = half ? &mixed<&sub_f32, &f16_to_f32, 1> : &mixed<&sub_f32, &bf16_to_f32, 1>;
  if (s.opcode() == "fma")
    code->fn = half ? &mixed<&fma_f32, &f16_to_f32, 2> : &mixed<&fma_f32, &bf16_to_f32, 2>;
}

static void resolve_ring(Spelling& s, AluCode* code) {  // add sub mul fma mad
  const std::string_view op = s.opcode();
  const Type t = code->type;
  const bool fused = op == "fma" || op == "mad";
  code->inputs = fused ? 3 : 2;
  const bool rounding = s.take_rounding(code);
  if (fused && !rounding) s.unsupported("a fused product needs a rounding mode");
  if (t == Type::kF64) {
    code->fn = fused         ? &fma_f64
               : op == "add" ? &rounded2_f64<kAddFloat>
               : op == "sub" ? &rounded2_f64<kSubFloat>
                             : &rounded2_f64<kMulFloat>;
    return;
  }
  s.take_flag("ftz", kFtz, code);
  if (t == Type::kF32x2) {
    code->fn = fused         ? &packed<&fma_f32, 32>
               : op == "add" ? &packed<&add_f32, 32>
               : op == "sub" ? &packed<&sub_f32, 32>
                             : &packed<&mul_f32, 32>;
    return;
  }
  s.take_flag("sat", kSat, code);
  code->fn = fused         ? &fma_f32
             : op == "add" ? plain_or<kAddFloat>(*code, &add_f32)
             : op == "sub" ? plain_or<kSubFloat>(*code, &sub_f32)
                           : plain_or<kMulFloat>(*code, &mul_f32);
}

static void resolve_division(Spelling& s, AluCode* code) {
  code->inputs = 2;
  const int approximation = s.take_one_of({"approx", "full"});
  const bool rounding = s.take_rounding(code);
  if (approximation < 0 && !rounding) s.unsupported("a quotient needs .approx, .full or a rounding mode");
  if (code->type == Type::kF64) {
    if (approximation < 0) code->fn = &rounded2_f64<kDivFloat, true>;
    return;
  }
  s.take_flag("ftz", kFtz, code);
  code->fn = approximation < 0    ? &rounded2_f32<kDivFloat>
             : approximation == 0 ? &div_approx_f32
                                  : &div_full_f32;
}

static void resolve_root(Spelling& s, AluCode* code) {  // rcp sqrt rsqrt
  const std::string_view op = s.opcode();
  code->inputs = 1;
  const bool approximation = s.take("approx");
  const bool rounding = s.take_rounding(code);
  if (approximation == rounding) s.unsupported("needs .approx or a rounding mode");
  s.take_flag("ftz", kFtz, code);
  if (code->type == Type::kF64) {
    if (rounding && op == "rcp") code->fn = &rounded1_f64<kReciprocal>;
    if (rounding && op == "sqrt") code->fn = &rounded1_f64<kSqrt>;
    if (approximation && op == "rcp") code->fn = &approximate_f64<kReciprocal>;
    if (approximation && op == "rsqrt") code->fn = &approximate_f64<kReciprocalRoot>;
    return;
  }
  if (rounding && op == "rcp") code->fn = &rounded1_f32<kReciprocal>;
  if (rounding && op == "sqrt") code->fn = &rounded1_f32<kSqrt>;
  if (approximation && op == "rcp") code->fn = &approximate<&rcp_approx>;
  if (approximation && op == "sqrt") code->fn = &approximate<&sqrt_approx>;
  if (approximation && op == "rsqrt") code->fn = &approximate<&rsqrt_approx>;
}

static void resolve_transcendental(Spelling& s, AluCode* code) {
  code->inputs = 1;
  if (!s.take("approx")) s.unsupported("needs .approx");
  if (code->type != Type::kF32) return;
  const std::string_view op = s.opcode();
  if (op == "tanh") {
    code->fn = &tanh_f32;
    return;
  }
  s.take_flag("ftz", kFtz, code);
  code->fn = op == "ex2"   ? &approximate<&ex2_approx>
             : op == "lg2" ? &approximate<&lg2_approx>
             : op == "sin" ? &approximate<&sin_approx>
                           : &approximate<&cos_approx>;
}

static void resolve_extremum(Spelling& s, AluCode* code) {
  const bool minimum = s.opcode() == "min";
  code->inputs = 2;
  if (code->type == Type::kF64) {
    code->fn = minimum ? &extremum_f64<true> : &extremum_f64<false>;
    return;
  }
  s.take_flag("ftz", kFtz, code);
  take_extremum_modifiers(s, code);
  if (code->type == Type::kF32) code->fn = minimum ? &extremum_f32<true> : &extremum_f32<false>;
}

bool resolve_float(Spelling& s, AluCode* code) {
  const std::string_view op = s.opcode();
  if (s.types().size() == 2 && s.types()[0] == Type::kF32 &&
      (s.types()[1] == Type::kF16 || s.types()[1] == Type::kBf16) &&
      (op == "add" || op == "sub" || op == "fma")) {
    resolve_mixed(s, code);
    return true;
  }
  const Type t = code->type;
  if (t != Type::kF32 && t != Type::kF32x2 && t != Type::kF64) return false;
  if (op == "add" || op == "sub" || op == "mul" || op == "fma" || op == "mad") {
    resolve_ring(s, code);
  } else if (t == Type::kF32x2) {
    return false;
  } else if (op == "div") {
    resolve_division(s, code);
  } else if (op == "rcp" || op == "sqrt" || op == "rsqrt") {
    resolve_root(s, code);
  } else if (op == "ex2" || op == "lg2" || op == "sin" || op == "cos" || op == "tanh") {
    resolve_transcendental(s, code);
  } else if (op == "min" || op == "max") {
    resolve_extremum(s, code);
  } else if (op == "abs" || op == "neg") {
    code->inputs = 1;
    s.take_flag("ftz", kFtz, code);
    const bool wide = t == Type::kF64;
    code->fn = op == "abs" ? (wide ? &abs_f64 : &abs_f32) : (wide ? &neg_f64 : &neg_f32);
  } else {
    return false;
  }
  s.expect_types(1);
  return true;
}

}  // namespace sim::alu
