// tcgen05_test.cpp -- the tensor core path as a program takes it: allocate, copy scales, multiply, commit,
// wait, load. Operands are constant along K and vary by row, so a result says which row, which scale and
// which CTA it came from.
//
//   A row m: one code for the whole CTA     B row n: code n (even CTA) or 7 - n (odd CTA)
//   SFA: 1.0 for rows 0-63, 2.0 for rows 64-127            SFB: 1.0
#include <array>

#include "sim/exec/policy.h"
#include "support/catch.hpp"
#include "unit/sim/machine_fixture.hpp"

using namespace sim_test;
using sim::FaultKind;

namespace {

constexpr std::array<float, 8> kE2m1 = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

struct Shape {
  const char* group;  // "1" or "2"
  const char* idesc;
  const char* commit;       // up to the operands
  const char* commit_mask;  // ", %h1" or nothing
  int columns;              // of D
};
const Shape kSingle = {"1", "0x08020480",
                       "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", "", 8};
const Shape kPair = {
    "2", "0x10040480",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64", ", %h1", 16};

std::string replace_all(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Shared memory, from a 1024-byte boundary: A 16384, B 1024, SFA 512, SFB 512, barrier 8, allocation
// result 4. Tensor memory: D from column 0, SFA at 16, SFB at 20.
std::string multiply(const Shape& shape, const std::string& wait, const std::string& release) {
  std::string text = R"(
  .reg .pred %p<16>; .reg .b16 %h<4>; .reg .b32 %r<64>; .reg .b64 %rd<32>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r3, %cluster_ctarank; mov.b16 %h1, 3;
  add.u32 %r4, %r2, 16384; add.u32 %r5, %r2, 17408; add.u32 %r6, %r2, 17920; add.u32 %r7, %r2, 18432;
  // A: 1.0 in the even CTA, 2.0 in the odd one
  mul.lo.u32 %r10, %r3, 0x22222222; add.u32 %r10, %r10, 0x22222222;
  shl.b32 %r11, %r1, 7; add.u32 %r11, %r2, %r11; mov.u32 %r12, 0;
FILL_A:
  st.shared.u32 [%r11], %r10; add.u32 %r11, %r11, 4; add.u32 %r12, %r12, 1;
  setp.lt.u32 %p1, %r12, 32;
  @%p1 bra FILL_A;
  // B: eight rows, 32 words each, by the first eight threads
  setp.ge.u32 %p2, %r1, 8;
  @%p2 bra FILLED_B;
  mul.lo.u32 %r13, %r3, 7; xor.b32 %r13, %r13, %r1; mul.lo.u32 %r13, %r13, 0x11111111;
  shl.b32 %r11, %r1, 7; add.u32 %r11, %r4, %r11; mov.u32 %r12, 0;
FILL_B:
  st.shared.u32 [%r11], %r13; add.u32 %r11, %r11, 4; add.u32 %r12, %r12, 1;
  setp.lt.u32 %p1, %r12, 32;
  @%p1 bra FILL_B;
FILLED_B:
  // scales: word t holds rows of block t % 4
  and.b32 %r14, %r1, 2; setp.eq.u32 %p3, %r14, 0; selp.b32 %r15, 0x38383838, 0x40404040, %p3;
  shl.b32 %r16, %r1, 2; add.u32 %r17, %r5, %r16; st.shared.u32 [%r17], %r15;
  add.u32 %r17, %r6, %r16; mov.u32 %r15, 0x38383838; st.shared.u32 [%r17], %r15;
  fence.proxy.async.shared::cta;
  setp.ne.u32 %p4, %r1, 0;
  @!%p4 mbarrier.init.shared::cta.b64 [%r7], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.ge.u32 %p5, %r1, 32;
  @%p5 bra ALLOCATED;
  tcgen05.alloc.cta_group::@G.sync.aligned.shared::cta.b32 [%r7+8], 32;
  tcgen05.relinquish_alloc_permit.cta_group::@G.sync.aligned;
ALLOCATED:
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r20, [%r7+8];
  setp.ne.u32 %p6, %r3, 0; or.pred %p6, %p6, %p4;
  @%p6 bra ISSUED;
  add.u32 %r21, %r20, 16; add.u32 %r22, %r20, 20;
  and.b32 %r30, %r2, 0x3FFFF; shr.u32 %r30, %r30, 4; cvt.u64.u32 %rd2, %r30; or.b64 %rd2, %rd2, 0x4000404000000000;
  and.b32 %r31, %r4, 0x3FFFF; shr.u32 %r31, %r31, 4; cvt.u64.u32 %rd3, %r31; or.b64 %rd3, %rd3, 0x4000404000000000;
  and.b32 %r32, %r5, 0x3FFFF; shr.u32 %r32, %r32, 4; cvt.u64.u32 %rd4, %r32; or.b64 %rd4, %rd4, 0x0000400800000000;
  and.b32 %r33, %r6, 0x3FFFF; shr.u32 %r33, %r33, 4; cvt.u64.u32 %rd5, %r33; or.b64 %rd5, %rd5, 0x0000400800000000;
  tcgen05.cp.cta_group::@G.32x128b.warpx4 [%r21], %rd4;
  tcgen05.cp.cta_group::@G.32x128b.warpx4 [%r22], %rd5;
  mov.u32 %r34, @IDESC;
  setp.ne.u32 %p7, %r34, %r34;
  tcgen05.mma.cta_group::@G.kind::mxf4nvf4.block_scale.block16 [%r20], %rd2, %rd3, %r34, [%r21], [%r22], %p7;
  setp.eq.u32 %p8, %r34, %r34;
  tcgen05.mma.cta_group::@G.kind::mxf4nvf4.block_scale.block16 [%r20], %rd2, %rd3, %r34, [%r21], [%r22], %p8;
  @COMMIT [%r7]@MASK;
ISSUED:
  @WAIT
  tcgen05.fence::after_thread_sync;
  bar.sync 0;
  and.b32 %r40, %r1, 0x60; shl.b32 %r40, %r40, 16; add.u32 %r40, %r20, %r40;
  tcgen05.ld.sync.aligned.32x32b.x@N.b32 {@REGS}, [%r40];
  tcgen05.wait::ld.sync.aligned;
  mov.u32 %r8, %ctaid.x; shl.b32 %r8, %r8, 7; add.u32 %r8, %r8, %r1;
  mul.wide.u32 %rd6, %r8, @BYTES; add.u64 %rd6, %rd1, %rd6;
@STORES
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p5 bra END;
  @RELEASE
END:
  ret;)";
  std::string registers, stores;
  for (int i = 0; i < shape.columns; ++i) {
    registers += (i == 0 ? "%r" : ", %r") + std::to_string(44 + i);
    stores += "  st.global.u32 [%rd6+" + std::to_string(4 * i) + "], %r" + std::to_string(44 + i) + ";\n";
  }
  text = replace_all(text, "@WAIT", wait);
  text = replace_all(text, "@RELEASE", release);
  text = replace_all(text, "@IDESC", shape.idesc);
  text = replace_all(text, "@COMMIT", shape.commit);
  text = replace_all(text, "@MASK", shape.commit_mask);
  text = replace_all(text, "@REGS", registers);
  text = replace_all(text, "@STORES", stores);
  text = replace_all(text, "@BYTES", std::to_string(4 * shape.columns));
  text = replace_all(text, "@N", std::to_string(shape.columns));
  text = replace_all(text, "@G", shape.group);
  return kernel_text(".param .u64 out", text, ".extern .shared .align 1024 .b8 smem[];");
}

const char* const kWait = R"(mov.u32 %r41, 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r7], %r41;
  @!%p9 bra WAIT;)";
const char* const kFree = "tcgen05.dealloc.cta_group::@G.sync.aligned.b32 %r20, 32;";

class LatePolicy : public sim::Policy {
 public:
  size_t next(const std::vector<sim::Agent>& agents) override {
    for (size_t i = 0; i < agents.size(); ++i)
      if (agents[i].kind == sim::Agent::Kind::kWarp) return i;
    return 0;
  }
};

std::vector<float> run(const Shape& shape, const std::string& wait, const std::string& release,
                       sim::Policy* policy = nullptr) {
  Machine machine;
  const uint32_t ctas = shape.group[0] == '2' ? 2 : 1;
  float* out = machine.make<float>(size_t(128) * ctas * size_t(shape.columns));
  sim::LaunchOptions options;
  options.policy = policy;
  machine.run(multiply(shape, wait, release), sim_test::shape(ctas, 128, ctas, 18432 + 64), {&out}, options);
  return machine.fetch(out, size_t(128) * ctas * size_t(shape.columns));
}

void check_product(const Shape& shape, const std::vector<float>& d) {
  const int n_per_cta = 8;
  for (size_t i = 0; i < d.size(); ++i) {
    const int m = int(i) / shape.columns, n = int(i) % shape.columns;
    const float a = m < 128 ? 1.0f : 2.0f, sfa = m % 128 < 64 ? 1.0f : 2.0f;
    const float b = kE2m1[size_t(n < n_per_cta ? n : 7 - (n - n_per_cta))];
    if (d[i] != 2 * 64 * a * sfa * b) {  // two multiplications, the second accumulates
      CAPTURE(m, n);
      REQUIRE(d[i] == 2 * 64 * a * sfa * b);
    }
  }
}

}  // namespace

