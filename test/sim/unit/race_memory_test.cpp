// race_memory_test.cpp -- the race checker on shared memory: every way of ordering two accesses of threads
// beside the same stream without it, and a ring of tiles.
#include "sim/unit/race_ring.hpp"
#include "support/catch.hpp"

namespace race_memory_test {

using namespace race_test;

TEST_CASE("A barrier of the CTA orders generic accesses of its threads", "[race]") {
  Events e;
  e.warp_write(0, 0, 0x1000);
  e.bar_sync(0, {0, 1});
  e.warp_read(0, 1, 0x1000);
  CHECK(e.broken() == "");
  e.warp_read(0, 2, 0x1000);  // was not at the barrier
  CHECK(e.broken() == "race-data");
}

TEST_CASE("A read is ordered before the next write", "[race]") {
  Events e;
  e.warp_write(0, 0, 0x1000);
  e.bar_sync(0, {0, 1});
  e.warp_read(0, 1, 0x1000);
  e.warp_write(0, 0, 0x1080);
  CHECK(e.broken() == "");
  e.warp_write(0, 0, 0x1000);
  CHECK(e.broken() == "race-data");
}

TEST_CASE("Neighbouring bytes are no conflict, overlapping ones are", "[race]") {
  Events e;
  e.write(at(0, 0), shared(0, 0x1000, 2));
  e.write(at(0, 1), shared(0, 0x1002, 2));
  CHECK(e.broken() == "");
  e.write(at(0, 2), shared(0, 0x1001, 1));
  REQUIRE(e.broken() == "race-data");
  CHECK(e.found[0].region.address == 0x1001);
  CHECK(e.found[0].region.bytes == 1);
}

TEST_CASE("Lanes of a warp are threads of their own", "[race]") {
  const auto run = [](auto&& between) {
    Events e;
    e.warp_write(0, 0, 0x1000);
    between(e);
    e.read(at(0, 0, 3), shared(0, 0x1000 + 4 * 5, 4));  // lane 3 reads what lane 5 wrote
    return e.broken();
  };
  CHECK(run([](Events&) {}) == "race-lanes");
  CHECK(run([](Events& e) { e.warp_sync(0, 0); }) == "");
  CHECK(run([](Events& e) { e.plain(Sync::kWarpMeet, at(0, 0), kWarp); }) == "warp-meet-order");
  Events own;
  own.warp_write(0, 0, 0x1000);
  own.read(at(0, 0, 5), shared(0, 0x1000 + 4 * 5, 4));
  own.warp_write(0, 0, 0x1000);
  CHECK(own.broken() == "");
}

TEST_CASE("Lanes of one instruction that store to one place are a strict finding", "[race]") {
  Events e;
  e.warp_access(0, 0, shared(0, 0x1000, 4), true, 0);
  CHECK(e.broken() == "warp-same-write");
}

TEST_CASE("A store that a warp makes as one is every lane's, and follows what each of them knows", "[race]") {
  const bool ordered = GENERATE(false, true);
  Events e;
  e.write(at(0, 0, 5), shared(0, 0x1000, 4));
  if (ordered) e.warp_sync(0, 0);
  e.warp_access(0, 0, shared(0, 0x1000, 4), false, 0, 0, true);
  CHECK(e.broken() == (ordered ? "" : "race-lanes"));
  Events own;
  own.warp_access(0, 0, global(0x90000, 4), true, 0, 77, true);
  own.read(at(0, 0, 5), global(0x90000, 4));
  CHECK(own.broken() == "");
  // Lanes that know different things make it as one all the same.
  own.fence(at(0, 0, 3), sim::SyncEvent::Fence::kThread, 0, 0, Order::kSeqCst, Scope::kGpu);
  own.warp_access(0, 0, global(0x91000, 4), true, 0, 77, true);
  CHECK(own.broken() == "");
  own.read(at(0, 1, 5), global(0x90000, 4));
  CHECK(own.broken() == "race-data");
}

TEST_CASE("A race names every earlier access that is not ordered, the last one first", "[race]") {
  Events e;
  e.write(at(0, 0), shared(0, 0x1000, 4));
  e.write(at(0, 1), shared(0, 0x1004, 4));
  e.read(at(0, 2), shared(0, 0x1008, 4));
  e.write(at(0, 3), shared(0, 0x1000, 16));
  CHECK(e.broken() == "race-data");
  REQUIRE(e.found.size() == 1);
  CHECK(e.found[0].earlier.thread.warp == 2);
  REQUIRE(e.found[0].others.size() == 2);
  CHECK(e.found[0].others[0].first == "an ordinary store of shared [0x1004,0x1008) of CTA 0");
  CHECK(e.found[0].others[0].second.thread.warp == 1);
  CHECK(e.found[0].others[1].second.thread.warp == 0);
}

TEST_CASE("Different instructions of one source line are two earlier accesses of a race", "[race]") {
  sim::ptx::Statement narrow, wide;
  narrow.site.source = wide.site.source = "k.cu:5";
  narrow.text = "st.shared.b32 [%r1], %r2", wide.text = "st.shared.v2.b32 [%r1], {%r2, %r3}";
  Events e;
  e.statement = &wide;
  e.write(at(0, 0), shared(0, 0x1008, 8));
  e.statement = &narrow;
  for (const uint64_t place : {0x1000, 0x1004}) e.write(at(0, 0), shared(0, place, 4));
  e.statement = nullptr;
  e.read(at(0, 3), shared(0, 0x1000, 16));
  REQUIRE(e.found.size() == 1);
  REQUIRE(e.found[0].others.size() == 2);
  CHECK(e.found[0].others[0].first == "an ordinary store of shared [0x1000,0x1004) of CTA 0");
  CHECK(e.found[0].others[1].first == "an ordinary store of shared [0x1008,0x1010) of CTA 0");
}

TEST_CASE("Copies of one source line are one earlier access of a race", "[race]") {
  sim::ptx::Statement line, another;
  line.site.source = "k.cu:5", another.site.source = "k.cu:6";
  line.text = another.text = "st.shared.b32 [%r1], %r2";
  Events e;
  e.statement = &another;
  e.write(at(0, 1), shared(0, 0x100c, 4));
  e.statement = &line;
  for (const uint64_t place : {0x1000, 0x1004, 0x1008}) e.write(at(0, 0), shared(0, place, 4));
  e.statement = nullptr;
  e.read(at(0, 3), shared(0, 0x1000, 16));
  REQUIRE(e.broken() == "race-data");
  REQUIRE(e.found.size() == 1);
  REQUIRE(e.found[0].others.size() == 2);
  CHECK(e.found[0].others[0].first ==
        "an ordinary store within shared [0x1000,0x1008) of CTA 0, the last of 2 of one source line");
  CHECK(e.found[0].others[1].first == "an ordinary store of shared [0x100c,0x1010) of CTA 0");
}

TEST_CASE("A strong store that a later one of another thread has overwritten is named, too", "[race]") {
  const Region word = global(0x90000, 4);
  const auto add = [&](Events& e, Thread t, bool atomic = false) {
    e.access(t, word, true, Order::kRelaxed, Scope::kGpu, atomic);
  };
  SECTION(
      "the thread of the later store follows only its own, unless it is an atomic, which reads the other") {
    const bool ordered = GENERATE(false, true), atomic = GENERATE(false, true);
    Events e;
    add(e, at(0, 0), atomic);
    add(e, at(0, 1), atomic);
    if (ordered) e.bar_sync(0, {0, 1});
    e.read(at(0, 1), word);
    CHECK(e.broken() == (ordered || atomic ? "" : "race-data"));
    if (!ordered && !atomic) CHECK(e.found.at(0).earlier.thread.warp == 0);
  }
  SECTION("an ordinary store and a copy are compared with all of them, which are gone behind it") {
    const bool copy = GENERATE(false, true);
    Events e;
    for (uint32_t warp = 0; warp < 3; ++warp) add(e, at(0, warp));
    if (copy) e.issue(Kind::kBulkLoad, at(0, 3), {word}, {shared(0, 0x1000, 4)}, {{Events::bar(0), 4}});
    else e.write(at(0, 3), word);
    REQUIRE(e.found.size() == 1);
    CHECK(e.found[0].earlier.thread.warp == 2);
    REQUIRE(e.found[0].others.size() == 2);
    CHECK(e.found[0].others[0].first == "a strong store of global [0x90000,0x90004)");
    CHECK(e.found[0].others[1].second.thread.warp == 0);
    Events after;
    add(after, at(0, 0));
    add(after, at(0, 1));
    after.bar_sync(0, {0, 1});
    after.write(at(0, 1), word);
    after.bar_sync(0, {1, 2}, 1);
    after.read(at(0, 2), word);
    CHECK(after.broken() == "");
  }
  SECTION("who has read one of them follows it") {
    Events e;
    add(e, at(0, 0));
    e.access(at(0, 1), word, false, Order::kRelaxed, Scope::kGpu);
    add(e, at(0, 1));
    e.read(at(0, 1), word);
    CHECK(e.broken() == "");
  }
  SECTION("many by the lanes of one warp are one, that of another warp is not forgotten over them") {
    Events e;
    add(e, at(0, 1));
    for (int turn = 0; turn < 40; ++turn) {
      std::vector<sim::Access> all(32);
      const sim::Inst* one = e.inst();
      for (uint32_t lane = 0; lane < 32; ++lane) {
        all[lane].thread = at(0, 0, lane);
        all[lane].mask = kWarp;
        all[lane].region = word;
        all[lane].region.write = true;
        all[lane].order = Order::kRelaxed;
        all[lane].scope = Scope::kGpu;
        all[lane].inst = one;
      }
      e.checker.accesses(all);
    }
    e.warp_sync(0, 0);
    e.read(at(0, 0, 31), word);
    REQUIRE(e.broken() == "race-data");
    CHECK(e.found.at(0).earlier.thread.warp == 1);
    CHECK(e.found.at(0).others.empty());
  }
  SECTION("the thread that counts itself last has seen the others, and may write the counter") {
    Events e;
    const auto fence = [&](Thread t) {
      e.fence(t, SyncEvent::Fence::kThread, 0, 0, Order::kAcqRel, Scope::kGpu);
    };
    for (uint32_t warp = 0; warp < 3; ++warp) {
      fence(at(0, warp));
      add(e, at(0, warp), true);
    }
    fence(at(0, 2));
    e.write(at(0, 2), word);
    CHECK(e.broken() == "");
  }
  SECTION("two ordinary stores that nothing orders are a finding of their own, at the later one") {
    Events e;
    e.write(at(0, 0), word);
    e.write(at(0, 1), word);
    e.read(at(0, 2), word);
    CHECK(e.broken() == "race-data");
    REQUIRE(e.found.size() == 2);
    CHECK(e.found[0].later.thread.warp == 1);
    CHECK(e.found[0].earlier.thread.warp == 0);
    CHECK(e.found[1].later.thread.warp == 2);
  }
  SECTION("whoever follows a store follows what that one follows") {
    Events e;
    e.write(at(0, 0), word);
    e.bar_sync(0, {0, 1});
    e.write(at(0, 1), word);
    e.bar_sync(0, {1, 2}, 1);
    e.read(at(0, 2), word);
    CHECK(e.broken() == "");
  }
}

TEST_CASE("What ld.global.nc reads is written by nobody in the grid, before or after", "[race]") {
  const Region word = global(0x10000, 4);
  const auto run = [&](bool non_coherent, bool barrier, bool write_first) {
    Events e;
    if (write_first) e.write(at(0, 0), word);
    if (write_first && barrier) e.bar_sync(0, {0, 1});
    if (non_coherent) e.read_non_coherent(at(0, 1), word);
    else e.read(at(0, 1), word);
    if (!write_first && barrier) e.bar_sync(0, {0, 1});
    if (!write_first) e.write(at(0, 0), word);
    return e.broken();
  };
  for (const bool write_first : {true, false}) {
    CHECK(run(false, true, write_first) == "");
    CHECK(run(true, true, write_first) == "non-coherent-read");
    CHECK(run(true, false, write_first) == "race-data");
  }
  Events own;  // a thread that overwrites what it has read
  own.read_non_coherent(at(0, 0), word);
  own.write(at(0, 0), word);
  CHECK(own.broken() == "non-coherent-read");
  Events again;
  again.read_non_coherent(at(0, 0), word);
  again.read(at(0, 0), word);  // the other one is not forgotten
  again.write(at(0, 0), word);
  CHECK(again.broken() == "non-coherent-read");
  Events beside;
  beside.read_non_coherent(at(0, 0), word);
  beside.write(at(0, 0), global(0x10004, 4));
  CHECK(beside.broken() == "");
  CHECK(std::string(sim::rule("non-coherent-read").says).find("as long as the grid runs") !=
        std::string::npos);
}

TEST_CASE("Whose store of the same bytes came last does not matter, within a warp", "[race]") {
  const Region word = shared(0, 0x1000, 4);
  const bool same = GENERATE(true, false);
  const auto digest = [&](uint64_t lane) { return same ? 7 : 7 + 2 * lane; };
  SECTION("lanes of one instruction") {
    Events e;
    e.warp_access(0, 0, word, true, 0, same ? 7 : 0);
    e.read(at(0, 0, 3), word);
    CHECK(e.broken() == (same ? "warp-same-write" : "race-lanes warp-same-write"));
  }
  SECTION("lanes that have diverged") {
    Events e;
    e.write(at(0, 0, 0), word, digest(0));
    e.write(at(0, 0, 1), word, digest(1));
    e.read(at(0, 0, 0), word);
    CHECK(e.broken() == (same ? "warp-same-write" : "race-lanes"));
  }
  SECTION("a barrier that one of the lanes comes to") {
    Events e;
    e.warp_access(0, 0, word, true, 0, same ? 7 : 0);
    e.arrive(at(0, 0, 5), Events::bar(0), 0);
    e.wait(at(0, 1), Events::bar(0), 0);
    e.read(at(0, 1), word);
    CHECK(e.broken() == (same ? "warp-same-write" : "race-data warp-same-write"));
  }
  SECTION("another warp, which knows nothing of it") {
    Events e;
    e.warp_access(0, 0, word, true, 0, same ? 7 : 0);
    e.read(at(0, 1), word);
    e.write(at(0, 2), word, 7);
    CHECK(e.broken() == "race-data warp-same-write");
  }
}

TEST_CASE("An elected lane that arrives speaks for other lanes only after bar.warp.sync", "[race]") {
  const auto run = [](bool joined) {
    Events e;
    e.warp_read(0, 0, 0x2000);
    e.plain(Sync::kWarpMeet, at(0, 0), kWarp);
    if (joined) e.warp_sync(0, 0);
    e.arrive(at(0, 0, 7), kEmpty, 0);
    e.wait(kTma, kEmpty, 0);
    e.proxy_fence(kTma);
    e.load(kTma, kTile, kFull);
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "warp-meet-order");
}

TEST_CASE("An mbarrier orders what was done before its arrivals, phase by phase", "[race]") {
  Events e;
  e.write(at(0, 0), shared(0, 0x1000, 4));
  e.arrive(at(0, 0), kFull, 0);
  e.wait(at(0, 1), kFull, 0);
  e.write(at(0, 0), shared(0, 0x1100, 4));
  e.arrive(at(0, 0), kFull, 1);
  e.read(at(0, 1), shared(0, 0x1000, 4));
  CHECK(e.broken() == "");
  e.read(at(0, 1), shared(0, 0x1100, 4));  // of phase 1, but only phase 0 was seen
  CHECK(e.broken() == "race-data");
}

TEST_CASE("Waiting for the phase before the first orders nothing", "[race]") {
  Events e;
  e.write(at(0, 0), shared(0, 0x1000, 4));
  e.arrive(at(0, 0), kFull, 0);
  e.wait(at(0, 1), kFull, kNoPhase);
  e.read(at(0, 1), shared(0, 0x1000, 4));
  CHECK(e.broken() == "race-data");
}

TEST_CASE("A relaxed arrival or wait carries data only with fences", "[race]") {
  const auto run = [](Order arrive, bool release_fence, Order wait, bool acquire_fence) {
    Events e;
    e.write(at(0, 0), shared(0, 0x1000, 4));
    if (release_fence) e.fence(at(0, 0), SyncEvent::Fence::kThread, 0, 0, Order::kAcqRel);
    e.arrive(at(0, 0), kFull, 0, arrive);
    e.wait(at(0, 1), kFull, 0, wait);
    if (acquire_fence) e.fence(at(0, 1), SyncEvent::Fence::kThread, 0, 0, Order::kAcqRel);
    e.read(at(0, 1), shared(0, 0x1000, 4));
    return e.broken();
  };
  CHECK(run(Order::kRelease, false, Order::kAcquire, false) == "");
  CHECK(run(Order::kRelaxed, false, Order::kAcquire, false) == "race-data");
  CHECK(run(Order::kRelease, false, Order::kRelaxed, false) == "race-data");
  CHECK(run(Order::kRelaxed, true, Order::kAcquire, false) == "");
  CHECK(run(Order::kRelease, false, Order::kRelaxed, true) == "");
  CHECK(run(Order::kRelaxed, true, Order::kRelaxed, true) == "");
}

TEST_CASE("Edges between CTAs need cluster scope on both sides", "[race]") {
  const auto run = [](Scope arrive, Scope wait) {
    Events e;
    e.write(at(1, 0), shared(0, 0x1000, 4));
    e.arrive(at(1, 0), kFull, 0, Order::kRelease, arrive);
    e.wait(at(0, 1), kFull, 0, Order::kAcquire, wait);
    e.read(at(0, 1), shared(0, 0x1000, 4));
    return e.broken();
  };
  CHECK(run(Scope::kCluster, Scope::kCluster) == "");
  // If a too narrow scope is the only mistake, its consequences are not reported as something worse.
  CHECK(run(Scope::kCta, Scope::kCluster) == "scope-mismatch");
  CHECK(run(Scope::kCluster, Scope::kCta) == "scope-mismatch");
  Events relaxed;
  relaxed.write(at(1, 0), shared(0, 0x1000, 4));
  relaxed.arrive(at(1, 0), kFull, 0, Order::kRelaxed, Scope::kCluster);
  relaxed.wait(at(0, 1), kFull, 0, Order::kAcquire, Scope::kCluster);
  relaxed.read(at(0, 1), shared(0, 0x1000, 4));
  CHECK(relaxed.broken() == "race-data");
}

TEST_CASE("A scope too narrow is only strict where asynchronous operations alone depend on it", "[race]") {
  Events e;
  e.read(at(1, 0), shared(0, 0x2000, 4));
  e.proxy_fence(at(1, 0));
  e.arrive(at(1, 0), kEmpty, 0, Order::kRelease, Scope::kCta);
  e.wait(kTma, kEmpty, 0);
  e.load(kTma, kTile, kFull);
  CHECK(e.broken() == "scope-mismatch");
}

TEST_CASE("A cluster barrier orders the cluster, unless it is relaxed", "[race]") {
  const auto run = [](Order arrive) {
    Events e;
    e.write(at(1, 0), shared(0, 0x1000, 4));
    e.cluster_sync(arrive);
    e.read(at(0, 1), shared(0, 0x1000, 4));
    return e.broken();
  };
  CHECK(run(Order::kRelease) == "");
  CHECK(run(Order::kRelaxed) == "race-data");
}

TEST_CASE("The asynchronous proxy sees the initialisation of an mbarrier across a fence", "[race]") {
  enum Fence { kNone, kInit, kProxy, kProxyOfOther, kProxyOfGlobal };
  const auto run = [](Fence fence, bool copies) {
    Events e(Events::kBare);
    e.init(at(0, 0), kFull);
    if (fence == kInit) e.fence(at(0, 0), SyncEvent::Fence::kMbarrierInit);
    if (fence == kProxy) e.fence(at(0, 0), SyncEvent::Fence::kProxyAsync, 0, SyncEvent::kSharedCta);
    if (fence == kProxyOfGlobal) e.fence(at(0, 0), SyncEvent::Fence::kProxyAsync, 0, SyncEvent::kGlobalSpace);
    e.bar_sync(0, {0, 1});
    if (fence == kProxyOfOther) e.proxy_fence(at(0, 1));
    e.arrive(at(0, 1), kFull, 0);
    if (copies) e.load(at(0, 1), shared(0, 0x2000, 512), kFull);
    return e.broken();
  };
  for (const Fence fence : {kInit, kProxy, kProxyOfOther}) CHECK(run(fence, true) == "");
  for (const Fence fence : {kNone, kProxyOfGlobal}) {
    CHECK(run(fence, true) == "mbarrier-init-fence");
    CHECK(run(fence, false) == "");  // threads alone need no fence
  }
  Events generic(Events::kBare);
  generic.init(at(0, 0), kFull);
  generic.bar_sync(0, {0, 1});
  generic.issue(Kind::kStAsync, at(0, 1), {}, {shared(0, 0x2000, 8)}, {{kFull, 8}});
  CHECK(generic.broken() == "");  // st.async belongs to the generic proxy
  CHECK(std::string(sim::rule("mbarrier-init-fence").says).find("operation of the asynchronous proxy") !=
        std::string::npos);
}

TEST_CASE("An mbarrier is used after its initialisation", "[race]") {
  Events none(Events::kBare);
  none.init(at(0, 0), kFull);
  none.arrive(at(0, 1), kFull, 0);
  CHECK(none.broken() == "mbarrier-init-order");

  Events local(Events::kBare);
  local.init(at(0, 0), kFull);
  local.bar_sync(0, {0, 1});
  local.arrive(at(0, 1), kFull, 0);
  CHECK(local.broken() == "");
  local.arrive(at(1, 1), kFull, 0, Order::kRelease, Scope::kCluster);
  CHECK(local.broken() == "mbarrier-init-order");

  const auto cluster = [](bool fence, Order arrive) {
    Events e(Events::kBare);
    e.init(at(0, 0), kFull);
    if (fence) e.fence(at(0, 0), SyncEvent::Fence::kMbarrierInit);
    e.cluster_sync(arrive);
    e.arrive(at(1, 1), kFull, 0, Order::kRelease, Scope::kCluster);
    e.load(at(1, 1), shared(0, 0x2000, 512), kFull);
    return e.broken();
  };
  CHECK(cluster(true, Order::kRelaxed) == "");
  CHECK(cluster(false, Order::kRelease) == "mbarrier-init-fence");  // the copy is asynchronous
  CHECK(cluster(false, Order::kRelaxed) == "mbarrier-init-fence");
}

TEST_CASE("A ring of tiles: waits and commits in place are silent, any one missing is a race", "[race]") {
  CHECK(Ring{}.run() == "");
  Ring r;
  r.wait_full = false;
  CHECK(r.run() == "race-async");
  r = {};
  r.wait_empty = false;
  CHECK(r.run() == "race-async");
  r = {};
  r.commit = false;  // an ordinary arrival does not follow the tensor core
  CHECK(r.run() == "race-async");
  r = {};
  r.freed = Events::bar(2);
  CHECK(r.run() == "race-async");
}

TEST_CASE("A race on a stage names the operation, its bytes and the commit that covers it", "[race]") {
  Events e;
  const uint64_t mma = e.mma(kMma, {shared(0, 0x2100, 32)}, kD);
  e.commit(kMma, Events::bar(2), 0);
  e.wait(kTma, kEmpty, kNoPhase);
  const uint64_t load = e.load(kTma, kTile, kFull);
  REQUIRE(e.broken() == "race-async");
  const sim::Finding& f = e.found[0];
  CHECK(f.summary ==
        "TMA load overwrites shared [0x2100,0x2120) of CTA 0 while tcgen05.mma may still read it");
  CHECK(f.later.async_id == load);
  CHECK(f.earlier.async_id == mma);
  CHECK(f.missing.find("mbarrier 0x410 of CTA 0 phase 0") != std::string::npos);
  CHECK(f.notes.at(0).find("mbarrier 0x408") != std::string::npos);
}

}  // namespace race_memory_test
