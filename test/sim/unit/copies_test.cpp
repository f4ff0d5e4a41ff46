// copies_test.cpp -- bulk copies, cp.async and st.async as programs write them, their groups and barriers.
// Every copy runs in several legal orders, so that a missing wait shows as poison and a wait that never ends
// as a deadlock.
#include "sim/unit/copies_fixture.hpp"
#include "sim/unit/recorder.hpp"

namespace copies_test {

using namespace sim_test;
using sim::FaultKind;

TEST_CASE("a wait for bulk groups covers all but the youngest groups, and only committed ones", "[copies]") {
  // One thread stores words 40, 41, ... in two copies; what it may read after the wait says what the wait
  // covered.
  const auto result = [](const std::string& wait, int offset) {
    std::string fill;
    for (int i = 0; i < 32; ++i)
      fill += "mov.u32 %r51, " + std::to_string(i + 40) + "; st.shared.u32 [%r3+" + std::to_string(4 * i) +
              "], %r51;\n";
    const std::string body = fill + R"(
      fence.proxy.async.shared::cta;
      cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 64;
      cp.async.bulk.commit_group;
      cp.async.bulk.global.shared::cta.bulk_group [%rd9+64], [%r3+64], 64;
      )" + wait + "\n ld.global.u32 %r51, [%rd9+" +
                             std::to_string(offset) + R"(];
      st.global.u32 [%rd1], %r51;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
      ret;)";
    Machine machine;
    return run(machine, machine.make(Words(32, 7)), {body, 1, 1, {}, "late"})[0];
  };
  const auto kind = [&](const char* wait, int offset) {
    return fault_of([&] { result(wait, offset); }).kind();
  };
  CHECK(result("cp.async.bulk.wait_group 0;", 0) == 40);
  CHECK(kind("cp.async.bulk.wait_group 0;", 64) == FaultKind::kPoison);  // not committed
  CHECK(result("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 64) == 56);
  CHECK(result("cp.async.bulk.commit_group; cp.async.bulk.wait_group 1;", 0) == 40);
  CHECK(kind("cp.async.bulk.commit_group; cp.async.bulk.wait_group 1;", 64) == FaultKind::kPoison);
  CHECK(kind("cp.async.bulk.commit_group; cp.async.bulk.wait_group 2;", 0) == FaultKind::kPoison);
}

TEST_CASE("a bulk load lands in this CTA with either spelling of its destination, and with a cache policy",
          "[copies]") {
  const char* const form =
      GENERATE("shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 128, [%r2];",
               "shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 128, [%r2];",
               "shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
               "[%r3], [%rd9], 128, [%r2], %rd3;");
  const std::string mode = GENERATE("default", "late", "tear", "random");
  CAPTURE(form, mode);
  Machine machine;
  uint32_t* in = machine.make(counting(32, 500));
  const std::string body = std::string(kInit) + R"(
    createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
    @%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    cp.async.bulk.)" + form +
                           kWait + kReport + kLeave;
  CHECK(run(machine, in, {body, 32, 1, {}, mode}) == counting(32, 500));
}

// Rank 0 sends its buffer (100, 101, ...) to rank 1's second kilobyte.
// @BARRIER is the address of the barrier.
static std::string send_to_peer(const std::string& barrier) {
  return std::string(kInit) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; add.u32 %r51, %r1, 100; st.shared.u32 [%r50], %r51;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r7, 1; mapa.shared::cluster.u32 %r8, %r3, %r7; mapa.shared::cluster.u32 %r9, %r2, %r7;
    setp.eq.u32 %p3, %r4, 0;
    @%p3 bra SEND;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;)" +
         kWait + R"(
    ld.shared.u32 %r51, [%r50+1024]; st.global.u32 [%rd1], %r51;
    bra.uni END;
  SEND:
    @!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+1024], [%r3], 128, [)" +
         barrier + R"(];
  END:)" +
         kLeave;
}

TEST_CASE("a bulk copy between CTAs lands in the peer and signals the peer's barrier", "[copies]") {
  const std::string mode = GENERATE("default", "late", "tear", "random");
  Machine machine;
  const Words out = run(machine, machine.make(Words{0}), {send_to_peer("%r9"), 32, 2, {}, mode});
  for (uint32_t i = 0; i < 32; ++i) {
    CHECK(out[i] == 0xEEEEEEEE);
    CHECK(out[32 + i] == 100 + i);
  }
}

