// lanes_test.cpp -- instructions by which threads meet and combine values: branch tables, reducing barriers,
// votes, match, redux, atomics, addresses of other CTAs, and literals in the width of their instruction.
#include <algorithm>
#include <bit>
#include <functional>

#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace lanes_test {

using namespace sim_test;
using sim::FaultKind;

using Words = std::vector<uint32_t>;

// %r1 = tid, %rd9 = cells, %rd1 = out + 4 * (thread of the grid)
const char* const kProlog = R"(
  .reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .f32 %f<16>; .reg .f64 %fd<8>;
  ld.param.u64 %rd7, [out]; ld.param.u64 %rd9, [cells];
  mov.u32 %r1, %tid.x; mov.u32 %r40, %ctaid.x; mov.u32 %r41, %ntid.x; mad.lo.u32 %r42, %r40, %r41, %r1;
  mul.wide.u32 %rd8, %r42, 4; add.s64 %rd1, %rd7, %rd8;
)";

struct Result {
  Words out, cells;
};

static Result run(const std::string& body, uint32_t threads = 32, uint32_t cluster = 1,
                  const Words& cells = {0}) {
  Machine machine;
  uint32_t* out = machine.make(Words(size_t(threads) * cluster, 0xEEEEEEEE));
  uint32_t* memory = machine.make(cells);
  machine.run(
      kernel_text(".param .u64 out, .param .u64 cells", kProlog + body, ".shared .align 16 .b8 cell[16];"),
      shape(cluster, threads, cluster), {&out, &memory});
  return {machine.fetch(out, size_t(threads) * cluster), machine.fetch(memory, cells.size())};
}

static Words lanes(const std::string& body, uint32_t threads = 32, uint32_t cluster = 1) {
  return run(body, threads, cluster).out;
}

static sim::Fault lanes_fault(const std::string& body) {
  return fault_of([&] { run(body); });
}

TEST_CASE("brx.idx sends every lane to its own target, and the lanes meet again after the table", "[lanes]") {
  const char* const guard = GENERATE("", "@%p1 ");
  INFO(guard);
  const bool guarded = *guard != 0;
  // The guard is false in lanes 28 to 31, which fall through to L0; the other lanes still branch.
  const auto out = lanes(std::string(R"(
    .reg .b32 %index;
    rem.u32 %index, %r1, 3; setp.lt.u32 %p1, %r1, 28;
  TABLE: .branchtargets L0, L1, L2;
    )") + guard + R"(brx.idx %index, TABLE;
  L0: mov.u32 %r2, 100; bra.uni MEET;
  L1: mov.u32 %r2, 200; bra.uni MEET;
  L2: mov.u32 %r2, 300;
  MEET:
    bar.sync 0;
    add.u32 %r2, %r2, %r1; st.global.u32 [%rd1], %r2; ret;)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    CHECK(out[lane] == (guarded && lane >= 28 ? 100 : 100 * (lane % 3 + 1)) + lane);
  }
}

TEST_CASE("brx.idx.uni takes one target for all, and an index behind the table is a bounds fault",
          "[lanes]") {
  const auto text = [](const char* index) {
    return std::string("mov.u32 %r3, ") + index + R"(;
  TABLE: .branchtargets L0, L1;
    brx.idx.uni %r3, TABLE;
  L0: mov.u32 %r2, 1; bra.uni MEET;
  L1: mov.u32 %r2, 2;
  MEET: st.global.u32 [%rd1], %r2; ret;)";
  };
  CHECK(lanes(text("0")) == Words(32, 1));
  CHECK(lanes(text("1")) == Words(32, 2));
  CHECK(lanes_fault(text("2")).kind() == FaultKind::kBounds);
  const auto divergent = lanes_fault(
      "TABLE: .branchtargets L0, L1; and.b32 %r3, %r1, 1; brx.idx.uni %r3, TABLE; "
      "L0: mov.u32 %r2, 1; L1: st.global.u32 [%rd1], %r1; ret;");
  CHECK(divergent.kind() == FaultKind::kProtocol);
}

