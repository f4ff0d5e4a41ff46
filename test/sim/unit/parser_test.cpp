// parser_test.cpp -- PTX text becomes the structs it says: shapes of operands, scopes, positions, and errors
// that name their place. The texts are shortened from what nvcc 13 emits.
#include <string>

#include "sim/fault.h"
#include "sim/parse/module.h"
#include "support/catch.hpp"

namespace parser_test {

using namespace sim::ptx;
using Kind = Operand::Kind;

const std::string kHeader = ".version 9.0\n.target sm_100f\n.address_size 64\n";

static Module parse_body(const std::string& body) {
  return parse(kHeader + ".visible .entry k(.param .u64 k_param_0)\n{\n" + body + "\n}\n");
}
static const Function& only(const Module& module) {
  REQUIRE(module.functions.size() == 1);
  return module.functions[0];
}
static sim::FaultKind kind_of(const std::string& text) {
  try {
    parse(text);
  } catch (const sim::Fault& fault) {
    return fault.kind();
  }
  FAIL("no fault for: " << text);
  return sim::FaultKind::kTrap;
}

TEST_CASE("the header, linkage and launch bounds of an entry are kept", "[parser]") {
  const Module m = parse(kHeader + R"(
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.visible .entry _Z1k6Params(
	.param .align 128 .b8 _Z1k6Params_param_0[896],
	.param .u64 .ptr .global .align 1 _Z1k6Params_param_1
)
.maxntid 192
.minnctapersm 1
.explicitcluster
.reqnctapercluster 2, 1, 1
{
	ret;
})");
  CHECK(m.version == "9.0");
  CHECK(m.target == "sm_100f");
  REQUIRE(m.functions.size() == 2);
  CHECK(m.functions[0].is_declaration);
  CHECK(m.functions[0].returns.size() == 1);
  CHECK(m.functions[0].params.size() == 2);
  const Function& k = m.functions[1];
  CHECK(k.is_entry);
  REQUIRE(k.params.size() == 2);
  CHECK(k.params[0].size == 896);
  CHECK(k.params[0].align == 128);
  CHECK(k.params[1].size == 8);
  CHECK(k.params[1].align == 8);  // .align 1 is that of what it points at
  CHECK(k.max_ntid[0] == 192);
  CHECK(k.max_ntid[2] == 1);
  CHECK(k.req_ntid[0] == 0);
  CHECK(k.explicit_cluster);
  CHECK(k.req_cluster[0] == 2);
}

TEST_CASE("variables carry size, alignment and initial values", "[parser]") {
  const Module m = parse(kHeader + R"(
.global .align 4 .u32 counter = 7;
.const .align 4 .f32 f[3] = {0f3F800000, 2.0};
.global .align 1 .b8 text[4] = {104, 105, 0x21};
.global .align 2 .u16 grid[2][2] = {{1}, {2, 3}};
.extern .shared .align 1024 .b8 dyn[];
)");
  REQUIRE(m.variables.size() == 5);
  // Offsets and bits.
  using Values = std::vector<std::pair<uint64_t, uint64_t>>;
  CHECK(m.variables[0].initial == Values{{0, 7}});
  CHECK(m.variables[1].initial == Values{{0, 0x3F800000}, {4, 0x40000000}});
  CHECK(m.variables[2].initial == Values{{0, 104}, {1, 105}, {2, 33}});
  CHECK(m.variables[3].initial == Values{{0, 1}, {4, 2}, {6, 3}});
  CHECK(m.variables[4].is_extern);
  CHECK(m.variables[4].size == 0);
  CHECK(m.variables[4].align == 1024);
  CHECK(kind_of(kHeader + ".global .u32 a; .global .u64 b = a;") == sim::FaultKind::kUnsupported);
  CHECK(kind_of(kHeader + ".global .u32 a[1] = {1, 2};") == sim::FaultKind::kSyntax);
}

TEST_CASE("opcodes split at dots but not at double colons", "[parser]") {
  const Module m = parse_body(
      ".reg .b32 %r<4>; .reg .b64 %rd<2>;\n"
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cta.global.tile.mbarrier::complete_tx::bytes "
      "[%r0], [%rd1, {%r1, %r2}], [%r3];");
  const Statement& s = only(m).body.at(0);
  CHECK(s.opcode == "cp");
  CHECK(s.qualifiers == std::vector<std::string>{"async", "bulk", "tensor", "2d", "cta_group::2",
                                                 "shared::cta", "global", "tile",
                                                 "mbarrier::complete_tx::bytes"});
  REQUIRE(s.operands.size() == 3);
  REQUIRE(s.operands[1].kind == Kind::kAddress);
  REQUIRE(s.operands[1].items.size() == 3);
  CHECK(only(m).registers[s.operands[1].items[0].reg].name == "%rd1");
  CHECK(only(m).registers[s.operands[1].items[2].reg].name == "%r2");
}

TEST_CASE("every shape of operand", "[parser]") {
  const Module m = parse_body(R"(
	.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 %f<2>; .reg .f64 %fd<2>;
	ld.global.v2.b32 {%r1, _}, [%rd1+-16];
	ld.param.u64 %rd2, [k_param_0+8];
	mov.u32 %r3, %tid.x;
	mov.b32 %r3, 0f3F800000;
	mov.f64 %fd1, 0dBFF0000000000000;
	mov.f64 %fd1, -1.5;
	mov.b32 %r3, -2147483648;
	mov.b64 %rd1, 0xFFFFFFFFFFFFFFFFU;
	elect.sync _|%p1, 0xFFFFFFFF;
	setp.lt.and.s32 %p1|%p2, %r1, 4 * (2 + 1), !%p0;
	mov.u32 %r4, WARP_SZ;
	st.shared.b32 [16], %r4;)");
  const auto& body = only(m).body;
  CHECK(body[0].operands[0].kind == Kind::kVector);
  CHECK(body[0].operands[0].items[1].kind == Kind::kSink);
  CHECK(body[0].operands[1].value == -16);
  CHECK(body[1].operands[1].items[0].name == "k_param_0");
  CHECK(body[1].operands[1].value == 8);
  CHECK(body[2].operands[1].kind == Kind::kSpecial);
  CHECK(body[2].operands[1].name == "%tid.x");
  CHECK(body[3].operands[1].kind == Kind::kFloat);
  CHECK(body[3].operands[1].bits32);
  CHECK(body[3].operands[1].value == 0x3F800000);
  CHECK(static_cast<uint64_t>(body[4].operands[1].value) == 0xBFF0000000000000u);
  CHECK(static_cast<uint64_t>(body[5].operands[1].value) == 0xBFF8000000000000u);
  CHECK_FALSE(body[5].operands[1].bits32);
  CHECK(body[6].operands[1].value == -2147483648LL);
  CHECK(body[7].operands[1].value == -1);
  REQUIRE(body[8].operands[0].kind == Kind::kPair);
  CHECK(body[8].operands[0].items[0].kind == Kind::kSink);
  CHECK(body[8].operands[0].items[1].kind == Kind::kRegister);
  CHECK(body[9].operands[2].value == 12);
  CHECK(body[9].operands[3].negated);
  CHECK(body[10].operands[1].value == 32);
  CHECK(body[11].operands[0].items[0].value == 16);
}

TEST_CASE("blocks scope registers and labels, innermost first", "[parser]") {
  const std::string wait =
      "{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2;\n"
      "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}\n";
  const Module m =
      parse_body(".reg .b32 %r<3>; .reg .pred P1;\n" + wait + wait + "@!P1 bra OUT;\nOUT:\nret;");
  const Function& k = only(m);
  REQUIRE(k.body.size() == 8);
  CHECK(k.body[1].operands[0].value == 3);
  CHECK(k.body[2].operands[0].value == 0);
  CHECK(k.body[4].operands[0].value == 6);
  CHECK(k.body[5].operands[0].value == 3);
  CHECK(k.body[1].guard != k.body[4].guard);
  CHECK(k.body[6].guard != k.body[1].guard);
  CHECK(k.body[6].guard_negated);
  CHECK_FALSE(k.body[1].guard_negated);
  CHECK(k.body[6].operands[0].kind == Kind::kLabel);
  CHECK(k.body[6].text == "@!P1 bra OUT");

  // A label of a block is not seen from outside.
  CHECK(kind_of(kHeader + ".func f()\n{\n{\nIN: ret;\n}\nbra IN;\n}") == sim::FaultKind::kSyntax);
}

TEST_CASE("variables of blocks get unique names, which operands use", "[parser]") {
  const std::string call = R"({ // callseq
	.param .b32 param0;
	st.param.b32 [param0], 1;
	call.uni (param0), g, (param0);
	}
)";
  const Module m =
      parse(kHeader + ".func (.param .b32 r) g(.param .b32 a) ;\n.entry k()\n{\n" + call + call + "ret;\n}");
  const Function& k = m.functions.at(1);
  REQUIRE(k.locals.size() == 2);
  CHECK(k.locals[0].name != k.locals[1].name);
  CHECK(k.body[0].operands[0].items[0].name == k.locals[0].name);
  CHECK(k.body[2].operands[0].items[0].name == k.locals[1].name);
  REQUIRE(k.body[1].operands.size() == 3);
  CHECK(k.body[1].operands[0].kind == Kind::kVector);
  CHECK(k.body[1].operands[1].name == "g");
  CHECK(k.body[1].operands[2].items[0].name == k.locals[0].name);
}

