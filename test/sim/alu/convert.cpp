// convert.cpp -- cvt. A scalar conversion goes through one carrier: integers as a sign and a 64-bit
// magnitude, floats as double (which holds f16, bf16, f32 and f64 exactly). Where a carrier is wider than the
// target, it is rounded to odd first, so that the one real rounding is correct. Packed conversions read and
// write their elements in operand order: the first source of `cvt d, a, b` is the upper element.
#include <algorithm>
#include <cstdlib>

#include "sim/alu/spelling.h"

namespace sim::alu {
namespace {

// ---- scalars ----

struct Integer {
  bool negative;
  uint64_t magnitude;
};

Integer read_integer(Type type, uint64_t v) {
  const int width = ptx::bits(type);
  if (!is_signed(type)) return {false, width == 64 ? v : v & ((uint64_t{1} << width) - 1)};
  const int64_t x = static_cast<int64_t>(v << (64 - width)) >> (64 - width);
  return {x < 0, x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x)};
}

// Registers are at least 16 bits wide, so a signed byte is extended to that.
uint64_t write_integer(Type type, uint64_t v) {
  if (type == Type::kS8) return static_cast<uint16_t>(static_cast<int8_t>(v));
  const int width = ptx::bits(type);
  return width == 64 ? v : v & ((uint64_t{1} << width) - 1);
}

uint64_t clamp_integer(Type type, Integer x) {
  const int width = ptx::bits(type);
  const uint64_t top = ~uint64_t{0} >> (64 - width + (is_signed(type) ? 1 : 0));
  if (!x.negative) return std::min(x.magnitude, top);
  return is_signed(type) ? 0 - std::min(x.magnitude, top + 1) : 0;
}

double read_float(const AluCode& code, uint64_t v) {
  switch (code.from) {
    case Type::kF16: return f16_to_f32(static_cast<uint16_t>(v));
    case Type::kBf16: return bf16_to_f32(static_cast<uint16_t>(v));
    case Type::kF32: return has(code, kFtz) ? flush_f32(get<float>(v)) : get<float>(v);
    default: return get<double>(v);
  }
}

uint16_t narrow_f16(const AluCode& code, float x) {
  if (has(code, kRelu) && !std::isnan(x)) x = x > 0 ? x : 0.0f;
  return std::isnan(x) ? kNan16 : f32_to_f16(x, round_of(code), has(code, kSatFinite));
}
uint16_t narrow_bf16(const AluCode& code, float x) {
  if (has(code, kRelu) && !std::isnan(x)) x = x > 0 ? x : 0.0f;
  return std::isnan(x) ? kNan16 : f32_to_bf16(x, round_of(code), has(code, kSatFinite));
}

uint64_t write_float(const AluCode& code, double x) {
  if (has(code, kSat)) x = saturate_unit(x);
  switch (code.dst) {
    case Type::kF16: return narrow_f16(code, to_odd_f32(x));
    case Type::kBf16: return narrow_bf16(code, to_odd_f32(x));
    case Type::kF32: {
      const float y = rounded<float>(
          round_of(code), [](double wide) { return static_cast<float>(wide); }, x);
      return put(has(code, kFtz) ? flush_f32(y) : y);
    }
    default: return put(x);
  }
}

double to_integral(Round r, double x) {
  switch (r) {
    case Round::kZero: return std::trunc(x);
    case Round::kDown: return std::floor(x);
    case Round::kUp: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

uint64_t integer_to_integer(const AluCode& code, const uint64_t* in) {
  const Integer x = read_integer(code.from, in[0]);
  if (has(code, kSat)) return write_integer(code.dst, clamp_integer(code.dst, x));
  return write_integer(code.dst, x.negative ? 0 - x.magnitude : x.magnitude);
}

uint64_t integer_to_float(const AluCode& code, const uint64_t* in) {
  const Integer x = read_integer(code.from, in[0]);
  if (code.dst != Type::kF64) return write_float(code, to_odd_f64(x.negative, x.magnitude));
  // The direction of rounding is mirrored for a negative number, because its magnitude is rounded.
  Round r = round_of(code);
  if (x.negative && r == Round::kDown) {
    r = Round::kUp;
  } else if (x.negative && r == Round::kUp) {
    r = Round::kDown;
  }
  const auto high = static_cast<double>(x.magnitude >> 32) * 0x1p32,
             low = static_cast<double>(x.magnitude & 0xFFFFFFFF);
  const double y = rounded<double>(
      r, [](double a, double b) { return a + b; }, high, low);
  return write_float(code, x.negative ? -y : y);
}

// The result is always clamped. NaN becomes 0, or 2^(n-1) if the source or the result is 64 bits wide.
uint64_t float_to_integer(const AluCode& code, const uint64_t* in) {
  const double x = read_float(code, in[0]);
  const int width = ptx::bits(code.dst);
  if (std::isnan(x)) {
    const bool wide = code.from == Type::kF64 || width == 64;
    return wide ? write_integer(code.dst, uint64_t{1} << (width - 1)) : 0;
  }
  const double integral = std::fabs(to_integral(round_of(code), x));
  const uint64_t magnitude = integral >= 0x1p64 ? ~uint64_t{0} : static_cast<uint64_t>(integral);
  return write_integer(code.dst, clamp_integer(code.dst, {std::signbit(x), magnitude}));
}

// Converts a NaN as an H200 does. To and from f64 it keeps its sign and the upper bits of its payload and
// becomes quiet. A NaN of f32 or bf16 that stays or becomes f32 is copied. All others become the canonical
// NaN, and so do those of f32 and bf16 that an operation on f32 (.ftz, rounding to an integer) sees first.
uint64_t nan_to_float(const AluCode& code, uint64_t v) {
  if (has(code, kSat)) return 0;
  if (code.from == Type::kF64) {
    const uint64_t quiet = v | kQuiet64, sign = quiet >> 63, payload = quiet & (2 * kQuiet64 - 1);
    switch (code.dst) {
      case Type::kF16: return sign << 15 | 0x7C00 | payload >> 42;
      case Type::kBf16: return sign << 15 | 0x7F80 | payload >> 45;
      case Type::kF32: return sign << 31 | 0x7F800000 | payload >> 29;
      default: return quiet;
    }
  }
  if (code.dst == Type::kF16 || code.dst == Type::kBf16) return kNan16;
  if (code.dst == Type::kF64 && code.from == Type::kF16)
    return (v & 0x8000) << 48 | 0x7FF0000000000000 | kQuiet64 | (v & 0x3FF) << 42;
  const bool copied = code.from != Type::kF16 && !has(code, kFtz) && !has(code, kToIntegral);
  const uint64_t single = !copied ? kNan32 : code.from == Type::kBf16 ? (v & 0xFFFF) << 16 : v;
  if (code.dst == Type::kF32) return single;
  return (single & 0x80000000) << 32 | 0x7FF0000000000000 | kQuiet64 | (single & 0x7FFFFF) << 29;
}

uint64_t float_to_float(const AluCode& code, const uint64_t* in) {
  const double x = read_float(code, in[0]);
  if (std::isnan(x)) return nan_to_float(code, in[0]);
  if (!has(code, kToIntegral)) return write_float(code, x);
  AluCode exact = code;  // the rounding was spent on becoming an integer
  exact.mods &= ~kRoundMask;
  return write_float(exact, to_integral(round_of(code), x));
}

// A tf32 is an f32 with 10 mantissa bits, the low 13 bits zero. If the source is NaN, .rna cuts its payload,
// even to nothing, and .satfinite takes the next smaller bit pattern; .satfinite does so for an infinity,
// too. An H200 does the same.
uint64_t float_to_tf32(const AluCode& code, const uint64_t* in) {
  uint32_t x = static_cast<uint32_t>(in[0]);
  const bool nan = (x & 0x7FFFFFFF) > 0x7F800000;
  if (nan && !has(code, kAwayFromZero)) return kNan32 & 0xFFFFE000;
  if (has(code, kRelu) && (x >> 31)) return 0;
  if ((x & 0x7F800000) == 0x7F800000) return (x & 0xFFFFE000) - (has(code, kSatFinite) ? 0x2000 : 0);
  if (has(code, kAwayFromZero)) {
    x += 0x1000;
  } else if (round_of(code) == Round::kNearestEven) {
    x += 0x0FFF + ((x >> 13) & 1);
  }
  x &= 0xFFFFE000;
  if (has(code, kSatFinite) && (x & 0x7F800000) == 0x7F800000) x = (x & 0x80000000) | 0x7F7FE000;
  return x;
}

void resolve_scalar(Spelling& s, AluCode* code) {
  s.expect_types(2);
  code->dst = s.types().front();
  code->from = s.types().back();
  code->inputs = 1;
  const int integral = s.take_one_of({"rni", "rzi", "rmi", "rpi"});
  if (integral >= 0) code->mods |= static_cast<uint32_t>(integral) | kToIntegral;
  if (s.take_rounding(code) && integral >= 0) s.unsupported("two rounding modes");
  s.take_flag("ftz", kFtz, code);
  s.take_flag("sat", kSat, code);
  s.take_flag("relu", kRelu, code);
  s.take_flag("satfinite", kSatFinite, code);
  const auto is_scalar_float = [](Type t) {
    return t == Type::kF16 || t == Type::kBf16 || t == Type::kF32 || t == Type::kF64;
  };
  const auto is_number = [&](Type t) { return t >= Type::kU8 && t <= Type::kS64; };
  if (is_number(code->dst) && is_number(code->from)) {
    code->fn = &integer_to_integer;
  } else if (is_scalar_float(code->dst) && is_number(code->from)) {
    code->fn = &integer_to_float;
  } else if (is_number(code->dst) && is_scalar_float(code->from)) {
    if (integral < 0) s.unsupported("a float becomes an integer by .rni, .rzi, .rmi or .rpi");
    code->fn = &float_to_integer;
  } else if (is_scalar_float(code->dst) && is_scalar_float(code->from)) {
    code->fn = &float_to_float;
  }
}

// ---- pairs ----

enum class Format { kE4m3, kE5m2, kE2m1, kUe8m0 };
constexpr int element_bits(Format f) { return f == Format::kE2m1 ? 4 : 8; }

template <Format kFormat>
uint64_t encode(const AluCode& code, float x) {
  if (has(code, kRelu) && !std::isnan(x)) x = x > 0 ? x : 0.0f;
  switch (kFormat) {
    case Format::kE4m3: return f32_to_e4m3(x);
    case Format::kE5m2: return f32_to_e5m2(x);
    case Format::kE2m1: return f32_to_e2m1(x);
    default: return f32_to_ue8m0(x, round_of(code));
  }
}
template <Format kFormat>
float decode(uint64_t v) {
  switch (kFormat) {
    case Format::kE4m3: return e4m3_to_f32(static_cast<uint8_t>(v));
    case Format::kE5m2: return e5m2_to_f32(static_cast<uint8_t>(v));
    case Format::kE2m1: return e2m1_to_f32(v & 15);
    default: return ue8m0_to_f32(static_cast<uint8_t>(v));
  }
}

template <Format kFormat>
uint64_t floats_to_narrow(const AluCode& code, const uint64_t* in) {
  return encode<kFormat>(code, get<float>(in[0])) << element_bits(kFormat) |
         encode<kFormat>(code, get<float>(in[1]));
}
template <Format kFormat>
uint64_t pair_to_narrow(const AluCode& code, const uint64_t* in) {
  const auto widen = code.from == Type::kF16x2 ? &f16_to_f32 : &bf16_to_f32;
  return encode<kFormat>(code, widen(static_cast<uint16_t>(in[0] >> 16))) << element_bits(kFormat) |
         encode<kFormat>(code, widen(static_cast<uint16_t>(in[0])));
}
template <Format kFormat>
uint64_t narrow_to_pair(const AluCode& code, const uint64_t* in) {
  const auto narrow = code.dst == Type::kF16x2 ? &narrow_f16 : &narrow_bf16;
  return uint64_t{narrow(code, decode<kFormat>(in[0] >> element_bits(kFormat)))} << 16 |
         narrow(code, decode<kFormat>(in[0]));
}
uint64_t floats_to_pair(const AluCode& code, const uint64_t* in) {
  const auto narrow = code.dst == Type::kF16x2 ? &narrow_f16 : &narrow_bf16;
  return uint64_t{narrow(code, get<float>(in[0]))} << 16 | narrow(code, get<float>(in[1]));
}

template <Format kFormat>
void resolve_narrow(Spelling& s, AluCode* code) {
  const bool to_narrow = s.statement().qualifiers.back() == "f32" ||
                         s.statement().qualifiers.back() == "f16x2" ||
                         s.statement().qualifiers.back() == "bf16x2";
  s.expect_types(1);
  s.take_rounding(code);
  s.take_flag("relu", kRelu, code);
  const bool finite = s.take("satfinite");
  if (!to_narrow) {
    const Type natural = kFormat == Format::kUe8m0 ? Type::kBf16x2 : Type::kF16x2;
    code->inputs = 1;
    code->from = element_bits(kFormat) == 4 ? Type::kB8 : Type::kB16;
    code->dst = code->type;
    if (code->dst == natural && !finite) code->fn = &narrow_to_pair<kFormat>;
    return;
  }
  if (!finite) s.unsupported("a narrow format needs .satfinite");
  if (kFormat == Format::kUe8m0 && round_of(*code) != Round::kZero && round_of(*code) != Round::kUp) {
    s.unsupported("ue8m0 rounds by .rz or .rp");
  }
  code->from = code->type;
  code->dst = element_bits(kFormat) == 4 ? Type::kB8 : Type::kB16;
  code->inputs = code->from == Type::kF32 ? 2 : 1;
  code->fn = code->from == Type::kF32 ? &floats_to_narrow<kFormat> : &pair_to_narrow<kFormat>;
}

void resolve_tf32(Spelling& s, AluCode* code) {
  s.expect_types(1);
  code->inputs = 1;
  code->from = code->type;
  code->dst = Type::kB32;
  if (s.take("rna")) {
    code->mods |= kAwayFromZero;
  } else if (!s.take_rounding(code) || round_of(*code) > Round::kZero) {
    s.unsupported("tf32 rounds by .rna, .rn or .rz");
  }
  s.take_flag("relu", kRelu, code);
  s.take_flag("satfinite", kSatFinite, code);
  if (code->from == Type::kF32) code->fn = &float_to_tf32;
}

// cvt.pack.sat clamps two s32 to `aux` bits (to a signed range with kPackSigned), and puts what c held above
// them.
constexpr uint32_t kPackSigned = 1 << 8;
uint64_t pack(const AluCode& code, const uint64_t* in) {
  const int width = static_cast<int>(code.aux & 0xFF);
  const bool is_signed_target = (code.aux & kPackSigned) != 0;
  const int64_t low = is_signed_target ? -(int64_t{1} << (width - 1)) : 0;
  const int64_t high = (int64_t{1} << (is_signed_target ? width - 1 : width)) - 1;
  const uint64_t mask = (uint64_t{1} << width) - 1;
  const auto clamped = [&](uint64_t v) {
    return static_cast<uint64_t>(std::clamp<int64_t>(get<int32_t>(v), low, high)) & mask;
  };
  uint64_t out = clamped(in[0]) << width | clamped(in[1]);
  if (code.inputs == 3) out |= in[2] << (2 * width);
  return static_cast<uint32_t>(out);
}

void resolve_pack(Spelling& s, AluCode* code) {
  const auto& qualifiers = s.statement().qualifiers;
  if (!s.take("sat")) s.unsupported("cvt.pack needs .sat");
  // u4, s4, u2, s2 exist only here and are no types elsewhere.
  const std::string target = qualifiers.size() > 2 ? qualifiers[2] : "";
  if (target.size() < 2 || (target[0] != 'u' && target[0] != 's')) s.unsupported("no target type");
  s.take(target);
  const int width = std::atoi(target.c_str() + 1);
  if (width != 16 && width != 8 && width != 4 && width != 2) s.unsupported("target ." + target);
  if (qualifiers.size() < 4 || qualifiers[3] != "s32") s.unsupported("cvt.pack takes s32");
  code->aux = static_cast<uint32_t>(width) | (target[0] == 's' ? kPackSigned : 0);
  code->from = Type::kS32;
  code->dst = Type::kB32;
  const bool third = qualifiers.size() == 5 && qualifiers[4] == "b32";
  if (third == (width == 16)) s.unsupported("only targets below 16 bits take .b32");
  code->inputs = third ? 3 : 2;
  code->fn = &pack;
}

}  // namespace

bool resolve_convert(Spelling& s, AluCode* code) {
  if (s.opcode() != "cvt") return false;
  if (s.take("pack")) {
    resolve_pack(s, code);
  } else if (s.take("tf32")) {
    resolve_tf32(s, code);
  } else if (s.take("e4m3x2")) {
    resolve_narrow<Format::kE4m3>(s, code);
  } else if (s.take("e5m2x2")) {
    resolve_narrow<Format::kE5m2>(s, code);
  } else if (s.take("e2m1x2")) {
    resolve_narrow<Format::kE2m1>(s, code);
  } else if (s.take("ue8m0x2")) {
    resolve_narrow<Format::kUe8m0>(s, code);
  } else if (s.types().size() == 2 && s.types()[1] == Type::kF32 &&
             (s.types()[0] == Type::kF16x2 || s.types()[0] == Type::kBf16x2)) {
    code->dst = s.types()[0];
    code->from = Type::kF32;
    code->inputs = 2;
    if (!s.take_rounding(code)) s.unsupported("needs a rounding mode");
    s.take_flag("relu", kRelu, code);
    s.take_flag("satfinite", kSatFinite, code);
    code->fn = &floats_to_pair;
  } else {
    resolve_scalar(s, code);
  }
  return true;
}

}  // namespace sim::alu
