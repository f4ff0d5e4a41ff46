// tolerance_test.cpp -- what hardware tolerates: poison that decides nothing, and broken rules that the
// machine only remarks on. Next to each case is one that remains a fault.
#include <algorithm>

#include "sim/exec/observer.h"
#include "sim/exec/policy.h"
#include "sim/unit/lanes_fixture.hpp"
#include "support/catch.hpp"

namespace tolerance_test {

using namespace sim_test;
using sim::FaultKind;

struct Remarks : sim::Observer {
  std::vector<std::string> rules, outlives;
  void remark(const sim::Remark& e) override { rules.push_back(e.rule); }
  void outlived(FaultKind kind, const std::string& text) override {
    outlives.push_back(std::string(sim::name(kind)) + ": " + text);
  }
};

// As run_lanes, observed; what was stored to `out` is in `result`, zero where nothing was.
struct Watched {
  Remarks seen;
  std::vector<uint32_t> result;
};
static Watched watch(const std::string& body, uint32_t threads = 32, bool go_on = false,
                     const std::string& directives = "", const std::string& before = kBulkShared) {
  Watched out;
  Machine machine;
  uint32_t* memory = machine.make(std::vector<uint32_t>(threads));
  sim::LaunchOptions options;
  options.observer = &out.seen;
  options.go_on = go_on;
  options.patience = 1 << 16;
  machine.run(kernel_text(kOut, kProlog + body, before, directives), shape(1, threads), {&memory}, options);
  out.result = machine.fetch(memory, threads);
  return out;
}

static bool has(const std::vector<std::string>& all, const std::string& text) {
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

TEST_CASE("poison that is moved, computed with, shuffled or not selected is no fault", "[poison]") {
  const std::string body = GENERATE(std::string("mov.u32 %r3, %r2;"), "add.u32 %r3, %r2, 1;",
                                    "shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;", "mov.b64 %rd2, {%r2, %r1};",
                                    "mov.b64 {%r3, %r4}, %rd2;", "cvt.u64.u32 %rd2, %r2;");
  CAPTURE(body);
  CHECK_NOTHROW(run_lanes(body + "st.global.u32 [%rd1], %r1; ret;"));
  const auto out =
      run_lanes("setp.lt.u32 %p1, %r1, 40; selp.u32 %r3, %r1, %r2, %p1; st.global.u32 [%rd1], %r3; ret;");
  CHECK(out[31] == 31);
}

TEST_CASE("poison that decides a store, an address, a predicate or a branch is a fault that tells its way",
          "[poison]") {
  const std::string use = GENERATE(
      std::string("st.global.u32 [%rd1], %r4;"), "st.shared.u32 [%r4], %r1;",
      "setp.eq.u32 %p1, %r4, 0; @%p1 mov.u32 %r6, 1;",
      "add.u32 %r5, %r4, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra END; END:", "bar.sync %r4;",
      "setp.eq.or.u32 %p1, %r4, 0, %p2; @%p1 bra END; END:",
      "and.b32 %r5, %r4, 1; st.global.u32 [%rd1], %r5;",
      "setp.eq.u32 %p1, %r4, 0; selp.u32 %r5, 1, 2, %p1; st.global.u32 [%rd1], %r5;",
      "prmt.b32 %r5, %r1, %r4, 0x4210; st.global.u32 [%rd1], %r5;",
      ".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r4; ld.local.u32 %r5, [mine]; st.global.u32 [%rd1], %r5;",
      "selp.u32 %r5, 1, %r4, %p2; st.global.u32 [%rd1], %r5;");
  CAPTURE(use);
  const auto fault =
      lanes_fault("setp.gt.u32 %p2, %r1, 50; mov.u32 %r3, %r2; add.u32 %r4, %r3, 1;" + use + "ret;");
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "register %r2 was never written; it came by PTX line"));
  CHECK(says(fault, "mov.u32 %r3, %r2"));
}