TEST_CASE("a bulk copy between CTAs whose barrier is not where it lands is a protocol fault", "[copies]") {
  Machine machine;
  const auto fault = fault_of([&] { run(machine, machine.make(Words{0}), {send_to_peer("%r2"), 32, 2}); });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "the mbarrier is in CTA rank 0, the destination in CTA rank 1"));
}

TEST_CASE("st.async stores scalars and vectors to the peer and counts their bytes", "[copies]") {
  struct Form {
    const char* text;
    uint32_t bytes;
  };
  const Form form = GENERATE(Form{"b32 [%r8], %r10, [%r9];", 4}, Form{"b64 [%r8], %rd10, [%r9];", 8},
                             Form{"v2.b32 [%r8], {%r10, %r11}, [%r9];", 8},
                             Form{"v4.b32 [%r8], {%r10, %r11, %r12, %r13}, [%r9];", 16},
                             Form{"v2.b64 [%r8], {%rd10, %rd11}, [%r9];", 16});
  const std::string mode = GENERATE("default", "late", "tear", "random");
  CAPTURE(form.text, mode);
  // Every lane of rank r sends words 10 * r + 1000 * lane + {0, 1, 2, 3}.
  const std::string size = std::to_string(form.bytes);
  const std::string body = std::string(kInit) + R"(
    xor.b32 %r7, %r4, 1; mul.lo.u32 %r50, %r1, )" +
                           size + R"(; add.u32 %r50, %r50, %r3;
    mapa.shared::cluster.u32 %r8, %r50, %r7; mapa.shared::cluster.u32 %r9, %r2, %r7;
    mul.lo.u32 %r10, %r1, 1000; mad.lo.u32 %r10, %r4, 10, %r10;
    add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3;
    mov.b64 %rd10, {%r10, %r11}; mov.b64 %rd11, {%r12, %r13};
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], )" +
                           std::to_string(32 * form.bytes) + R"(;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.)" +
                           form.text + kWait + R"(
    add.u32 %r50, %r50, )" +
                           std::to_string(form.bytes - 4) + R"(; ld.shared.u32 %r51, [%r50];
    st.global.u32 [%rd1], %r51;)" +
                           kLeave;
  Machine machine;
  const Words out = run(machine, machine.make(Words{0}), {body, 32, 2, {}, mode});
  for (uint32_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    CHECK(out[i] == 10 * (i / 32 ^ 1) + 1000 * (i % 32) + form.bytes / 4 - 1);
  }
}

TEST_CASE("cp.async copies 4, 8 or 16 bytes a lane; a shorter or ignored source leaves zeros", "[copies]") {
  struct Form {
    const char* text;
    uint32_t bytes, taken;
  };
  const Form form = GENERATE(Form{"ca.shared.global [%r50], [%rd10], 4;", 4, 4},
                             Form{"ca.shared.global [%r50], [%rd10], 8;", 8, 8},
                             Form{"cg.shared::cta.global.L2::128B [%r50], [%rd10], 16;", 16, 16},
                             Form{"cg.shared.global [%r50], [%rd10], 16, %r11;", 16, 4},
                             Form{"ca.shared.global [%r50], [%rd10], 8, 0;", 8, 0},
                             Form{"ca.shared.global [%r50], [%rd10], 8, %p4;", 8, 0},
                             Form{"ca.shared.global [%r50], [%rd10], 8, %p5;", 8, 8});
  const char* const wait = GENERATE("cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;");
  const std::string mode = GENERATE("default", "late", "tear", "random");
  CAPTURE(form.text, wait, mode);
  const std::string body = std::string(R"(
    mul.lo.u32 %r50, %r1, )") +
                           std::to_string(form.bytes) +
                           R"(; cvt.u64.u32 %rd10, %r50; add.s64 %rd10, %rd10, %rd9;
    add.u32 %r50, %r50, %r3; mov.u32 %r11, 4; setp.eq.u32 %p4, %r11, 4; setp.ne.u32 %p5, %r11, 4;
    cp.async.)" + form.text +
                           wait + R"(
    mov.u32 %r51, 0; mov.u32 %r53, 0;
  SUM:
    ld.shared.u32 %r52, [%r50]; add.u32 %r51, %r51, %r52; add.u32 %r50, %r50, 4; add.u32 %r53, %r53, 4;
    setp.lt.u32 %p6, %r53, )" +
                           std::to_string(form.bytes) + R"(;
    @%p6 bra SUM;
    st.global.u32 [%rd1], %r51; ret;)";
  Machine machine;
  const Words out = run(machine, machine.make(counting(128, 1)), {body, 32, 1, {}, mode});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < form.taken / 4; ++i) sum += lane * form.bytes / 4 + i + 1;
    CHECK(out[lane] == sum);
  }
}

