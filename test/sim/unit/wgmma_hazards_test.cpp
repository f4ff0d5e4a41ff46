// wgmma_hazards_test.cpp -- what the ISA does not promise about wgmma: each way to break its rules, next to
// the program that keeps them.
#include "sim/unit/wgmma_fixture.hpp"
#include "support/catch.hpp"

namespace wgmma_hazards_test {

using namespace wgmma_test;
using sim::FaultKind;
using sim_test::fault_of;
using sim_test::says;

constexpr const char* kFence = "wgmma.fence.sync.aligned;\n";
constexpr const char* kCommit = "wgmma.commit_group.sync.aligned;\n";

static std::string wait(int groups) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(groups) + ";\n";
}

static Program small() {
  Program program;
  program.n = 16;
  return program;
}

static std::string rs(const Program& p, uint32_t first = 0) { return p.mma(false, "%p1, 1, 1, 0", first); }
static std::string ss(const Program& p, uint32_t first = 0) { return p.mma(true, "%p1, 1, 1, 0, 0", first); }

static sim::Fault fault_in(const Program& program, const std::string& mode = "default") {
  return fault_of([&] { run(Problem(program), mode); });
}

// True when the program ends in a fault of this kind that says all of `texts`.
static void refused(const Program& program, std::initializer_list<const char*> texts,
                    FaultKind kind = FaultKind::kProtocol) {
  for (const char* mode : {"default", "early", "late"}) {
    const sim::Fault fault = fault_in(program, mode);
    CAPTURE(mode, fault.what());
    CHECK(fault.kind() == kind);
    for (const char* text : texts) CHECK(says(fault, text));
  }
}

static std::set<std::string> rules(const Program& program, const std::string& mode = "default") {
  Verdicts verdicts;
  run(Problem(program), mode, 1, &verdicts.both);
  return verdicts.rules;
}

using Rules = std::set<std::string>;

TEST_CASE("wgmma: a register in flight is the tensor core's until wait_group", "[wgmma]") {
  Program program = small();
  SECTION("an accumulator is read") {
    program.body = rs(program) + kCommit + "add.f32 %f500, %f3, %f3;" + wait(0);
    refused(program, {"register %f3 is an accumulator of a wgmma in flight", "wgmma.wait_group", "add.f32"});
  }
  SECTION("an accumulator is written") {
    program.body = rs(program) + kCommit + "mov.f32 %f0, 0f00000000;" + wait(0);
    refused(program, {"register %f0 is an accumulator of a wgmma in flight"});
  }
  SECTION("a fragment of A is written") {
    program.body = rs(program) + kCommit + "mov.b32 %a2, 0;" + wait(0);
    refused(program, {"register %a2 is a fragment of A of a wgmma in flight", "mov.b32 %a2"});
  }
  SECTION("the group is not committed") {
    program.body = rs(program) + wait(0);
    refused(program, {"an accumulator of a wgmma in flight", "st.global"});
  }
  SECTION("one group too many may stay pending") {
    program.body = rs(program) + kCommit + wait(1);
    refused(program, {"register %f0 is an accumulator of a wgmma in flight"});
  }
  SECTION("the last of two groups is still pending") {
    program.body =
        rs(program) + kCommit + rs(program, 100) + kCommit + wait(1) + "mov.f32 %f500, %f0;\n" + wait(0);
    program.fence = "mov.f32 %f100, 0f00000000;" + std::string(kFence);
    for (int i = 101; i < 108; ++i)
      program.fence = "mov.f32 %f" + std::to_string(i) + ", 0f00000000;" + program.fence;
    CHECK_NOTHROW(run(Problem(program)));
    program.body =
        rs(program) + kCommit + rs(program, 100) + kCommit + wait(1) + "mov.f32 %f500, %f100;\n" + wait(0);
    refused(program, {"register %f100 is an accumulator of a wgmma in flight"});
  }
  SECTION("the warp exits") {
    program.body = rs(program) + kCommit + "bra END;\n";
    refused(program, {"has not waited for its wgmma"});
  }
}

