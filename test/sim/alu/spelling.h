// spelling.h -- shared by the files of this folder and nobody else: lane values as C++ values, the modifiers
// that an AluCode carries, and Spelling, which takes the qualifiers of one statement apart. Whatever a family
// does not take is an error, so an unknown qualifier cannot be ignored by accident.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/alu/alu.h"
#include "sim/engine/numerics.h"
#include "sim/fault.h"

namespace sim::alu {

using ptx::Type;

// The bits of AluCode::mods. The two lowest bits are a Round.
enum Mod : uint32_t {
  kRoundMask = 3,
  kFtz = 1 << 2,
  kSat = 1 << 3,
  kRelu = 1 << 4,
  kPropagateNan = 1 << 5,  // .NaN
  kXorSign = 1 << 6,       // .xorsign.abs
  kAbsolute = 1 << 7,      // .abs of three-input min and max
  kSatFinite = 1 << 8,
  kToIntegral = 1 << 9,     // cvt .rni .rzi .rmi .rpi
  kAwayFromZero = 1 << 10,  // cvt .rna
};

inline Round round_of(const AluCode& code) { return static_cast<Round>(code.mods & kRoundMask); }
inline bool has(const AluCode& code, Mod mod) { return (code.mods & mod) != 0; }

constexpr uint32_t kNan32 = 0x7FFFFFFF;           // what the f32 units return for every NaN
constexpr uint16_t kNan16 = 0x7FFF;               // the same for f16 and bf16
constexpr uint64_t kQuiet64 = uint64_t{1} << 51;  // f64 units keep a NaN and set this bit
inline bool is_nan_f64(uint64_t v) { return (v & ~(uint64_t{1} << 63)) > 0x7FF0000000000000; }

template <class T>
T get(uint64_t v) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(v));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(v);
  } else {
    return static_cast<T>(v);
  }
}

template <class T>
uint64_t put(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return std::isnan(v) ? kNan32 : std::bit_cast<uint32_t>(v);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(v);
  } else {
    return static_cast<std::make_unsigned_t<T>>(v);
  }
}

// Turn a captureless lambda on values into an AluFn.
template <class T, auto Op>
uint64_t apply1(const AluCode&, const uint64_t* in) {
  return put<T>(Op(get<T>(in[0])));
}
template <class T, auto Op>
uint64_t apply2(const AluCode&, const uint64_t* in) {
  return put<T>(Op(get<T>(in[0]), get<T>(in[1])));
}
template <class T, auto Op>
uint64_t apply3(const AluCode&, const uint64_t* in) {
  return put<T>(Op(get<T>(in[0]), get<T>(in[1]), get<T>(in[2])));
}

// The types of numbers, and of patterns of bits, as C++ has them.
template <class T>
constexpr Type kNumber = std::is_signed_v<T> ? sizeof(T) == 2   ? Type::kS16
                                               : sizeof(T) == 4 ? Type::kS32
                                                                : Type::kS64
                         : sizeof(T) == 2    ? Type::kU16
                         : sizeof(T) == 4    ? Type::kU32
                                             : Type::kU64;
template <class T>
constexpr Type kPattern = sizeof(T) == 2   ? Type::kB16
                          : sizeof(T) == 4 ? Type::kB32
                                           : Type::kB64;

// Returns choose<T>() for the T of a list that is of this type, else null.
template <class... Ts, class Choose>
AluFn of_number(Type t, Choose choose) {
  AluFn out = nullptr;
  ((t == kNumber<Ts> ? void(out = choose.template operator()<Ts>()) : void()), ...);
  return out;
}
template <class... Ts, class Choose>
AluFn of_pattern(Type t, Choose choose) {
  AluFn out = nullptr;
  ((t == kPattern<Ts> ? void(out = choose.template operator()<Ts>()) : void()), ...);
  return out;
}

// Applies a function of one element to every element of a packed value.
template <AluFn Element, int kBits, int kCount = 2>
uint64_t packed(const AluCode& code, const uint64_t* in) {
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  uint64_t out = 0;
  for (int e = 0; e < kCount; ++e) {
    uint64_t element[4] = {};
    for (uint32_t i = 0; i < code.inputs; ++i) element[i] = (in[i] >> (e * kBits)) & kMask;
    out |= (Element(code, element) & kMask) << (e * kBits);
  }
  return out;
}

inline float flush_f32(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
inline uint16_t flush_f16(uint16_t x) { return (x & 0x7C00) == 0 ? x & 0x8000 : x; }
inline uint16_t flush_bf16(uint16_t x) { return (x & 0x7F80) == 0 ? x & 0x8000 : x; }

// .sat clamps a float result to [0, 1], and turns NaN and -0 into +0.
template <class T>
T saturate_unit(T x) {
  return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);
}

bool is_integer(Type type);  // u, s and b types
bool is_signed(Type type);
bool is_half(Type type);  // f16, bf16 and their pairs

// Computes on the host in rounding mode `r`, which is set around the call only. Arguments and result pass
// through volatile so that the compiler cannot move the operation across the change of mode.
void set_host_rounding(Round r);
template <class R, class F, class... A>
R rounded(Round r, F operation, A... args) {
  if (r == Round::kNearestEven) return operation(args...);
  return [&](auto... inputs) -> R {
    set_host_rounding(r);
    const volatile R result = operation(inputs...);
    set_host_rounding(Round::kNearestEven);
    return result;
  }(args...);
}

// Round a number, or the sum a * b + c, to odd: exact results stay, others get their last bit set. One more
// rounding to a format with at least two bits less is then correct in every mode.
float to_odd_f32(double x);
double to_odd_f64(bool negative, uint64_t magnitude);
float fma_to_odd_f32(float a, float b, float c);  // a and b with at most 11 significant bits

class Spelling {
 public:
  explicit Spelling(const ptx::Statement& statement);

  const ptx::Statement& statement() const { return statement_; }
  std::string_view opcode() const { return statement_.opcode; }
  const std::vector<Type>& types() const { return types_; }
  Type type() const { return types_.empty() ? Type::kNone : types_.back(); }
  size_t input_count() const { return statement_.operands.empty() ? 0 : statement_.operands.size() - 1; }

  bool take(std::string_view qualifier);                        // true when it was there
  int take_one_of(std::initializer_list<const char*> choices);  // its index, -1 when none was there
  void take_flag(std::string_view qualifier, Mod mod, AluCode* code);
  bool take_rounding(AluCode* code);  // rn rz rm rp

  // Requires the types to be exactly these many.
  void expect_types(size_t count) const;
  // Ends resolution. It is an error when a qualifier was not taken, when the number of operands differs, or
  // when no function was found.
  void finish(AluCode* code) const;
  [[noreturn]] void unsupported(const std::string& why) const;

 private:
  const ptx::Statement& statement_;
  std::vector<Type> types_;
  std::vector<std::string_view> rest_;  // qualifiers that are no types and were not taken yet
};

// Takes what min and max of floats may have, and counts their inputs.
void take_extremum_modifiers(Spelling& spelling, AluCode* code);

// One for each file: returns false when the opcode, or the opcode with these types, belongs elsewhere.
bool resolve_integer(Spelling& spelling, AluCode* code);
bool resolve_bits(Spelling& spelling, AluCode* code);
bool resolve_float(Spelling& spelling, AluCode* code);
bool resolve_half(Spelling& spelling, AluCode* code);
bool resolve_compare(Spelling& spelling, AluCode* code);
bool resolve_convert(Spelling& spelling, AluCode* code);

}  // namespace sim::alu