TEST_CASE("branch tables hold instruction indices", "[parser]") {
  const Module m = parse_body(
      ".reg .b32 %r<2>;\n$L_table: .branchtargets\n\tA,\n\tB;\nbrx.idx %r1, $L_table;\nA: ret;\nB: ret;");
  const Function& k = only(m);
  REQUIRE(k.body[0].operands[1].kind == Kind::kName);
  CHECK(k.branch_targets.at(k.body[0].operands[1].name) == std::vector<uint32_t>{1, 2});
}

TEST_CASE("a site names line, function and the chain of inlining", "[parser]") {
  const Module m = parse(kHeader + R"(.entry k()
{
	.loc	1 80 3
	.loc	2 41 5, function_name $L__info_string0, inlined_at 1 80 3
	bar.sync 0;
	.loc	2 42 5, function_name $L__info_string1, inlined_at 1 81 3
	ret;
}
	.file	1 "/build/kernel/dual_gemm.cuh"
	.file	2 "/build/kernel/mma.cuh"
	.section	.debug_str
	{
$L__info_string0:
.b8 95
.b8 90
.b8 51
.b8 102
.b8 111
.b8 111
.b8 118
.b8 0
$L__info_string1:
.b8 95,90,51,98,97
.b8 114,118,0
	}
)");
  const Site& site = m.functions[0].body[0].site;
  CHECK(site.source == "kernel/mma.cuh:41 in foo <- kernel/dual_gemm.cuh:80");
  CHECK(site.ptx_line == 8);
  CHECK(m.functions[0].body[1].site.source == "kernel/mma.cuh:42 in bar <- kernel/dual_gemm.cuh:81");
}

