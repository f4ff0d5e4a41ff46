// numerics_test.cpp -- formats and conversions exhaustively,
// and f32 arithmetic against the host's own rounding modes.
#include "sim/engine/numerics.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "sim/unit/formats.hpp"
#include "support/catch.hpp"
#include "support/rng.h"

namespace numerics_test {

using namespace formats;
using sim::Round;

// Checks a conversion against its decoder: every code converts to itself; between two neighbouring
// codes the midpoint goes to the even one and points just beside it to the nearer one;
// directed modes take the end they name.
struct Conversion {
  uint32_t codes;  // finite non-negative codes: 0 .. codes - 1
  uint32_t sign;
  std::function<float(uint32_t)> decode;
  std::function<uint32_t(float, Round)> encode;
  bool nearest_only;
};

static int conversion_errors(const Conversion& f) {
  int errors = 0;
  const auto expect = [&](float x, Round r, uint32_t positive, uint32_t when_negative) {
    errors += f.encode(x, r) != positive;
    errors += f.encode(-x, r) != (f.sign | when_negative);
  };
  for (uint32_t code = 0; code < f.codes; ++code) {
    const float value = f.decode(code);
    for (Round r : {Round::kNearestEven, Round::kZero, Round::kDown, Round::kUp}) {
      if (f.nearest_only && r != Round::kNearestEven) continue;
      expect(value, r, code, code);
    }
    if (code + 1 == f.codes) break;
    const float next = f.decode(code + 1);
    errors += !(next > value);
    // The midpoint is exact: all formats are at least one bit shorter than float.
    const float middle = value + (next - value) / 2;
    const uint32_t even = code % 2 == 0 ? code : code + 1;
    if (middle > value && middle < next) expect(middle, Round::kNearestEven, even, even);
    const float below = std::nextafterf(middle, 0), above = std::nextafterf(middle, kInfinity);
    if (below > value) expect(below, Round::kNearestEven, code, code);
    if (above < next) expect(above, Round::kNearestEven, code + 1, code + 1);
    if (f.nearest_only) continue;
    for (float x : {std::nextafterf(value, kInfinity), middle, std::nextafterf(next, 0)}) {
      if (!(x > value && x < next)) continue;
      expect(x, Round::kZero, code, code);
      expect(x, Round::kDown, code, code + 1);
      expect(x, Round::kUp, code + 1, code);
    }
  }
  return errors;
}

// Computes in f32 arithmetic of the host in one of its rounding modes; volatile operands and results keep it
// between the switches.
template <class Op>
static float on_host(Round r, Op op) {
  const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(modes[static_cast<int>(r)]);
  const volatile float result = op();
  std::fesetround(FE_TONEAREST);
  return result;
}

static float tricky_float(dualgemm_test::Rng& r) {
  switch (r.word() % 4) {
    case 0: return float_of(r.word());
    case 1: return float_of((r.word() & 0x807FFFFF) | ((120 + r.word() % 16) << 23));
    case 2: return float_of(r.word() & 0x81FFFFFF);
    default: {
      constexpr uint32_t kBits[] = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000,
                                    0xBF800000, 1,          0x80000001, 0x7F7FFFFF, 0x00800000, 0x007FFFFF};
      return float_of(kBits[r.word() % std::size(kBits)]);
    }
  }
}

static float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

static bool same(float got, float want) {
  return std::isnan(want) ? bits_of(got) == kCanonicalNan : bits_of(got) == bits_of(want);
}

