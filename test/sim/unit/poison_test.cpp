// poison_test.cpp -- bytes of memory that nobody wrote. It is no fault to load them, pass them to functions,
// bring them to other lanes or copy them; next to each of these cases is a use that is a fault.
#include "sim/unit/lanes_fixture.hpp"
#include "support/catch.hpp"

namespace poison_test {

using namespace sim_test;
using sim::FaultKind;

// Every thread has 32 bytes at [%rd2] of shared, global or local memory. It wrote word 1 of the first 16
// bytes; nobody wrote the last 16.
struct Place {
  std::string space, declaration;
};
static Place any_place() {
  return GENERATE(
      Place{"shared", "mov.u64 %rd2, tile; mul.wide.u32 %rd3, %r1, 32; add.u64 %rd2, %rd2, %rd3;"},
      Place{"local", ".local .align 16 .b8 mine[32]; mov.u64 %rd2, mine;"},
      Place{"global", "mul.wide.u32 %rd3, %r1, 32; add.u64 %rd2, %rd9, 1024; add.u64 %rd2, %rd2, %rd3;"});
}

static std::vector<uint32_t> run_place(const Place& place, std::string body) {
  for (size_t at; (at = body.find("SPACE")) != std::string::npos;) body.replace(at, 5, place.space);
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(1024);
  machine.run(kernel_text(kOut,
                          kProlog + place.declaration + "mov.u32 %r2, 5; st." + place.space +
                              ".u32 [%rd2+4], %r2;" + body + "ret;",
                          ".shared .align 16 .b8 tile[1024];"),
              shape(1, 32), {&out});
  return machine.fetch(out, 32);
}

const std::vector<uint32_t> kFives(32, 5);

// A function that takes and returns a structure of so many words, word i of which becomes word i + 1.
static std::string turn(int words) {
  const std::string size = std::to_string(4 * words);
  std::string body;
  for (int i = 0; i < words; ++i)
    body += "ld.param.b32 %r1, [x+" + std::to_string(4 * i) + "]; st.param.b32 [r+" +
            std::to_string(4 * ((i + 1) % words)) + "], %r1;";
  return ".func (.param .align 4 .b8 r[" + size + "]) turn(.param .align 4 .b8 x[" + size +
         "]) { .reg .b32 %r<3>; " + body + " ret; }";
}

TEST_CASE("what a load brings that nobody wrote counts where it is used", "[poison]") {
  const Place place = any_place();
  const std::string load = GENERATE(std::string("ld.SPACE.v2.u32 {%r3, %r4}, [%rd2];"),
                                    "ld.SPACE.v4.u32 {%r3, %r4, %r5, %r6}, [%rd2];",
                                    "ld.SPACE.u64 %rd4, [%rd2]; mov.b64 {%r3, %r4}, %rd4;",
                                    "ld.SPACE.u32 %r3, [%rd2]; ld.SPACE.u32 %r4, [%rd2+4];",
                                    "ld.SPACE.s8 %r3, [%rd2+3]; ld.SPACE.u32 %r4, [%rd2+4];");
  CAPTURE(place.space, load);
  CHECK(run_place(place, load + "st.global.u32 [%rd1], %r4;") == kFives);
  const std::string use =
      GENERATE(std::string("st.global.u32 [%rd1], %r3;"), "add.u32 %r7, %r3, %r4; st.global.u32 [%rd1], %r7;",
               "setp.eq.u32 %p1, %r3, 0; @%p1 st.global.u32 [%rd1], %r4;",
               "cvt.u64.u32 %rd5, %r3; st.global.u32 [%rd5], %r4;");
  CAPTURE(use);
  const auto fault = fault_of([&] { run_place(place, load + use); });
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, " was never written; it came by"));
  CHECK(says(fault, "ld." + place.space));
}

TEST_CASE("padding may be copied beside what was written, and is padding there", "[poison]") {
  const Place place = any_place();
  const std::string copy = GENERATE(
      std::string("ld.SPACE.v2.u32 {%r3, %r4}, [%rd2]; st.SPACE.v2.u32 [%rd2+16], {%r3, %r4};"),
      "ld.SPACE.u64 %rd4, [%rd2]; st.SPACE.u64 [%rd2+16], %rd4;",
      "ld.SPACE.u64 %rd4, [%rd2]; shr.u64 %rd5, %rd4, 32; cvt.u32.u64 %r4, %rd5; cvt.u32.u64 %r3, %rd4;"
      "shfl.sync.idx.b32 %r3, %r3, %r1, 31, -1; st.SPACE.v2.u32 [%rd2+16], {%r3, %r4};",
      "ld.SPACE.v2.u32 {%r3, %r4}, [%rd2]; mov.b64 %rd4, {%r3, %r4}; st.SPACE.u64 [%rd2+16], %rd4;");
  CAPTURE(place.space, copy);
  CHECK(run_place(place, copy + "ld.SPACE.v2.u32 {%r5, %r6}, [%rd2+16]; st.global.u32 [%rd1], %r6;") ==
        kFives);
  const auto used =
      fault_of([&] { run_place(place, copy + "ld.SPACE.u32 %r6, [%rd2+16]; st.global.u32 [%rd1], %r6;"); });
  CHECK(used.kind() == FaultKind::kPoison);
  // A store gives it a value again.
  CHECK(run_place(
            place,
            copy + "st.SPACE.u32 [%rd2+16], %r2; ld.SPACE.u32 %r6, [%rd2+16]; st.global.u32 [%rd1], %r6;") ==
        kFives);
}