TEST_CASE("bar.red reduces a predicate over the threads of the barrier, time after time", "[lanes]") {
  const char* const name = GENERATE("bar", "barrier", "barrier.cta", "bar.cta");
  INFO(name);
  // The predicate is tid < limit: the limit falls from 60 to 0,
  // so a round that kept the one before would show.
  const std::string red = std::string(name) + ".red.";
  const auto out = lanes(R"(
    mov.u32 %r10, 0; mov.u32 %r20, 0;
  ROUND:
    mul.lo.u32 %r11, %r10, -20; add.u32 %r11, %r11, 60; setp.lt.u32 %p1, %r1, %r11;
    )" + red + "popc.u32 %r12, 0, %p1;" +
                             red + "or.pred %p2, 0, %p1;" + red + "and.pred %p3, 5, 64, !%p1;" + R"(
    selp.u32 %r13, 100, 0, %p2; selp.u32 %r14, 1000, 0, %p3;
    add.u32 %r12, %r12, %r13; add.u32 %r12, %r12, %r14; mad.lo.u32 %r20, %r20, 3, %r12;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 4;
    @%p4 bra ROUND;
    st.global.u32 [%rd1], %r20; ret;)",
                         64);
  uint32_t expected = 0;
  for (const uint32_t limit : {60u, 40u, 20u, 0u}) expected = 3 * expected + limit + (limit > 0 ? 100 : 1000);
  CHECK(out == Words(64, expected));
}

TEST_CASE("vote.all, vote.any and vote.uni see every lane of a literal member mask", "[lanes]") {
  // The predicate is tid >= limit; the three answers as bits 0, 1 and 2.
  const auto votes = [](const char* limit) {
    return lanes(std::string("setp.ge.u32 %p1, %r1, ") + limit + R"(;
      vote.sync.all.pred %p2, %p1, -1; vote.sync.any.pred %p3, %p1, 0xFFFFFFFF; vote.sync.uni.pred %p4, %p1, -1;
      selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 2, 0, %p3; selp.u32 %r4, 4, 0, %p4;
      or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4; st.global.u32 [%rd1], %r2; ret;)");
  };
  CHECK(votes("0") == Words(32, 7));
  CHECK(votes("31") == Words(32, 2));
  CHECK(votes("32") == Words(32, 4));
}

TEST_CASE("match.any finds the lanes of equal value, match.all says whether there is one value", "[lanes]") {
  SECTION("any, 64 bits: the upper half tells lanes apart") {
    const auto out = lanes(R"(
      rem.u32 %r2, %r1, 5; mov.u32 %r3, 9; mov.b64 %rd2, {%r3, %r2};
      match.any.sync.b64 %r4, %rd2, -1; st.global.u32 [%rd1], %r4; ret;)");
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t same = 0;
      for (uint32_t other = lane % 5; other < 32; other += 5) same |= 1u << other;
      CHECK(out[lane] == same);
    }
  }
  SECTION("any, some lanes only") {
    const auto out = lanes(R"(
      setp.ge.u32 %p1, %r1, 8; mov.u32 %r4, 0; and.b32 %r2, %r1, 1;
      @%p1 bra END;
      match.any.sync.b32 %r4, %r2, 0xFF;
    END: st.global.u32 [%rd1], %r4; ret;)");
    for (uint32_t lane = 0; lane < 32; ++lane)
      CHECK(out[lane] == (lane >= 8 ? 0 : lane % 2 == 0 ? 0x55u : 0xAAu));
  }
  SECTION("all") {
    const auto all = [](const char* value) {
      return lanes(
          std::string("mov.u32 %r5, 3; min.u32 %r6, %r1, 30;") + "match.all.sync.b32 %r4|%p1, " + value +
          R"(, -1; selp.u32 %r7, 1, 0, %p1; shr.u32 %r4, %r4, 31; shl.b32 %r4, %r4, 1; or.b32 %r7, %r7, %r4;
                   st.global.u32 [%rd1], %r7; ret;)");
    };
    CHECK(all("%r5") == Words(32, 3));
    CHECK(all("%r1") == Words(32, 0));
  }
}

