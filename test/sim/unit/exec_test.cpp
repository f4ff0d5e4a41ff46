// exec_test.cpp -- the machine runs small hand-written PTX: lanes, branches, functions, memory, and the texts
// of what goes wrong.
#include "sim/unit/lanes_fixture.hpp"
#include "support/catch.hpp"

namespace exec_test {

using namespace sim_test;
using sim::FaultKind;

TEST_CASE("a loop with arithmetic gives every lane its own sum", "[exec]") {
  const auto out = run_lanes(R"(
    mov.u32 %r2, 0; mov.u32 %r3, 0;
  LOOP:
    add.s32 %r2, %r2, %r3; add.s32 %r3, %r3, 1;
    setp.le.u32 %p1, %r3, %r1;
    @%p1 bra LOOP;
    st.global.u32 [%rd1], %r2; ret;)");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == lane * (lane + 1) / 2);
}

TEST_CASE(
    "lanes that diverge meet again: "
    "a full-warp shuffle after a branch needs no synchronisation of its own",
    "[exec]") {
  const auto out = run_lanes(R"(
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN;
    mul.lo.u32 %r3, %r1, 10; bra.uni MEET;
  EVEN:
    mul.lo.u32 %r3, %r1, 100;
  MEET:
    shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
    st.global.u32 [%rd1], %r4; ret;)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t other = lane ^ 1;
    CHECK(out[lane] == other * (other % 2 == 0 ? 100 : 10));
  }
}

TEST_CASE("lanes that leave a loop at different iterations are converged after it", "[exec]") {
  const auto out = run_lanes(R"(
    mov.u32 %r2, 0;
  LOOP:
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    add.u32 %r2, %r2, 1; bra LOOP;
  DONE:
    bar.sync 0;
    st.global.u32 [%rd1], %r2; ret;)");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == lane);
}

TEST_CASE("a lane may spin on another lane of its warp that waits to reconverge", "[exec]") {
  const auto out = run_lanes(R"(
    mov.u32 %r5, 0; st.global.u32 [%rd1], %r5;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra FIRST;
  SPIN:
    ld.volatile.global.u32 %r2, [%rd9];
    setp.ne.u32 %p2, %r2, 7;
    @%p2 bra SPIN;
    bra.uni MEET;
  FIRST:
    mov.u32 %r3, 7; st.volatile.global.u32 [%rd9], %r3;
  MEET:
    mov.u32 %r4, 7; st.global.u32 [%rd1], %r4; ret;)",
                             32, "");
  for (uint32_t value : out) CHECK(value == 7);
}

TEST_CASE("lanes that wait long for one that works meet it at the barrier", "[exec]") {
  const auto out = run_lanes(R"(
    mov.u32 %r2, 0; setp.ne.u32 %p1, %r1, 0;
    @%p1 bra MEET;
  WORK:
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3000000;
    @%p2 bra WORK;
  MEET:
    bar.sync 0; bar.sync 0;
    st.global.u32 [%rd1], %r2; ret;)");
  CHECK(out[0] == 3000000);
  CHECK(out[31] == 0);
}

TEST_CASE("a lane that spins for ever is a deadlock, whatever the lanes that wait for it would do",
          "[exec]") {
  const auto fault = lanes_fault(R"(
    mov.u32 %r2, 0; setp.ne.u32 %p1, %r1, 0; st.global.u32 [%rd1], %r2;
    @%p1 bra MEET;
  SPIN:
    ld.volatile.global.u32 %r3, [%rd9]; setp.eq.u32 %p2, %r3, 0;
    @%p2 bra SPIN;
  MEET:
    bar.sync 0; ret;)");
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "livelock"));
  const std::string text = fault.what();
  const size_t reads = text.find("warp 0, lane 0 reads global address 0x");
  REQUIRE(reads != std::string::npos);
  CHECK(text.find("again and again, which nobody will write, at PTX line") > reads);
  CHECK(text.find("waits for named barrier") > reads);  // what follows from it
}

