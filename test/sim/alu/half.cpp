// half.cpp -- f16, bf16 and their pairs. An operation is carried out exactly in double, rounded to odd in
// float and once more to the format, which gives the correctly rounded result.
#include "sim/alu/spelling.h"

namespace sim::alu {
namespace {

struct F16 {
  static float widen(uint64_t v) { return f16_to_f32(static_cast<uint16_t>(v)); }
  static uint16_t narrow(float x) { return std::isnan(x) ? kNan16 : f32_to_f16(x, Round::kNearestEven); }
  static uint16_t flush(uint64_t v) { return flush_f16(static_cast<uint16_t>(v)); }
  static constexpr float kSmallestNormal = 0x1p-14f;
};
struct Bf16 {
  static float widen(uint64_t v) { return bf16_to_f32(static_cast<uint16_t>(v)); }
  static uint16_t narrow(float x) { return std::isnan(x) ? kNan16 : f32_to_bf16(x, Round::kNearestEven); }
  static uint16_t flush(uint64_t v) { return flush_bf16(static_cast<uint16_t>(v)); }
  static constexpr float kSmallestNormal = 0x1p-126f;
};

template <class F>
float input(const AluCode& code, uint64_t v) {
  return F::widen(has(code, kFtz) ? F::flush(v) : v);
}
template <class F>
uint64_t finish(const AluCode& code, float x) {
  if (has(code, kSat)) x = saturate_unit(x);
  if (has(code, kRelu) && !std::isnan(x)) x = x > 0 ? x : 0.0f;
  // A result that is subnormal before the last rounding is flushed.
  if (has(code, kFtz) && std::fabs(x) < F::kSmallestNormal) x = std::copysign(0.0f, x);
  return F::narrow(x);
}

// a + b is computed as a * 1 + b, and a * b as a * b + (-0); both keep the sign of a zero result.
template <class F>
uint64_t add(const AluCode& code, const uint64_t* in) {
  return finish<F>(code, fma_to_odd_f32(input<F>(code, in[0]), 1.0f, input<F>(code, in[1])));
}
template <class F>
uint64_t sub(const AluCode& code, const uint64_t* in) {
  return finish<F>(code, fma_to_odd_f32(input<F>(code, in[0]), 1.0f, -input<F>(code, in[1])));
}
template <class F>
uint64_t mul(const AluCode& code, const uint64_t* in) {
  if constexpr (std::is_same_v<F, F16>)  // the product is exact in float: 22 bits, 2^-48 and above
    return finish<F>(code, input<F>(code, in[0]) * input<F>(code, in[1]));
  return finish<F>(code, fma_to_odd_f32(input<F>(code, in[0]), input<F>(code, in[1]), -0.0f));
}
template <class F>
uint64_t fma(const AluCode& code, const uint64_t* in) {
  return finish<F>(code, fma_to_odd_f32(input<F>(code, in[0]), input<F>(code, in[1]), input<F>(code, in[2])));
}

template <class F>
uint64_t abs(const AluCode& code, const uint64_t* in) {
  if (std::isnan(F::widen(in[0]))) return kNan16;
  return (has(code, kFtz) ? F::flush(in[0]) : in[0]) & 0x7FFF;
}
template <class F>
uint64_t neg(const AluCode& code, const uint64_t* in) {
  if (std::isnan(F::widen(in[0]))) return kNan16;
  return ((has(code, kFtz) ? F::flush(in[0]) : in[0]) ^ 0x8000) & 0xFFFF;
}

template <class F, bool kMinimum>
uint64_t extremum(const AluCode& code, const uint64_t* in) {
  float x = input<F>(code, in[0]);
  bool negative = (in[0] & 0x8000) != 0;  // of a NaN too
  const bool sizes = has(code, kXorSign) || has(code, kAbsolute);
  if (sizes) x = std::fabs(x);
  for (uint32_t i = 1; i < code.inputs; ++i) {
    float y = input<F>(code, in[i]);
    negative ^= (in[i] & 0x8000) != 0;
    if (sizes) y = std::fabs(y);
    if (std::isnan(x) || std::isnan(y)) {
      const bool keep_x = has(code, kPropagateNan) ? std::isnan(x) : !std::isnan(x);
      x = keep_x ? x : y;
    } else if (x == y) {
      x = std::signbit(x) == kMinimum ? x : y;
    } else {
      x = (x < y) == kMinimum ? x : y;
    }
  }
  if (has(code, kXorSign) && !std::isnan(x)) x = std::copysign(x, negative ? -1.0f : 1.0f);
  return F::narrow(x);
}

float ex2(float x) { return ex2_approx(x, false); }
template <class F, float (*Function)(float)>
uint64_t approximate(const AluCode& code, const uint64_t* in) {
  return finish<F>(code, Function(input<F>(code, in[0])));
}

// Picks the instance for the type, which is one element or a pair of them.
#define SIM_HALF_FUNCTION(type, ...)                                                            \
  ((type) == Type::kF16     ? static_cast<AluFn>(&SIM_HALF_NAME(F16, __VA_ARGS__))              \
   : (type) == Type::kBf16  ? static_cast<AluFn>(&SIM_HALF_NAME(Bf16, __VA_ARGS__))             \
   : (type) == Type::kF16x2 ? static_cast<AluFn>(&packed<&SIM_HALF_NAME(F16, __VA_ARGS__), 16>) \
                            : static_cast<AluFn>(&packed<&SIM_HALF_NAME(Bf16, __VA_ARGS__), 16>))
#define SIM_HALF_NAME(format, name, ...) name<format __VA_OPT__(, ) __VA_ARGS__>

}  // namespace

void take_extremum_modifiers(Spelling& s, AluCode* code) {
  s.take_flag("NaN", kPropagateNan, code);
  if (s.take("xorsign")) {
    if (!s.take("abs")) s.unsupported(".xorsign needs .abs");
    code->mods |= kXorSign;
  }
  if (s.input_count() == 3) {
    code->inputs = 3;
    s.take_flag("abs", kAbsolute, code);
  }
}

bool resolve_half(Spelling& s, AluCode* code) {
  const Type t = code->type;
  const std::string_view op = s.opcode();
  if (!is_half(t) || s.types().size() != 1) return false;
  const bool ring = op == "add" || op == "sub" || op == "mul" || op == "fma";
  if (s.take("rz") || s.take("rm") || s.take("rp")) s.unsupported("16-bit arithmetic rounds to nearest");
  if (ring) s.take("rn");
  s.take_flag("ftz", kFtz, code);
  code->inputs = 2;
  if (ring) {
    s.take_flag("sat", kSat, code);
    if (op == "fma") {
      code->inputs = 3;
      s.take_flag("relu", kRelu, code);
      code->fn = SIM_HALF_FUNCTION(t, fma);
    } else {
      code->fn = op == "add"   ? SIM_HALF_FUNCTION(t, add)
                 : op == "sub" ? SIM_HALF_FUNCTION(t, sub)
                               : SIM_HALF_FUNCTION(t, mul);
    }
  } else if (op == "min" || op == "max") {
    take_extremum_modifiers(s, code);
    code->fn = op == "min" ? SIM_HALF_FUNCTION(t, extremum, true) : SIM_HALF_FUNCTION(t, extremum, false);
  } else if (op == "abs" || op == "neg") {
    code->inputs = 1;
    code->fn = op == "abs" ? SIM_HALF_FUNCTION(t, abs) : SIM_HALF_FUNCTION(t, neg);
  } else if (op == "ex2" || op == "tanh") {
    code->inputs = 1;
    if (!s.take("approx")) s.unsupported("needs .approx");
    code->fn = op == "ex2" ? SIM_HALF_FUNCTION(t, approximate, &ex2)
                           : SIM_HALF_FUNCTION(t, approximate, &tanh_approx);
  } else {
    return false;
  }
  return true;
}

}  // namespace sim::alu