TEST_CASE("what poison cannot change is defined", "[poison]") {
  // %r2 was never written; the lane is in %r1, and %p2 is false.
  const std::string use = GENERATE(
      std::string("setp.gt.and.u32 %p1, %r2, 3, %p2; selp.u32 %r3, 1, 5, %p1;"),
      "setp.le.or.u32 %p1, %r2, 3, !%p2; selp.u32 %r3, 5, 1, %p1;",
      "setp.gt.u32 %p1, %r2, 3; and.pred %p1, %p1, %p2; @!%p1 mov.u32 %r3, 5;",
      "setp.gt.u32 %p1, %r2, 3; not.pred %p3, %p2; or.pred %p1, %p1, %p3; @%p1 mov.u32 %r3, 5;",
      "and.b32 %r3, %r2, 0; add.u32 %r3, %r3, 5;", "or.b32 %r3, %r2, -1; add.u32 %r3, %r3, 6;",
      "setp.gt.u32 %p1, %r2, 3; selp.u32 %r3, 5, 5, %p1;", "mov.u32 %r4, 5; prmt.b32 %r3, %r4, %r2, 0x3210;",
      "setp.gt.and.u32 %p1|%p3, %r2, 3, %p2; selp.u32 %r3, 1, 5, %p1; @%p3 mov.u32 %r3, 1;",
      ".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r2; mov.u32 %r3, 5; st.local.u32 [mine], %r3;"
      "mov.u32 %r3, 6; ld.local.u32 %r3, [mine];",
      ".local .align 8 .b8 two[8]; mov.u32 %r4, 5; st.local.v2.u32 [two], {%r4, %r2}; ld.local.v2.u32 {%r3, %r5}, [two];");
  CAPTURE(use);
  const auto out = run_lanes("setp.gt.u32 %p2, %r1, 50;" + use + "st.global.u32 [%rd1], %r3; ret;");
  CHECK(out == std::vector<uint32_t>(32, 5));
}

// A kernel in which %r2 was never written, %r3 is %r2 with 5 in the low byte, %rd2 has %r2 in its upper word
// and 5 in its lower one, %r4 is 5, and %p2 is false.
std::string holed(const std::string& body) {
  return ".reg .b16 %h<8>; setp.gt.u32 %p2, %r1, 50; mov.u32 %r4, 5; bfi.b32 %r3, %r4, %r2, 0, 8; mov.b64 %rd2, {%r4, %r2};" +
         body + "ret;";
}

TEST_CASE("poison of some bits is that of no other bit", "[poison]") {
  const std::string use = GENERATE(
      std::string("and.b32 %r5, %r3, 255;"), "and.b32 %r5, %r3, %r4;",
      "and.b32 %r6, %r3, 0x0F; or.b32 %r5, %r6, 0;", "shl.b32 %r6, %r3, 24; shr.u32 %r5, %r6, 24;",
      "shl.b32 %r5, %r2, 32; add.u32 %r5, %r5, 5;", "bfe.u32 %r5, %r3, 0, 8;", "bfe.s32 %r5, %r3, 0, 8;",
      "prmt.b32 %r5, %r3, 0, 0x4440;", "shf.l.wrap.b32 %r6, 0, %r3, 24; shr.u32 %r5, %r6, 24;",
      "lop3.b32 %r5, %r3, 255, 0, 0xC0;", "cvt.u32.u8 %r5, %r3;", "cvt.s32.s8 %r5, %r3;",
      "cvt.u16.u32 %h1, %r3; and.b16 %h1, %h1, 255; cvt.u32.u16 %r5, %h1;", "mov.b64 {%r5, %r6}, %rd2;",
      "cvt.u32.u64 %r5, %rd2;", "shl.b64 %rd3, %rd2, 32; shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r5, %rd3;",
      "mul.lo.u32 %r5, %r2, 0; add.u32 %r5, %r5, 5;", "mad.lo.s32 %r5, %r2, 0, 5;",
      "mad.lo.s32 %r5, 0, %r2, %r4;", "mul.hi.u32 %r6, %r2, 0; add.u32 %r5, %r6, 5;",
      "mul.wide.u32 %rd3, %r2, 0; cvt.u32.u64 %r5, %rd3; add.u32 %r5, %r5, 5;",
      "mul.lo.u32 %r6, %r2, 256; or.b32 %r6, %r6, 5; and.b32 %r5, %r6, 255;",
      "add.u32 %r6, %r3, 3; sub.u32 %r6, %r6, 3; and.b32 %r5, %r6, 255;",
      "xor.b32 %r6, %r3, 1; xor.b32 %r6, %r6, 1; cvt.u32.u8 %r5, %r6;",
      "not.b32 %r6, %r3; not.b32 %r6, %r6; cvt.u32.u8 %r5, %r6;",
      "brev.b32 %r6, %r3; shr.u32 %r6, %r6, 24; shl.b32 %r6, %r6, 24; brev.b32 %r5, %r6;",
      "selp.b32 %r6, %r3, %r2, !%p2; and.b32 %r5, %r6, 7;",
      "shfl.sync.bfly.b32 %r6, %r3, 1, 31, -1; and.b32 %r5, %r6, 255;",
      ".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r3; ld.local.u8 %r5, [mine];",
      ".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r3; ld.local.u32 %r6, [mine]; and.b32 %r5, %r6, 255;",
      ".local .align 8 .b8 two[8]; st.local.v2.u32 [two], {%r4, %r2}; ld.local.u64 %rd3, [two]; cvt.u32.u64 %r5, %rd3;",
      "mov.b32 {%h1, %h2}, 5; mov.b32 %r6, {%h1, %h3}; add.f16x2 %r6, %r6, 0; and.b32 %r5, %r6, 0xFFFF;",
      "mov.f32 %f1, 0f40A00000; cvt.rn.bf16x2.f32 %r6, %f2, %f1; shl.b32 %r6, %r6, 16; mov.b32 %f3, %r6;"
      "cvt.rzi.u32.f32 %r5, %f3;",
      "st.shared.u8 [buffer], %r3; ld.shared.u8 %r5, [buffer];");
  CAPTURE(use);
  const auto out = run_lanes(holed(use + "st.global.u32 [%rd1], %r5;"), 32, kBulkShared);
  CHECK(out == std::vector<uint32_t>(32, 5));
}

