// alu_test.cpp -- arithmetic of one lane against plain C++ or against values worked out
// from the ISA's definitions. Each case is a PTX statement, so that spelling, operand count
// and semantics are tested together.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/alu/alu.h"
#include "sim/fault.h"
#include "support/catch.hpp"

namespace alu_test {

static sim::ptx::Statement statement_of(const std::string& text) {
  return sim::ptx::parse(
             ".version 9.0\n.target sm_100f\n.address_size 64\n.entry k() {\n"
             ".reg .pred p, q, c; .reg .b64 d, x, y, z, w;\n" +
             text + "\n}\n")
      .functions[0]
      .body.at(0);
}
static sim::AluCode code_of(const std::string& text) {
  sim::AluCode code;
  REQUIRE(sim::resolve_alu(statement_of(text), &code));
  return code;
}
static uint64_t run(const std::string& instruction, const std::vector<uint64_t>& in) {
  static const char* const kSources[] = {"x", "y", "z", "w"};
  std::string text = instruction + " d";
  for (size_t i = 0; i < in.size(); ++i) text += std::string(", ") + kSources[i];
  const sim::AluCode code = code_of(text + ";");
  REQUIRE(code.inputs == in.size());
  return code.fn(code, in.data());
}
static uint64_t f(float x) { return std::bit_cast<uint32_t>(x); }
static uint64_t g(double x) { return std::bit_cast<uint64_t>(x); }
static uint64_t u(int32_t x) { return static_cast<uint32_t>(x); }
constexpr uint64_t kNan = 0x7FFFFFFF;
constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();

TEST_CASE("bits that are called defined are the same whatever the others hold", "[alu][poison]") {
  struct Op {
    const char* name;
    uint32_t inputs;
    bool exact;  // no bit is called undefined without need, once what controls it is known
    uint32_t controls = 4;
  };
  const Op op = GENERATE(
      Op{"and.b32", 2, true}, Op{"or.b32", 2, true}, Op{"xor.b64", 2, true}, Op{"not.b32", 1, true},
      Op{"and.b16", 2, true}, Op{"brev.b32", 1, true}, Op{"shl.b32", 2, true, 1}, Op{"shr.u32", 2, true, 1},
      Op{"shr.s32", 2, true, 1}, Op{"shr.s64", 2, true, 1}, Op{"shf.l.clamp.b32", 3, true, 2},
      Op{"shf.r.wrap.b32", 3, true, 2}, Op{"prmt.b32", 3, true, 2}, Op{"prmt.b32.rc16", 3, true, 2},
      Op{"bfe.u32", 3, true, 1}, Op{"bfe.s32", 3, true, 1}, Op{"bfi.b32", 4, true, 2},
      Op{"szext.wrap.s32", 2, true, 1}, Op{"cvt.u32.u8", 1, true}, Op{"cvt.s32.s16", 1, true},
      Op{"cvt.s64.s32", 1, true}, Op{"cvt.u16.u64", 1, true}, Op{"add.s32", 2, false},
      Op{"sub.u32", 2, false}, Op{"neg.s32", 1, false}, Op{"add.u64", 2, false}, Op{"mul.lo.u32", 2, false},
      Op{"mul.hi.u32", 2, false}, Op{"mul.hi.s32", 2, false}, Op{"mul.wide.s32", 2, false},
      Op{"mul.wide.u16", 2, false}, Op{"mul.lo.s64", 2, false}, Op{"mad.lo.u32", 3, false},
      Op{"mad.hi.u32", 3, false}, Op{"mad.wide.s32", 3, false}, Op{"mul24.lo.s32", 2, false},
      Op{"mul24.hi.u32", 2, false}, Op{"mad24.lo.u32", 3, false}, Op{"mad24.hi.s32", 3, false},
      Op{"add.sat.s32", 2, false}, Op{"cvt.sat.s8.s32", 1, false}, Op{"min.u32", 2, false},
      Op{"popc.b32", 1, false}, Op{"add.f32", 2, false}, Op{"fma.rn.f32", 3, false},
      Op{"add.f16x2", 2, false}, Op{"fma.rn.bf16x2", 3, false}, Op{"mul.f32x2", 2, false},
      Op{"cvt.rn.f16x2.f32", 2, false}, Op{"cvt.rn.satfinite.e4m3x2.f32", 2, false},
      Op{"cvt.rn.satfinite.e2m1x2.f32", 2, false}, Op{"cvt.rn.f16x2.e4m3x2", 1, false},
      Op{"cvt.pack.sat.s8.s32.b32", 3, false});
  CAPTURE(op.name);
  static const char* const kSources[] = {"x", "y", "z", "w"};
  std::string text = std::string(op.name) + " d";
  for (uint32_t i = 0; i < op.inputs; ++i) text += std::string(", ") + kSources[i];
  const sim::ptx::Statement statement = statement_of(text + ";");
  const sim::AluCode code = code_of(text + ";");
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    uint64_t in[4] = {}, unknown[4] = {};
    std::vector<std::pair<uint32_t, uint64_t>> holes;  // input, bit
    for (uint32_t i = 0; i < op.inputs; ++i) {
      in[i] = random() >> random() % 64 << random() % 32;
      if (i >= op.controls) in[i] %= 40;  // amounts, positions, lengths
      if (round % 5 == 0) in[i] = 0;
    }
    const bool control = !op.exact && round % 2 == 0;
    for (int n = 0; n < 6; ++n) {
      const uint32_t i = uint32_t(random() % (control ? op.inputs : std::min(op.inputs, op.controls)));
      const uint64_t bit = uint64_t(1) << random() % (n < 3 ? 64 : 32);
      if (unknown[i] & bit) continue;
      unknown[i] |= bit;
      in[i] &= ~bit;
      holes.emplace_back(i, bit);
    }
    uint64_t out[4] = {};
    bool moved;
    const uint64_t missing = sim::undefined_bits(statement, code, in, unknown, out, &moved);
    CHECK((out[0] & missing) == 0);
    uint64_t differing = 0, first = 0;
    for (uint32_t chosen = 0; chosen < 1u << holes.size(); ++chosen) {
      uint64_t tried[4];
      std::copy_n(in, 4, tried);
      for (size_t n = 0; n < holes.size(); ++n)
        if (chosen >> n & 1) tried[holes[n].first] |= holes[n].second;
      const uint64_t result = code.fn(code, tried);
      if (chosen == 0) first = result;
      differing |= result ^ first;
      if (missing != ~uint64_t(0) && (result & ~missing) != out[0])
        FAIL_CHECK(result << " against " << out[0] << " but for " << missing);
    }
    if (op.exact) CHECK(missing == differing);
  }
}