TEST_CASE("numerics: small formats decode to the values of their definitions", "[numerics]") {
  for (uint8_t code = 0; code < 16; ++code)
    CHECK(sim::e2m1_to_f32(code) == static_cast<float>(element(code)));
  CHECK(sim::e2m1_to_f32(0xF3) == 1.5f);  // only the low nibble counts
  CHECK(std::signbit(sim::e2m1_to_f32(8)));
  int wrong = 0;
  for (int code = 0; code < 256; ++code) {
    const uint8_t byte = static_cast<uint8_t>(code);
    const Scale scale = scale_of(byte, false);
    const float magnitude = static_cast<float>(std::ldexp(scale.significand, scale.exponent));
    wrong +=
        scale.nan ? bits_of(sim::ue4m3_to_f32(byte)) != kCanonicalNan : sim::ue4m3_to_f32(byte) != magnitude;
    wrong += scale.nan ? !std::isnan(sim::e4m3_to_f32(byte))
                       : bits_of(sim::e4m3_to_f32(byte)) != bits_of(code < 128 ? magnitude : -magnitude);
    const int e = code >> 2 & 31, m = code & 3;
    const float e5m2 =
        std::ldexp(e == 0 ? m / 4.0f : 1 + m / 4.0f, (e == 0 ? 1 : e) - 15) * (code < 128 ? 1 : -1);
    const float got = sim::e5m2_to_f32(byte);
    wrong += e < 31   ? bits_of(got) != bits_of(e5m2)
             : m != 0 ? !std::isnan(got)
                      : got != (code < 128 ? 1 : -1) * kInfinity;
    wrong += code == 255 ? !std::isnan(sim::ue8m0_to_f32(byte))
                         : std::log2(double{sim::ue8m0_to_f32(byte)}) != code - 127;
  }
  CHECK(wrong == 0);
  CHECK(sim::ue4m3_to_f32(0x7E) == 448.0f);
  CHECK(sim::ue4m3_to_f32(0x01) == std::ldexp(1.0f, -9));
}

TEST_CASE("numerics: f16 and bf16 decode to the values of their definitions", "[numerics]") {
  int wrong = 0;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float sign = code < 0x8000 ? 1.0f : -1.0f;
    const int e = code >> 10 & 31, m = code & 1023;
    const float f16 = sign * std::ldexp(e == 0 ? m / 1024.0f : 1 + m / 1024.0f, (e == 0 ? 1 : e) - 15);
    const float got = sim::f16_to_f32(static_cast<uint16_t>(code));
    wrong += e < 31 ? bits_of(got) != bits_of(f16) : m != 0 ? !std::isnan(got) : got != sign * kInfinity;
    const float bf16 = float_of(code << 16), got_bf16 = sim::bf16_to_f32(static_cast<uint16_t>(code));
    wrong += std::isnan(bf16) ? !std::isnan(got_bf16) : bits_of(got_bf16) != bits_of(bf16);
  }
  CHECK(wrong == 0);
}

TEST_CASE("numerics: conversions round every code, midpoint and neighbour as their mode says", "[numerics]") {
  const Conversion f16{0x7C00, 0x8000, [](uint32_t c) { return sim::f16_to_f32(static_cast<uint16_t>(c)); },
                       [](float x, Round r) { return sim::f32_to_f16(x, r); }, false};
  const Conversion f16_from_f64{0x7C00, 0x8000, f16.decode,
                                [](float x, Round r) { return sim::f64_to_f16(x, r); }, false};
  const Conversion bf16{0x7F80, 0x8000, [](uint32_t c) { return sim::bf16_to_f32(static_cast<uint16_t>(c)); },
                        [](float x, Round r) { return sim::f32_to_bf16(x, r); }, false};
  const Conversion e4m3{0x7F, 0x80, [](uint32_t c) { return sim::e4m3_to_f32(static_cast<uint8_t>(c)); },
                        [](float x, Round) { return sim::f32_to_e4m3(x); }, true};
  const Conversion e5m2{0x7C, 0x80, [](uint32_t c) { return sim::e5m2_to_f32(static_cast<uint8_t>(c)); },
                        [](float x, Round) { return sim::f32_to_e5m2(x); }, true};
  const Conversion e2m1{0x8, 0x8, [](uint32_t c) { return sim::e2m1_to_f32(static_cast<uint8_t>(c)); },
                        [](float x, Round) { return sim::f32_to_e2m1(x); }, true};
  CHECK(conversion_errors(f16) == 0);
  CHECK(conversion_errors(f16_from_f64) == 0);
  CHECK(conversion_errors(bf16) == 0);
  CHECK(conversion_errors(e4m3) == 0);
  CHECK(conversion_errors(e5m2) == 0);
  CHECK(conversion_errors(e2m1) == 0);
}

