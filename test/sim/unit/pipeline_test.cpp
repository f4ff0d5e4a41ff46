// pipeline_test.cpp -- threads that hand each other data: mbarriers, copies, clusters, and what is said when
// it goes wrong.
#include "sim/engine/tensor_map.h"
#include "sim/unit/lanes_fixture.hpp"
#include "sim/unit/late_policy.hpp"
#include "support/catch.hpp"

namespace pipeline_test {

using namespace sim_test;
using sim::FaultKind;

const char* const kClusterAddress = R"(
  mov.u32 %r40, %ctaid.x; mov.u32 %r41, %ntid.x; mad.lo.u32 %r42, %r40, %r41, %r1;
  mul.wide.u32 %rd8, %r42, 4; add.s64 %rd1, %rd9, %rd8;
)";

const char* const kBulkCopy = R"(
    mov.u32 %r2, bar; mov.u32 %r3, buffer;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 128, [%r2];
  READY:
    bar.sync 0;
)";
const char* const kBulkFinish = R"(
    shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4; ld.shared.u32 %r5, [%r4];
    add.u32 %r5, %r5, 1; st.shared.u32 [%r4], %r5;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 bra DONE;
    cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  DONE:
    ret;)";
const char* const kBulkWait = R"(
    mov.u32 %r6, 0;
  WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r6;
    @!%p2 bra WAIT;
)";

TEST_CASE("an mbarrier pipeline passes values from one warp to another through two stages", "[pipeline]") {
  const auto out = run_lanes(R"(
    mov.u32 %r2, bars; mov.u32 %r3, stages;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2+8], 1;
    mbarrier.init.shared::cta.b64 [%r2+16], 32; mbarrier.init.shared::cta.b64 [%r2+24], 32;
    fence.mbarrier_init.release.cluster;
  READY:
    bar.sync 0;
    mov.u32 %r10, 0; mov.u32 %r20, 0;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra CONSUME;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra END;
  PRODUCE:
    and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r2, %r12;
    shr.u32 %r14, %r10, 1; and.b32 %r14, %r14, 1; xor.b32 %r14, %r14, 1;
  WAIT1:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+16], %r14;
    @!%p4 bra WAIT1;
    shl.b32 %r15, %r11, 2; add.u32 %r15, %r3, %r15; mul.lo.u32 %r16, %r10, %r10;
    st.shared.u32 [%r15], %r16;
    mbarrier.arrive.shared::cta.b64 _, [%r13];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 8;
    @%p5 bra PRODUCE;
    bra END;
  CONSUME:
    and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r2, %r12;
    shr.u32 %r14, %r10, 1; and.b32 %r14, %r14, 1;
  WAIT2:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13], %r14;
    @!%p4 bra WAIT2;
    shl.b32 %r15, %r11, 2; add.u32 %r15, %r3, %r15; ld.shared.u32 %r16, [%r15];
    add.u32 %r20, %r20, %r16;
    mbarrier.arrive.shared::cta.b64 _, [%r13+16];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 8;
    @%p5 bra CONSUME;
  END:
    st.global.u32 [%rd1], %r20; ret;)",
                             64, ".shared .align 8 .b8 bars[32]; .shared .align 4 .b8 stages[8];");
  for (uint32_t i = 32; i < 64; ++i) CHECK(out[i] == 140);  // 0 + 1 + 4 + ... + 49
}

TEST_CASE("a bulk copy lands, its bytes are counted, and the way back works", "[pipeline]") {
  Machine machine;
  std::vector<uint32_t> values(32);
  for (uint32_t i = 0; i < 32; ++i) values[i] = i * 3;
  uint32_t* out = machine.make(values);
  machine.run(kernel_text(kOut, std::string(kProlog) + kBulkCopy + kBulkWait + kBulkFinish, kBulkShared),
              shape(1, 32), {&out});
  const auto result = machine.fetch(out, 32);
  for (uint32_t i = 0; i < 32; ++i) CHECK(result[i] == values[i] + 1);
}