TEST_CASE("wgmma: registers that threads used are fenced before the tensor core has them", "[wgmma]") {
  Program program = small();
  SECTION("no fence at all") {
    program.fence = "";
    program.body = rs(program) + kWait;
    refused(program, {"no wgmma.fence comes before the first wgmma"});
  }
  SECTION("an accumulator that was read after wait_group") {
    const std::string first = rs(program) + kWait + "add.f32 %f500, %f1, %f1;\n";
    program.body = first + kFence + rs(program) + kWait;
    CHECK_NOTHROW(run(Problem(program)));
    program.body = first + rs(program) + kWait;
    refused(program, {"register %f1 was last named by", "add.f32 %f500", "no wgmma.fence comes after that"});
  }
  SECTION("a fragment that was written after the fence") {
    program.body = "mov.b32 %a1, %a1;\n" + rs(program) + kWait;
    refused(program, {"register %a1 was last named by", "mov.b32"});
  }
  SECTION("accumulators of one shape need no fence between, those of another do") {
    Program half = program;
    half.n = 8;
    program.body = rs(program) + kCommit + wait(0) + rs(program) + kWait;
    CHECK_NOTHROW(run(Problem(program)));
    program.body = rs(program) + kCommit + wait(0) + kFence + rs(half) + kWait;
    CHECK_NOTHROW(run(Problem(program)));
    program.body = rs(program) + kCommit + wait(0) + rs(half) + kWait;
    refused(program, {"register %f0 was an accumulator of a wgmma of another shape"});
    program.body = rs(program) + kCommit + kFence + rs(half) + kWait;
    refused(program, {"register %f0 is an accumulator of a wgmma in flight"});
    Program bytes = program;  // another K
    bytes.a_format = bytes.b_format = kE4m3;
    const std::string of_bytes = bytes.mma(false, "%p1, 1, 1");
    program.body = rs(program) + kCommit + wait(0) + of_bytes + kWait;
    refused(program, {"register %f0 was an accumulator of a wgmma of another shape"});
    program.body = rs(program) + kCommit + kFence + of_bytes + kWait;
    refused(program, {"register %f0 is an accumulator of a wgmma in flight"});
    program.body = rs(half) + kCommit + kFence + rs(half, 2) + kWait;  // the same shape, shifted
    refused(program, {"register %f2 is an accumulator of a wgmma in flight"});
  }
}

TEST_CASE("wgmma: all four warps of a warpgroup execute the same", "[wgmma]") {
  Program program = small();
  SECTION("a warpgroup that is not whole") {
    program.threads = 96;
    program.body = ss(program) + kWait;
    refused(program, {"of a CTA of 3: a warpgroup is 4 warps"});
  }
  SECTION("half a warp") {
    program.body = "setp.lt.u32 %p4, %r0, 16; @%p4 " + ss(program) + kWait;
    CHECK(fault_in(program).kind() == FaultKind::kProtocol);
  }
  SECTION("a warp has left") {
    program.body = "setp.lt.u32 %p4, %r0, 32; @%p4 bra END;\n" + ss(program) + kWait;
    CHECK(says(fault_in(program), "warpgroup has ex"));
  }
  SECTION("other descriptors") {
    program.body = "setp.lt.u32 %p4, %r0, 32; @%p4 add.u64 %rd11, %rd11, 64;\n" + ss(program) + kWait;
    refused(program, {"the descriptors of a wgmma differ between the warps"});
  }
  SECTION("another scale-d") {
    program.body = "setp.lt.u32 %p4, %r0, 32;\n" + program.mma(true, "%p4, 1, 1, 0, 0") + kWait;
    refused(program, {"scale-d of a wgmma differs between the warps"});
  }
  SECTION("other instructions") {
    program.body = "setp.lt.u32 %p4, %r0, 32; @%p4 bra OTHER;\n" + ss(program) + kWait +
                   "bra STORE; OTHER:\n" + ss(program) + kWait + "STORE:\n";
    refused(program, {"the warps of a warpgroup execute different wgmma instructions"});
  }
  SECTION("a warp that never comes") {
    program.body = "setp.lt.u32 %p4, %r0, 32; @%p4 bar.sync 1, 64;\n" + ss(program) + kWait;
    refused(program,
            {"waits for 1 wgmma, of which 0 are complete; warp 0 of its warpgroup is behind",
             "waits for named barrier 1"},
            FaultKind::kDeadlock);
  }
}

TEST_CASE("wgmma: shared memory is read through the async proxy until wait_group", "[wgmma]") {
  Program program = small();
  const std::string store = "st.shared.u32 [%r3], %r0;\n";  // of this thread's own part of A
  program.body = "shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1;\n" + ss(program) + kCommit;
  SECTION("the fence of the proxy") {
    program.body += wait(0);
    for (const sim::Mode& mode : sim::modes()) CHECK(rules(program, mode.name) == Rules{});
    program.before = "bar.sync 0;";
    for (const sim::Mode& mode : sim::modes()) CHECK(rules(program, mode.name) == Rules{"proxy-fence"});
    program.before = "bar.sync 0; fence.proxy.async;";  // by each reader, after its acquire
    CHECK(rules(program) == Rules{});
    program.before = "fence.proxy.async;";
    CHECK(rules(program) == Rules{"race-async"});
  }
  SECTION("the stage is overwritten") {
    const std::string body = program.body;
    program.body = body + wait(0) + store;  // the operation is that of all four warps
    for (const sim::Mode& mode : sim::modes()) CHECK(rules(program, mode.name) == Rules{});
    program.body = body + store + wait(0);
    for (const sim::Mode& mode : sim::modes()) CHECK(rules(program, mode.name) == Rules{"race-async"});
    program.body = body + ss(program) + kCommit + wait(1) + store + wait(0);
    CHECK(rules(program) == Rules{"race-async"});
  }
  SECTION("another warpgroup overwrites it, told by one warp of the four") {
    program.threads = 256;
    program.fence = "setp.ge.u32 %p4, %r0, 128; @%p4 bra OVERWRITE; wgmma.fence.sync.aligned;\n";
    program.body += wait(0) + "setp.ge.u32 %p5, %r0, 32; @%p5 bra STORE; bar.arrive 1, 160; bra STORE;\n" +
                    "OVERWRITE: shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1; bar.sync 1, 160;\n" + store +
                    "bra END;\nSTORE:\n";
    CHECK(rules(program) == Rules{});
  }
}

