// observer_test.cpp -- what the machine tells a watcher: every event of small programs, with its order, scope
// and phase. Footprints of the tensor core are in footprint_test.cpp.
#include "sim/exec/policy.h"
#include "sim/unit/recorder.hpp"
#include "support/catch.hpp"

namespace observer_test {

using namespace sim_test;
using sim::Memory;
using sim::Order;
using sim::Scope;
using sim::SyncEvent;
using Kind = SyncEvent::Kind;
using Fence = SyncEvent::Fence;

constexpr uint64_t kWindow = 1024;  // static shared memory begins here

// %r1 = tid, %rd1 = out; shared `bar` (two mbarriers) at 1024, `word` (64 bytes) behind it.
static Recorder watch(const std::string& body, uint32_t threads = 32, uint32_t ctas = 1, void* out = nullptr,
                      sim::GlobalMemory* memory = nullptr) {
  Recorder recorder;
  Machine machine;
  sim::LaunchOptions options;
  options.observer = &recorder;
  const std::string text =
      kernel_text(".param .u64 out", R"(
    .reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>;
    .local .align 8 .b8 mine[16];
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, word;
  )" + body + " ret;",
                  ".shared .align 16 .b8 bar[16]; .shared .align 16 .b8 word[64];", ".maxntid 256");
  if (memory == nullptr) memory = &machine.memory;
  const auto module = sim::Module::load(text, *memory);
  void* args[] = {&out};
  sim::launch(*module, "k", shape(ctas, threads, ctas), args, *memory, options);
  return recorder;
}

TEST_CASE("watched: a load, store or atomic of global and shared memory is one access per lane",
          "[observer]") {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(16);
  const auto address = reinterpret_cast<uint64_t>(out);
  const Recorder seen = watch(R"(
    mov.u32 %r4, 7; mov.b64 %rd3, 5;
    st.global.v4.u32 [%rd1], {%r4, %r4, %r4, %r4};
    ld.global.u32 %r5, [%rd1+4];
    st.release.gpu.global.u32 [%rd1+8], %r4;
    ld.acquire.sys.global.u32 %r5, [%rd1+8];
    ld.relaxed.cluster.global.u32 %r5, [%rd1+8];
    st.volatile.shared.u32 [%r3], %r4;
    ld.shared.u8 %r5, [%r3+1];
    atom.global.add.u32 %r6, [%rd1], %r4;
    atom.acq_rel.cta.shared.cas.b32 %r6, [%r3], %r4, %r4;
    red.release.gpu.global.add.u32 [%rd1], %r4;
    st.local.u64 [mine], %rd3; ld.local.u64 %rd4, [mine];)",
                              1, 1, out, &machine.memory);
  struct Expected {
    Memory memory;
    uint64_t address;
    uint32_t bytes;
    bool write, atomic;
    Order order;
    Scope scope;
  };
  const std::vector<Expected> expected = {
      {Memory::kGlobal, address, 16, true, false, Order::kWeak, Scope::kSys},
      {Memory::kGlobal, address + 4, 4, false, false, Order::kWeak, Scope::kSys},
      {Memory::kGlobal, address + 8, 4, true, false, Order::kRelease, Scope::kGpu},
      {Memory::kGlobal, address + 8, 4, false, false, Order::kAcquire, Scope::kSys},
      {Memory::kGlobal, address + 8, 4, false, false, Order::kRelaxed, Scope::kCluster},
      {Memory::kShared, kWindow + 16, 4, true, false, Order::kVolatile, Scope::kSys},
      {Memory::kShared, kWindow + 17, 1, false, false, Order::kWeak, Scope::kSys},
      {Memory::kGlobal, address, 4, true, true, Order::kRelaxed, Scope::kGpu},
      {Memory::kShared, kWindow + 16, 4, true, true, Order::kAcqRel, Scope::kCta},
      {Memory::kGlobal, address, 4, true, true, Order::kRelease, Scope::kGpu},
  };
  REQUIRE(seen.accessed.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const sim::Access& a = seen.accessed[i];
    CHECK(a.region.memory == expected[i].memory);
    CHECK(a.region.address == expected[i].address);
    CHECK(a.region.bytes == expected[i].bytes);
    CHECK(a.region.write == expected[i].write);
    CHECK(a.atomic == expected[i].atomic);
    CHECK(a.order == expected[i].order);
    CHECK(a.scope == expected[i].scope);
    CHECK(a.mask == 1);
    CHECK(a.inst != nullptr);
  }
}