TEST_CASE("a bit of poison that reaches a store is a fault that names it", "[poison]") {
  struct Use {
    std::string body, bits;
  };
  const Use use = GENERATE(
      Use{"and.b32 %r5, %r3, 256;", " in the bits 0x100"},
      Use{"mov.u32 %r5, %r3;", " in the bits 0xffffff00"},
      Use{"shr.u32 %r5, %r3, 7;", " in the bits 0x1fffffe"}, Use{"shr.s32 %r5, %r3, 30;", ""},
      Use{"bfe.u32 %r5, %r3, 4, 8;", " in the bits 0xf0"},
      Use{"bfe.s32 %r5, %r3, 4, 8;", " in the bits 0xfffffff0"},
      Use{"prmt.b32 %r5, %r3, 0, 0x4414;", " in the bits 0xff00"}, Use{"shl.b32 %r5, %r4, %r3;", ""},
      Use{"mul.lo.u32 %r5, %r3, 16;", " in the bits 0xfffff000"}, Use{"mul.lo.u32 %r5, %r2, 1;", ""},
      Use{"mul.hi.u32 %r5, %r3, 2;", ""}, Use{"mad.lo.u32 %r5, %r2, 0, %r3;", " in the bits 0xffffff00"},
      Use{"add.u32 %r5, %r3, 1;", " in the bits 0xffffff00"},
      Use{"sub.u32 %r5, 0, %r3;", " in the bits 0xffffff00"},
      Use{"cvt.s32.s16 %r5, %r3;", " in the bits 0xffffff00"}, Use{"cvt.sat.u8.u32 %r5, %r3;", ""},
      Use{"popc.b32 %r5, %r3;", ""}, Use{"min.u32 %r5, %r3, 0;", ""},
      Use{"mul.f32 %f1, %f2, 0f00000000; mov.b32 %r5, %f1;", ""}, Use{"mov.b64 {%r6, %r5}, %rd2;", ""},
      Use{"shr.u64 %rd3, %rd2, 16; cvt.u32.u64 %r5, %rd3;", " in the bits 0xffff0000"},
      Use{"shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;", " in the bits 0xffffff00"},
      Use{".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r3; ld.local.u16 %r5, [mine];",
          " in the bits 0xff00"},
      Use{".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r3; ld.local.s16 %r5, [mine];",
          " in the bits 0xffffff00"},
      Use{"setp.ne.u32 %p1, %r3, 5; selp.u32 %r5, 4, 6, %p1;", " in the bits 0x2"});
  CAPTURE(use.body);
  const auto fault = lanes_fault(holed(use.body + "st.global.u32 [%rd1], %r5;"));
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "register %r5 is read by lane 0 but" + use.bits + " holds no value: "));
}

