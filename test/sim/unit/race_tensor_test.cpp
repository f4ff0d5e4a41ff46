// race_tensor_test.cpp -- the race checker on tensor memory:
// pipelined pairs, completion and tcgen05 fences, allocation.
#include "sim/unit/race_events.hpp"
#include "support/catch.hpp"

namespace race_tensor_test {

using namespace race_test;

const Thread kMma = at(0, 5);
const MbarrierRef kFull = Events::bar(0), kEmpty = Events::bar(1);
const Region kOperand = shared(0, 0x2000, 32), kScale = tensor(0, 256, 4), kD = tensor(0, 0, 128);

TEST_CASE("Reading an accumulator: commit, wait and fence", "[race]") {
  const auto run = [](bool commit, Order wait, bool fence) {
    Events e;
    e.mma(kMma, {kOperand}, kD);
    if (commit) e.commit(kMma, kFull, 0);
    else e.arrive(kMma, kFull, 0);
    e.wait(at(0, 0), kFull, 0, wait);
    if (fence) e.after(at(0, 0), kWarp);
    e.ld(0, 0, 0, 32);
    return e.broken();
  };
  CHECK(run(true, Order::kAcquire, true) == "");
  CHECK(run(true, Order::kRelaxed, true) == "");
  CHECK(run(true, Order::kAcquire, false) == "tensor-fence");
  CHECK(run(true, Order::kRelaxed, false) == "relaxed-wait");
  CHECK(run(false, Order::kAcquire, true) == "race-tensor");
  CHECK(run(false, Order::kRelaxed, true) == "race-tensor");
}

TEST_CASE("What follows a commit that a relaxed wait saw", "[race]") {
  enum class Then { kLoad, kMma, kDealloc, kRefill, kStore, kExit };
  const auto run = [](Then then, bool fence, bool commit = true) {
    Events e;
    e.mma(kMma, {kOperand}, kD);
    if (commit) e.commit(kMma, kFull, 0);
    else e.arrive(kMma, kFull, 0);
    const Thread later = at(0, 4);
    e.wait(later, kFull, 0, Order::kRelaxed);
    if (fence) e.after(later, kWarp);
    switch (then) {
      case Then::kLoad: e.ld(0, 4, 0, 32); break;
      case Then::kMma: e.mma(later, {}, kD, 2); break;
      case Then::kDealloc: e.columns(Sync::kTmemDealloc, 0, 4, 0, 128); break;
      case Then::kRefill: e.load(later, kOperand, kEmpty); break;
      case Then::kStore: e.write(later, kOperand); break;
      case Then::kExit: e.exit_cta(0, {0, 1, 2, 3, 4, 5}); break;
    }
    return e.broken();
  };
  // The fence orders asynchronous operations of the tensor core; tcgen05.dealloc, which frees the columns, is
  // synchronous.
  for (const Then then : {Then::kLoad, Then::kMma, Then::kExit}) {
    CHECK(run(then, true) == "");
    CHECK(run(then, false) == "relaxed-wait");
  }
  CHECK(run(Then::kDealloc, false) == "");
  for (const bool fence : {false, true}) {
    CHECK(run(Then::kRefill, fence) == "relaxed-wait");
    CHECK(run(Then::kStore, fence) == "proxy-fence-operand relaxed-wait");  // no proxy fence either
  }
  CHECK(run(Then::kLoad, true, false) == "race-tensor");
  CHECK(run(Then::kDealloc, true, false) == "race-tensor");
  CHECK(run(Then::kRefill, true, false) == "race-async");
}

TEST_CASE("Releasing an accumulator: wait::ld, fence, arrival, wait, fence", "[race]") {
  struct Parts {
    bool wait_ld = true, before = true, after = true;
    Order arrive = Order::kRelease, wait = Order::kAcquire;
  };
  const auto run = [](const Parts& p) {
    Events e;
    e.ld(0, 0, 0, 32);
    if (p.wait_ld) e.plain(Sync::kTmemWaitLd, at(0, 0), kWarp);
    if (p.before) e.before(at(0, 0), kWarp);
    e.warp_sync(0, 0);
    e.arrive(at(0, 0), kEmpty, 0, p.arrive);
    e.wait(kMma, kEmpty, 0, p.wait);
    if (p.after) e.after(kMma);
    e.mma(kMma, {kOperand}, kD);
    return e.broken();
  };
  CHECK(run({}) == "");
  CHECK(run({true, true, true, Order::kRelaxed, Order::kRelaxed}) == "");
  CHECK(run({false, true, true}) == "race-tensor");
  CHECK(run({true, false, true}) == "tensor-fence");
  CHECK(run({true, true, false}) == "tensor-fence");
  CHECK(run({true, false, true, Order::kRelaxed, Order::kAcquire}) == "tensor-fence");
  CHECK(run({true, true, false, Order::kRelease, Order::kRelaxed}) == "tensor-fence");
}

TEST_CASE("A finding names the fence that is missing", "[race]") {
  const auto run = [](bool before) {
    Events e;
    e.ld(0, 0, 0, 32);
    e.plain(Sync::kTmemWaitLd, at(0, 0), kWarp);
    if (before) e.before(at(0, 0), kWarp);
    e.arrive(at(0, 0), kEmpty, 0);
    e.wait(kMma, kEmpty, 0);
    if (!before) e.after(kMma);
    e.mma(kMma, {kOperand}, kD);
    REQUIRE(e.broken() == "tensor-fence");
    return e.found[0].missing;
  };
  CHECK(run(true).find("after_thread_sync") != std::string::npos);
  CHECK(run(false).find("before_thread_sync") != std::string::npos);
}

TEST_CASE("wait::st covers stores only, wait::ld loads only, a commit neither", "[race]") {
  const auto store = [](Sync wait) {
    Events e;
    e.st(0, 1, 0, 8);
    e.plain(wait, at(0, 1), kWarp);
    e.before(at(0, 1), kWarp);
    e.bar_sync(0, {1, 5});
    e.after(kMma);
    e.mma(kMma, {tensor(0, 0, 8)}, tensor(0, 128, 64));
    return e.broken();
  };
  CHECK(store(Sync::kTmemWaitSt) == "");
  CHECK(store(Sync::kTmemWaitLd) == "race-tensor");
  const auto load = [](Sync wait) {
    Events e;
    e.ld(0, 1, 0, 8);
    e.plain(wait, at(0, 1), kWarp);
    e.st(0, 1, 0, 8);
    return e.broken();
  };
  CHECK(load(Sync::kTmemWaitLd) == "");
  CHECK(load(Sync::kTmemWaitSt) == "race-tensor");
}

TEST_CASE("Pairs of one thread that execute in order, and pairs the ISA does not list", "[race]") {
  Events listed;
  listed.cp(kMma, kOperand, kScale);
  listed.mma(kMma, {kScale, kD}, kD);
  listed.mma(kMma, {kScale, kD}, kD);
  CHECK(listed.broken() == "");

  Events reuse;
  reuse.mma(kMma, {kScale}, kD);
  reuse.cp(kMma, kOperand, kScale);
  CHECK(reuse.broken() == "tensor-unlisted-pair");

  Events twice;
  twice.cp(kMma, kOperand, kScale);
  twice.cp(kMma, kOperand, kScale);
  CHECK(twice.broken() == "tensor-unlisted-pair");

  Events shape;
  shape.mma(kMma, {}, tensor(0, 0, 128));
  shape.mma(kMma, {}, tensor(0, 0, 64));
  CHECK(shape.broken() == "tensor-unlisted-pair");

  Events group;
  group.cp(kMma, kOperand, kScale, 1);
  group.mma(kMma, {kScale}, kD, 2);
  CHECK(group.broken() == "race-tensor");

  Events waited;
  waited.mma(kMma, {kScale}, kD);
  waited.commit(kMma, kFull, 0);
  waited.wait(kMma, kFull, 0);
  waited.after(kMma);
  waited.cp(kMma, kOperand, kScale);
  CHECK(waited.broken() == "");
}

TEST_CASE("Pipelined pairs of two threads need tcgen05 fences but no completion", "[race]") {
  const auto run = [](bool before, bool after, Order arrive = Order::kRelaxed) {
    Events e;
    const Thread copier = at(0, 4);
    e.cp(copier, kOperand, kScale);
    if (before) e.before(copier);
    e.arrive(copier, kFull, 0, arrive);
    e.wait(kMma, kFull, 0, Order::kRelaxed);
    if (after) e.after(kMma);
    e.mma(kMma, {kScale}, kD);
    return e.broken();
  };
  CHECK(run(true, true) == "");
  CHECK(run(false, true) == "race-tensor");
  CHECK(run(true, false) == "race-tensor");
  CHECK(run(true, false, Order::kRelease) == "relaxed-wait");
  CHECK(run(false, true, Order::kRelease) == "relaxed-wait");
}

TEST_CASE("Scale factors copied by another thread while an mma may read them", "[race]") {
  Events e;
  e.mma(kMma, {kScale}, kD);
  e.before(kMma);
  e.arrive(kMma, kEmpty, 0);
  e.wait(at(0, 4), kEmpty, 0);
  e.after(at(0, 4));
  e.cp(at(0, 4), kOperand, kScale);
  CHECK(e.broken() == "race-tensor");
}

TEST_CASE("An accumulator that is not toggled is overwritten while it is read", "[race]") {
  const auto run = [](uint16_t second) {
    Events e;
    e.mma(kMma, {kOperand}, kD);
    e.commit(kMma, kFull, 0);
    e.wait(at(0, 0), kFull, 0);
    e.after(at(0, 0), kWarp);
    e.ld(0, 0, 0, 128);
    e.mma(kMma, {kOperand}, tensor(0, second, 128));
    return e.broken();
  };
  CHECK(run(128) == "");
  CHECK(run(0) == "race-tensor");
}

TEST_CASE("A commit covers only its own thread and group", "[race]") {
  const auto run = [](Thread who, int group) {
    Events e;
    e.mma(kMma, {kOperand}, kD, 1);
    e.commit(who, kFull, 0, group);
    e.wait(at(0, 0), kFull, 0);
    e.after(at(0, 0), kWarp);
    e.ld(0, 0, 0, 32);
    return e.broken();
  };
  CHECK(run(kMma, 1) == "");
  CHECK(run(kMma, 2) == "race-tensor");
  CHECK(run(at(0, 5, 1), 1) == "race-tensor");
}

TEST_CASE("What a commit covers ends with it", "[race]") {
  Events e;
  e.commit(kMma, kFull, 0);
  e.mma(kMma, {kOperand}, kD);
  e.wait(at(0, 0), kFull, 0);
  e.after(at(0, 0), kWarp);
  e.ld(0, 0, 0, 32);
  CHECK(e.broken() == "race-tensor");
}

TEST_CASE("Tensor memory is used after its allocation and freed after its last use", "[race]") {
  const auto use = [](bool barrier) {
    Events e;
    e.columns(Sync::kTmemAlloc, 0, 3, 0, 128);
    if (barrier) e.bar_sync(0, {3, 5});
    e.mma(kMma, {kOperand}, kD);
    return e.broken();
  };
  CHECK(use(true) == "");
  CHECK(use(false) == "race-tensor");
  const auto free = [](bool wait_ld, bool barrier) {
    Events e;
    e.columns(Sync::kTmemAlloc, 0, 3, 0, 128);
    e.bar_sync(0, {0, 3});
    e.ld(0, 0, 0, 32);
    if (wait_ld) e.plain(Sync::kTmemWaitLd, at(0, 0), kWarp);
    if (barrier) e.bar_sync(0, {0, 3});
    e.columns(Sync::kTmemDealloc, 0, 3, 0, 128);
    return e.broken();
  };
  CHECK(free(true, true) == "");
  CHECK(free(false, true) == "race-tensor");
  CHECK(free(true, false) == "race-tensor");
  Events waited;  // what is missing is the barrier, not the wait
  waited.ld(0, 0, 0, 32);
  waited.plain(Sync::kTmemWaitLd, at(0, 0), kWarp);
  waited.columns(Sync::kTmemDealloc, 0, 3, 0, 128);
  REQUIRE(waited.broken() == "race-tensor");
  CHECK(waited.found[0].missing ==
        "a barrier, or an mbarrier arrival and wait, after the tcgen05.wait of the earlier warp");
}

TEST_CASE("A commit tells of the allocation by its thread, a relaxed barrier only in the strict class",
          "[race]") {
  enum Edge { kNone, kCommit, kRelaxedBarrier };
  const auto run = [](Edge edge, bool wait_ld) {
    Events e;
    e.columns(Sync::kTmemAlloc, 0, 5, 0, 128);
    if (edge == kCommit) {
      e.commit(at(0, 5), kFull, 0);
      e.wait(at(0, 0), kFull, 0);
      e.after(at(0, 0), kWarp);
    }
    e.ld(0, 5, 0, 32);
    if (wait_ld) e.plain(Sync::kTmemWaitLd, at(0, 5), kWarp);
    if (edge == kRelaxedBarrier) e.cluster_sync(Order::kRelaxed, Order::kAcquire);
    e.columns(Sync::kTmemDealloc, 0, edge == kCommit ? 0 : 3, 64, 64);  // not the columns that were read
    if (edge == kRelaxedBarrier) e.columns(Sync::kTmemDealloc, 0, 3, 0, 32);
    return e.broken();
  };
  CHECK(run(kNone, true) == "race-tensor");
  CHECK(run(kCommit, true) == "");
  CHECK(run(kRelaxedBarrier, true) == "tensor-fence");
  CHECK(run(kRelaxedBarrier, false) == "race-tensor tensor-fence");
}

TEST_CASE("The address that alloc writes is read after a barrier", "[race]") {
  const auto run = [](bool barrier) {
    Events e;
    e.columns(Sync::kTmemAlloc, 0, 3, 0, 128);
    e.write(at(0, 3), shared(0, 0x500, 4));
    if (barrier) e.bar_sync(0, {0, 3});
    e.warp_access(0, 0, shared(0, 0x500, 4), false, 0);
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "race-data");
}

TEST_CASE("A register used before wait::ld is a strict finding", "[race]") {
  Events e;
  e.ld(0, 0, 0, 32);
  SyncEvent use = e.event(Sync::kTmemUse, at(0, 0), kWarp);
  use.async_id = 1;
  e.checker.sync(use);
  CHECK(e.broken() == "tensor-use-before-wait");
}

TEST_CASE("A CTA leaves when its tensor core is known to be idle", "[race]") {
  const auto run = [](bool wait) {
    Events e;
    e.mma(kMma, {kOperand}, kD);
    e.commit(kMma, kFull, 0);
    if (wait) e.wait(kMma, kFull, 0);
    e.exit_cta(0, {0, 1, 2, 3, 4, 5});
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "exit-pending");
}

TEST_CASE("A pair takes and frees its columns as one act, told by the CTA that came last", "[race]") {
  const auto act = [](Events& e, Sync kind) {
    for (uint64_t cta : {0, 1}) {
      SyncEvent columns = e.event(kind, at(1, 3), kWarp);
      columns.cta = cta;
      columns.amount = 128;
      columns.partner = at(0, 3);
      e.checker.sync(columns);
    }
  };
  const auto run = [&](bool barrier, bool wait_ld) {
    Events e;
    act(e, Sync::kTmemAlloc);
    if (barrier) e.bar_sync(0, {3, 5});
    e.mma(kMma, {kOperand}, kD, 2);
    e.commit(kMma, kFull, 0, 2);
    e.wait(at(0, 3), kFull, 0);
    e.after(at(0, 3), kWarp);
    e.ld(0, 3, 0, 32);
    if (wait_ld) e.plain(Sync::kTmemWaitLd, at(0, 3), kWarp);
    act(e, Sync::kTmemDealloc);
    e.exit_cta(0, {0, 1, 2, 3, 4, 5});
    return e.broken();
  };
  CHECK(run(true, true) == "");
  CHECK(run(false, true) == "race-tensor");
  CHECK(run(true, false) == "race-tensor");
}

TEST_CASE("A CTA that leaves under many operations is one finding", "[race]") {
  Events e;
  for (uint16_t column = 0; column < 64; column += 8) e.mma(kMma, {kOperand}, tensor(0, column, 8));
  e.exit_cta(0, {0, 1, 2, 3, 4, 5});
  CHECK(e.broken() == "exit-pending");
  CHECK(e.found.size() == 1);
}

TEST_CASE("A load whose registers are used before the wait is one finding, however many they are", "[race]") {
  Events e;
  e.ld(0, 1, 0, 32);
  for (int i = 0; i < 32; ++i) {
    SyncEvent use = e.event(Sync::kTmemUse, at(0, 1), kWarp);
    use.async_id = 1;
    e.checker.sync(use);
  }
  CHECK(e.broken() == "tensor-use-before-wait");
  CHECK(e.found.size() == 1);
}

TEST_CASE("Columns of a pair are freed after what either of the two warps knows", "[race]") {
  const auto run = [](bool together) {
    Events e;
    e.mma(kMma, {kOperand}, tensor(1, 0, 128), 2);
    e.commit(kMma, kFull, 0, 2);
    e.wait(at(0, 4), kFull, 0);
    e.after(at(0, 4), kWarp);
    SyncEvent columns = e.event(Sync::kTmemDealloc, at(1, 3), kWarp);  // knows nothing of the mma
    columns.amount = 128;
    if (together) columns.partner = at(0, 4);
    e.checker.sync(columns);
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "race-tensor");
}

TEST_CASE("An allocation of a pair is known through the warp of either CTA", "[race]") {
  const auto run = [](bool pair) {
    Events e;
    SyncEvent start = e.event(Sync::kCtaStart, at(1, 0));
    start.phase = 1;  // its rank
    e.checker.sync(start);
    sim::Inst alloc;
    alloc.qualifiers[size_t(sim::Q::kGroup2)] = pair;
    SyncEvent columns = e.event(Sync::kTmemAlloc, at(1, 5), kWarp);
    columns.amount = 128;
    columns.inst = &alloc;
    e.checker.sync(columns);
    columns = e.event(Sync::kTmemDealloc, at(1, 3), kWarp);
    columns.amount = 128;
    e.commit(at(0, 5), Events::bar(0, 1), 0, 2);
    e.wait(at(1, 3), Events::bar(0, 1), 0);
    e.after(at(1, 3), kWarp);
    e.checker.sync(columns);
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "race-tensor");
}

}  // namespace race_tensor_test