TEST_CASE("comments, several statements a line and empty statements", "[parser]") {
  const Module m =
      parse_body("/* a\n b */ .reg .b32 a, b; add.s32 a, a, 1; add.s32 /* c */ b, a, 2;; // end\nret;");
  const Function& k = only(m);
  REQUIRE(k.body.size() == 3);
  CHECK(k.body[1].text == "add.s32 b, a, 2");
  CHECK(k.body[1].site.ptx_line == 7);
}

TEST_CASE("errors name line and column and draw a caret", "[parser]") {
  const std::string text = kHeader + ".entry k()\n{\n\t.reg .b32 %r<2>;\n\tadd.s32 %r1, %r2, 1;\n}\n";
  CHECK_THROWS_WITH(parse(text), dualgemm_test::contains("ptx:7:15: undeclared register %r2"));
  CHECK_THROWS_WITH(parse(text), dualgemm_test::contains("\n  " + std::string(14, ' ') + "^"));
  for (const char* body :
       {"ret", "bra NOWHERE;", "add.s32 %r1, ;", "@%r1 ret;", "mov.b32 %r1, 0f3F8;", "A: A: ret;",
        "mov.b32 %r1, 99999999999999999999;", ".reg .b32 %r<1>; .reg .b32 %r<1>;", "ld.b32 %r1, [%r1;", "#",
        "mov.b32 %r1, \"a;", "/* open", "{ ret;"}) {
    INFO(body);
    CHECK(kind_of(kHeader + ".entry k()\n{ .reg .b32 %r1;\n" + body + "\n}") == sim::FaultKind::kSyntax);
  }
  CHECK(kind_of(kHeader + ".alias a, b;") == sim::FaultKind::kUnsupported);
  CHECK(kind_of(kHeader + ".entry k() .strange { ret; }") == sim::FaultKind::kUnsupported);
}

TEST_CASE("types have their widths and names", "[parser]") {
  Type type;
  CHECK((parse_type("bf16x2", &type) && type == Type::kBf16x2 && bits(type) == 32));
  CHECK((parse_type("b128", &type) && bits(type) == 128));
  CHECK((parse_type("pred", &type) && bits(type) == 1));
  CHECK_FALSE(parse_type("u24", &type));
}

}  // namespace parser_test