TEST_CASE("a zero, a shift of everything and a choice leave nothing of what nobody knows", "[alu][poison]") {
  const auto missing = [](const std::string& text, std::vector<uint64_t> in, std::vector<uint64_t> unknown) {
    uint64_t out[4] = {};
    bool moved;
    const auto statement = statement_of(text);
    return sim::undefined_bits(statement, code_of(text), in.data(), unknown.data(), out, &moved);
  };
  const uint64_t all = 0xFFFFFFFF;
  CHECK(missing("and.b32 d, x, y;", {0, 0}, {all, 0}) == 0);
  CHECK(missing("mul.lo.u32 d, x, y;", {0, 0}, {all, 0}) == 0);
  CHECK(missing("mul.wide.s32 d, x, y;", {0, 0}, {0, all}) == 0);
  CHECK(missing("mul.hi.u32 d, x, y;", {0, 0}, {all, 0}) == 0);
  CHECK(missing("mad.lo.u32 d, x, y, z;", {0, 0, 9}, {all, 0, 0}) == 0);
  CHECK(missing("mul.lo.u32 d, x, y;", {0, 64}, {all, 0}) << 32 == ~uint64_t(63) << 32);
  CHECK(missing("shl.b32 d, x, y;", {0, 32}, {all, 0}) == 0);
  CHECK(missing("shl.b32 d, x, y;", {1, 0}, {0, 1}) == ~uint64_t(0));
  CHECK(missing("cvt.u32.u8 d, x;", {3}, {0xFFFFFF00}) == 0);
  CHECK(missing("mul.f32 d, x, y;", {0, 0}, {all, 0}) == ~uint64_t(0));  // infinity times zero is not zero
}