TEST_CASE("cp.async groups complete oldest first, and reading before the wait is poison", "[copies]") {
  const auto read = [](const char* wait, int offset) {
    Machine machine;
    const std::string body = std::string(R"(
      cp.async.ca.shared.global [%r3], [%rd9], 4; cp.async.commit_group;
      cp.async.ca.shared.global [%r3+4], [%rd9+4], 4; cp.async.commit_group;
      )") + wait + " ld.shared.u32 %r51, [%r3+" +
                             std::to_string(offset) + R"(];
      st.global.u32 [%rd1], %r51; cp.async.wait_all; ret;)";
    return run(machine, machine.make(counting(2, 1)), {body, 1, 1, {}, "late"})[0];
  };
  CHECK(read("cp.async.wait_group 1;", 0) == 1);
  CHECK(read("cp.async.wait_group 0;", 4) == 2);
  CHECK(fault_of([&] { read("cp.async.wait_group 1;", 4); }).kind() == FaultKind::kPoison);
  CHECK(fault_of([&] { read("cp.async.wait_group 2;", 0); }).kind() == FaultKind::kPoison);
}

TEST_CASE("a prefetch of a box far outside its tensor is remarked on", "[copies][remark]") {
  const auto remarks = [](int x, int y) {
    const Tensor tensor = matrix(0, 0, 0);  // 40 x 10, boxes of 32 x 8
    Machine machine;
    Recorder seen;
    uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
    Case prefetch;
    prefetch.body = "mov.u32 %r20, " + std::to_string(x) + "; mov.u32 %r21, " + std::to_string(y) +
                    "; cp.async.bulk.prefetch.tensor.2d.L2.global [%rd5, {%r20, %r21}]; ret;";
    prefetch.map = encode(tensor, in);
    prefetch.observer = &seen;
    run(machine, in, prefetch);
    return seen.remarks;
  };
  const std::vector<std::string> far{"prefetch-outside"};
  CHECK(remarks(0, 0).empty());
  CHECK(remarks(40, 17).empty());  // the next box
  CHECK(remarks(-60, -8).empty());
  CHECK(remarks(0, 18) == far);
  CHECK(remarks(0, -16) == far);
  CHECK(remarks(72, 0) == far);
  // A box that does not begin at a multiple of 16 bytes is a fault, as in any copy of a box.
  CHECK(sim_test::fault_of([&] { remarks(1, 0); }).kind() == FaultKind::kMisaligned);
}

// Runs code around prefetches, which change nothing, and returns the rules that were remarked on.
static std::vector<std::string> prefetch_remarks(const std::string& body, bool tensor_in_memory = true) {
  const Tensor tensor = matrix(0, 0, 0);
  Machine machine;
  Recorder seen;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  Case prefetch;
  prefetch.body = body + "st.global.u32 [%rd1], 7; ret;";
  prefetch.map = encode(tensor, tensor_in_memory ? in : reinterpret_cast<uint32_t*>(uintptr_t{1} << 40));
  prefetch.observer = &seen;
  CHECK(run(machine, in, prefetch)[0] == 7);
  return seen.remarks;
}

TEST_CASE("a prefetch of what has no value is remarked on, and goes nowhere", "[copies][remark][poison]") {
  // %rd20 and %r20 are what each form takes from a register that may never have been written.
  const auto [form, rule] = GENERATE(table<std::string, std::string>(
      {{"prefetch.global.L2 [%rd20];", "prefetch-outside"},
       {"prefetch.L1 [%rd20+64];", "prefetch-outside"},
       {"prefetchu.L1 [%rd20];", "prefetch-outside"},
       {"prefetch.tensormap [%rd20];", "prefetch-outside"},
       {"cp.async.bulk.prefetch.L2.global [%rd20], 64;", "prefetch-memory"},
       {"cp.async.bulk.prefetch.L2.global [%rd9], %r20;", "prefetch-memory"},
       {"cp.async.bulk.prefetch.tensor.2d.L2.global [%rd20, {%r6, %r6}];", "prefetch-memory"},
       {"cp.async.bulk.prefetch.tensor.2d.L2.global [%rd5, {%r6, %r20}];", "prefetch-outside"}}));
  CAPTURE(form);
  const std::string twice = form + form;
  const std::vector<std::string> each{rule, rule};
  CHECK(prefetch_remarks("mov.u64 %rd20, %rd5; mov.u32 %r20, 0;" + twice).empty());
  CHECK(prefetch_remarks(twice) == each);
  CHECK(prefetch_remarks("setp.lt.u32 %p1, %r1, 0; @%p1 mov.u64 %rd20, %rd5; @%p1 mov.u32 %r20, 0;" +
                         twice) == each);
}