TEST_CASE("watched: an access of another CTA's shared memory names its owner, and every lane counts",
          "[observer]") {
  const Recorder seen = watch(R"(
    mov.u32 %r4, %cluster_ctarank; xor.b32 %r5, %r4, 1; mapa.shared::cluster.u32 %r6, %r3, %r5;
    shl.b32 %r7, %r1, 2; add.u32 %r6, %r6, %r7;
    st.shared::cluster.u32 [%r6], %r1;
    barrier.cluster.arrive; barrier.cluster.wait;)",
                              4, 2);
  REQUIRE(seen.accessed.size() == 8);
  for (const sim::Access& a : seen.accessed) {
    CHECK(a.region.cta == 1 - a.thread.cta);
    CHECK(a.region.address == kWindow + 16 + 4 * a.thread.lane);
    CHECK(a.mask == 0xF);
  }
  const auto arrive = seen.of(Kind::kClusterArrive), wait = seen.of(Kind::kClusterWait);
  REQUIRE(arrive.size() == 2);
  REQUIRE(wait.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(arrive[i].order == Order::kRelease);
    CHECK(wait[i].order == Order::kAcquire);
    CHECK(arrive[i].phase == 0);
    CHECK(wait[i].phase == 0);
    CHECK(arrive[i].mask == 0xF);
  }
}

TEST_CASE("watched: generations of the cluster barrier count up, and a relaxed arrival says so",
          "[observer]") {
  const Recorder seen = watch(R"(
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;)");
  const auto arrive = seen.of(Kind::kClusterArrive), wait = seen.of(Kind::kClusterWait);
  REQUIRE(arrive.size() == 2);
  REQUIRE(wait.size() == 2);
  CHECK(arrive[1].order == Order::kRelaxed);
  CHECK(arrive[1].phase == 1);
  CHECK(wait[1].phase == 1);
}

TEST_CASE("watched: the life of an mbarrier, each event in the phase it counts in", "[observer]") {
  const Recorder seen = watch(R"(
    mbarrier.init.shared::cta.b64 [%r2], 2;
    mbarrier.arrive.shared::cta.b64 _, [%r2];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r2], 64;
    mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%r2], 64;
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], 0;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 16;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 16;
    mbarrier.arrive_drop.relaxed.cta.shared::cta.b64 _, [%r2];
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    mbarrier.inval.shared::cta.b64 [%r2];)",
                              1);
  struct Expected {
    Kind kind;
    uint64_t phase;
    int64_t amount, bytes;
    Order order;
    Scope scope;
    bool local;
  };
  const std::vector<Expected> expected = {
      {Kind::kMbarrierInit, 0, 2, 0, Order::kWeak, Scope::kCta, true},
      {Kind::kMbarrierArrive, 0, 1, 0, Order::kRelease, Scope::kCta, true},
      {Kind::kMbarrierTest, 0, 0, 0, Order::kAcquire, Scope::kCta, true},
      {Kind::kMbarrierArrive, 0, 1, 64, Order::kRelease, Scope::kCluster, false},
      {Kind::kMbarrierCompleteTx, 0, 0, 64, Order::kRelaxed, Scope::kCluster, true},
      {Kind::kMbarrierWait, 0, 0, 0, Order::kAcquire, Scope::kCluster, true},
      {Kind::kMbarrierExpectTx, 1, 0, 16, Order::kRelaxed, Scope::kCta, true},
      {Kind::kMbarrierCompleteTx, 1, 0, 16, Order::kRelaxed, Scope::kCta, true},
      {Kind::kMbarrierArriveDrop, 1, 1, 0, Order::kRelaxed, Scope::kCta, true},
      {Kind::kMbarrierWait, 0, 0, 0, Order::kAcquire, Scope::kCta, true},
      {Kind::kMbarrierInval, 1, 0, 0, Order::kWeak, Scope::kCta, true},
  };
  std::vector<SyncEvent> events;
  for (const SyncEvent& e : seen.syncs)
    if (e.mbarrier.offset != 0) events.push_back(e);
  REQUIRE(events.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(events[i].kind == expected[i].kind);
    CHECK(events[i].mbarrier == sim::MbarrierRef{0, kWindow});
    CHECK(events[i].phase == expected[i].phase);
    CHECK(events[i].amount == expected[i].amount);
    CHECK(events[i].bytes == expected[i].bytes);
    CHECK(events[i].order == expected[i].order);
    CHECK(events[i].scope == expected[i].scope);
    CHECK(events[i].local_form == expected[i].local);
    CHECK(events[i].async_id == 0);
  }
  CHECK(events[5].has_parity);
  CHECK(events[5].parity == 0);
}