TEST_CASE("reading the destination of a copy without waiting is poison when the copy is late", "[pipeline]") {
  Machine machine;
  uint32_t* out = machine.make(std::vector<uint32_t>(32, 1));
  LatePolicy late;
  sim::LaunchOptions options;
  options.policy = &late;
  const std::string text = kernel_text(kOut, std::string(kProlog) + kBulkCopy + kBulkFinish, kBulkShared);
  const auto fault = fault_of([&] { machine.run(text, shape(1, 32), {&out}, options); });
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, "ld.shared.u32"));
  const std::string waits =
      kernel_text(kOut, std::string(kProlog) + kBulkCopy + kBulkWait + kBulkFinish, kBulkShared);
  CHECK_NOTHROW(machine.run(waits, shape(1, 32), {&out}, options));
}

TEST_CASE("a TMA load brings a box, zeros outside the tensor, and always counts the full box", "[pipeline]") {
  Machine machine;
  std::vector<uint8_t> data(16 * 8);
  for (size_t i = 0; i < data.size(); ++i) data[i] = uint8_t(i + 1);
  uint8_t* source = machine.make(data);
  uint32_t* out = machine.make<uint32_t>(32);
  struct alignas(128) {
    uint8_t bytes[128];
  } map;
  const uint64_t dims[] = {16, 8}, strides[] = {16};
  const uint32_t box[] = {16, 8}, ones[] = {1, 1};
  std::string why;
  REQUIRE(sim::encode_tiled(map.bytes, 0, 2, source, dims, strides, box, ones, 0, 0, 0, 0, &why) == 0);
  machine.run(kernel_text(".param .u64 out, .param .align 128 .b8 map[128]", std::string(kProlog) + R"(
    mov.u32 %r2, bar; mov.u32 %r3, buffer; mov.b64 %rd4, map; cvta.param.u64 %rd5, %rd4;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    mov.u32 %r7, 0; mov.u32 %r8, 6;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, {%r7, %r8}], [%r2];
  READY:
    bar.sync 0;
    mov.u32 %r6, 0;
  WAIT:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r2], %r6, 0x989680;
    @!%p2 bra WAIT;
    shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4; ld.shared.u32 %r5, [%r4];
    st.global.u32 [%rd1], %r5; ret;)",
                          kBulkShared),
              shape(1, 32), {&out, &map});
  const auto result = machine.fetch(out, 32);
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t expected = 0;
    if (i < 8) std::memcpy(&expected, data.data() + 6 * 16 + i * 4, 4);
    CHECK(result[i] == expected);
  }
}

TEST_CASE(
    "distributed shared memory: "
    "mapa and the rank bits name the same bytes, bit 24 cleared names the even CTA",
    "[pipeline]") {
  const auto out = run_lanes(std::string(kClusterAddress) + R"(
    mov.u32 %r2, cell; mov.u32 %r3, %cluster_ctarank;
    add.u32 %r4, %r3, 100; st.shared.u32 [%r2], %r4;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    xor.b32 %r5, %r3, 1;
    mapa.shared::cluster.u32 %r6, %r2, %r5;
    ld.shared::cluster.u32 %r7, [%r6];
    and.b32 %r8, %r2, 0xFEFFFFFF;
    ld.shared::cluster.u32 %r9, [%r8];
    mad.lo.u32 %r10, %r9, 1000, %r7;
    st.global.u32 [%rd1], %r10;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;)",
                             32, ".shared .align 4 .b8 cell[4];", 4, 2);
  for (uint32_t i = 0; i < 128; ++i) CHECK(out[i] == 100 * 1000 + 100 + ((i / 32) % 2 ^ 1));
}

TEST_CASE("a multicast copy reaches every CTA of the mask and signals in each", "[pipeline]") {
  Machine machine;
  uint32_t* out = machine.make(std::vector<uint32_t>(128, 5));
  machine.run(kernel_text(kOut, std::string(kProlog) + kClusterAddress + R"(
    .reg .b16 %h<2>;
    mov.u32 %r2, bar; mov.u32 %r3, buffer; mov.u32 %r4, %cluster_ctarank;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    fence.mbarrier_init.release.cluster;
  READY:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p2, %r4, 0; or.pred %p1, %p1, %p2; mov.b16 %h1, 3;
    @%p1 bra WAITING;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd9], 128, [%r2], %h1;
  WAITING:)" + kBulkWait + R"(
    shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4; ld.shared.u32 %r5, [%r4];
    add.u32 %r5, %r5, %r40; st.global.u32 [%rd1], %r5;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;)",
                          kBulkShared),
              shape(2, 32, 2), {&out});
  const auto result = machine.fetch(out, 64);
  for (uint32_t i = 0; i < 64; ++i) CHECK(result[i] == 5 + i / 32);
}

