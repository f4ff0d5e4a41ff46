// spin_test.cpp -- what ends a grid in which nothing changes: loops that come to an end by themselves,
// circles that nobody can end, and loops of which neither is known.
#include "support/catch.hpp"

#include "sim/unit/lanes_fixture.hpp"

namespace spin_test {

using namespace sim_test;
using sim::FaultKind;

constexpr uint64_t kFew = 1 << 16;

// Runs the body with a word of device memory that is zero, or with one of the host.
static sim::Fault impatient(const std::string& body, uint64_t patience = kFew, bool of_host = false,
                            uint32_t threads = 1) {
  Machine machine;
  std::vector<uint32_t> word(64);
  uint32_t* out = of_host ? word.data() : machine.make(word);
  if (of_host) machine.memory.adopt(word.data(), word.size() * 4, "cudaMallocHost");
  sim::LaunchOptions options;
  options.patience = patience;
  return fault_of(
      [&] { machine.run(kernel_text(kOut, kProlog + body), shape(1, threads), {&out}, options); });
}

const char* const kCount = R"(
    mov.u32 %r2, 0;
  WORK:
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 6000000;
    @%p2 bra WORK;
    st.global.u32 [%rd1], %r2; ret;)";
const char* const kPoll = R"(
  SPIN:
    ld.volatile.global.u32 %r3, [%rd9]; setp.eq.u32 %p2, %r3, 0;
    @%p2 bra SPIN;
    ret;)";

TEST_CASE("spin: a long loop in registers runs to its end", "[spin]") {
  CHECK(run_lanes(kCount, 1)[0] == 6000000);
}

TEST_CASE("spin: a run that is given up is no deadlock, and the loop is named", "[spin]") {
  const auto fault = impatient(kCount);
  CHECK(fault.kind() == FaultKind::kGivenUp);
  CHECK(says(fault, "gave up after"));
  CHECK(says(fault, "in PTX lines 17 to 18 at last"));
  CHECK(says(fault, "--patience or SIM_PATIENCE"));
  CHECK(says(fault, "CTA (0,0,0), warp 0, lane 0\n  at PTX line 1"));
}

TEST_CASE("spin: a thread that reads the same again and again is in a circle, however long that is",
          "[spin]") {
  CHECK(impatient(kPoll).kind() == FaultKind::kDeadlock);
  CHECK(lanes_fault(R"(
    mov.u32 %r2, 0; st.global.u32 [%rd1], %r2;
  SPIN:
    add.u32 %r2, %r2, 1; rem.u32 %r2, %r2, 1000;
    ld.volatile.global.u32 %r3, [%rd9]; setp.eq.u32 %p2, %r3, 0;
    @%p2 bra SPIN;
    ret;)",
                    1)
            .kind() == FaultKind::kDeadlock);
}

TEST_CASE("spin: to store what is there already changes nothing", "[spin]") {
  CHECK(impatient("mov.u32 %r2, 5; SPIN: st.volatile.global.u32 [%rd1], %r2; bra SPIN;").kind() ==
        FaultKind::kDeadlock);
  const auto lock = impatient(R"(
    mov.u32 %r2, 1; st.volatile.global.u32 [%rd9], %r2;
  TAKE:
    atom.global.cas.b32 %r3, [%rd9], 0, 1; setp.ne.u32 %p2, %r3, 0;
    @%p2 bra TAKE;
    ret;)");
  CHECK(lock.kind() == FaultKind::kDeadlock);
  CHECK(says(lock, "reads global address"));
  CHECK(run_lanes(R"(
    mov.u32 %r2, 0; mov.u32 %r3, 9;
  WORK:
    st.volatile.global.u32 [%rd1], %r3;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 6000000;
    @%p2 bra WORK;
    ret;)",
                  1)[0] == 9);
}

TEST_CASE("spin: warps that go round in one circle are one line", "[spin]") {
  const auto fault = impatient(kPoll, kFew, false, 96);
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "warps 0, 1, 2, lanes 0xffffffff each reads global address"));
  const std::string text = fault.what();
  CHECK(text.find("reads global") == text.rfind("reads global"));
}

TEST_CASE("spin: what counts its attempts has never been where it was", "[spin]") {
  CHECK(impatient(R"(
    mov.u32 %r2, 0;
  SPIN:
    add.u32 %r2, %r2, 1; ld.volatile.global.u32 %r3, [%rd9]; setp.eq.u32 %p2, %r3, 0;
    @%p2 bra SPIN;
    ret;)")
            .kind() == FaultKind::kGivenUp);
}

TEST_CASE("spin: the host may write its memory meanwhile", "[spin]") {
  CHECK(impatient(kPoll, kFew, true).kind() == FaultKind::kGivenUp);
}

TEST_CASE("spin: groups of copies are counted where no register shows it", "[spin]") {
  CHECK(impatient("SPIN: cp.async.commit_group; bra SPIN;").kind() == FaultKind::kGivenUp);
}

TEST_CASE("spin: time passes for those that only wait for it", "[spin]") {
  const auto wait = [](const char* clock) {
    return std::string("mov.u64 %rd2, ") + clock + R"(;
  SPIN:
    mov.u64 %rd3, )" +
           clock + R"(; sub.u64 %rd3, %rd3, %rd2; setp.lt.u64 %p2, %rd3, 3000000000;
    @%p2 bra SPIN;
    mov.u32 %r2, 1; st.global.u32 [%rd1], %r2; ret;)";
  };
  CHECK(run_lanes(wait("%clock64"), 1)[0] == 1);
  CHECK(run_lanes(wait("%globaltimer"), 64)[63] == 1);
}

// A CTA that waits and watches the clock does not time out while the other CTA works.
TEST_CASE("spin: time does not pass by those that work", "[spin]") {
  const auto out = run_lanes(R"(
    mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0; mov.u32 %r2, 0;
    @%p1 bra WAIT;
  WORK:
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 12000000;
    @%p2 bra WORK;
    mov.u32 %r3, 1; st.volatile.global.u32 [%rd9+4], %r3; ret;
  WAIT:
    st.volatile.global.u32 [%rd9+4], %r2; mov.u64 %rd2, %clock64;
  SPIN:
    mov.u64 %rd3, %clock64; sub.u64 %rd3, %rd3, %rd2; setp.gt.u64 %p3, %rd3, 200000000;
    @%p3 trap;
    ld.volatile.global.u32 %r3, [%rd9+4]; setp.eq.u32 %p2, %r3, 0;
    @%p2 bra SPIN;
    st.global.u32 [%rd9], %r3; ret;)",
                             1, "", 2);
  CHECK(out[0] == 1);
}

TEST_CASE("spin: many CTAs wait for the last one to begin", "[spin]") {
  const auto out = run_lanes(R"(
    mov.u32 %r4, %ctaid.x; setp.ne.u32 %p1, %r4, 0; mov.u32 %r3, 0;
    @!%p1 st.volatile.global.u32 [%rd9], %r3;
    setp.eq.u32 %p1, %r4, 63; mov.u32 %r3, 1;
    @%p1 st.volatile.global.u32 [%rd9], %r3;
  SPIN:
    ld.volatile.global.u32 %r3, [%rd9]; setp.eq.u32 %p2, %r3, 0;
    @%p2 bra SPIN;
    setp.eq.u32 %p1, %r4, 0; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd2, %rd9;
    @!%p1 st.global.u32 [%rd2], %r4;
    ret;)",
                             1, "", 64);
  CHECK((out[0] == 1 && out[63] == 63));
}

}  // namespace spin_test