TEST_CASE("integer sums and products wrap in their own width", "[alu]") {
  const int32_t edges[] = {0, 1, -1, 7, -8, kMin32, std::numeric_limits<int32_t>::max()};
  for (const int32_t a : edges) {
    for (const int32_t b : edges) {
      INFO(a << " " << b);
      const int64_t product = int64_t(a) * b;
      CHECK(run("add.s32", {u(a), u(b)}) == uint32_t(uint32_t(a) + uint32_t(b)));
      CHECK(run("sub.u32", {u(a), u(b)}) == uint32_t(uint32_t(a) - uint32_t(b)));
      CHECK(run("mul.lo.s32", {u(a), u(b)}) == uint32_t(product));
      CHECK(run("mul.hi.s32", {u(a), u(b)}) == uint32_t(product >> 32));
      CHECK(run("mul.hi.u32", {u(a), u(b)}) == (uint64_t(uint32_t(a)) * uint32_t(b)) >> 32);
      CHECK(run("mul.wide.s32", {u(a), u(b)}) == uint64_t(product));
      CHECK(run("mad.wide.s32", {u(a), u(b), 5}) == uint64_t(product) + 5);
      CHECK(run("mad.lo.s32", {u(a), u(b), 5}) == uint32_t(product + 5));
      CHECK(run("min.s32", {u(a), u(b)}) == u(std::min(a, b)));
      CHECK(run("max.u32", {u(a), u(b)}) == std::max(uint32_t(a), uint32_t(b)));
      CHECK(run("sad.s32", {u(a), u(b), 1}) == uint32_t(std::abs(int64_t(a) - b) + 1));
    }
  }
  CHECK(run("add.sat.s32", {0x7FFFFFFF, 1}) == 0x7FFFFFFF);
  CHECK(run("sub.sat.s32", {u(kMin32), 1}) == 0x80000000);
  CHECK(run("mul.hi.u64", {~0ull, ~0ull}) == ~0ull - 1);
  CHECK(run("mul.hi.s64", {~0ull, ~0ull}) == 0);
  CHECK(run("mul.lo.u16", {0xFFFF, 0xFFFF}) == 1);
  CHECK(run("mul24.lo.s32", {0xFFFFFF, 2}) == u(-2));
  CHECK(run("mul24.hi.u32", {0xFFFFFF, 0xFFFFFF}) == 0xFFFFFE00);
  CHECK(code_of("mul.wide.u16 d, x, y;").dst == sim::ptx::Type::kU32);
}

TEST_CASE("division truncates and its edges do not trap the host", "[alu]") {
  CHECK(run("div.s32", {u(-7), 2}) == u(-3));
  CHECK(run("rem.s32", {u(-7), 2}) == u(-1));
  CHECK(run("div.u32", {u(-7), 2}) == 0xFFFFFFF9u / 2);
  CHECK(run("div.s32", {u(kMin32), u(-1)}) == u(kMin32));
  CHECK(run("rem.s64", {uint64_t(1) << 63, ~0ull}) == 0);
  CHECK(run("div.u32", {5, 0}) == 0xFFFFFFFF);
  CHECK(run("rem.u32", {5, 0}) == 0xFFFFFFFF);
  CHECK(run("abs.s32", {u(kMin32)}) == u(kMin32));
  CHECK(run("neg.s16", {1}) == 0xFFFF);
}