TEST_CASE("a prefetch of memory that there is not is remarked on, and goes nowhere", "[copies][remark]") {
  using Rules = std::vector<std::string>;
  // %rd9 is an array of 672 words.
  const auto at = [](const std::string& address, const std::string& form) {
    return prefetch_remarks("mov.u64 %rd20, " + address + "; " + form);
  };
  const Rules none, outside{"prefetch-outside"}, memory{"prefetch-memory"};
  for (const std::string form :
       {"prefetch.global.L2 [%rd20];", "prefetch.L1 [%rd20];", "prefetchu.L1 [%rd20];"}) {
    CAPTURE(form);
    CHECK(at("%rd9", form) == none);
    CHECK(at("0", form) == outside);
    CHECK(at("4096", form) == outside);
  }
  CHECK(at("%rd9", "prefetch.global.L2 [%rd20+2684];") == none);
  CHECK(at("%rd9", "prefetch.global.L2 [%rd20+2688];") == outside);
  CHECK(at("%rd5", "prefetch.tensormap [%rd20];") == none);
  CHECK(at("4096", "prefetch.tensormap [%rd20];") == outside);
  // A prefetch of shared memory is no operation, says the ISA.
  CHECK(prefetch_remarks("mov.u64 %rd20, 0; cvta.shared.u64 %rd20, %rd20; prefetch.L1 [%rd20];") == none);

  const auto bulk = [&](const std::string& address, const std::string& size) {
    return at("%rd9", "cp.async.bulk.prefetch.L2.global [" + address + "], " + size + ";");
  };
  CHECK(bulk("%rd20", "2688") == none);
  CHECK(bulk("%rd20+2672", "16") == none);
  CHECK(bulk("%rd20", "2704") == memory);
  CHECK(bulk("%rd20+2688", "16") == memory);
  CHECK(bulk("%rd20", "24") == memory);
  CHECK(bulk("%rd20+8", "16") == memory);
  CHECK(at("4096", "cp.async.bulk.prefetch.L2.global [%rd20], 16;") == memory);

  // A box that is far outside of its tensor reads nothing; one that is inside reads the tensor's memory.
  const std::string inside = "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd5, {%r6, %r6}];";
  CHECK(prefetch_remarks(inside) == none);
  CHECK(prefetch_remarks(inside, false) == memory);
  CHECK(prefetch_remarks(
            "mov.u32 %r20, 500; cp.async.bulk.prefetch.tensor.2d.L2.global [%rd5, {%r20, %r20}];", false) ==
        outside);
}

TEST_CASE("prefetches load in every form and change nothing", "[copies]") {
  const std::string form =
      GENERATE("prefetch.global.L2 [%rd9];", "prefetch.global.L1 [%rd9];", "prefetch.L2 [%rd9];",
               "prefetch.global.L2::evict_last [%rd9];", "prefetch.global.L2::evict_normal [%rd9];",
               "prefetchu.L1 [%rd9];", "prefetch.tensormap [%rd5];", "prefetch.param.tensormap [map];",
               "cp.async.bulk.prefetch.L2.global [%rd9], 64;",
               "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd5, {%r6, %r6}];",
               "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd5, {%r6, %r6}];");
  INFO(form);
  const Tensor tensor = matrix(0, 0, 0);
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  const Words out =
      run(machine, in,
          {form + "ld.global.u32 %r51, [%rd9]; st.global.u32 [%rd1], %r51; ret;", 32, 1, encode(tensor, in)});
  CHECK(out == Words(32, 1));
  CHECK(machine.fetch(in, size_t(tensor.words)) == counting(size_t(tensor.words), 1));
}

}  // namespace copies_test