TEST_CASE("shfl.up, shfl.down and shfl.idx clamp at the ends and say so", "[exec]") {
  const auto out = run_lanes(R"(
    shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1;
    shfl.sync.down.b32 %r3|%p2, %r1, 3, 31, -1;
    shfl.sync.idx.b32 %r4, %r1, 5, 31, -1;
    selp.u32 %r5, 256, 0, %p1; selp.u32 %r6, 512, 0, %p2;
    shl.b32 %r3, %r3, 16; shl.b32 %r4, %r4, 24;
    or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4; or.b32 %r2, %r2, %r5; or.b32 %r2, %r2, %r6;
    st.global.u32 [%rd1], %r2; ret;)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t up = lane >= 3 ? lane - 3 : lane, down = lane + 3 <= 31 ? lane + 3 : lane;
    CHECK(out[lane] == ((lane >= 3 ? 256u : 0) | (lane + 3 <= 31 ? 512u : 0) | up | down << 16 | 5u << 24));
  }
}

TEST_CASE("vote, redux, match and elect see exactly the lanes of the mask", "[exec]") {
  const auto out = run_lanes(R"(
    setp.lt.u32 %p1, %r1, 5;
    vote.sync.ballot.b32 %r2, %p1, -1;
    redux.sync.add.u32 %r3, %r1, -1;
    shr.u32 %r4, %r1, 4;
    match.any.sync.b32 %r5, %r4, -1;
    elect.sync _|%p2, -1;
    selp.u32 %r6, 1, 0, %p2;
    xor.b32 %r7, %r2, %r3; xor.b32 %r7, %r7, %r5; xor.b32 %r7, %r7, %r6;
    st.global.u32 [%rd1], %r7; ret;)");
  uint32_t leaders = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t rest = out[lane] ^ 0x1Fu ^ 496u ^ (lane < 16 ? 0x0000FFFFu : 0xFFFF0000u);
    REQUIRE(rest <= 1);
    leaders += rest;
  }
  CHECK(leaders == 1);
}

TEST_CASE("pack and unpack order the parts from the low bits", "[exec]") {
  const auto out = run_lanes(R"(
    .reg .b16 %h<4>;
    mov.u32 %r2, 0x1234ABCD;
    mov.b32 {%h1, %h2}, %r2;
    mov.b32 %r3, {%h2, %h1};
    mov.b64 %rd2, {%r2, %r3};
    mov.b64 {%r4, %r5}, %rd2;
    xor.b32 %r6, %r4, %r5;
    st.global.u32 [%rd1], %r6; ret;)");
  CHECK(out[0] == (0x1234ABCDu ^ 0xABCD1234u));
}

TEST_CASE("shared memory carries values between warps across bar.sync", "[exec]") {
  const auto out = run_lanes(R"(
    mov.u32 %r2, buffer;
    shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    mov.u32 %r5, 127; sub.u32 %r5, %r5, %r1; shl.b32 %r5, %r5, 2; add.u32 %r5, %r2, %r5;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd1], %r6; ret;)",
                             128, ".shared .align 16 .b8 buffer[512];");
  for (uint32_t i = 0; i < 128; ++i) CHECK(out[i] == 127 - i);
}

TEST_CASE("a generic address reaches shared and local memory, and comes back", "[exec]") {
  const auto out = run_lanes(R"(
    .local .align 8 .b8 stack[16];
    mov.u64 %rd2, stack; cvta.local.u64 %rd3, %rd2;
    st.u32 [%rd3+8], %r1;
    ld.local.u32 %r2, [%rd2+8];
    mov.u64 %rd4, buffer; cvta.shared.u64 %rd5, %rd4; add.s64 %rd5, %rd5, %rd8;
    st.u32 [%rd5], %r2;
    cvta.to.shared.u64 %rd6, %rd5; ld.shared.u32 %r3, [%rd6];
    st.global.u32 [%rd1], %r3; ret;)",
                             32, ".shared .align 16 .b8 buffer[128];");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == lane);
}

TEST_CASE(
    "dynamic shared memory starts behind the static variables, aligned as declared, "
    "above the reserved kilobyte",
    "[exec]") {
  const auto out =
      run_lanes(R"(
    mov.u32 %r2, dynamic; mov.u32 %r3, fixed; st.shared.u32 [%r3], %r1;
    st.global.u32 [%rd1], %r2; ret;)",
                1, ".shared .align 4 .b8 fixed[20];\n.extern .shared .align 1024 .b8 dynamic[];", 1, 1, 64);
  CHECK(out[0] == 2048);
}

