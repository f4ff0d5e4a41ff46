// cluster_launch_test.cpp -- registers of 128 bits and cluster launch control: which clusters run, what a
// response says, what is refused.
#include "sim/exec/cluster_launch.h"

#include <set>

#include "sim/unit/copies_fixture.hpp"
#include "sim/unit/fault_of.hpp"
#include "sim/unit/late_policy.hpp"
#include "sim/unit/recorder.hpp"

namespace cluster_launch_test {

using namespace sim_test;
using sim::FaultKind;

constexpr uint32_t kClusters = 5;

// One warp a CTA. Thread 0 of the first CTA of a cluster asks; %r10 is the first CTA of what it works on.
const char* const kAsk = R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r3], [%r2];)";
const char* const kTake = R"(
  WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], %r6;
    @!%p2 bra WAIT;
    xor.b32 %r6, %r6, 1;
    ld.shared.b128 %q1, [%r3];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;)";
// out[cluster] += 1 << 8 * (the cluster that runs), for every cluster worked on
const std::string kPersistent = std::string(R"(
    @%p1 bra END;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mov.u32 %r10, %ctaid.x;
    mov.u32 %r11, %ctaid.x; add.u32 %r11, %r11, 1;
  LOOP:
    mul.wide.u32 %rd10, %r10, 4; add.s64 %rd10, %rd7, %rd10; red.global.add.u32 [%rd10], %r11;)") +
                                kAsk + kTake + R"(
    @!%p3 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %q1;
    fence.proxy.async.shared::cta;
    bra LOOP;
  END:
    ret;)";

static Words launched(const std::string& body, sim::Policy* policy = nullptr,
                      sim::Observer* observer = nullptr, uint32_t cluster = 1,
                      uint32_t clusters = kClusters) {
  Machine machine;
  uint32_t* out = machine.make(Words(size_t(clusters) * cluster, 0));
  MapBytes map;
  sim::LaunchOptions options;
  options.policy = policy;
  options.observer = observer;
  machine.run(kernel_text(kParams, std::string(kCopyProlog) + ".reg .b128 %q<4>;" + body, kSharedVariables),
              shape(clusters * cluster, 32, cluster), {&out, &out, &map}, options);
  return machine.fetch(out, size_t(clusters) * cluster);
}

static FaultKind fault(const std::string& body, sim::Policy* policy = nullptr) {
  const std::string whole = "@%p1 bra END; mbarrier.init.shared::cta.b64 [%r2], 1;" + body + "END: ret;";
  return fault_of([&] { launched(whole, policy); }).kind();
}

TEST_CASE("a register of 128 bits is loaded, taken apart, put together and stored", "[exec]") {
  const Words out = launched(R"(
    .reg .b64 %d<4>; .reg .b32 %s<4>;
    @%p1 bra END;
    mov.u64 %d1, 0x1111222233334444; mov.u64 %d2, 0x5555666677778888;
    mov.b128 %q1, {%d1, %d2}; mov.b128 %q2, %q1;
    st.shared.b128 [%r3], %q2;
    ld.shared.b128 %q3, [%r3];
    mov.b128 {%d2, %d1}, %q3;
    st.global.u64 [%rd7], %d1; st.global.u64 [%rd7+8], %d2;
  END:
    ret;)",
                             nullptr, nullptr, 1, 4);
  CHECK(out == Words{0x77778888, 0x55556666, 0x33334444, 0x11112222});
}

TEST_CASE("every cluster runs or is cancelled, once, whoever asks when", "[schedule]") {
  const std::string mode = GENERATE("default", "early", "late", "reverse", "tear", "random");
  const uint64_t seed = GENERATE(1u, 2u, 3u);
  CAPTURE(mode, seed);
  const auto policy = sim::make_policy(mode, seed);
  std::set<uint32_t> runners;
  for (const uint32_t runner : launched(kPersistent, policy.get())) {
    CHECK(runner >= 1);
    CHECK(runner <= kClusters);
    runners.insert(runner);
  }
  // By default clusters begin one after the other, and in "reverse" all of them at once.
  if (mode == "default") CHECK(runners == std::set<uint32_t>{1});
  if (mode == "reverse") CHECK(runners.size() == kClusters);
}

TEST_CASE("a request may fail although clusters have not begun: these begin", "[schedule]") {
  class Never : public sim::DefaultPolicy {
    bool cancel() override { return false; }
  } policy;
  CHECK(launched(kPersistent, &policy) == Words{1, 2, 3, 4, 5});
}

TEST_CASE("a multicast response reaches every CTA of the cluster, and names the first of the cancelled one",
          "[exec]") {
  const Words out = launched(std::string(kInit) + R"(
    @%p1 bra DONE;
    mov.u32 %r10, %ctaid.x; mul.wide.u32 %rd10, %r10, 4; add.s64 %rd10, %rd7, %rd10;
    mov.u32 %r11, 100; st.global.u32 [%rd10], %r11;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
    setp.ne.u32 %p4, %r4, 0;
    @!%p4 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128
      [%r3], [%r2];)" + kTake + R"(
    @!%p3 bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r11, %r12, %r13, _}, %q1;
    add.u32 %r14, %r11, %r4; mul.wide.u32 %rd10, %r14, 4; add.s64 %rd10, %rd7, %rd10;
    add.u32 %r15, %r12, %r13; mad.lo.u32 %r15, %r15, 1000, %r14; st.global.u32 [%rd10], %r15;
  DONE:
    bar.warp.sync -1;)" + kLeave,
                             nullptr, nullptr, 2, 2);
  CHECK(out == Words{100, 100, 2, 3});
}

TEST_CASE("a request is watched as a copy of 16 bytes that signals its mbarrier", "[observer]") {
  Recorder seen;
  launched(kPersistent, nullptr, &seen);
  const auto issues = seen.of(sim::AsyncIssue::Kind::kTryCancel);
  REQUIRE(issues.size() == kClusters);  // four that succeed and one that fails
  for (const sim::AsyncIssue& issue : issues) {
    REQUIRE(issue.writes.size() == 1);
    CHECK(issue.writes[0].bytes == 16);
    CHECK(issue.reads.empty());
    REQUIRE(issue.barriers.size() == 1);
    CHECK(issue.barriers[0].bytes == 16);
  }
}

TEST_CASE("cluster launch control refuses what its sections leave undefined", "[exec]") {
  const std::string failed = std::string(kAsk) + kTake;  // of the last cluster, which finds no other
  const std::string until_failed = "LOOP:" + failed + " fence.proxy.async.shared::cta; @%p3 bra LOOP;";
  CHECK(fault(until_failed + kAsk) == FaultKind::kProtocol);
  CHECK(fault(until_failed + "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r10, %q1;") ==
        FaultKind::kProtocol);
  CHECK(fault(".reg .b64 %d<4>; mov.u64 %d1, 7; mov.b128 %q1, {%d1, %d1};"
              "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;") == FaultKind::kProtocol);
  CHECK(fault("mov.b128 %q1, 5;") == FaultKind::kUnsupported);
  CHECK(fault("ld.shared.v2.b128 {%q1, %q2}, [%r3];") == FaultKind::kUnsupported);
  CHECK(fault("add.u32 %r3, %r3, 8;" + std::string(kAsk)) == FaultKind::kMisaligned);
  LatePolicy late;
  CHECK(fault(kAsk, &late) == FaultKind::kProtocol);  // the CTA exits before the response has come
  CHECK(fault("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;") == FaultKind::kPoison);
}

}  // namespace cluster_launch_test