TEST_CASE("bit patterns", "[alu]") {
  for (uint32_t lut = 0; lut < 256; ++lut) {
    // The table for inputs F0, CC and AA is the table itself.
    const sim::AluCode code = code_of("lop3.b32 d, x, y, z, " + std::to_string(lut) + ";");
    const uint64_t in[] = {0xF0, 0xCC, 0xAA};
    REQUIRE((code.fn(code, in) & 0xFF) == lut);
  }
  CHECK(run("shl.b32", {1, 31}) == 0x80000000);
  CHECK(run("shl.b32", {1, 32}) == 0);
  CHECK(run("shr.s32", {0x80000000, 99}) == 0xFFFFFFFF);
  CHECK(run("shr.u32", {0x80000000, 32}) == 0);
  CHECK(run("shf.l.wrap.b32", {0x80000001, 0x12345678, 33}) == 0x2468ACF1);
  CHECK(run("shf.r.clamp.b32", {0x80000001, 0x12345678, 40}) == 0x12345678);
  CHECK(run("prmt.b32", {0x33221100, 0x77665544, 0x7531}) == 0x77553311);
  CHECK(run("prmt.b32", {0x00008000, 0, 0x9999}) == 0xFFFFFFFF);
  CHECK(run("prmt.b32.b4e", {0x33221100, 0x77665544, 1}) == 0x66770011);
  CHECK(run("bfe.u32", {0xABCD1234, 8, 12}) == 0xD12);
  CHECK(run("bfe.s32", {0xABCD1234, 28, 8}) == u(-6));
  CHECK(run("bfe.s32", {0xABCD1234, 4, 0}) == 0);
  CHECK(run("bfi.b32", {0xFF, 0, 4, 4}) == 0xF0);
  CHECK(run("bfind.u32", {0}) == 0xFFFFFFFF);
  CHECK(run("bfind.s32", {u(-2)}) == 0);
  CHECK(run("bfind.shiftamt.u64", {1}) == 63);
  CHECK(run("popc.b64", {~0ull}) == 64);
  CHECK(run("clz.b32", {0}) == 32);
  CHECK(run("brev.b32", {1}) == 0x80000000);
  CHECK(run("bmsk.clamp.b32", {4, 8}) == 0xFF0);
  CHECK(run("szext.wrap.s32", {0x80, 8}) == u(-128));
  CHECK(run("fns.b32", {0b10110, 0, 2}) == 2);
  CHECK(run("dp4a.s32.u32", {0xFF, 0xFF, 10}) == u(-245));
  CHECK(run("not.pred", {1}) == 0);
  CHECK(run("xor.b64", {~0ull, 1}) == ~1ull);
}

TEST_CASE("f32 and f64 arithmetic rounds as asked", "[alu]") {
  const float ulp = std::numeric_limits<float>::epsilon();
  CHECK(run("add.f32", {f(1.0f), f(ulp / 2)}) == f(1.0f));
  CHECK(run("add.rp.f32", {f(1.0f), f(ulp / 2)}) == f(1.0f + ulp));
  CHECK(run("sub.rm.f32", {f(1.0f), f(ulp / 8)}) == f(1.0f - ulp / 2));
  CHECK(run("mul.rz.f32", {f(1.0f + ulp), f(1.0f + ulp)}) == f(1.0f + 2 * ulp));
  CHECK(run("fma.rn.f32", {f(1.0f + ulp), f(1.0f - ulp), f(-1.0f)}) == f(-ulp * ulp));
  CHECK(run("mul.ftz.f32", {f(0x1p-126f), f(-0.5f)}) == f(-0.0f));
  CHECK(run("add.sat.f32", {f(3.0f), f(1.0f)}) == f(1.0f));
  CHECK(run("add.sat.f32", {kNan, f(1.0f)}) == 0);
  CHECK(run("sub.f32", {f(INFINITY), f(INFINITY)}) == kNan);
  CHECK(run("add.rp.f64", {g(1.0), g(0x1p-80)}) == g(std::nextafter(1.0, 2.0)));
  CHECK(run("div.rn.f32", {f(1.0f), f(3.0f)}) == f(1.0f / 3.0f));
  CHECK(run("div.rp.f32", {f(2.0f), f(3.0f)}) >= run("div.rm.f32", {f(2.0f), f(3.0f)}) + 1);
  CHECK(run("sqrt.rn.f32", {f(2.0f)}) == f(std::sqrt(2.0f)));
  CHECK(run("rcp.approx.ftz.f32", {f(-0.0f)}) == f(-INFINITY));
  CHECK(run("ex2.approx.ftz.f32", {f(-3.0f)}) == f(0.125f));
  CHECK(run("add.rn.f32x2", {f(1.0f) << 32 | f(2.0f), f(4.0f) << 32 | f(8.0f)}) ==
        (f(5.0f) << 32 | f(10.0f)));
  CHECK(run("fma.rn.f32x2", {f(2.0f) << 32 | f(3.0f), f(4.0f) << 32 | f(5.0f), f(1.0f) << 32}) ==
        (f(9.0f) << 32 | f(15.0f)));
  CHECK(run("abs.f32", {f(-2.0f)}) == f(2.0f));
}