TEST_CASE(
    "watched: a thread that sleeps in try_wait says so once; the lanes that arrive or pass together are one "
    "event",
    "[observer]") {
  const Recorder seen = watch(R"(
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [%r2], 64;
    bar.sync 0;
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra ARRIVE;
  WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    bra DONE;
  ARRIVE:
    mbarrier.arrive.shared::cta.b64 _, [%r2];
    mbarrier.arrive.shared::cta.b64 _, [%r2];
  DONE:)",
                              64);
  const auto slept = seen.of(Kind::kMbarrierTest), passed = seen.of(Kind::kMbarrierWait);
  REQUIRE(slept.size() == 1);
  REQUIRE(passed.size() == 1);
  for (const SyncEvent& e : {slept[0], passed[0]}) {
    CHECK(e.mask == 0xFFFFFFFF);
    CHECK(e.thread.warp == 1);
    CHECK(e.phase == 0);
  }
  const auto arrived = seen.of(Kind::kMbarrierArrive);
  REQUIRE(arrived.size() == 2);
  for (const SyncEvent& e : arrived) {
    CHECK(e.mask == 0xFFFFFFFF);
    CHECK(e.amount == 1);
    CHECK(e.phase == 0);
  }
}

TEST_CASE("watched: lanes whose arrivals differ, or count in another phase, are events of their own",
          "[observer]") {
  // Lane 15 completes the phase, lane 20 arrives at another barrier, and lane 24 for two.
  const Recorder seen = watch(R"(
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [%r2], 16;
    @!%p1 mbarrier.init.shared::cta.b64 [%r2+8], 16;
    bar.warp.sync -1;
    setp.eq.u32 %p2, %r1, 20; selp.u32 %r5, 8, 0, %p2; add.u32 %r5, %r2, %r5;
    setp.eq.u32 %p3, %r1, 24; selp.u32 %r6, 2, 1, %p3;
    mbarrier.arrive.shared::cta.b64 %rd10, [%r5], %r6;)",
                              32);
  struct Told {
    uint32_t mask, first;
    uint64_t phase;
    int64_t amount;
    bool operator==(const Told&) const = default;
  };
  std::vector<Told> told;
  for (const SyncEvent& e : seen.of(Kind::kMbarrierArrive))
    told.push_back({e.mask, e.thread.lane, e.phase, e.amount});
  const std::vector<Told> expected{{0x0000FFFF, 0, 0, 1},  {0x000F0000, 16, 1, 1}, {0x00100000, 20, 0, 1},
                                   {0x00E00000, 21, 1, 1}, {0x01000000, 24, 1, 2}, {0xFE000000, 25, 1, 1}};
  CHECK(told == expected);
}

TEST_CASE("watched: a fresh mbarrier lets parity 1 pass although no phase has completed", "[observer]") {
  const Recorder seen = watch(R"(
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 1;)",
                              1);
  const auto passed = seen.of(Kind::kMbarrierWait);
  REQUIRE(passed.size() == 1);
  CHECK(passed[0].phase == ~uint64_t(0));
}

TEST_CASE("watched: warps arrive at a named barrier in a generation and leave it in the same one",
          "[observer]") {
  const Recorder seen = watch(R"(
    setp.ge.u32 %p2, %r1, 32;
    mov.u32 %r5, 0;
  AGAIN:
    @%p2 bar.arrive 3, 64;
    @!%p2 bar.sync 3, 64;
    bar.sync 0;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 2;
    @%p1 bra AGAIN;)",
                              64);
  std::vector<std::tuple<Kind, uint32_t, uint64_t, uint64_t, int64_t>> of_three;
  for (const SyncEvent& e : seen.syncs)
    if ((e.kind == Kind::kBarrierArrive || e.kind == Kind::kBarrierLeave) && e.object == 3) {
      of_three.emplace_back(e.kind, e.thread.warp, e.object, e.phase, e.amount);
      CHECK(e.mask == 0xFFFFFFFF);
    }
  using Row = std::tuple<Kind, uint32_t, uint64_t, uint64_t, int64_t>;
  CHECK(of_three == std::vector<Row>{{Kind::kBarrierArrive, 0, 3, 0, 64},
                                     {Kind::kBarrierArrive, 1, 3, 0, 64},
                                     {Kind::kBarrierLeave, 0, 3, 0, 64},
                                     {Kind::kBarrierArrive, 0, 3, 1, 64},
                                     {Kind::kBarrierArrive, 1, 3, 1, 64},
                                     {Kind::kBarrierLeave, 0, 3, 1, 64}});
  CHECK(seen.of(Kind::kBarrierLeave).size() == 2 + 4);
}