TEST_CASE("numerics: conversions beyond the range", "[numerics]") {
  // 65520 is half way to the next power, and rounds away from 65504.
  CHECK(sim::f32_to_f16(65520.0f, Round::kNearestEven) == 0x7C00);
  CHECK(sim::f32_to_f16(65519.0f, Round::kNearestEven) == 0x7BFF);
  CHECK(sim::f32_to_f16(1e30f, Round::kZero) == 0x7BFF);
  CHECK(sim::f32_to_f16(1e30f, Round::kDown) == 0x7BFF);
  CHECK(sim::f32_to_f16(-1e30f, Round::kDown) == 0xFC00);
  CHECK(sim::f32_to_f16(-1e30f, Round::kUp) == 0xFBFF);
  CHECK(sim::f32_to_f16(kInfinity, Round::kZero) == 0x7C00);
  CHECK(sim::f32_to_f16(kInfinity, Round::kNearestEven, true) == 0x7BFF);
  CHECK(sim::f32_to_f16(-1e30f, Round::kNearestEven, true) == 0xFBFF);
  CHECK(sim::f32_to_f16(NAN, Round::kNearestEven, true) == 0x7FFF);
  CHECK(sim::f64_to_f16(1e-300, Round::kUp) == 0x0001);
  CHECK(sim::f64_to_f16(-1e-300, Round::kNearestEven) == 0x8000);
  // There is no double rounding by way of f32.
  CHECK(sim::f64_to_f16(1.0 + 0x1p-11 + 0x1p-50, Round::kNearestEven) == 0x3C01);
  CHECK(sim::f32_to_bf16(std::numeric_limits<float>::max(), Round::kNearestEven) == 0x7F80);
  CHECK(sim::f32_to_bf16(std::numeric_limits<float>::max(), Round::kNearestEven, true) == 0x7F7F);
  CHECK(sim::f32_to_bf16(NAN, Round::kZero) == 0x7FFF);
  for (float huge : {5.1f, 100.0f, 1e30f, kInfinity}) {
    CHECK(sim::f32_to_e2m1(huge) == 0x7);
    CHECK(sim::f32_to_e2m1(-huge) == 0xF);
  }
  CHECK(sim::f32_to_e2m1(NAN) == 0x7);
  CHECK(sim::f32_to_e2m1(5.0f) == 0x6);  // a tie: 4 has the even code
  for (float huge : {449.0f, 480.0f, 1e30f, kInfinity}) CHECK(sim::f32_to_e4m3(huge) == 0x7E);
  CHECK(sim::f32_to_e4m3(-kInfinity) == 0xFE);
  CHECK(sim::f32_to_e4m3(NAN) == 0x7F);
  CHECK(sim::f32_to_e5m2(kInfinity) == 0x7B);
}

TEST_CASE("numerics: ue8m0 keeps the exponent, downward or upward", "[numerics]") {
  for (int code = 0; code <= 0xFE; ++code) {
    const float power = std::ldexp(1.0f, code - 127);
    const float more = std::nextafterf(power, kInfinity);
    CHECK(sim::f32_to_ue8m0(power, Round::kZero) == code);
    CHECK(sim::f32_to_ue8m0(power, Round::kUp) == code);
    CHECK(sim::f32_to_ue8m0(more, Round::kZero) == code);
    CHECK(sim::f32_to_ue8m0(more, Round::kUp) == std::min(code + 1, 0xFE));
    CHECK(sim::f32_to_ue8m0(-power, Round::kZero) == code);
  }
  CHECK(sim::f32_to_ue8m0(0.0f, Round::kUp) == 0);
  CHECK(sim::f32_to_ue8m0(kInfinity, Round::kUp) == 0xFE);
  CHECK(sim::f32_to_ue8m0(NAN, Round::kUp) == 0xFF);
}