TEST_CASE("named barriers let a producer warp run ahead of a consumer warp", "[exec]") {
  const auto out = run_lanes(R"(
    mov.u32 %r2, cell; setp.ge.u32 %p1, %r1, 32;
    @%p1 bra CONSUMER;
    setp.eq.u32 %p2, %r1, 0; mov.u32 %r3, 42;
    @%p2 st.shared.u32 [%r2], %r3;
    bar.arrive 3, 64;
    st.global.u32 [%rd1], %r1; ret;
  CONSUMER:
    bar.sync 3, 64;
    ld.shared.u32 %r4, [%r2]; st.global.u32 [%rd1], %r4; ret;)",
                             64, ".shared .align 4 .b8 cell[4];");
  for (uint32_t i = 32; i < 64; ++i) CHECK(out[i] == 42);
}

TEST_CASE("atomics of all lanes add up and return distinct old values", "[exec]") {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(64);
  uint32_t* counter = machine.make(std::vector<uint32_t>{0});
  machine.run(kernel_text(".param .u64 out, .param .u64 counter", std::string(kProlog) + R"(
    ld.param.u64 %rd2, [counter];
    atom.global.add.u32 %r2, [%rd2], 1;
    st.global.u32 [%rd1], %r2;
    red.global.max.u32 [%rd2], 7;
    ret;)"),
              shape(1, 64), {&out, &counter});
  std::vector<bool> seen(64);
  for (uint32_t old : machine.fetch(out, 64)) {
    REQUIRE(old < 64);
    CHECK_FALSE(seen[old]);
    seen[old] = true;
  }
  CHECK(machine.fetch(counter, 1)[0] == 64);
}

TEST_CASE("a device function is called with parameters and returns a value", "[exec]") {
  const auto out = run_lanes(R"(
    { .param .b32 a; .param .b32 result;
      st.param.b32 [a], %r1;
      call.uni (result), twice, (a);
      ld.param.b32 %r2, [result]; }
    st.global.u32 [%rd1], %r2; ret;)",
                             32, R"(
    .func (.param .b32 r) twice(.param .b32 x) {
      .reg .b32 %r<3>;
      ld.param.b32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
    })");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == 2 * lane);
}

TEST_CASE("a register nobody wrote is named", "[exec]") {
  const auto fault =
      lanes_fault("setp.lt.u32 %p1, %r1, 4; @%p1 mov.u32 %r2, 1; st.global.u32 [%rd1], %r2; ret;");
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "register %r2 is read by lane 4 but was never written"));
  CHECK(says(fault, "st.global.u32 [%rd1], %r2"));
}

TEST_CASE(
    "accesses outside memory, misaligned accesses and stray shared addresses "
    "are faults that name the place",
    "[exec]") {
  SECTION("global") {
    const auto fault = lanes_fault("st.global.u32 [%rd1+128], %r1; ret;");
    CHECK(fault.kind() == FaultKind::kBounds);
    CHECK(says(fault, "byte 128 of test buffer"));
    CHECK(says(fault, "kernel k"));
  }
  SECTION("misaligned") {
    const auto fault = lanes_fault("st.global.u32 [%rd9+2], %r1; ret;");
    CHECK(fault.kind() == FaultKind::kMisaligned);
  }
  SECTION("shared, below the usable window") {
    const auto fault = lanes_fault("mov.u32 %r2, 0; ld.shared.u32 %r3, [%r2]; ret;", 32, kBulkShared);
    CHECK(fault.kind() == FaultKind::kBounds);
  }
  SECTION("shared::cta with another CTA's address") {
    const auto fault = lanes_fault(R"(
      mov.u32 %r2, buffer; xor.b32 %r2, %r2, 0x01000000; st.shared::cta.u32 [%r2], %r1; ret;)",
                                   32, kBulkShared, 2, 2);
    CHECK(fault.kind() == FaultKind::kBounds);
    CHECK(says(fault, "belongs to CTA rank 1"));
  }
  SECTION("unwritten shared memory") {
    const auto fault = lanes_fault(
        "mov.u32 %r2, buffer; ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd1], %r3; ret;", 32, kBulkShared);
    CHECK(fault.kind() == FaultKind::kPoison);
  }
  SECTION("ordinary store over a live mbarrier") {
    const auto fault = lanes_fault(
        "mov.u32 %r2, bar; mbarrier.init.shared::cta.b64 [%r2], 1; st.shared.u32 [%r2+4], %r1; ret;", 1,
        kBulkShared);
    CHECK(fault.kind() == FaultKind::kProtocol);
  }
}