TEST_CASE("redux combines the lanes of the mask with every operation, signed and unsigned", "[lanes]") {
  struct Form {
    const char* text;
    std::function<uint32_t(uint32_t, uint32_t)> combine;
  };
  const std::vector<Form> forms = {
      {"add.u32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"add.s32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"max.u32", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
      {"min.s32", [](uint32_t a, uint32_t b) { return uint32_t(std::min(int32_t(a), int32_t(b))); }},
      {"max.s32", [](uint32_t a, uint32_t b) { return uint32_t(std::max(int32_t(a), int32_t(b))); }},
      {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
      {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }}};
  for (const Form& form : forms) {
    INFO(form.text);
    // Values with both signs; bit 4 is common to all, so that and.b32 has something to find.
    const auto out =
        lanes(std::string("mul.lo.u32 %r2, %r1, 0x9E3779B9; or.b32 %r2, %r2, 16; mov.u32 %r3, 0;\n"
                          "setp.lt.u32 %p1, %r1, 24;\n@%p1 redux.sync.") +
              form.text + " %r3, %r2, 0x00FFFFFF; st.global.u32 [%rd1], %r3; ret;");
    uint32_t expected = 16;
    for (uint32_t lane = 1; lane < 24; ++lane) expected = form.combine(expected, (lane * 0x9E3779B9u) | 16);
    for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 24 ? expected : 0));
  }
}

struct Atomic {
  const char* text;       // behind "atom.SPACE." and with the address as @
  uint32_t start, after;  // the cell before and after 32 lanes
  uint32_t last;          // what the last lane got back
};

const std::vector<Atomic> kAtomics = {
    {"add.u32 %r2, [@], %r1", 5, 5 + 496, 5 + 496 - 31},
    {"add.s32 %r2, [@], -2", 5, uint32_t(5 - 64), uint32_t(5 - 62)},
    {"min.s32 %r2, [@], %r3", 5, uint32_t(-31), uint32_t(-30)},
    {"min.u32 %r2, [@], %r3", 5, 0, 0},
    {"max.s32 %r2, [@], %r3", uint32_t(-7), 0, 0},
    {"max.u32 %r2, [@], %r3", 5, uint32_t(-1), uint32_t(-1)},
    {"and.b32 %r2, [@], %r4", 0xFFFFFFFF, 0, 0x80000000},
    {"or.b32 %r2, [@], %r5", 0, 0xFFFFFFFF, 0x7FFFFFFF},
    {"xor.b32 %r2, [@], %r1", 3, 3, 3 ^ 31},
    {"exch.b32 %r2, [@], %r1", 77, 31, 30},
    {"cas.b32 %r2, [@], %r1, %r6", 0, 32, 31},
    {"inc.u32 %r2, [@], 9", 8, 0, 9},
    {"dec.u32 %r2, [@], 9", 1, 9, 0},
    {"add.f32 %r2, [@], 0.5", 0x3FC00000, std::bit_cast<uint32_t>(17.5f), std::bit_cast<uint32_t>(17.0f)},
    {"add.noftz.f16x2 %r2, [@], %r7", 0, 0x50004C00, 0x4FC04BC0},
};