TEST_CASE("lanes of one mbarrier.init may share an object and a count; a second init may not", "[pipeline]") {
  SECTION("a warp without an elected lane: 32 arrivals, one from each lane, complete phase 0") {
    const auto out = run_lanes(R"(
      mov.u32 %r2, bar; mov.u32 %r6, 0;
      mbarrier.init.shared::cta.b64 [%r2], 32;
      mbarrier.arrive.shared::cta.b64 _, [%r2];
    WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r6;
      @!%p2 bra WAIT;
      st.global.u32 [%rd1], %r1; ret;)",
                               32, kBulkShared);
    for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == lane);
  }
  SECTION("a later init of the live object") {
    const auto fault = lanes_fault(R"(
      mov.u32 %r2, bar;
      mbarrier.init.shared::cta.b64 [%r2], 32; mbarrier.init.shared::cta.b64 [%r2], 32; ret;)",
                                   32, kBulkShared);
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, "live mbarrier"));
  }
  SECTION("lanes that disagree about the count") {
    const auto fault = lanes_fault(R"(
      mov.u32 %r2, bar; add.u32 %r3, %r1, 1; mbarrier.init.shared::cta.b64 [%r2], %r3; ret;)",
                                   32, kBulkShared);
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, "the counts 1 and 2"));
  }
}

TEST_CASE("a deadlock names every waiting warp, its barrier, the phase and what is missing", "[pipeline]") {
  const auto fault = lanes_fault(R"(
    mov.u32 %r2, bar; setp.ne.u32 %p1, %r1, 0; mov.u32 %r6, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [%r2], 2;
    bar.sync 0;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
    setp.ge.u32 %p3, %r1, 32;
    @%p3 bra SECOND;
  WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r6;
    @!%p2 bra WAIT;
    ret;
  SECOND:
    bar.sync 1, 64;
    ret;)",
                                 64, kBulkShared);
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "parity 0 (phase 0, pending arrivals 1 of 2, pending bytes 64)"));
  CHECK(says(fault, "named barrier 1 (32 of 64 threads)"));
  CHECK(says(fault, "warp 1"));
  CHECK(says(fault, "mbarrier.try_wait"));
}

TEST_CASE("a CTA that exits before its copy has landed is a protocol fault", "[pipeline]") {
  Machine machine;
  uint32_t* out = machine.make(std::vector<uint32_t>(32, 1));
  LatePolicy late;
  sim::LaunchOptions options;
  options.policy = &late;
  const auto fault = fault_of([&] {
    machine.run(kernel_text(kOut, std::string(kProlog) + kBulkCopy + "ret;", kBulkShared), shape(1, 32),
                {&out}, options);
  });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "cp.async.bulk"));
}

TEST_CASE("cp.async.cg copies 16 bytes and nothing else", "[pipeline]") {
  const auto copy = [](const std::string& form) {
    run_lanes(
        "mov.u32 %r2, buffer; cp.async." + form + "; cp.async.wait_all; st.global.u32 [%rd1], %r1; ret;", 1,
        kBulkShared);
  };
  for (const char* form : {"cg.shared.global [%r2], [%rd9], 8", "ca.shared.global [%r2], [%rd9], 12"}) {
    const auto fault = fault_of([&] { copy(form); });
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, "cp.async"));
  }
  Machine machine;
  uint32_t* out = machine.make(std::vector<uint32_t>{1, 2, 3, 4});
  machine.run(kernel_text(kOut, std::string(kProlog) + R"(
    mov.u32 %r2, buffer; cp.async.cg.shared.global [%r2], [%rd9], 16; cp.async.wait_all;
    ld.shared.u32 %r3, [%r2+12]; st.global.u32 [%rd1], %r3; ret;)",
                          kBulkShared),
              shape(1, 1), {&out});
  CHECK(machine.fetch(out, 1)[0] == 4);
}

}  // namespace pipeline_test