TEST_CASE("poison of some lanes is that of no other", "[poison]") {
  const auto out = run_lanes(R"(
    setp.lt.u32 %p1, %r1, 4; @%p1 mov.u32 %r2, 5;
    add.u32 %r3, %r2, %r1; st.global.u32 [%rd1], %r1; @%p1 st.global.u32 [%rd1], %r3; ret;)");
  CHECK(out[3] == 8);
  CHECK(out[4] == 4);
}

TEST_CASE("cells of tensor memory that nobody wrote may be loaded, not used", "[poison]") {
  const auto body = [](const std::string& use) {
    return "mov.u32 %r2, buffer; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;"
           "ld.shared.u32 %r3, [%r2]; tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r4, %r5}, [%r3];"
           "tcgen05.wait::ld.sync.aligned; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;" +
           use + "st.global.u32 [%rd1], %r1; ret;";
  };
  CHECK_NOTHROW(run_lanes(body(""), 32, kBulkShared));
  const auto fault = lanes_fault(body("st.global.u32 [%rd1], %r5;"), 32, kBulkShared);
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "read by lane 0 but holds no value: TMEM lane 0 column 1 was never written; it came by"));
  CHECK(says(fault, "tcgen05.ld"));
}

TEST_CASE("half a register of tensor memory that nobody wrote is no more than that", "[poison]") {
  const auto body = [](const std::string& use) {
    return "mov.u32 %r2, buffer; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;"
           "ld.shared.u32 %r3, [%r2]; mov.u32 %r6, 5; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r6};"
           "tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%r4}, [%r3];"
           "tcgen05.wait::ld.sync.aligned; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;" +
           use + "st.global.u32 [%rd1], %r4; ret;";
  };
  CHECK(run_lanes(body("and.b32 %r4, %r4, 0xFFFF;"), 32, kBulkShared) == std::vector<uint32_t>(32, 5));
  const auto fault = lanes_fault(body(""), 32, kBulkShared);
  CHECK(says(fault, "in the bits 0xffff0000 holds no value: TMEM lane 0 column 1 was never written"));
}

TEST_CASE("the origin of poison is that of the lane that uses it", "[poison]") {
  const auto body = [](const std::string& use) {
    return "setp.lt.u32 %p1, %r1, 16; mov.u32 %r4, %r2; @!%p1 mov.u32 %r4, %r3;" + use +
           "setp.eq.u32 %p2, %r1, 5; @%p2 st.global.u32 [%rd1], %r4; ret;";
  };
  const auto own = lanes_fault(body(""));
  CHECK(says(own, "register %r4 is read by lane 5 but holds no value: register %r2 was never written"));
  const auto of_another = lanes_fault(body("shfl.sync.bfly.b32 %r4, %r4, 16, 31, -1;"));
  CHECK(
      says(of_another, "register %r4 is read by lane 5 but holds no value: register %r3 was never written"));
}

