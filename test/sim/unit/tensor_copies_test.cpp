// tensor_copies_test.cpp -- tensor (TMA) copies as programs write them: geometry, fill, swizzle, multicast
// and pairs of CTAs. Every copy runs in several legal orders, so that a missing wait shows as poison and a
// wait that never ends as a deadlock.
#include "sim/unit/copies_fixture.hpp"

namespace tensor_copies_test {

using namespace sim_test;
using sim::FaultKind;

TEST_CASE("TMA loads of one to five dimensions bring the box, the fill outside, and count the whole box",
          "[tensor]") {
  const uint32_t rank = GENERATE(1u, 2u, 3u, 4u, 5u);
  const std::string mode = GENERATE("default", "late", "tear", "random");
  const bool nan_fill = GENERATE(false, true);
  CAPTURE(rank, mode, nan_fill);
  Tensor tensor = of_rank(rank);
  tensor.nan_fill = nan_fill;
  const std::vector<int64_t> from = elements(tensor);
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  std::string list;
  const std::string set = coordinates(tensor, &list);
  const std::string load =
      "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " + std::to_string(from.size() * 4) +
      ";\n@!%p1 cp.async.bulk.tensor." + std::to_string(rank) +
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, " + list + "], [%r2];\n";
  const Words out = run(
      machine, in,
      {set + kInit + load + kWait + kReport + kLeave, uint32_t(from.size()), 1, encode(tensor, in), mode});
  for (size_t i = 0; i < from.size(); ++i) {
    CAPTURE(i);
    CHECK(out[i] == (from[i] >= 0 ? uint32_t(from[i]) + 1 : nan_fill ? 0x7FF77FF7u : 0u));
  }
}

TEST_CASE("TMA stores of one to five dimensions write the part of the box inside the tensor and nothing else",
          "[tensor]") {
  const uint32_t rank = GENERATE(1u, 2u, 3u, 4u, 5u);
  const std::string mode = GENERATE("default", "late", "tear", "random");
  CAPTURE(rank, mode);
  Tensor tensor = of_rank(rank);
  tensor.at[4] = 2;
  const std::vector<int64_t> to = elements(tensor);
  Machine machine;
  Words expected = counting(size_t(tensor.words), 100000);
  uint32_t* in = machine.make(expected);
  std::string list;
  const std::string body = coordinates(tensor, &list) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; add.u32 %r51, %r1, 1; st.shared.u32 [%r50], %r51;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 bra DONE;
    cp.async.bulk.tensor.)" +
                           std::to_string(rank) + "d.global.shared::cta.tile.bulk_group [%rd5, " + list +
                           R"(], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  DONE:
    ret;)";
  run(machine, in, {body, uint32_t(to.size()), 1, encode(tensor, in), mode});
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] >= 0) expected[size_t(to[i])] = uint32_t(i) + 1;
  CHECK(machine.fetch(in, expected.size()) == expected);
}

TEST_CASE("a swizzled TMA store undoes the swizzle, at every edge of the tensor", "[tensor]") {
  struct At {
    int64_t x, y;
  };
  const At at = GENERATE(At{0, 0}, At{16, 6}, At{8, 3}, At{32, 0}, At{40, 0}, At{0, 8}, At{0, 10}, At{36, 9});
  const uint32_t swizzle = GENERATE(0u, 3u);
  CAPTURE(at.x, at.y, swizzle);
  const Tensor tensor = matrix(at.x, at.y, swizzle);
  const std::vector<int64_t> to = elements(tensor);
  Machine machine;
  Words expected = counting(size_t(tensor.words), 100000);
  uint32_t* in = machine.make(expected);
  std::string list;
  const std::string body = coordinates(tensor, &list) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; st.shared.u32 [%r50], %r1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 bra DONE;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd5, )" +
                           list + R"(], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
  DONE:
    ret;)";
  run(machine, in, {body, 256, 1, encode(tensor, in), "late"});
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] >= 0) expected[size_t(to[i])] = shared_word(uint32_t(i), swizzle);
  CHECK(machine.fetch(in, expected.size()) == expected);
}

TEST_CASE("a multicast TMA load fills every CTA of the mask, no other, and signals in each", "[tensor]") {
  const std::string mode = GENERATE("default", "late", "tear", "random");
  const Tensor tensor = matrix(0, 2, 3);
  const std::vector<int64_t> from = elements(tensor);
  // Rank 2 sends to ranks 1 and 3.
  const std::string body = std::string(kInit) +
                           R"(
    mov.u32 %r20, 0; mov.u32 %r21, 2; mov.b16 %h1, 10;
    and.b32 %r7, %r4, 1; setp.eq.u32 %p3, %r7, 1; setp.ne.u32 %p4, %r4, 2; or.pred %p4, %p4, %p1;
    setp.eq.u32 %p5, %r1, 0; and.pred %p5, %p5, %p3;
    @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
    @!%p4 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster )"
                           "[%r3], [%rd5, {%r20, %r21}], [%r2], %h1;\n"
                           "@!%p3 bra END;" +
                           kWait + kReport + "END:" + kLeave;
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  const Words out = run(machine, in, {body, 256, 4, encode(tensor, in), mode});
  for (uint32_t rank = 0; rank < 4; ++rank)
    for (uint32_t i = 0; i < 256; ++i) {
      CAPTURE(rank, i);
      const uint32_t at = 256 * rank + shared_word(i, 3);
      REQUIRE(out[at] == (rank % 2 == 0 ? 0xEEEEEEEE : uint32_t(from[i]) + 1));
    }
}