static std::string with(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

TEST_CASE("every atomic operation, on global, shared and generic addresses, with and without a result",
          "[lanes]") {
  struct Place {
    const char* space;
    const char* address;
  };
  const Place place =
      GENERATE(Place{"global", "%rd9"}, Place{"shared", "%r30"}, Place{"relaxed.gpu.global", "%rd9"},
               Place{"shared::cta", "%r30"}, Place{"shared::cluster", "%r30"}, Place{"acq_rel.cta", "%rd9"},
               Place{"", "%rd10"});
  INFO(place.space);
  const bool in_shared = std::string(place.address) != "%rd9";
  for (const Atomic& atomic : kAtomics) {
    INFO(atomic.text);
    // Lanes act in order. %r3 = -lane, %r4 = ~(1 << lane), %r5 = 1 << lane, %r6 = lane + 1,
    // %r7 = f16x2 {0.5, 1.0}
    const std::string setup = R"(
      mov.u32 %r30, cell; cvt.u64.u32 %rd11, %r30; cvta.shared.u64 %rd10, %rd11; ld.global.u32 %r31, [%rd9];
      setp.eq.u32 %p1, %r1, 0;
      @%p1 st.shared.u32 [%r30], %r31;
      neg.s32 %r3, %r1; mov.u32 %r8, 1; shl.b32 %r5, %r8, %r1; not.b32 %r4, %r5; add.u32 %r6, %r1, 1;
      mov.u32 %r7, 0x3C003800;
      bar.sync 0;
    )";
    const std::string finish = std::string("bar.sync 0; ") +
                               (in_shared ? "ld.shared.u32 %r9, [%r30];\n" : "ld.global.u32 %r9, [%rd9];\n") +
                               "xor.b32 %r2, %r2, %r9; st.global.u32 [%rd1], %r2; ret;";
    const std::string prefix = std::string(*place.space != 0 ? "." : "") + place.space + ".";
    const std::string full = with(atomic.text, "@", place.address);
    const auto out = run(setup + "atom" + prefix + full + ";" + finish, 32, 1, {atomic.start}).out;
    CHECK(out[31] == (atomic.last ^ atomic.after));
    if (full.compare(0, 4, "exch") == 0 || full.compare(0, 3, "cas") == 0) continue;  // red has neither
    const auto reduced =
        run(setup + "mov.u32 %r2, 0; red" + prefix + with(full, "%r2, [", "[") + ";" + finish, 32, 1,
            {atomic.start})
            .out;
    CHECK(reduced == Words(32, atomic.after));
  }
}

TEST_CASE("atomics of 64 bits, 16 bits, doubles and vectors", "[lanes]") {
  const auto cells = [](const std::string& body, const Words& before) {
    return run(body, 1, 1, before).cells;
  };
  const std::string swap =
      "mov.b64 %rd2, 0x200000001; mov.b64 %rd3, 5; atom.global.cas.b64 %rd4, [%rd9], %rd2, %rd3; ret;";
  CHECK(cells("mov.b64 %rd2, 0x100000002; atom.global.add.u64 %rd3, [%rd9], %rd2; ret;", {0xFFFFFFFF, 1}) ==
        Words{1, 3});
  CHECK(cells("mov.b64 %rd2, -1; red.global.max.s64 [%rd9], %rd2; ret;", {7, 0x80000000}) ==
        Words(2, 0xFFFFFFFF));
  CHECK(cells("mov.b64 %rd2, -1; red.global.min.u64 [%rd9], %rd2; ret;", {7, 0x80000000}) ==
        Words{7, 0x80000000});
  CHECK(cells(swap, {1, 2}) == Words{5, 0});
  CHECK(cells(swap, {1, 3}) == Words{1, 3});
  CHECK(cells("mov.b16 %h1, 0xBEEF; mov.b16 %h2, 7; atom.global.cas.b16 %h3, [%rd9+2], %h1, %h2; ret;",
              {0xBEEF1234}) == Words{0x00071234});
  CHECK(cells("red.global.add.f64 [%rd9], 0.5; ret;", {0, 0x3FF00000}) == Words{0, 0x3FF80000});
  CHECK(cells("mov.f32 %f1, 1.0; mov.f32 %f2, 2.0; red.global.add.v2.f32 [%rd9], {%f1, %f2}; ret;",
              {0x3F800000, 0x3F800000}) == Words{0x40000000, 0x40400000});
  CHECK(cells("mov.u32 %r2, 0x3F804000; red.global.add.noftz.bf16x2 [%rd9], %r2; ret;", {0x3F803F80}) ==
        Words{0x40004040});
  CHECK(lanes_fault("atom.global.add.u64 %rd3, [%rd9+4], 1; ret;").kind() == FaultKind::kMisaligned);
  CHECK(lanes_fault("atom.global.min.f32 %f3, [%rd9], 1.0; ret;").kind() == FaultKind::kUnsupported);
}