TEST_CASE("one CTA multiplies block-scaled tiles and reads the accumulators of its lanes") {
  check_product(kSingle, run(kSingle, kWait, kFree));
}

TEST_CASE("a pair of CTAs multiplies one tile from both shared memories, and the commit reaches both") {
  check_product(kPair, run(kPair, kWait, kFree));
}

TEST_CASE("the result does not depend on when tensor work completes") {
  LatePolicy late;
  check_product(kSingle, run(kSingle, kWait, kFree, &late));
  check_product(kPair, run(kPair, kWait, kFree, &late));
}

TEST_CASE("accumulators read without waiting for the commit are poison when the tensor core is late") {
  LatePolicy late;
  const auto fault = fault_of([&] { run(kSingle, "", kFree, &late); });
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "tcgen05.ld"));
}

TEST_CASE("tensor memory that is not freed is a leak") {
  const auto fault = fault_of([&] { run(kSingle, kWait, ""); });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "32 tensor memory columns"));
}

TEST_CASE("allocating for a pair without a pair is refused") {
  Machine machine;
  float* out = machine.make<float>(128 * 16);
  const auto fault = fault_of(
      [&] { machine.run(multiply(kPair, kWait, kFree), sim_test::shape(1, 128, 1, 18432 + 64), {&out}); });
  CHECK(fault.kind() == FaultKind::kProtocol);
}