TEST_CASE("minimum and maximum order zeros and treat NaN as spelt", "[alu]") {
  CHECK(run("min.f32", {f(0.0f), f(-0.0f)}) == f(-0.0f));
  CHECK(run("max.f32", {f(-0.0f), f(0.0f)}) == f(0.0f));
  CHECK(run("max.f32", {kNan, f(2.0f)}) == f(2.0f));
  CHECK(run("max.NaN.f32", {f(2.0f), kNan}) == kNan);
  CHECK(run("min.xorsign.abs.f32", {f(-3.0f), f(2.0f)}) == f(-2.0f));
  CHECK(run("max.f32", {f(1.0f), f(5.0f), f(3.0f)}) == f(5.0f));
  CHECK(run("max.f16x2", {0x3C00'C000, 0x4000'7FFF}) == 0x4000'C000);
}

TEST_CASE("16-bit floats round once", "[alu]") {
  CHECK(run("add.f16", {0x3C00, 0x3C00}) == 0x4000);
  CHECK(run("mul.f16", {0x7BFF, 0x4000}) == 0x7C00);
  CHECK(run("sub.f16", {0x7C00, 0x7C00}) == 0x7FFF);
  CHECK(run("fma.rn.relu.f16", {0xBC00, 0x3C00, 0x0000}) == 0);
  // 257/256 is halfway between two bf16; a tail beyond any double's reach of it decides.
  CHECK(run("fma.rn.bf16", {0x4380, 0x4380, 0}) == 0x4780);
  CHECK(run("fma.rn.bf16", {0x3F81, 0x3F81, 0x0000}) == 0x3F82);
  // 1.0625^2 = 1.12890625, halfway between 1.125 and 1.1328125.
  const uint64_t halfway_a = 0x3F88, halfway_b = 0x3F88;
  CHECK(run("fma.rn.bf16", {halfway_a, halfway_b, 0}) == 0x3F90);
  CHECK(run("fma.rn.bf16", {halfway_a, halfway_b, 0x0080}) == 0x3F91);  // plus 2^-126: up
  CHECK(run("fma.rn.bf16x2", {0x3F80'4000, 0x4000'4000, 0x0000'3F80}) == 0x4000'40A0);
  CHECK(run("neg.bf16x2", {0x3F80'BF80}) == 0xBF80'3F80);
  CHECK(run("add.f32.f16", {0x3C00, f(0.5f)}) == f(1.5f));
}

TEST_CASE("comparisons: NaN, unsigned forms, Boolean combination, both predicates", "[alu]") {
  CHECK(run("setp.ne.f32", {kNan, kNan}) == 0);
  CHECK(run("setp.neu.f32", {kNan, kNan}) == 1);
  CHECK(run("setp.ltu.f32", {kNan, f(0.0f)}) == 1);
  CHECK(run("setp.num.f64", {g(1.0), g(2.0)}) == 1);
  CHECK(run("setp.lt.s32", {u(-1), 0}) == 1);
  CHECK(run("setp.lo.u32", {u(-1), 0}) == 0);
  CHECK(run("setp.eq.f16", {0x0000, 0x8000}) == 1);
  CHECK(run("setp.gt.and.s32", {2, 1, 0}) == 0);
  CHECK(run("setp.gt.xor.s32", {2, 1, 1}) == 0);
  CHECK(run("set.lt.u32.f32", {f(1.0f), f(2.0f)}) == 0xFFFFFFFF);
  CHECK(run("set.lt.f32.s32", {1, 2}) == f(1.0f));
  CHECK(run("selp.b32", {7, 9, 0}) == 9);
  CHECK(run("slct.f32.s32", {f(1.0f), f(2.0f), u(-1)}) == f(2.0f));
  CHECK(run("testp.subnormal.f32", {1}) == 1);
  CHECK(run("copysign.f32", {f(-0.0f), f(3.0f)}) == f(-3.0f));
  const sim::AluCode both = code_of("setp.lt.and.s32 p|q, x, y, c;");
  CHECK(both.extra_outputs == 1);
  for (const uint64_t third : {0, 1}) {
    const uint64_t in[] = {1, 2, third};
    uint64_t out[2];
    both.fn2(both, in, out);
    CHECK(out[0] == third);
    CHECK(out[1] == 0);
  }
}

TEST_CASE("conversions between numbers", "[alu]") {
  CHECK(run("cvt.s64.s32", {u(-5)}) == uint64_t(-5));
  CHECK(run("cvt.u64.u32", {u(-5)}) == 0xFFFFFFFB);
  CHECK(run("cvt.u8.u32", {0x1FF}) == 0xFF);
  CHECK(run("cvt.sat.u8.s32", {u(-3)}) == 0);
  CHECK(run("cvt.sat.s8.s32", {u(300)}) == 127);
  CHECK(run("cvt.rzi.s32.f32", {f(-2.9f)}) == u(-2));
  CHECK(run("cvt.rni.s32.f32", {f(2.5f)}) == 2);
  CHECK(run("cvt.rpi.u32.f32", {f(-1.5f)}) == 0);
  CHECK(run("cvt.rzi.s32.f32", {f(1e20f)}) == 0x7FFFFFFF);
  CHECK(run("cvt.rzi.s32.f32", {kNan}) == 0);
  CHECK(run("cvt.rzi.s64.f32", {kNan}) == uint64_t(1) << 63);
  CHECK(run("cvt.rzi.u64.f64", {g(0x1p63)}) == uint64_t(1) << 63);
  CHECK(run("cvt.rn.f32.s32", {u(-16777217)}) == f(-16777216.0f));
  CHECK(run("cvt.rp.f32.u32", {16777217}) == f(16777218.0f));
  // 2^63 + 2^39 + 1: a halfway case by itself, decided by the last bit, which a double does not hold.
  CHECK(run("cvt.rn.f32.u64", {(uint64_t(1) << 63) + (uint64_t(1) << 39) + 1}) == f(0x1.000002p63f));
  CHECK(run("cvt.rm.f64.s64", {uint64_t(-((1ll << 62) + 1))}) == g(std::nextafter(-0x1p62, -INFINITY)));
  CHECK(run("cvt.rz.f32.f64", {g(1.0 + 0x1p-24)}) == f(1.0f));
  CHECK(run("cvt.rp.f32.f64", {g(1.0 + 0x1p-24)}) == f(1.0f + 0x1p-23f));
  CHECK(run("cvt.f64.f32", {f(0.1f)}) == g(double(0.1f)));
  CHECK(run("cvt.rmi.f32.f32", {f(-0.5f)}) == f(-1.0f));
  CHECK(run("cvt.sat.f32.f32", {f(-2.0f)}) == 0);
  CHECK(run("cvt.ftz.f32.f32", {f(-0x1p-130f)}) == f(-0.0f));
  CHECK(run("cvt.rn.f16.f32", {f(65520.0f)}) == 0x7C00);
  CHECK(run("cvt.f32.f16", {0x3555}) == f(0x1.554p-2f));
  CHECK(run("cvt.rna.tf32.f32", {0x3F801000}) == 0x3F802000);
  CHECK(run("cvt.rn.tf32.f32", {0x3F801000}) == 0x3F800000);
}

TEST_CASE("packed conversions put the first source on top", "[alu]") {
  CHECK(run("cvt.rn.f16x2.f32", {f(1.0f), f(-2.0f)}) == 0x3C00'C000);
  CHECK(run("cvt.rn.bf16x2.f32", {f(1.0f), f(-2.0f)}) == 0x3F80'C000);
  CHECK(run("cvt.rn.relu.bf16x2.f32", {f(1.0f), f(-2.0f)}) == 0x3F80'0000);
  CHECK(run("cvt.rn.satfinite.e4m3x2.f32", {f(1.0f), f(1e9f)}) == 0x387E);
  CHECK(run("cvt.rn.satfinite.e5m2x2.f32", {f(1.0f), f(-2.0f)}) == 0x3CC0);
  CHECK(run("cvt.rn.satfinite.e2m1x2.f32", {f(6.0f), f(-0.5f)}) == 0x79);
  CHECK(run("cvt.rn.satfinite.e4m3x2.f16x2", {0x3C00'4000}) == 0x3840);
  CHECK(run("cvt.rn.f16x2.e2m1x2", {0x79}) == 0x4600'B800);
  CHECK(run("cvt.rn.f16x2.e4m3x2", {0x3840}) == 0x3C00'4000);
  CHECK(run("cvt.rn.bf16x2.ue8m0x2", {0x7F80}) == 0x3F80'4000);
  CHECK(run("cvt.rp.satfinite.ue8m0x2.f32", {f(1.5f), f(2.0f)}) == 0x8080);
  CHECK(run("cvt.pack.sat.u16.s32", {u(-1), 70000}) == 0x0000'FFFF);
  CHECK(run("cvt.pack.sat.s8.s32.b32", {u(-200), 5, 0xABCD}) == 0xABCD8005);
}

// An H200 gave these results for these inputs.
TEST_CASE("NaNs, flushing and fields as on an H200", "[alu]") {
  const uint64_t a = 0x7FFFFFFFFFFFFFFF, b = 0xFFFFFFFF80000000, signalling = 0x7FF0000000000001;
  CHECK(run("abs.f32", {0xFFC12345}) == kNan);
  CHECK(run("neg.f16", {0x7C01}) == 0x7FFF);
  CHECK(run("abs.f64", {b}) == b);
  CHECK(run("neg.f64", {signalling}) == 0x7FF8000000000001);
  CHECK(run("add.rn.f64", {a, b}) == b);
  CHECK(run("div.rn.f64", {a, b}) == a);
  CHECK(run("fma.rn.f64", {0, b, a}) == b);
  CHECK(run("fma.rn.f64", {b, 0, a}) == a);
  CHECK(run("max.f64", {signalling, signalling}) == 0x7FF8000000000001);
  CHECK(run("cvt.rn.f16.f64", {0xFFFA1990BE05D621}) == 0xFE86);
  CHECK(run("cvt.rn.f32.f64", {0xFFFA1990BE05D621}) == 0xFFD0CC85);
  CHECK(run("cvt.f32.bf16", {0x7F81}) == 0x7F810000);
  CHECK(run("cvt.ftz.f64.f32", {0xFFFFFF80}) == 0x7FFFFFFFE0000000);
  CHECK(run("cvt.rna.tf32.f32", {0x7F800001}) == 0x7F800000);
  CHECK(run("cvt.rna.satfinite.tf32.f32", {0xFFFF8000}) == 0xFFFF6000);
  CHECK(run("cvt.rn.tf32.f32", {0xFFFF8000}) == 0x7FFFE000);
  CHECK(run("mul.rn.ftz.f32", {0x00800000, 0x3F7FFFFF}) == 0);
  CHECK(run("mul.rn.f32", {0x00800000, 0x3F7FFFFF}) == 0x00800000);
  CHECK(run("div.rm.ftz.f32", {0x80800000, 0x3F800001}) == 0x80000000);
  CHECK(run("min.xorsign.abs.f16", {0xFFFF, 0}) == 0x8000);
  CHECK(run("bfe.u64", {~0ull, 0x10000, 5}) == 0);
  CHECK(run("bfe.u64", {~0ull, 0, 0x10000}) == ~0ull);
  CHECK(run("rem.s64", {5, 0}) == ~0ull);
}

TEST_CASE("what is no arithmetic is left to others, what is unknown is named", "[alu]") {
  sim::AluCode code;
  CHECK_FALSE(sim::resolve_alu(statement_of("mov.b64 d, x;"), &code));
  CHECK_FALSE(sim::resolve_alu(statement_of("bar.sync 0;"), &code));
  for (const char* text :
       {"add.cc.u32 d, x, y;", "addc.u32 d, x, y;", "add.strange.f32 d, x, y;", "mul.s32 d, x, y;",
        "add.b32 d, x, y;", "setp.lt.u32.u32 p, x, y;", "add.s32 d, x;", "cvt.s32.f32 d, x;",
        "fma.f32 d, x, y, z;", "shf.l.b32 d, x, y, z;", "cvt.rn.e4m3x2.f32 d, x, y;"}) {
    INFO(text);
    CHECK_THROWS_WITH(sim::resolve_alu(statement_of(text), &code),
                      dualgemm_test::contains(std::string(text).substr(0, std::string(text).size() - 1)));
  }
}

}  // namespace alu_test