TEST_CASE(
    "mapa names the same variable in any CTA, by shared and by generic address; getctarank finds the CTA",
    "[lanes]") {
  // Every CTA reads its successor's cell in three ways and adds to it once.
  const auto out = lanes(R"(
    mov.u32 %r2, cell; mov.u32 %r3, %cluster_ctarank; add.u32 %r4, %r3, 100;
    st.shared.u32 [%r2], %r4;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    add.u32 %r5, %r3, 1; and.b32 %r5, %r5, 3;
    mapa.shared::cluster.u32 %r6, %r2, %r5; ld.shared::cluster.u32 %r7, [%r6];
    cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd3, %rd2; mapa.u64 %rd4, %rd3, %r5; ld.u32 %r8, [%rd4];
    getctarank.shared::cluster.u32 %r9, %r6; getctarank.u64 %r10, %rd4;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    red.shared::cluster.add.u32 [%r6], 1000;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ld.shared.u32 %r11, [%r2];
    sub.u32 %r8, %r8, %r7; add.u32 %r9, %r9, %r10; mad.lo.u32 %r7, %r9, 100000, %r7;
    mad.lo.u32 %r7, %r8, 10000000, %r7; sub.u32 %r11, %r11, %r4; add.u32 %r7, %r7, %r11;
    st.global.u32 [%rd1], %r7;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;)",
                         1, 4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const uint32_t next = (rank + 1) % 4;
    CHECK(out[rank] == 100 + next + 200000 * next + 1000);
  }
  CHECK(lanes_fault("mov.u32 %r2, cell; mapa.shared::cluster.u32 %r3, %r2, 1; ret;").kind() ==
        FaultKind::kBounds);
}

TEST_CASE("a decimal literal is a float in f32 instructions and a double in f64 ones", "[lanes]") {
  const std::string code = GENERATE(
      "mov.f32 %f1, 2.75;", "mov.f32 %f2, 1.25; add.f32 %f1, %f2, 1.5;", "add.rn.ftz.f32 %f1, 1.25, 1.5;",
      "mov.f32 %f2, 1.5; fma.rn.f32 %f1, %f2, 1.5, 0.5;",
      "setp.lt.u32 %p1, %r1, 64; selp.f32 %f1, 2.75, -1.0, %p1;",
      "mov.f32 %f2, 3.0; setp.gt.f32 %p1, %f2, 2.5; selp.f32 %f1, 2.75, 0.0, %p1;",
      "mov.f32 %f2, -2.75; neg.f32 %f1, %f2;", "max.f32 %f1, 2.75, -2.75;",
      "mov.s32 %r2, -1; slct.f32.s32 %f1, 8.0, 2.75, %r2;", "mov.f64 %fd1, 2.75; cvt.rn.f32.f64 %f1, %fd1;",
      "mov.f64 %fd2, 1.25; add.f64 %fd1, %fd2, 1.5; cvt.rn.f32.f64 %f1, %fd1;", "cvt.rn.f32.f64 %f1, 2.75;",
      "mov.f32 %f1, 0f40300000;", "mov.b32 %f1, 0f40300000;", "mov.f32 %f1, 0d4006000000000000;",
      "st.global.f32 [%rd1], 2.75; ld.global.f32 %f1, [%rd1];",
      "st.global.v2.f32 [%rd9], {1.0, 2.75}; ld.global.f32 %f1, [%rd9+4];");
  INFO(code);
  CHECK(run(code + " st.global.f32 [%rd1], %f1; ret;", 32, 1, {0, 0}).out ==
        Words(32, std::bit_cast<uint32_t>(2.75f)));
}

TEST_CASE("a decimal literal rounds to the nearest float, and does not pass for bits of another width",
          "[lanes]") {
  CHECK(lanes("mov.f32 %f1, 0.1; st.global.f32 [%rd1], %f1; ret;") == Words(32, 0x3DCCCCCD));
  CHECK(lanes_fault("mov.b32 %r2, 1.5; ret;").kind() == FaultKind::kUnsupported);
  CHECK(lanes_fault("mov.f64 %fd1, 0f3FC00000; ret;").kind() == FaultKind::kUnsupported);
}

}  // namespace lanes_test