TEST_CASE("what st writes, ld reads back, in every shape") {
  const auto [shape, registers] = GENERATE(Catch::Generators::table<std::string, int>(
      {{"32x32b.x4", 4}, {"16x64b.x4", 4}, {"16x128b.x2", 4}, {"16x256b.x1", 4}}));
  INFO(shape);
  std::string regs = "%r10, %r11, %r12, %r13", back = "%r14, %r15, %r16, %r17";
  REQUIRE(registers == 4);
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(32 * 4);
  machine.run(kernel_text(".param .u64 out",
                          R"(
    .reg .b32 %r<32>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, cell;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
    ld.shared.u32 %r3, [%r2];
    mul.lo.u32 %r10, %r1, 4; add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3;
    tcgen05.st.sync.aligned.)" +
                              shape + R"(.b32 [%r3], {)" + regs + R"(};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.)" +
                              shape + R"(.b32 {)" + back + R"(}, [%r3];
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %rd2, %r1, 16; add.u64 %rd2, %rd1, %rd2;
    st.global.v4.u32 [%rd2], {)" +
                              back + R"(};
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
    ret;)",
                          ".shared .align 4 .b8 cell[4];"),
              sim_test::shape(1, 32), {&out});
  const auto result = machine.fetch(out, 128);
  for (uint32_t i = 0; i < 128; ++i) CHECK(result[i] == i);
}