TEST_CASE("wgmma: descriptors and elements that mean nothing", "[wgmma]") {
  Program program = small();
  const auto with = [&](const std::string& change) {
    program.body = change + ss(program) + kWait;
    return fault_in(program);
  };
  CHECK(says(with("or.b64 %rd11, %rd11, 16384;"), "bits 14-15"));
  CHECK(says(with("or.b64 %rd11, %rd11, 70368744177664;"), "bits 46-48"));  // tcgen05 has a constant there
  CHECK(with("or.b64 %rd10, %rd10, 562949953421312;").kind() == FaultKind::kUnsupported);  // base offset 1
  // Swizzle of 64 bytes, from the second row of the pattern.
  CHECK(says(with("xor.b64 %rd10, %rd10, 0xC000000000000000; add.u64 %rd10, %rd10, 4;"), "first row"));
  CHECK(with("add.u64 %rd11, %rd11, 8192;").kind() == FaultKind::kBounds);
  const auto load = [](const std::string& operands) {
    Program bad = small();
    bad.body = "wgmma.mma_async.sync.aligned." + operands + ";\n" + kWait;
    return fault_in(bad).kind();
  };
  CHECK(load("m64n16k16.f32.f16.bf16 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %rd10, %rd11, %p1, 1, 1, 0, 0") ==
        FaultKind::kUnsupported);
  CHECK(load("m64n8k16.f32.f16.f16 {%f0,%f1,%f2}, %rd10, %rd11, %p1, 1, 1, 0, 0") == FaultKind::kSyntax);
  CHECK(load("m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd10, %rd11, %p1, 2, 1, 0, 0") == FaultKind::kSyntax);
  CHECK(load("m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%a0,%a1,%a2,%a3}, %rd11, %p1, 1, 1, 0, 0") ==
        FaultKind::kSyntax);
  const std::string eight = " {%f0,%f1,%f2,%f3}, %rd10, %rd11, %p1, 1, 1";
  CHECK(load("m64n8k32.f32.e4m3.e5m2" + eight + ", 0, 0") == FaultKind::kSyntax);  // no transpositions
  CHECK(load("m64n8k32.f32.e4m3.e5m2" + eight + ", 0") == FaultKind::kSyntax);
  CHECK(load("m64n8k32.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, {%a0,%a1,%a2,%a3}, %rd11, %p1, 1, 1, 0") ==
        FaultKind::kSyntax);
  CHECK(load("m64n8k32.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, {%a0,%a1}, %rd11, %p1, 1, 1") == FaultKind::kSyntax);
  CHECK(load("m64n8k32.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, %rd10, %rd11, %p1, 1, 0") == FaultKind::kSyntax);
  CHECK(load("m64n8k32.f32.e4m3" + eight) == FaultKind::kSyntax);
  CHECK(load("m64n8k32.e4m3.e4m3.f32" + eight) == FaultKind::kSyntax);
  for (const char* form : {"m64n8k16.f32.e4m3.e4m3", "m64n8k32.f32.f16.f16", "m64n8k32.f32.e4m3.f16",
                           "m64n8k32.f16.e4m3.e4m3", "m64n8k32.s32.s8.s8", "m64n8k8.f32.tf32.tf32"})
    CHECK(load(form + eight) == FaultKind::kUnsupported);
  CHECK(load("m64n12k16.f32.f16.f16 {%f0,%f1,%f2,%f3,%f4,%f5}, %rd10, %rd11, %p1, 1, 1, 0, 0") ==
        FaultKind::kUnsupported);
}

TEST_CASE("wgmma: accumulators that nobody wrote are poison where they are read", "[wgmma]") {
  Program program = small();
  program.body = program.mma(false, "%p1, 1, 1, 0", 200) + kWait;
  refused(program, {"register %f200 is read by lane 0 but was never written"}, FaultKind::kPoison);
  program.body = program.mma(false, "%p2, 1, 1, 0", 200) + kWait + "mov.f32 %f0, %f200;";
  CHECK_NOTHROW(run(Problem(program)));
}

}  // namespace wgmma_hazards_test
