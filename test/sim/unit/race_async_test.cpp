// race_async_test.cpp -- the race checker on asynchronous operations: copies, proxies, bulk groups, commits,
// and what crosses CTAs and grids; each next to the same stream without the events that order it.
#include "sim/unit/race_ring.hpp"
#include "support/catch.hpp"

namespace race_async_test {

using namespace race_test;

TEST_CASE("A phase that completes without a copy's bytes does not publish them", "[race]") {
  Events e;  // plain arrive instead of expect_tx: phase 0 is over before the bytes come
  const uint64_t load = e.load(kTma, kTile, kFull);
  e.arrive(kTma, kFull, 0);
  e.wait(kMma, kFull, 0);
  e.mma(kMma, {kTile}, kD);
  e.landed(load, kFull, 1, kBytes);
  CHECK(e.broken() == "race-async");
}

TEST_CASE("A copy is known only when all its bytes were signalled", "[race]") {
  Events e;  // expect_tx too small: half of the bytes count in phase 0, half in phase 1
  const uint64_t load = e.load(kTma, kTile, kFull);
  SyncEvent half = e.event(Sync::kMbarrierCompleteTx, at(0, 0));
  half.mbarrier = kFull;
  half.bytes = kBytes / 2;
  half.async_id = load;
  e.checker.sync(half);
  e.arrive(kTma, kFull, 0);
  e.wait(kMma, kFull, 0);
  e.mma(kMma, {shared(0, 0x2800, 32)}, kD);
  half.phase = 1;
  e.checker.sync(half);
  CHECK(e.broken() == "race-async");
}

TEST_CASE("The bytes of a copy tell nothing of what its issuer did before", "[race]") {
  Events e;
  e.write(kTma, shared(0, 0x1000, 4));
  const uint64_t load = e.load(kTma, kTile, kFull);
  e.landed(load, kFull, 0, kBytes);
  e.wait(kMma, kFull, 0);
  e.read(kMma, shared(0, 0x2000, 4));
  CHECK(e.broken() == "");
  e.read(kMma, shared(0, 0x1000, 4));
  CHECK(e.broken() == "race-data");
}

TEST_CASE("A multicast copy is known by destination", "[race]") {
  const auto run = [](uint64_t read_in) {
    Events e;
    const MbarrierRef there = Events::bar(0, 1);
    const uint64_t load =
        e.issue(Kind::kTensorLoad, kTma, {global(0x10000, 512)},
                {shared(0, 0x2000, 512), shared(1, 0x2000, 512)}, {{kFull, 512}, {there, 512}});
    e.landed(load, kFull, 0, 512);
    e.landed(load, there, 0, 512);
    e.wait(kMma, kFull, 0);
    e.mma(kMma, {shared(read_in, 0x2000, 32)}, kD);
    return e.broken();
  };
  CHECK(run(0) == "");
  CHECK(run(1) == "race-async");
}

TEST_CASE("Without elect a warp issues its copy 32 times over the same bytes", "[race]") {
  Events e;
  for (uint32_t lane = 0; lane < 32; ++lane) e.load(at(0, 4, lane), kTile, kFull);
  CHECK(e.broken() == "race-async");
}

TEST_CASE("Generic writes reach the asynchronous proxy across a fence on the path", "[race]") {
  enum Place { kNone, kWriters, kIssuerBefore, kIssuerAfter };
  const auto run = [](Place fence, bool barrier) {
    Events e;
    e.warp_write(0, 0, 0x2000);
    e.warp_write(0, 1, 0x2080);
    if (fence == kWriters)
      for (uint32_t warp : {0, 1}) e.proxy_fence(at(0, warp), kWarp);
    if (fence == kIssuerBefore) e.proxy_fence(at(0, 0), kWarp);
    if (barrier) e.bar_sync(0, {0, 1});
    if (fence == kIssuerAfter) e.proxy_fence(at(0, 0));
    e.store(at(0, 0), shared(0, 0x2000, 256), global(0x90000, 256));
    return e.broken();
  };
  CHECK(run(kWriters, true) == "");
  CHECK(run(kIssuerAfter, true) == "");
  CHECK(run(kNone, true) == "proxy-fence");
  CHECK(run(kIssuerBefore, true) == "proxy-fence");  // misses the stores of warp 1
  CHECK(run(kWriters, false) == "race-async");
}

TEST_CASE("An order that is too weak does not take the place of a missing proxy fence", "[race]") {
  enum class Weak { kMeet, kRelaxedWait, kRelaxedLoad, kNarrow, kOfAnother };
  enum Place { kNone, kWriter, kIssuerBefore, kIssuerAfter };
  const auto run = [](Weak order, Place fence, Order one_way = Order::kWeak) {
    Events e;
    const Thread issuer = at(0, 0), second = at(0, 2);
    const Thread writer = order == Weak::kMeet ? at(0, 0, 1) : order == Weak::kNarrow ? at(1, 0) : at(0, 1);
    const auto proxy_fence = [&](Thread t, Place here) {
      if (fence == here)
        e.fence(t, SyncEvent::Fence::kProxyAsync, 0, SyncEvent::kGlobalSpace | SyncEvent::kSharedCluster,
                one_way);
    };
    const Region flag = global(0x80000, 4);
    proxy_fence(issuer, kIssuerBefore);
    e.write(writer, global(0x90000, 16));
    proxy_fence(writer, kWriter);
    switch (order) {
      case Weak::kMeet: e.plain(Sync::kWarpMeet, issuer, kWarp); break;
      case Weak::kRelaxedWait:
        e.arrive(writer, kEmpty, 0);
        e.wait(issuer, kEmpty, 0, Order::kRelaxed);
        break;
      case Weak::kRelaxedLoad:
        e.access(writer, flag, true, Order::kRelease);
        e.access(issuer, flag, false, Order::kRelaxed);
        break;
      case Weak::kNarrow:
        e.arrive(writer, kEmpty, 0, Order::kRelease, Scope::kCta);
        e.wait(issuer, kEmpty, 0, Order::kAcquire, Scope::kCluster);
        break;
      case Weak::kOfAnother:
        e.arrive(writer, kEmpty, 0);
        e.wait(second, kEmpty, 0, Order::kRelaxed);
        e.arrive(second, kFull, 0);
        e.wait(issuer, kFull, 0);
        break;
    }
    proxy_fence(issuer, kIssuerAfter);
    e.issue(Kind::kBulkLoad, issuer, {global(0x90000, 16)}, {shared(0, 0x2000, 16)}, {{Events::bar(3), 16}});
    return e.broken();
  };
  const auto [order, finding] = GENERATE(table<Weak, std::string>({{Weak::kMeet, "warp-meet-order"},
                                                                   {Weak::kRelaxedWait, "relaxed-wait"},
                                                                   {Weak::kRelaxedLoad, "relaxed-wait"},
                                                                   {Weak::kNarrow, "scope-mismatch"},
                                                                   {Weak::kOfAnother, "relaxed-wait"}}));
  const std::string both = finding < "proxy-fence" ? finding + " proxy-fence" : "proxy-fence " + finding;
  CHECK(run(order, kWriter) == finding);
  CHECK(run(order, kIssuerAfter) == finding);
  CHECK(run(order, kNone) == both);
  CHECK(run(order, kIssuerBefore) == both);
  CHECK(run(order, kWriter, Order::kRelease) == both);  // half of a pair
}

TEST_CASE("A proxy fence of another space is none", "[race]") {
  const auto run = [](uint8_t spaces) {
    Events e;
    e.write(kTma, shared(0, 0x2000, 4));
    e.fence(kTma, SyncEvent::Fence::kProxyAsync, 0, spaces);
    e.store(kTma, shared(0, 0x2000, 16), global(0x90000, 16));
    return e.broken();
  };
  CHECK(run(SyncEvent::kSharedCta) == "");
  CHECK(run(SyncEvent::kSharedCluster) == "");
  CHECK(run(SyncEvent::kGlobalSpace) == "proxy-fence");
}

TEST_CASE("Overwriting what the generic proxy wrote needs a fence in the strict class", "[race]") {
  const auto run = [](bool fence, bool barrier) {
    Events e;
    e.write(at(0, 0), kTile);
    if (fence) e.proxy_fence(at(0, 0));
    if (barrier) e.bar_sync(0, {0, kTma.warp});
    e.load(kTma, kTile, kFull);
    return e.broken();
  };
  CHECK(run(true, true) == "");
  CHECK(run(false, true) == "proxy-fence-overwrite");
  CHECK(run(true, false) == "race-async");
}

TEST_CASE("Proxy fences of one direction count in pairs", "[race]") {
  const auto run = [](std::vector<Order> fences) {
    Events e;
    e.write(kTma, shared(0, 0x2000, 4));
    for (const Order order : fences)
      e.fence(kTma, SyncEvent::Fence::kProxyAsync, 0,
              order == Order::kAcquire ? SyncEvent::kSharedCluster : SyncEvent::kSharedCta, order);
    e.store(kTma, shared(0, 0x2000, 16), global(0x90000, 16));
    return e.broken();
  };
  CHECK(run({Order::kRelease, Order::kAcquire}) == "");
  CHECK(run({Order::kRelease}) == "proxy-fence");
  CHECK(run({Order::kAcquire}) == "proxy-fence");
  CHECK(run({Order::kAcquire, Order::kRelease}) == "proxy-fence");
}

TEST_CASE("A peer's shared memory is touched only when the peer is known to have started", "[race]") {
  enum Signal { kNone, kRelaxed, kOwn };
  const auto run = [](Signal signal) {
    Events e;
    e.begin(8, 4);
    e.begin(9, 4);
    if (signal != kNone)
      for (const Sync kind : {Sync::kClusterArrive, Sync::kClusterWait})
        for (const uint64_t cta : {8, 9}) {
          if (signal == kOwn && cta == 9) continue;
          SyncEvent event = e.event(kind, at(cta, 0), kWarp);
          event.order = Order::kRelaxed;
          e.checker.sync(event);
        }
    e.write(at(8, 0), shared(9, 0x1000, 4));
    return e.broken();
  };
  CHECK(run(kRelaxed) == "");
  CHECK(run(kNone) == "cluster-start");
  CHECK(run(kOwn) == "cluster-start");
  Events e;  // a multicast, and an arrival at a barrier that was not seen
  e.begin(8, 4);
  e.begin(9, 4);
  e.load(at(8, 0), shared(9, 0x1000, 128), {8, 0x400});
  CHECK(e.broken() == "cluster-start");
  Events arrival;
  arrival.begin(8, 4);
  arrival.begin(9, 4);
  arrival.arrive(at(8, 0), {9, 0x400}, 0);
  CHECK(arrival.broken() == "cluster-start");
}

TEST_CASE("A fence of shared::cta is for the shared memory of the CTA that executes it", "[race]") {
  const auto run = [](Thread fencing, uint8_t spaces) {
    Events e;
    e.write(at(1, 0), shared(1, 0x2000, 4));
    if (fencing.cta == 1) e.fence(fencing, SyncEvent::Fence::kProxyAsync, 0, spaces);
    e.cluster_sync();
    if (fencing.cta == 0) e.fence(fencing, SyncEvent::Fence::kProxyAsync, 0, spaces);
    e.mma(kMma, {shared(1, 0x2000, 32)}, kD, 2);
    return e.broken();
  };
  CHECK(run(at(1, 0), SyncEvent::kSharedCta) == "");
  CHECK(run(at(1, 0), SyncEvent::kSharedCluster) == "");
  CHECK(run(kMma, SyncEvent::kSharedCta) == "proxy-fence");
  CHECK(run(kMma, SyncEvent::kSharedCluster) == "");
}

TEST_CASE("Generic reads before a refill need a fence in the strict class", "[race]") {
  const auto run = [](bool fence) {
    Events e;
    e.warp_read(0, 0, 0x2000);
    if (fence) e.proxy_fence(at(0, 0), kWarp);
    e.warp_sync(0, 0);
    e.arrive(at(0, 0), kEmpty, 0);
    e.wait(kTma, kEmpty, 0);
    e.load(kTma, kTile, kFull);
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "proxy-fence-reuse");
}

TEST_CASE("Operands of the tensor core are overwritten after a commit, strictly after a fence", "[race]") {
  const auto run = [](bool waits, bool fence) {
    Events e;
    e.mma(kMma, {kTile}, kD);
    e.commit(kMma, kEmpty, 0);
    if (waits) e.wait(at(0, 0), kEmpty, 0);
    if (fence) e.proxy_fence(at(0, 0));
    e.write(at(0, 0), shared(0, 0x2000, 16));
    return e.broken();
  };
  CHECK(run(true, true) == "");
  CHECK(run(true, false) == "proxy-fence-operand");
  CHECK(run(false, true) == "race-async");
}

TEST_CASE("Bulk groups: sources are free after .read, destinations after the full wait", "[race]") {
  const auto run = [](int wait, int64_t pending, bool destination) {  // wait 0: none, 1: .read, 2: full
    Events e;
    e.store(kTma, kTile, global(0x90000, 4096));
    e.plain(Sync::kBulkCommit, kTma);
    e.store(kTma, shared(0, 0x6000, 16), global(0xA0000, 16));
    e.plain(Sync::kBulkCommit, kTma);
    if (wait != 0) e.group_wait(Sync::kBulkWait, kTma, pending, wait == 1);
    if (destination) e.read(kTma, global(0x90010, 4));
    else e.write(kTma, shared(0, 0x2000, 4));
    return e.broken();
  };
  CHECK(run(1, 1, false) == "");
  CHECK(run(1, 0, false) == "");
  CHECK(run(1, 2, false) == "race-async");
  CHECK(run(0, 0, false) == "race-async");
  CHECK(run(1, 0, true) == "race-async");
  CHECK(run(2, 0, true) == "");
}

TEST_CASE("Bulk stores of one instruction from one source to one place break the letter of the ISA only",
          "[race]") {
  const auto run = [](Region from, Region to, uint64_t instruction) {
    Events e;
    e.instruction = 7;
    e.store(at(0, 0, 0), kTile, global(0x90000, 4096));
    e.instruction = instruction;
    e.store(at(0, 0, 1), from, to);
    return e.broken();
  };
  Region moved = kTile;
  moved.address += 16;
  CHECK(run(kTile, global(0x90000, 4096), 7) == "warp-same-write");
  CHECK(run(kTile, global(0x90000, 4096), 8) == "race-async");
  CHECK(run(moved, global(0x90000, 4096), 7) == "race-async");
  CHECK(run(kTile, global(0x90010, 4096), 7) == "race-async");
  CHECK(run(kTile, global(0xA0000, 4096), 7) == "");
}

TEST_CASE("Of bulk stores of the same bytes a reader needs the end of one, a writer the end of all",
          "[race]") {
  const auto run = [](bool first_waits, bool second_waits, bool write) {
    Events e;
    e.instruction = 7;
    for (const uint32_t lane : {0, 1}) e.store(at(0, 0, lane), kTile, global(0x90000, 4096));
    for (const uint32_t lane : {0, 1}) e.plain(Sync::kBulkCommit, at(0, 0, lane));
    if (first_waits) e.group_wait(Sync::kBulkWait, at(0, 0, 0), 0, false);
    if (second_waits) e.group_wait(Sync::kBulkWait, at(0, 0, 1), 0, false);
    e.warp_sync(0, 0);
    if (write) e.write(at(0, 0, 2), global(0x90010, 4));
    else e.read(at(0, 0, 2), global(0x90010, 4));
    return e.broken();
  };
  const bool write = GENERATE(false, true);
  CHECK(run(true, true, write) == "warp-same-write");
  CHECK(run(true, false, write) == (write ? "race-async warp-same-write" : "warp-same-write"));
  CHECK(run(false, true, write) == (write ? "race-async warp-same-write" : "warp-same-write"));
  CHECK(run(false, false, write) == "race-async warp-same-write");
}

TEST_CASE("A flag that publishes a TMA store needs the full wait", "[race]") {
  const auto run = [](bool read) {
    Events e;
    e.store(kTma, kTile, global(0x90000, 4096));
    e.plain(Sync::kBulkCommit, kTma);
    e.group_wait(Sync::kBulkWait, kTma, 0, read);
    e.access(kTma, global(0x80000, 4), true, Order::kRelease, Scope::kGpu);
    e.access(at(1, 0), global(0x80000, 4), false, Order::kAcquire, Scope::kGpu);
    e.read(at(1, 0), global(0x90000, 4));
    return e.broken();
  };
  CHECK(run(false) == "");
  CHECK(run(true) == "race-async");
}

TEST_CASE("cp.async is waited for by its own thread and is generic", "[race]") {
  const auto run = [](bool wait) {
    Events e;
    e.issue(Kind::kCpAsync, at(0, 0), {global(0x10000, 16)}, {shared(0, 0x2000, 16)});
    e.plain(Sync::kCpAsyncCommit, at(0, 0));
    if (wait) e.group_wait(Sync::kCpAsyncWait, at(0, 0), 0);
    e.bar_sync(0, {0, 1});
    e.read(at(0, 1), shared(0, 0x2000, 4));
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "race-async");
  Events e;
  e.issue(Kind::kCpAsync, at(0, 0), {global(0x10000, 16)}, {shared(0, 0x2000, 16)});
  e.plain(Sync::kCpAsyncCommit, at(0, 0));
  e.group_wait(Sync::kCpAsyncWait, at(0, 0), 0);
  e.mma(at(0, 0), {shared(0, 0x2000, 16)}, kD);
  CHECK(e.broken() == "proxy-fence");
}

TEST_CASE("Release and acquire through global memory, at the scope of the parties", "[race]") {
  const auto run = [](Order store, Order load, Scope scope) {
    Events e;
    e.write(at(0, 0), global(0x90000, 4));
    e.access(at(0, 0), global(0x80000, 4), true, store, scope);
    e.access(at(1, 0), global(0x80000, 4), false, load, scope);
    e.read(at(1, 0), global(0x90000, 4));
    return e.broken();
  };
  CHECK(run(Order::kRelease, Order::kAcquire, Scope::kGpu) == "");
  CHECK(run(Order::kRelease, Order::kAcquire, Scope::kCluster) == "");
  CHECK(run(Order::kRelease, Order::kRelaxed, Scope::kGpu) == "race-data");
  CHECK(run(Order::kRelaxed, Order::kAcquire, Scope::kGpu) == "race-data");
  CHECK(run(Order::kRelease, Order::kAcquire, Scope::kCta) == "race-data");
}

TEST_CASE("A copy behind a flag, or fences, of too small a scope is a race", "[race]") {
  const auto by_flag = [](Scope scope) {
    Events e;
    e.write(at(1, 0), global(0x90000, 16));
    e.proxy_fence(at(1, 0));
    e.access(at(1, 0), global(0x80000, 4), true, Order::kRelease, scope);
    e.access(kTma, global(0x80000, 4), false, Order::kAcquire, scope);
    e.issue(Kind::kBulkLoad, kTma, {global(0x90000, 16)}, {shared(0, 0x2000, 16)}, {{kFull, 16}});
    return e.broken();
  };
  CHECK(by_flag(Scope::kGpu) == "");
  CHECK(by_flag(Scope::kCta) == "race-async race-data");  // the flag itself, too
  const auto by_fence = [](Scope scope) {
    Events e;
    e.write(at(1, 0), global(0x90000, 16));
    e.proxy_fence(at(1, 0));
    e.fence(at(1, 0), SyncEvent::Fence::kThread, 0, 0, Order::kRelease, scope);
    e.arrive(at(1, 0), kEmpty, 0, Order::kRelaxed, Scope::kCluster);
    e.wait(kTma, kEmpty, 0, Order::kAcquire, Scope::kCluster);
    e.issue(Kind::kBulkLoad, kTma, {global(0x90000, 16)}, {shared(0, 0x2000, 16)}, {{kFull, 16}});
    return e.broken();
  };
  CHECK(by_fence(Scope::kCluster) == "");
  CHECK(by_fence(Scope::kCta) == "race-async");
}

TEST_CASE("Atomics of sufficient scope do not race and pass on what they release", "[race]") {
  const auto run = [](Scope scope, Order order) {
    Events e;
    e.write(at(0, 0), global(0x90000, 4));
    e.access(at(0, 0), global(0x80000, 4), true, order, scope, true);
    e.access(at(0, 1), global(0x80000, 4), true, Order::kRelaxed, scope, true);
    e.access(at(1, 0), global(0x80000, 4), true, order, scope, true);
    e.read(at(1, 0), global(0x90000, 4));
    return e.broken();
  };
  CHECK(run(Scope::kGpu, Order::kAcqRel) == "");
  CHECK(run(Scope::kGpu, Order::kRelaxed) == "race-data");
  CHECK(run(Scope::kCta, Order::kAcqRel) == "race-data");
  Events fences;
  fences.write(at(0, 0), global(0x90000, 4));
  fences.fence(at(0, 0), SyncEvent::Fence::kThread, 0, 0, Order::kSeqCst, Scope::kGpu);
  fences.access(at(0, 0), global(0x80000, 4), true, Order::kVolatile);
  fences.access(at(1, 0), global(0x80000, 4), false, Order::kVolatile);
  fences.fence(at(1, 0), SyncEvent::Fence::kThread, 0, 0, Order::kSeqCst, Scope::kGpu);
  fences.read(at(1, 0), global(0x90000, 4));
  CHECK(fences.broken() == "");
}

TEST_CASE("CTAs of a grid are not ordered", "[race]") {
  Events e;
  e.begin(8, 4);
  e.write(at(0, 0), global(0x90000, 4));
  e.write(at(8, 0), global(0x90004, 4));
  CHECK(e.broken() == "");
  e.write(at(8, 0), global(0x90000, 4));
  CHECK(e.broken() == "race-data");
}

// A copy of the tile whose tensor map lies at 0x70000.
static void load_by_map(Events& e) {
  static const char none = 0;
  AsyncIssue i;
  i.kind = Kind::kTensorLoad;
  i.id = 1000;
  i.thread = kTma;
  i.mask = 1;
  i.writes = {kTile};
  i.writes[0].write = true;
  i.barriers = {{kFull, kBytes}};
  i.map = reinterpret_cast<const sim::TensorMap*>(&none);
  i.map_address = 0x70000;
  e.checker.issue(i);
}

TEST_CASE("A tensor map patched by the device needs its own fence", "[race]") {
  const auto run = [](std::vector<Order> fences, uint64_t fenced = 0x70000) {
    Events e;
    e.write(kTma, global(0x70000, 8));
    e.proxy_fence(kTma);
    for (const Order order : fences) e.tensormap_fence(kTma, order, fenced);
    load_by_map(e);
    return e.broken();
  };
  CHECK(run({Order::kRelease, Order::kAcquire}) == "");
  CHECK(run({}) == "tensormap-fence");
  CHECK(run({Order::kRelease}) == "tensormap-fence");
  CHECK(run({Order::kAcquire, Order::kRelease}) == "tensormap-fence");
  CHECK(run({Order::kRelease, Order::kAcquire}, 0x70080) == "tensormap-fence");  // of another map
  Events e;  // patched while a copy may still read it
  load_by_map(e);
  e.write(kTma, global(0x70040, 8));
  CHECK(e.broken() == "race-async");
}

TEST_CASE("The fence of a tensor map is missed behind a relaxed wait, too", "[race]") {
  const auto run = [](bool fences, Order wait) {
    Events e;
    e.write(kMma, global(0x70000, 8));
    if (fences) e.tensormap_fence(kMma, Order::kRelease, 0x70000);
    e.arrive(kMma, kEmpty, 0);
    e.wait(kTma, kEmpty, 0, wait);
    if (fences) e.tensormap_fence(kTma, Order::kAcquire, 0x70000);
    load_by_map(e);
    return e.broken();
  };
  CHECK(run(true, Order::kAcquire) == "");
  CHECK(run(false, Order::kAcquire) == "tensormap-fence");
  CHECK(run(true, Order::kRelaxed) == "relaxed-wait");
  CHECK(run(false, Order::kRelaxed) == "relaxed-wait tensormap-fence");
}

TEST_CASE("Fences of a tensor map at CTA scope serve that CTA alone", "[race]") {
  const Scope released = GENERATE(Scope::kCta, Scope::kGpu), acquired = GENERATE(Scope::kCta, Scope::kGpu);
  const uint64_t writer = GENERATE(0u, 1u);
  CAPTURE(released, acquired, writer);
  Events e;
  e.write(at(writer, 0), global(0x70000, 8));
  e.tensormap_fence(at(writer, 0), Order::kRelease, 0, released);
  e.cluster_sync();
  e.tensormap_fence(at(0, 1), Order::kAcquire, 0x70000, acquired);
  AsyncIssue i;
  i.kind = Kind::kTensorLoad;
  i.id = 1000;
  i.thread = at(0, 1);
  i.map = reinterpret_cast<const sim::TensorMap*>(&i);
  i.map_address = 0x70000;
  i.barriers = {{kFull, kBytes}};
  e.checker.issue(i);
  const bool wide = released == Scope::kGpu && acquired == Scope::kGpu;
  CHECK(e.broken() == (writer == 0 || wide ? "" : "tensormap-fence"));
}

TEST_CASE("A CTA leaves with nothing in flight, and is not touched afterwards", "[race]") {
  const auto run = [](bool wait) {
    Events e;
    const uint64_t id = e.load(kTma, kTile, kFull);
    e.landed(id, kFull, 0, kTile.bytes);
    if (wait) e.wait(kTma, kFull, 0);
    e.exit_cta(0, {0, 1, 2, 3, 4, 5});
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "exit-pending");
  Events store;  // that a store was not waited for is a finding of the protocol: store-unwaited-at-exit
  store.store(kTma, kTile, global(0x90000, 4096));
  store.plain(Sync::kBulkCommit, kTma);
  store.exit_cta(0, {0, 1, 2, 3, 4, 5});
  CHECK(store.broken() == "");
  const auto leave = [](bool wait) {
    Events e;
    e.issue(Kind::kCpAsync, at(0, 0), {global(0x10000, 16)}, {shared(0, 0x2000, 16)});
    e.plain(Sync::kCpAsyncCommit, at(0, 0));
    if (wait) e.group_wait(Sync::kCpAsyncWait, at(0, 0), 0);
    e.exit_cta(0, {0, 1, 2, 3, 4, 5});
    return e.broken();
  };
  CHECK(leave(true) == "");
  CHECK(leave(false) == "cp-async-unwaited-at-exit");
  Events e;
  e.exit_cta(1, {0, 1, 2, 3, 4, 5});
  CHECK(e.broken() == "");
  e.read(at(0, 0), shared(1, 0x1000, 4));
  CHECK(e.broken() == "exit-access");
}

TEST_CASE("What follows only from a relaxed wait is no error by itself", "[race]") {
  enum Then { kExit, kRead, kCopy };
  const auto run = [](Then then, Order order) {
    Events e;
    const uint64_t id = e.load(kTma, kTile, kFull);
    e.landed(id, kFull, 0, kTile.bytes);
    e.wait(kTma, kFull, 0, order);
    if (then == kRead) e.read(kTma, kTile);
    if (then == kCopy) e.load(kTma, kTile, kFull);
    if (then == kExit) e.exit_cta(0, {0, 1, 2, 3, 4, 5});
    return e.broken();
  };
  for (const Then then : {kExit, kRead, kCopy}) {
    CHECK(run(then, Order::kAcquire) == "");
    CHECK(run(then, Order::kRelaxed) == "relaxed-wait");
  }
  const auto reuse = [](Order order) {
    Events e;
    e.read(at(0, 1), kTile);
    e.arrive(at(0, 1), kEmpty, 0);
    e.wait(kTma, kEmpty, 0, order);
    e.fence(kTma, SyncEvent::Fence::kProxyAsync);
    e.load(kTma, kTile, kFull);
    return e.broken();
  };
  CHECK(reuse(Order::kAcquire) == "");
  CHECK(reuse(Order::kRelaxed) == "relaxed-wait");
}

TEST_CASE("Whoever follows a thread that waited relaxed has no order by that either", "[race]") {
  enum Then { kExit, kRead, kCopy };
  struct Path {
    Order wait;
    bool complete = true, fence_by_waiter = false, fence_by_follower = false;
  };
  const auto run = [](Then then, const Path& path) {
    Events e;
    const Thread waiter = at(0, 1);
    const uint64_t id = e.load(kTma, kTile, kFull);
    if (path.complete) e.landed(id, kFull, 0, kTile.bytes);
    e.wait(waiter, kFull, 0, path.wait);
    if (path.fence_by_waiter) e.fence(waiter, SyncEvent::Fence::kThread, 0, 0, Order::kAcquire);
    e.arrive(waiter, kEmpty, 0);
    e.wait(at(0, 2), kEmpty, 0);
    if (path.fence_by_follower) e.fence(at(0, 2), SyncEvent::Fence::kThread, 0, 0, Order::kAcquire);
    if (then == kRead) e.read(at(0, 2), kTile);
    if (then == kCopy) e.load(at(0, 2), kTile, kFull);
    if (then == kExit) e.exit_cta(0, {2});
    return e.broken();
  };
  for (const Then then : {kExit, kRead, kCopy}) {
    CHECK(run(then, {Order::kAcquire}) == "");
    CHECK(run(then, {Order::kRelaxed}) == "relaxed-wait");
    CHECK(run(then, {Order::kRelaxed, true, true}) == "");
    CHECK(run(then, {Order::kRelaxed, true, false, true}) == "relaxed-wait");
    CHECK(run(then, {Order::kRelaxed, false}) == (then == kExit ? "exit-pending" : "race-async"));
  }
}

TEST_CASE("A peer's access is ordered before the owner leaves", "[race]") {
  const auto run = [](bool barrier) {
    Events e;
    e.read(at(0, 0), shared(1, 0x1000, 4));
    if (barrier) e.cluster_sync();
    e.exit_cta(1, {0, 1, 2, 3, 4, 5});
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "exit-pending");
}

TEST_CASE("Refilling a peer's bytes that a peer's operation read is advice", "[race]") {
  Events e;
  e.mma(at(1, 5), {shared(1, 0x2000, 32)}, tensor(1, 0, 128));
  e.commit(at(1, 5), kEmpty, 0);
  e.wait(kTma, kEmpty, 0);
  e.load(kTma, shared(1, 0x2000, 512), kFull);
  CHECK(e.broken() == "async-order-ctas");
}

TEST_CASE("Order of cause crosses every edge, order of memory does not", "[race]") {
  Events e;
  const sim::Clocks& clocks = e.checker;
  e.wait(kMma, kFull, kNoPhase);
  const sim::Stamp waited = clocks.now(kMma);
  CHECK_FALSE(clocks.ordered(waited, kTma));
  e.commit(kMma, kEmpty, 0);
  e.wait(kTma, kEmpty, 0);
  CHECK(clocks.ordered(waited, kTma));
  CHECK_FALSE(clocks.ordered(waited, at(0, 0)));
  e.arrive(kMma, kFull, 0);
  const sim::Stamp later = clocks.now(kMma);
  CHECK_FALSE(clocks.ordered(later, kTma));
}

}  // namespace race_async_test