TEST_CASE("other poison than padding is not stored", "[poison]") {
  Place place = any_place();
  const std::string store = GENERATE(
      std::string("ld.SPACE.u32 %r3, [%rd2]; st.global.u32 [%rd1], %r3;"),
      "ld.SPACE.v2.u32 {%r3, %r4}, [%rd2+16]; st.global.v2.u32 [%rd9+512], {%r3, %r4};",
      "ld.SPACE.v2.u32 {%r3, %r4}, [%rd2]; add.u32 %r3, %r3, 1; st.global.v2.u32 [%rd9+512], {%r3, %r4};",
      "ld.SPACE.v2.u32 {%r3, %r4}, [%rd2]; and.b32 %r3, %r3, 1; st.global.v2.u32 [%rd9+512], {%r3, %r4};",
      "st.global.v2.u32 [%rd9+512], {%r20, %r2};",
      "ld.SPACE.v2.u32 {%r3, %r4}, [%rd2]; redux.sync.or.b32 %r3, %r3, -1; st.global.v2.u32 [%rd9+512], {%r3, %r4};");
  CAPTURE(place.space, store);
  CHECK(fault_of([&] { run_place(place, store); }).kind() == FaultKind::kPoison);
}

TEST_CASE("an exchange does not use what was there, any other atomic does", "[poison]") {
  const Place place{"global", "add.u64 %rd2, %rd9, 1024;"};
  const std::string after = "bar.sync 0; ld.global.u32 %r4, [%rd2]; st.global.u32 [%rd1], %r4;";
  CHECK(run_place(place, "atom.global.exch.b32 %r3, [%rd2], %r2;" + after) == kFives);
  const std::string use =
      GENERATE(std::string("setp.eq.u32 %p1, %r1, 0; @%p1 atom.global.exch.b32 %r3, [%rd2], %r2;"
                           "@%p1 st.global.u32 [%rd1], %r3;"),
               "atom.global.add.u32 %r3, [%rd2], 1;", "atom.global.cas.b32 %r3, [%rd2], 0, 1;",
               "red.global.or.b32 [%rd2], 1;");
  CAPTURE(use);
  CHECK(fault_of([&] { run_place(place, use); }).kind() == FaultKind::kPoison);
}

TEST_CASE("structures of any size are passed and returned by value, with what nobody set", "[poison]") {
  const int words = GENERATE(1, 2, 3, 9);
  CAPTURE(words);
  const std::string size = std::to_string(4 * words);
  // All words but the last one have a value, the number of the word after it.
  std::string body = "{ .param .align 4 .b8 a[" + size + "]; .param .align 4 .b8 result[" + size + "];";
  for (int i = 0; i + 1 < words; ++i)
    body +=
        "mov.u32 %r2, " + std::to_string(i + 1) + "; st.param.b32 [a+" + std::to_string(4 * i) + "], %r2;";
  body += "call.uni (result), turn, (a);";
  for (int i = 0; i < words; ++i)
    body += "ld.param.b32 %r" + std::to_string(20 + i) + ", [result+" + std::to_string(4 * i) + "];";
  body += "} ";
  for (int i = 1; i < words; ++i)
    CHECK(run_lanes(body + "st.global.u32 [%rd1], %r" + std::to_string(20 + i) + "; ret;", 32, turn(words)) ==
          std::vector<uint32_t>(32, uint32_t(i)));
  const auto fault = lanes_fault(body + "st.global.u32 [%rd1], %r20; ret;", 32, turn(words));
  CHECK(fault.kind() == FaultKind::kPoison);
  CHECK(says(fault, " of local memory was never written; it came by"));
}