TEST_CASE("watched: lanes that meet are one event, with a memory order only for bar.warp.sync",
          "[observer]") {
  const Recorder seen = watch(R"(
    setp.ge.u32 %p2, %r1, 16;
    @%p2 bra HIGH;
    bar.warp.sync -1; bra JOIN;
  HIGH:
    bar.warp.sync -1;
  JOIN:
    shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;
    vote.sync.ballot.b32 %r5, %p2, -1;
    elect.sync %r6|%p3, -1;
    redux.sync.add.u32 %r6, %r1, -1;
    match.any.sync.b32 %r6, %r1, -1;
    activemask.b32 %r6;)");
  const auto sync = seen.of(Kind::kWarpSync), meet = seen.of(Kind::kWarpMeet);
  REQUIRE(sync.size() == 1);
  CHECK(sync[0].mask == 0xFFFFFFFF);
  CHECK(meet.size() == 5);
}

TEST_CASE("watched: every fence says what it orders", "[observer]") {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(64);
  const Recorder seen = watch(R"(
    fence.acq_rel.gpu; fence.sc.cluster; fence.acquire.cta; membar.sys; membar.gl; fence.cta;
    fence.proxy.async; fence.proxy.async.shared::cta; fence.proxy.async.global;
    fence.proxy.alias; fence.mbarrier_init.release.cluster;
    fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
    fence.proxy.tensormap::generic.release.gpu;
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
    fence.release.sync_restrict::shared::cta.cluster;
    tcgen05.fence::before_thread_sync; tcgen05.fence::after_thread_sync;)",
                              1, 1, out, &machine.memory);
  struct Expected {
    Fence fence;
    Order order;
    Scope scope;
    uint8_t spaces;
  };
  const std::vector<Expected> expected = {
      {Fence::kThread, Order::kAcqRel, Scope::kGpu, 0},
      {Fence::kThread, Order::kSeqCst, Scope::kCluster, 0},
      {Fence::kThread, Order::kAcquire, Scope::kCta, 0},
      {Fence::kThread, Order::kSeqCst, Scope::kSys, 0},
      {Fence::kThread, Order::kSeqCst, Scope::kGpu, 0},
      {Fence::kThread, Order::kAcqRel, Scope::kCta, 0},
      {Fence::kProxyAsync, Order::kWeak, Scope::kCta, 7},
      {Fence::kProxyAsync, Order::kWeak, Scope::kCta, SyncEvent::kSharedCta},
      {Fence::kProxyAsync, Order::kWeak, Scope::kCta, SyncEvent::kGlobalSpace},
      {Fence::kProxyAlias, Order::kWeak, Scope::kCta, 0},
      {Fence::kMbarrierInit, Order::kRelease, Scope::kCluster, 0},
      {Fence::kProxyTensormap, Order::kAcquire, Scope::kGpu, 0},
      {Fence::kProxyTensormap, Order::kRelease, Scope::kGpu, 0},
      {Fence::kProxyAsync, Order::kAcquire, Scope::kCluster, SyncEvent::kSharedCluster},
      {Fence::kThread, Order::kRelease, Scope::kCluster, SyncEvent::kSharedCta},
      {Fence::kTensorBefore, Order::kWeak, Scope::kCta, 0},
      {Fence::kTensorAfter, Order::kWeak, Scope::kCta, 0},
  };
  const auto fences = seen.of(Kind::kFence);
  REQUIRE(fences.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(fences[i].fence == expected[i].fence);
    CHECK(fences[i].order == expected[i].order);
    CHECK(fences[i].scope == expected[i].scope);
    CHECK(fences[i].spaces == expected[i].spaces);
  }
  CHECK(fences[11].address == reinterpret_cast<uint64_t>(out));
  CHECK(fences[11].bytes == 128);
}

TEST_CASE("watched: waiting for the previous grid, register requests", "[observer]") {
  const Recorder seen = watch(R"(
    griddepcontrol.launch_dependents; griddepcontrol.wait; setmaxnreg.dec.sync.aligned.u32 40;)");
  CHECK(seen.of(Kind::kGridLaunch).size() == 1);
  CHECK(seen.of(Kind::kGridWait).size() == 1);
  const auto requests = seen.of(Kind::kSetMaxRegisters);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].amount == 40);
}

TEST_CASE("the warps of a warpgroup ask for the same registers", "[observer]") {
  const auto request = [](const std::string& condition, uint32_t threads) {
    return watch("shr.u32 %r5, %r1, 5; setp." + condition + R"( %p1, %r5, 3;
      @%p1 bra OTHER;
      setmaxnreg.dec.sync.aligned.u32 40; bra END;
    OTHER:
      setmaxnreg.dec.sync.aligned.u32 48;
    END:)",
                 threads);
  };
  CHECK(request("gt.u32", 256).remarks.empty());  // two warpgroups differ
  CHECK(request("eq.u32", 128).remarks.front() == "setmaxnreg-warpgroup");
  CHECK(watch(R"(
    shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r5, 3;
    @!%p1 setmaxnreg.dec.sync.aligned.u32 40;)",
              128)
            .remarks.front() == "setmaxnreg-warpgroup");
}

}  // namespace observer_test