TEST_CASE(
    "a second arrival at the cluster barrier needs a wait between, also when the first has completed it",
    "[exec]") {
  const std::string arrive = "barrier.cluster.arrive.aligned; ", wait = "barrier.cluster.wait.aligned; ";
  for (const uint32_t cluster : {1u, 2u}) {
    const auto fault = lanes_fault(arrive + arrive + "ret;", 32, "", cluster, cluster);
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, "twice without barrier.cluster.wait"));
  }
  const std::string store = "st.global.u32 [%rd1], %r1; ret;";
  CHECK_NOTHROW(run_lanes(arrive + wait + arrive + wait + store));
}

TEST_CASE("an aligned instruction in divergent code is a protocol fault that names both places", "[exec]") {
  const auto fault = lanes_fault(R"(
    setp.lt.u32 %p1, %r1, 8;
    @%p1 bra LOW;
    bar.sync 0;
    bra.uni END;
  LOW:
    st.global.u32 [%rd1], %r1;
  END:
    ret;)");
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "aligned instruction in divergent code"));
  CHECK(says(fault, "bar.sync 0"));
  CHECK(says(fault, "0xff "));
}

TEST_CASE(
    "a kernel with unknown instructions or qualifiers is not launched, whether or not they would run, "
    "and others of its module are",
    "[exec]") {
  Machine machine;
  const auto refused = [&](const std::string& line) {
    const std::string unknown = kernel_text(kOut, std::string(kProlog) + "ret;\n" + line);
    const auto module = sim::Module::load(unknown + "\n.visible .entry other() { ret; }\n", machine.memory);
    sim::launch(*module, "other", {}, nullptr, machine.memory);
    uint64_t out = 0;
    void* args[] = {&out};
    return fault_of([&] { sim::launch(*module, "k", {}, args, machine.memory); });
  };
  const auto opcode = refused("frobnicate.u32 %r1, %r1;");
  CHECK(says(opcode, "launch of k: "));
  CHECK(opcode.kind() == FaultKind::kUnsupported);
  CHECK(says(opcode, "frobnicate.u32"));
  const auto qualifier = refused("ld.global.mystery.u32 %r1, [%rd1];");
  CHECK(qualifier.kind() == FaultKind::kUnsupported);
  CHECK(says(qualifier, ".mystery"));
  CHECK(refused("mov.u32 %r1, %envreg0;").kind() == FaultKind::kUnsupported);
}