TEST_CASE("an address of tcgen05.ld or .st that names lanes of another place is remarked on", "[remark]") {
  struct Shape {
    const char *name, *registers, *split;
    bool whole_quarter;
  };
  const Shape shape = GENERATE(Shape{"32x32b.x1", "%r1", "", true}, Shape{"16x64b.x1", "%r1", "", false},
                               Shape{"16x128b.x1", "%r1, %r1", "", false},
                               Shape{"16x256b.x1", "%r1, %r1, %r1, %r1", "", false},
                               Shape{"16x32bx2.x1", "%r1", ", 1", false});
  CAPTURE(shape.name);
  const auto rules = [&](int lane) {
    const std::string name = shape.name, store_split = shape.split, registers = shape.registers;
    const std::string into = registers.size() > 8   ? "%r10, %r11, %r12, %r13"
                             : registers.size() > 4 ? "%r10, %r11"
                                                    : "%r10";
    const auto run = [&](const std::string& access) {
      return watch(
                 "mov.u32 %r2, buffer; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;"
                 "ld.shared.u32 %r3, [%r2]; add.u32 %r5, %r3, " +
                 std::to_string(lane << 16) + ";" + access +
                 "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32; ret;")
          .seen.rules;
    };
    const auto stored = run("tcgen05.st.sync.aligned." + name + ".b32 [%r5]" + store_split + ", {" +
                            registers + "}; tcgen05.wait::st.sync.aligned;");
    const auto loaded = run("tcgen05.ld.sync.aligned." + name + ".b32 {" + into + "}, [%r5]" + store_split +
                            "; tcgen05.wait::ld.sync.aligned;");
    CHECK(stored == loaded);
    return loaded;
  };
  const std::vector<std::string> once{"tmem-lane-bits"}, nothing;
  CHECK(rules(0).empty());
  CHECK(rules(32) == once);
  CHECK(rules(128).empty());  // the rank bit of pair kernels
  CHECK(rules(16) == (shape.whole_quarter ? once : nothing));
  CHECK(rules(7) == once);
  CHECK(rules(128 + 24) == once);
  CHECK(fault_of([&] { rules(256); }).kind() == FaultKind::kBounds);
}

// %rd2 is the shared address of `buffer`, %rd3 its generic address, %rd4 the shared one below other upper
// bits.
const char* const kWideAddresses = R"(
  mov.u32 %r2, buffer; cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd3, %rd2; or.b64 %rd4, %rd2, 0x1234500000000;
)";