TEST_CASE("numerics: add, mul and fma equal the host in every rounding mode", "[numerics]") {
  dualgemm_test::Rng random(7);
  int wrong = 0, wrong_flushed = 0;
  for (int i = 0; i < 200000; ++i) {
    const volatile float a = tricky_float(random), b = tricky_float(random);
    // Some of the sums cancel.
    const volatile float c = i % 3 == 0 ? -static_cast<float>(a * b) : tricky_float(random);
    for (Round r : {Round::kNearestEven, Round::kZero, Round::kDown, Round::kUp}) {
      wrong += !same(sim::f32_add(a, b, r, false), on_host(r, [&] { return a + b; }));
      wrong += !same(sim::f32_mul(a, b, r, false), on_host(r, [&] { return a * b; }));
      wrong += !same(sim::f32_fma(a, b, c, r, false), on_host(r, [&] { return std::fmaf(a, b, c); }));
      const volatile float x = flush(a), y = flush(b), z = flush(c);
      wrong_flushed += !same(sim::f32_add(a, b, r, true), flush(on_host(r, [&] { return x + y; })));
      wrong_flushed += !same(sim::f32_mul(a, b, r, true), flush(on_host(r, [&] { return x * y; })));
      wrong_flushed +=
          !same(sim::f32_fma(a, b, c, r, true), flush(on_host(r, [&] { return std::fmaf(x, y, z); })));
    }
  }
  CHECK(wrong == 0);
  CHECK(wrong_flushed == 0);
}

TEST_CASE("numerics: approximate functions take the special values of the ISA", "[numerics]") {
  const float tiny = float_of(1);
  CHECK(bits_of(sim::ex2_approx(-kInfinity, false)) == 0);
  CHECK(sim::ex2_approx(kInfinity, false) == kInfinity);
  CHECK(sim::ex2_approx(tiny, true) == 1.0f);
  CHECK(sim::ex2_approx(-127.0f, false) == std::ldexp(1.0f, -127));
  CHECK(bits_of(sim::ex2_approx(-127.0f, true)) == 0);
  CHECK(bits_of(sim::ex2_approx(NAN, false)) == kCanonicalNan);
  CHECK(sim::lg2_approx(0.0f, false) == -kInfinity);
  CHECK(sim::lg2_approx(-0.0f, false) == -kInfinity);
  CHECK(sim::lg2_approx(-tiny, true) == -kInfinity);
  CHECK(sim::lg2_approx(tiny, false) == -149.0f);
  CHECK(bits_of(sim::lg2_approx(-1.0f, false)) == kCanonicalNan);
  CHECK(sim::lg2_approx(kInfinity, false) == kInfinity);
  CHECK(sim::rcp_approx(0.0f, false) == kInfinity);
  CHECK(sim::rcp_approx(-0.0f, false) == -kInfinity);
  CHECK(bits_of(sim::rcp_approx(-kInfinity, false)) == 0x80000000);
  CHECK(sim::rcp_approx(-tiny, true) == -kInfinity);
  CHECK(bits_of(sim::rcp_approx(std::ldexp(1.0f, 127), true)) == 0);
  CHECK(sim::rsqrt_approx(-0.0f, false) == -kInfinity);
  CHECK(sim::rsqrt_approx(0.0f, false) == kInfinity);
  CHECK(bits_of(sim::rsqrt_approx(-1.0f, false)) == kCanonicalNan);
  CHECK(bits_of(sim::rsqrt_approx(kInfinity, false)) == 0);
  CHECK(bits_of(sim::sqrt_approx(-0.0f, false)) == 0x80000000);
  CHECK(bits_of(sim::sqrt_approx(-1.0f, false)) == kCanonicalNan);
  CHECK(bits_of(sim::sin_approx(kInfinity, false)) == kCanonicalNan);
  CHECK(bits_of(sim::sin_approx(-0.0f, false)) == 0x80000000);
  CHECK(sim::cos_approx(tiny, true) == 1.0f);
  CHECK(sim::tanh_approx(-kInfinity) == -1.0f);
  CHECK(sim::tanh_approx(tiny) == tiny);
  CHECK(sim::div_full(1.0f, 0.0f, false) == kInfinity);
  CHECK(bits_of(sim::div_full(0.0f, 0.0f, false)) == kCanonicalNan);
  CHECK(sim::div_full(1.0f, tiny, true) == kInfinity);
}

}  // namespace numerics_test