TEST_CASE("arithmetic gives a lane the same value whether the whole warp takes part or not", "[exec]") {
  const std::string kFold = "shr.u64 %rd5, %rd4, 32; xor.b64 %rd4, %rd4, %rd5; cvt.u32.u64 %r4, %rd4";
  const std::string operation = GENERATE_COPY(
      as<std::string>(), "add.s32 %r4, %r2, %r3", "sub.u32 %r4, %r2, %r3", "mul.lo.s32 %r4, %r2, %r3",
      "mad.lo.u32 %r4, %r2, %r3, %r1", "and.b32 %r4, %r2, %r3", "or.b32 %r4, %r2, %r3",
      "xor.b32 %r4, %r2, %r3", "shl.b32 %r4, %r2, %r1", "shr.u32 %r4, %r2, %r1", "shl.b32 %r4, %r2, 32",
      "shr.u32 %r4, %r2, %r3", "selp.b32 %r4, %r2, %r3, %p1", "add.f32 %r4, %r2, %r3",
      "sub.f32 %r4, %r2, %r3", "mul.rn.f32 %r4, %r2, %r3", "fma.rn.f32 %r4, %r2, %r3, %r2",
      "setp.lt.f32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "mul.wide.s32 %rd4, %r2, %r3; shr.u64 %rd4, %rd4, 16; cvt.u32.u64 %r4, %rd4",
      "mul.wide.u32 %rd4, %r2, %r3; shr.u64 %rd4, %rd4, 16; cvt.u32.u64 %r4, %rd4",
      "setp.lt.s32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "setp.lt.u32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "setp.ge.s32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "setp.gt.u32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "setp.le.s32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "setp.ne.b32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2", "shr.s32 %r4, %r2, %r1", "shr.s32 %r4, %r2, %r3",
      "min.s32 %r4, %r2, %r3", "max.s32 %r4, %r2, %r3", "min.u32 %r4, %r2, %r3", "max.u32 %r4, %r2, %r3",
      "cvt.rn.bf16x2.f32 %r4, %r2, %r3", "rcp.approx.ftz.f32 %r4, %r2",
      "setp.eq.f32 %p2, %r2, %r3; selp.u32 %r4, 1, 0, %p2",
      "setp.eq.f32 %p2, %r2, %r2; not.pred %p2, %p2; selp.u32 %r4, 1, 0, %p2",
      "and.pred %p2, %p1, %p3; selp.u32 %r4, 1, 0, %p2", "or.pred %p2, %p1, %p3; selp.u32 %r4, 1, 0, %p2",
      "cvt.u64.u32 %rd4, %r2; cvt.u64.u32 %rd5, %r3; mad.lo.s64 %rd4, %rd4, %rd5, %rd5; " + kFold,
      "cvt.s64.s32 %rd4, %r2; mul.lo.u64 %rd4, %rd4, %rd4; " + kFold,
      "cvt.s64.s32 %rd4, %r2; shl.b64 %rd4, %rd4, %r1; " + kFold,
      "cvt.s64.s32 %rd4, %r2; shl.b64 %rd4, %rd4, %r3; " + kFold,
      "cvt.s64.s32 %rd4, %r2; cvt.u64.u32 %rd5, %r2; setp.eq.s64 %p2, %rd4, %rd5; selp.u32 %r4, 1, 0, %p2",
      "cvt.s64.s32 %rd4, %r2; cvt.u64.u32 %rd5, %r2; setp.ne.b64 %p2, %rd4, %rd5; selp.u32 %r4, 1, 0, %p2",
      "cvt.u16.u32 %h4, %r2; cvt.u16.u32 %h5, %r1; setp.eq.s16 %p2, %h4, %h5; selp.u32 %r4, 1, 0, %p2",
      "cvt.u16.u32 %h4, %r2; cvt.u16.u32 %h5, %r1; setp.ne.s16 %p2, %h4, %h5; selp.u32 %r4, 1, 0, %p2");
  INFO(operation);
  // %r2 and %r3: bit patterns all over the range, among them infinities and NaNs as f32.
  const std::string values = R"(
    .reg .b16 %h<8>; mul.lo.u32 %r2, %r1, 0x9E3779B9; mul.lo.u32 %r3, %r1, 0x85EBCA6B; xor.b32 %r3, %r3, 0x7F800000;
    setp.eq.u32 %p3, %r1, 3; @%p3 mov.u32 %r2, 0x7F800000; @%p3 mov.u32 %r3, 0xFF800000;
    and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0;)";
  const auto whole = run_lanes(values + operation + "; st.global.u32 [%rd1], %r4; ret;");
  const auto part = run_lanes(values + "setp.lt.u32 %p4, %r1, 16; @%p4 bra LOW;\n" + operation +
                              "; st.global.u32 [%rd1], %r4; ret;\nLOW:\n" + operation +
                              "; st.global.u32 [%rd1], %r4; ret;");
  CHECK(whole == part);
}

TEST_CASE("trap ends the run", "[exec]") { CHECK(lanes_fault("trap;").kind() == FaultKind::kTrap); }

TEST_CASE("launch limits are checked before anything runs", "[exec]") {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(1024);
  const auto refused = [&](const std::string& directives, const sim::LaunchConfig& config) {
    return fault_of([&] {
             machine.run(
                 kernel_text(kOut, std::string(kProlog) + "st.global.u32 [%rd1], %r1; ret;", "", directives),
                 config, {&out});
           })
        .kind();
  };
  CHECK(refused(".maxntid 64, 1, 1", shape(1, 128)) == FaultKind::kLaunch);
  CHECK(refused(".reqntid 64, 1, 1", shape(1, 32)) == FaultKind::kLaunch);
  CHECK(refused("", shape(1, 2048)) == FaultKind::kLaunch);
  CHECK(refused("", shape(3, 32, 2)) == FaultKind::kLaunch);
  CHECK(refused("", shape(32, 32, 32)) == FaultKind::kLaunch);
  CHECK(refused("", shape(1, 32, 1, 232449)) == FaultKind::kLaunch);
  CHECK(refused(".explicitcluster\n.reqnctapercluster 2, 1, 1", shape(4, 32, 4)) == FaultKind::kLaunch);
}

TEST_CASE("a thread that spins for ever without changing anything is reported as a livelock", "[exec]") {
  const auto fault = lanes_fault(R"(
    setp.ne.u32 %p1, %r1, 0;
  SPIN:
    mov.u32 %r2, %laneid;
    setp.ge.u32 %p2, %r2, 0;
    @%p2 bra SPIN;
    ret;)",
                                 1);
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "livelock"));
  CHECK(says(fault, "warp 0, lane 0 runs in a circle at PTX line"));
}

}  // namespace exec_test