TEST_CASE("an argument that was never set is no fault unless the function uses it", "[poison]") {
  const auto pick = [](const std::string& which) {
    return run_lanes(
        "{ .param .b32 a; .param .b32 b; .param .b32 result;"
        "st.param.b32 [a], %r1; st.param.b32 [b], %r20;"
        "call.uni (result), pick, (a, b); ld.param.b32 %r2, [result]; }"
        "st.global.u32 [%rd1], %r2; ret;",
        32,
        ".func (.param .b32 r) pick(.param .b32 x, .param .b32 y) { .reg .b32 %r<3>;"
        "ld.param.b32 %r1, [" +
            which + "]; st.param.b32 [r], %r1; ret; }");
  };
  CHECK(pick("x")[31] == 31);
  CHECK(says(fault_of([&] { pick("y"); }), "register %r20 was never written"));
}

TEST_CASE("what lanes tell each other is poison as far as it depends on poison", "[poison]") {
  // %r20 was never written. %r3 is %r20 in lane 0, and 5 in the other lanes. %p1 is %r3 == 5; %p2 is false.
  const std::string before =
      "setp.gt.u32 %p2, %r1, 40; setp.eq.u32 %p3, %r1, 0; mov.u32 %r3, 5; @%p3 mov.u32 %r3, %r20;"
      "setp.eq.u32 %p1, %r3, 5; and.pred %p4, %p1, %p3; setp.eq.u32 %p5, %r1, 1;";
  SECTION("what does not depend on it has a value") {
    const std::string use = GENERATE(
        std::string("vote.sync.ballot.b32 %r4, %p1, -1; shr.u32 %r4, %r4, 29; sub.u32 %r4, %r4, 2;"),
        "vote.sync.any.pred %p6, %p1, -1; selp.u32 %r4, 5, 0, %p6;",
        "not.pred %p6, %p1; vote.sync.all.pred %p6, %p6, -1; selp.u32 %r4, 0, 5, %p6;",
        "or.pred %p6, %p4, %p5; vote.sync.uni.pred %p6, %p6, -1; selp.u32 %r4, 0, 5, %p6;",
        "match.any.sync.b32 %r4, %r3, -1; shr.u32 %r4, %r4, 29; sub.u32 %r4, %r4, 2; @%p3 mov.u32 %r4, 5;",
        "match.any.sync.b32 %r4, %r3, -1; and.b32 %r4, %r4, 1; @!%p3 mov.u32 %r4, 1; add.u32 %r4, %r4, 4;",
        "@%p5 mov.u32 %r3, 6; match.all.sync.b32 %r4|%p6, %r3, -1; selp.u32 %r4, %r4, 5, %p6;",
        "redux.sync.or.b32 %r4, %r3, -1; and.b32 %r4, %r4, 5;",
        "shl.b32 %r4, %r3, 8; redux.sync.add.u32 %r4, %r4, -1; and.b32 %r4, %r4, 255; add.u32 %r4, %r4, 5;",
        "@%p5 mov.u32 %r3, 0; redux.sync.and.b32 %r4, %r3, -1; add.u32 %r4, %r4, 5;");
    CAPTURE(use);
    CHECK(run_lanes(before + use + "st.global.u32 [%rd1], %r4; ret;") == kFives);
  }
  SECTION("what does counts where it is used, and no sooner") {
    const std::string use =
        GENERATE(std::string("vote.sync.ballot.b32 %r4, %p1, -1;"),
                 "vote.sync.all.pred %p6, %p1, -1; selp.u32 %r4, 5, 0, %p6;",
                 "vote.sync.any.pred %p6, %p4, -1; selp.u32 %r4, 5, 0, %p6;",
                 "vote.sync.uni.pred %p6, %p1, -1; selp.u32 %r4, 5, 0, %p6;",
                 "match.any.sync.b32 %r4, %r3, -1;", "match.all.sync.b32 %r4|%p6, %r3, -1;",
                 "match.all.sync.b32 %r5|%p6, %r3, -1; selp.u32 %r4, 5, 0, %p6;",
                 "redux.sync.or.b32 %r4, %r3, -1;", "redux.sync.and.b32 %r4, %r3, -1;",
                 "redux.sync.xor.b32 %r4, %r3, -1; and.b32 %r4, %r4, 1;", "redux.sync.add.s32 %r4, %r3, -1;",
                 "redux.sync.min.u32 %r4, %r3, -1;", "redux.sync.max.s32 %r4, %r3, -1;");
    CAPTURE(use);
    CHECK_NOTHROW(run_lanes(before + use + "st.global.u32 [%rd1], %r1; ret;"));
    const auto fault = lanes_fault(before + use + "st.global.u32 [%rd1], %r4; ret;");
    CHECK(fault.kind() == FaultKind::kPoison);
    CHECK(says(fault, "register %r20 was never written"));
  }
}

}  // namespace poison_test