TEST_CASE("an address of a named shared space is truncated to the 32 bits of that space", "[memory]") {
  const std::string at = "[" + std::string(GENERATE("%rd2", "%rd3", "%rd4")) + "]";
  CAPTURE(at);
  const auto run = [&](const std::string& body, const std::string& load) {
    return run_lanes(kWideAddresses + body + load + " st.global.u32 [%rd1], %r4; ret;", 1, kBulkShared);
  };
  const std::string load = "ld.shared.u32 %r4, [buffer];";
  const std::vector<uint32_t> five{5};
  CHECK(run("st.shared.u32 " + at + ", 5;", load) == five);
  CHECK(run("st.shared.u32 [buffer], 5;", "ld.shared.u32 %r4, " + at + ";") == five);
  CHECK(run("st.shared.u32 [buffer], 5;", "ld.shared::cluster.u32 %r4, " + at + ";") == five);
  CHECK(run("st.shared.u32 [buffer], 3;", "red.shared.add.u32 " + at + ", 2;" + load) == five);
  CHECK(run("st.global.u32 [%rd1], 5; cp.async.ca.shared.global " + at + ", [%rd1], 4;",
            "cp.async.wait_all;" + load) == five);
  CHECK(run("mbarrier.init.shared::cta.b64 " + at + ", 7;",
            "mbarrier.arrive.shared::cta.b64 %rd5, [buffer]; mbarrier.pending_count.b64 %r4, %rd5;"
            "sub.u32 %r4, %r4, 2;") == five);
  CHECK_NOTHROW(watch(kWideAddresses + ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 " + at) +
                      ", 32; ld.shared.u32 %r4, [buffer];"
                      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32; ret;"));
}

TEST_CASE("the lower half of a generic address of another CTA names that CTA in shared::cluster only",
          "[memory]") {
  const auto body = [](const std::string& load) {
    return kWideAddresses + std::string(R"(
      mov.u32 %r3, %cluster_ctarank; st.shared.u32 [buffer], %r3; xor.b32 %r3, %r3, 1; mapa.u64 %rd5, %rd3, %r3;
      mov.u32 %r5, %ctaid.x; mul.wide.u32 %rd6, %r5, 4; add.u64 %rd1, %rd1, %rd6;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)") +
           load +
           "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; st.global.u32 [%rd1], %r4; ret;";
  };
  CHECK(run_lanes(body("ld.shared::cluster.u32 %r4, [%rd5];"), 1, kBulkShared, 2, 2) ==
        std::vector<uint32_t>{1, 0});
  CHECK(lanes_fault(body("ld.shared::cta.u32 %r4, [%rd5];"), 1, kBulkShared, 2, 2).kind() ==
        FaultKind::kBounds);
}

TEST_CASE("an address is not truncated if no space is named, and has to be in shared memory if one is",
          "[memory]") {
  const std::string use = GENERATE("ld.u32 %r4, [%rd4];", "mbarrier.init.shared::cta.b64 [%rd9], 1;",
                                   "add.u64 %rd5, %rd3, 0x100000000; ld.u32 %r4, [%rd5];",
                                   "ld.shared.u32 %r4, [%rd4+4096];", "st.shared.u32 [%rd4+-4096], %r1;");
  CAPTURE(use);
  CHECK(lanes_fault(kWideAddresses + use + "ret;", 1, kBulkShared).kind() == FaultKind::kBounds);
}

TEST_CASE("a tcgen05.commit that gets a shared address as a generic one is remarked on", "[remark]") {
  const auto rules = [](const std::string& address, const std::string& space = "") {
    return watch(kWideAddresses +
                     ("mbarrier.init.shared::cta.b64 [%r2], 1;"
                      "tcgen05.commit.cta_group::1.mbarrier::arrive::one" +
                      space + ".b64 [" + address + "];") +
                     "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT; ret;",
                 1)
        .seen.rules;
  };
  const std::vector<std::string> once{"commit-shared-address"};
  CHECK(rules("%rd2") == once);
  CHECK(rules("%r2") == once);
  CHECK(rules("%rd3").empty());
  for (const char* const address : {"%r2", "%rd2", "%rd3", "%rd4"})
    CHECK(rules(address, ".shared::cluster").empty());
  CHECK(fault_of([&] { rules("%rd4"); }).kind() == FaultKind::kBounds);
  CHECK(fault_of([&] { rules("%rd2+4096"); }).kind() == FaultKind::kBounds);
}

TEST_CASE("warps of a warpgroup that ask for different registers are remarked on", "[remark][setmaxnreg]") {
  const auto rules = [](const std::string& second) {
    return watch("setp.lt.u32 %p1, %r1, 32; @%p1 bra FIRST; " + second +
                     " bra DONE; FIRST: setmaxnreg.dec.sync.aligned.u32 32; DONE: ret;",
                 128, false, ".maxnreg 64")
        .seen.rules;
  };
  CHECK(rules("setmaxnreg.dec.sync.aligned.u32 32;").empty());
  const std::vector<std::string> once{"setmaxnreg-warpgroup"};
  CHECK(rules("setmaxnreg.dec.sync.aligned.u32 40;") == once);
  CHECK(rules("") == once);
  CHECK(rules("setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.dec.sync.aligned.u32 24;") == once);
  CHECK(fault_of([&] { rules("setmaxnreg.dec.sync.aligned.u32 20;"); }).kind() == FaultKind::kProtocol);
}

TEST_CASE("a grid that goes on tells every fault and judges what lies behind it", "[outlived]") {
  const auto faults = [](const std::string& body) {
    const Watched run = watch(body + "mov.u32 %r20, 7; st.global.u32 [%rd1], %r20; ret;", 32, true);
    CHECK(run.result == std::vector<uint32_t>(32, 7));
    return run.seen.outlives;
  };
  CHECK(faults("").empty());
  CHECK(has(faults("st.global.u32 [%rd1], %r2;"), "unwritten value: register %r2 is read by lane 0"));
  CHECK(has(faults("bfi.b32 %r3, 7, %r2, 0, 8; st.global.u32 [%rd1], %r3;  setp.eq.u32 %p1, %r3, 7;"
                   "@!%p1 trap;"),
            "register %r3 is read by lane 0 but in the bits 0xffffff00 holds no value"));
  CHECK(has(faults("st.global.u32 [%rd1+4096], %r1;"), "write of 4 bytes at global address"));
  CHECK(has(faults("ld.global.u32 %r3, [%rd1+2]; add.u32 %r4, %r3, 1;"), "misaligned"));
  CHECK(has(faults("mov.u32 %r2, bar; mbarrier.arrive.shared::cta.b64 _, [%r2];"), "mbarrier"));
  CHECK(
      has(faults("setp.lt.u32 %p1, %r1, 4; @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"),
          "aligned instruction in divergent code"));
  const auto two = faults("st.global.u32 [%rd1+4096], %r1; st.shared.u32 [%r3], %r1;");
  CHECK(has(two, "st.global.u32 [%rd1+4096]"));
  CHECK(has(two, "st.shared.u32 [%r3]"));
}

TEST_CASE("beside a trap the others go on as far as they can, and nothing that they wait for is told",
          "[outlived]") {
  // The second warp does its part when the first has trapped.
  const std::string trap =
      "setp.lt.u32 %p1, %r1, 32; @%p1 trap; mov.u32 %r20, 7; st.global.u32 [%rd1], %r20;";
  std::vector<uint32_t> others(64);
  std::fill(others.begin() + 32, others.end(), 7);
  const auto rest = GENERATE(std::string("ret;"), "bar.sync 0; ret;",
                             "SPIN: ld.volatile.global.u32 %r3, [%rd9]; setp.eq.u32 %p2, %r3, 0;"
                             "@%p2 bra SPIN; ret;",
                             "mov.u32 %r3, 0; COUNT: add.u64 %rd2, %rd2, 1; bra COUNT;");
  CAPTURE(rest);
  const Watched run = watch(trap + rest, 64, true);
  CHECK(run.result == others);
  REQUIRE(run.seen.outlives.size() == 1);
  CHECK(has(run.seen.outlives, "trap: the program executed trap\n  in kernel k, CTA (0,0,0), warp 0"));
  CHECK(fault_of([&] { watch(trap + rest, 64); }).kind() == FaultKind::kTrap);
  const Watched worse = watch(trap + "st.global.u32 [%rd1+4096], %r1; ret;", 64, true);
  CHECK(has(worse.seen.outlives, "write of 4 bytes at global address"));
}

TEST_CASE("a deadlock ends its grid, and not the program if that is asked for", "[outlived]") {
  const std::string body = R"(
    mov.u32 %r20, 7; st.global.u32 [%rd1], %r20;
    mov.u32 %r2, bar; mov.u32 %r4, 0; mbarrier.init.shared::cta.b64 [%r2], 1;
  WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r4;
    @!%p1 bra WAIT;
    ret;)";
  const Watched run = watch(body, 1, true);
  CHECK(run.result[0] == 7);
  REQUIRE(run.seen.outlives.size() == 1);
  CHECK(has(run.seen.outlives, "deadlock: deadlock in kernel k: nothing can move"));
  CHECK(fault_of([&] { watch(body, 1); }).kind() == FaultKind::kDeadlock);
}

TEST_CASE("a grid that goes on past a copy that failed does not wait for it for ever", "[outlived]") {
  const Watched run = watch(R"(
    mov.u32 %r2, bar; mov.u32 %r3, buffer; add.u64 %rd2, %rd9, 65536; mov.u32 %r4, 0;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 64, [%r2];
  WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r4;
    @!%p1 bra WAIT;
    ld.shared.u32 %r5, [%r3]; mov.u32 %r5, 9; st.global.u32 [%rd1], %r5; ret;)",
                            1, true);
  CHECK(run.result[0] == 9);
  REQUIRE(run.seen.outlives.size() == 2);
  CHECK(has({run.seen.outlives[0]}, "asynchronous operation: read of 64 bytes"));
  CHECK(has({run.seen.outlives[1]}, "ld.shared.u32 %r5"));  // what the copy did not bring
}

TEST_CASE("elect.sync elects the lowest lane where that is asked for", "[elect]") {
  struct Last : sim::DefaultPolicy {
    uint32_t leader(uint32_t members) override { return 31 - uint32_t(__builtin_clz(members)); }
  } last;
  for (const bool lowest : {false, true}) {
    Machine machine;
    uint32_t* memory = machine.make<uint32_t>(32);
    sim::LaunchOptions options;
    options.policy = &last;
    options.elect_lowest = lowest;
    machine.run(
        kernel_text(kOut, kProlog + std::string("elect.sync %r2|%p1, -1; st.global.u32 [%rd1], %r2; ret;")),
        shape(1, 32), {&memory}, options);
    CHECK(machine.fetch(memory, 32)[0] == (lowest ? 0 : 31));
  }
}

}  // namespace tolerance_test