TEST_CASE("a cta_group::2 load of the odd CTA signals the even CTA's barrier through bit 24 of its address",
          "[tensor]") {
  const std::string mode = GENERATE("default", "late", "tear", "random");
  const bool paired = GENERATE(true, false);
  CAPTURE(mode, paired);
  const Tensor tensor = matrix(0, 0, 0);
  const std::vector<int64_t> from = elements(tensor);
  // Both CTAs load; the even one expects both boxes, waits, and then lets the odd one go on.
  const std::string body =
      std::string(kInit) + R"(
    mov.u32 %r20, 0; mov.u32 %r21, %r4; and.b32 %r9, %r2, 0xFEFFFFFF; setp.ne.u32 %p3, %r4, 0;
    setp.eq.u32 %p5, %r1, 0; setp.eq.and.u32 %p5, %r4, 0, %p5;
    @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
    @!%p1 cp.async.bulk.tensor.2d)" +
      std::string(paired ? ".cta_group::2" : "") +
      ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, {%r20, %r21}], [%r9];\n"
      "@%p3 bra END;" +
      kWait + "END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" + kReport + "ret;";
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  const Case program = {body, 256, 2, encode(tensor, in), mode};
  if (!paired) {
    const auto fault = fault_of([&] { run(machine, in, program); });
    CHECK(fault.kind() == FaultKind::kProtocol);
    CHECK(says(fault, "the mbarrier is in CTA rank 0, the destination in CTA rank 1"));
    return;
  }
  const Words out = run(machine, in, program);
  for (uint32_t i = 0; i < 512; ++i) REQUIRE(out[i] == uint32_t(from[i % 256]) + 1 + 48 * (i / 256));
}

TEST_CASE("a multicast commit arrives at the barrier of every CTA in its mask and of no other", "[tensor]") {
  const std::string mode = GENERATE("default", "late", "tear", "random");
  const std::string group = GENERATE("1", "2");
  CAPTURE(mode, group);
  // Rank 0 commits to ranks 0 and 2; test_wait says afterwards which phases completed.
  const std::string body = std::string(kInit) + R"(
    setp.eq.u32 %p5, %r42, 0; mov.b16 %h1, 5; and.b32 %r7, %r4, 1; setp.eq.u32 %p3, %r7, 1;
    @%p5 tcgen05.commit.cta_group::)" +
                           group +
                           R"(.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r2], %h1;
    @%p3 bra END;)" + kWait +
                           R"(
  END:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mbarrier.test_wait.parity.shared::cta.b64 %p6, [%r2], 0; selp.u32 %r51, 1, 0, %p6;
    st.global.u32 [%rd1], %r51;)" +
                           kLeave;
  Machine machine;
  const Words out = run(machine, machine.make(Words{0}), {body, 32, 4, {}, mode});
  for (uint32_t i = 0; i < 128; ++i) CHECK(out[i] == (i / 32 % 2 == 0 ? 1u : 0u));
}

TEST_CASE("dynamic shared memory is aligned as the module declares, and a box that needs more is told so",
          "[tensor]") {
  // Starts the window as late as the declaration allows.
  struct Shifted : sim::DefaultPolicy {
    uint32_t shared_shift(uint32_t align) override { return align; }
  } shifted;
  sim::DefaultPolicy usual;
  const auto load = [&](sim::Policy& policy, int align, uint32_t swizzle, const std::string& move = "",
                        bool align_as_declared = true) {
    const Tensor tensor = matrix(0, 0, swizzle);
    Machine machine;
    uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
    Case c;
    std::string list;
    c.body =
        move + "add.u32 %r2, %r3, 1024;" + coordinates(tensor, &list) + kInit +
        "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;\n"
        "@!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, " +
        list + "], [%r2];\n" + kWait + kLeave;
    c.map = encode(tensor, in);
    c.policy = &policy;
    c.dynamic = 4096;
    c.align_as_declared = align_as_declared;
    c.variables =
        ".extern .shared .align " + std::to_string(align) + " .b8 buffer[]; .extern .shared .b8 bar[];";
    run(machine, in, c);
  };
  const std::string round_up = "add.u32 %r3, %r3, 1023; and.b32 %r3, %r3, 0xFFFFFC00;";
  for (const int align : {1, 16, 128, 1024}) CHECK_NOTHROW(load(usual, align, 3));
  CHECK_NOTHROW(load(shifted, 1024, 3));
  CHECK_NOTHROW(load(shifted, 128, 0));
  CHECK_NOTHROW(load(shifted, 16, 3, round_up));
  CHECK_NOTHROW(load(shifted, 16, 3, "", false));
  const auto kind = [&](int align, uint32_t swizzle, const std::string& move = "") {
    return fault_of([&] { load(shifted, align, swizzle, move); }).kind();
  };
  CHECK(kind(1, 0) == FaultKind::kAlignment);
  CHECK(kind(16, 0) == FaultKind::kAlignment);
  CHECK(kind(128, 3) == FaultKind::kAlignment);
  CHECK(kind(16, 0, "add.u32 %r3, %r3, 32;") == FaultKind::kMisaligned);  // in every schedule
}

}  // namespace tensor_copies_test
