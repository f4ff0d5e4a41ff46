// protocol_threads_test.cpp -- the protocol checker on what threads do: barriers of the CTA, register
// budgets, exits, and why nobody can move.
#include <algorithm>

#include "protocol_stream.hpp"
#include "support/catch.hpp"

namespace protocol_threads_test {

using namespace sim_test;
using Kind = SyncEvent::Kind;

const MbarrierRef kFull{0, 0x400}, kEmpty{0, 0x408};
const Thread kProducer{0, 0, 0}, kConsumer{0, 1, 0};

static void meet(Stream& s, Thread t, uint64_t barrier, uint64_t generation, int64_t threads,
                 const std::string& text, bool leave = false) {
  SyncEvent e = s.event(leave ? Kind::kBarrierLeave : Kind::kBarrierArrive, t, text);
  e.mask = 0xFFFFFFFF;
  e.object = barrier;
  e.phase = generation;
  e.amount = threads;
  e.cta = t.cta;
  s.send(e);
}

static void registers(Stream& s, uint32_t warp, int64_t amount) {
  SyncEvent e = s.event(Kind::kSetMaxRegisters, {0, warp, 0}, "setmaxnreg");
  e.mask = 0xFFFFFFFF;
  e.amount = amount;
  s.send(e);
}

// The only finding of a stream in which nothing can move.
static const sim::Finding& deadlock(Stream& s) {
  s.finish("deadlock in kernel k: nothing can move");
  REQUIRE(s.rules() == "deadlock");
  return s.findings[0];
}

static bool has_note(const sim::Finding& f, const std::string& text) {
  for (const std::string& note : f.notes)
    if (note == text) return true;
  return false;
}

TEST_CASE("protocol: tcgen05 work is committed", "[protocol]") {
  const bool commits = GENERATE(false, true);
  Stream s;
  s.init(kEmpty, 1);
  s.send(s.operation(AsyncIssue::Kind::kMma, kConsumer, "tcgen05.mma"));
  if (commits) s.commit(kEmpty, kConsumer);
  s.wait(kEmpty, kProducer, commits ? 0 : 1);
  s.cta_exit(0);
  CHECK(s.rules() == (commits ? "" : "tcgen05-uncommitted"));
  if (!commits)
    CHECK(s.findings.at(0).summary ==
          "CTA 0 warp 1 lane 0 issues tcgen05 work that no tcgen05.commit of it follows");
}

TEST_CASE("protocol: bulk stores are waited for before the exit", "[protocol]") {
  Stream s;
  s.send(s.operation(AsyncIssue::Kind::kTensorStore, kProducer, "cp.async.bulk.tensor.store"));
  const int steps = GENERATE(0, 1, 2);
  if (steps > 0) s.send(s.event(Kind::kBulkCommit, kProducer, "cp.async.bulk.commit_group"));
  if (steps > 1) s.send(s.event(Kind::kBulkWait, kProducer, "cp.async.bulk.wait_group.read 0"));
  s.exit(kProducer, 0xFFFFFFFF);
  REQUIRE(s.rules() == (steps < 2 ? "store-unwaited-at-exit" : ""));
  if (steps == 0) CHECK(s.findings[0].summary == "CTA 0 warp 0 lane 0 exits with 1 bulk store in no group");
  if (steps == 1)
    CHECK(s.findings[0].summary == "CTA 0 warp 0 lane 0 exits with 1 bulk group it did not wait for");
}

TEST_CASE("protocol: bar.red and bar.sync do not mix within a generation", "[protocol]") {
  Stream s;
  meet(s, {0, 0, 0}, 1, 0, 64, "bar.sync");
  meet(s, {0, 1, 0}, 1, 0, 64, "bar.sync");
  meet(s, {0, 0, 0}, 1, 1, 64, "bar.red.popc.u32");
  CHECK(s.rules() == "");
  meet(s, {0, 1, 0}, 1, 1, 64, "bar.sync");
  REQUIRE(s.rules() == "barrier-mixes-red");
  CHECK(s.findings[0].summary ==
        "barrier 1 of CTA 0 is used by bar.red and by another form in the same generation");
}

TEST_CASE("protocol: register budgets", "[protocol]") {
  Stream s(256);
  for (uint32_t warp = 0; warp < 4; ++warp) registers(s, warp, 240);
  SECTION("that fit") {
    for (uint32_t warp = 4; warp < 8; ++warp) registers(s, warp, 240);
    s.cta_exit(0);
    CHECK(s.rules() == "");
  }
  SECTION("that do not") {
    for (uint32_t warp = 4; warp < 12; ++warp) registers(s, warp, 240);
    REQUIRE(s.rules() == "setmaxnreg-pool");
    CHECK(s.findings[0].summary == "the warps of CTA 0 ask for 69120 registers together; it has 65536");
  }
}

TEST_CASE("protocol: a deadlock for bytes names what came and what did not", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  s.arrive(kFull, kProducer, 1280, "mbarrier.arrive.expect_tx");
  s.land(kFull, s.send(s.load(kFull, kProducer, 0x800, 1024)), 1024);
  s.sleep(kFull, kConsumer, 0);
  const sim::Finding& f = deadlock(s);
  CHECK(f.summary ==
        "CTA 0 warp 1 lane 0 waits for phase 0 of mbarrier 0x400 of CTA 0, which lacks 256 bytes");
  CHECK(has_note(f, "  phase 0: 1 of 1 arrival, 1280 bytes expected, 1024 delivered"));
  CHECK(has_note(f, "  no copy in flight brings the missing 256 bytes"));
  CHECK(f.missing == "256 bytes, which no copy in flight brings");
  CHECK(has_note(
      f, "  phase 0: 1024 bytes delivered by CTA 0 warp 0 lane 0 at PTX line 3: `cp.async.bulk.tensor`"));
}

TEST_CASE("protocol: a deadlock of producer and consumer is a cycle", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  s.init(kEmpty, 1);
  s.arrive(kFull, kProducer);
  s.wait(kFull, kConsumer, 0);
  s.arrive(kEmpty, kConsumer);
  s.wait(kEmpty, kProducer, 0);
  // Now each waits for the other first.
  s.sleep(kFull, kConsumer, 1);
  s.sleep(kEmpty, kProducer, 1);
  const sim::Finding& f = deadlock(s);
  CHECK(f.summary ==
        "CTA 0 warp 0 lane 0 waits for phase 1 of mbarrier 0x408 of CTA 0, which lacks 1 arrival");
  CHECK(f.notes.at(0) == "cycle: CTA 0 warp 0 -> CTA 0 warp 1 -> CTA 0 warp 0");
  CHECK(f.missing == "1 arrival of CTA 0 warp 1 at PTX line 2: `mbarrier.arrive`, which phase 0 had");
  CHECK(has_note(
      f,
      "  phase 0 had 1 arrival of CTA 0 warp 1 at PTX line 2: `mbarrier.arrive`, this one has none of it"));
}

TEST_CASE("protocol: of many waits the one whose missing arrival holds up the others comes first",
          "[protocol]") {
  Stream s(96);
  s.init(kFull, 1);
  s.init(kEmpty, 1);
  const sim::Thread third{0, 2, 0};
  s.arrive(kFull, kProducer);
  s.wait(kFull, kConsumer, 0);
  s.arrive(kEmpty, third);
  s.wait(kEmpty, kProducer, 0);
  s.exit(third, 0xFFFFFFFF);
  s.sleep(kFull, kConsumer, 1);   // for the producer,
  s.sleep(kEmpty, kProducer, 1);  // which waits for a warp that has left
  const sim::Finding& f = deadlock(s);
  CHECK(f.mbarrier == kEmpty);
  CHECK(f.missing == "1 arrival of CTA 0 warp 2 at PTX line 2: `mbarrier.arrive`, which phase 0 had");
}

TEST_CASE("protocol: lanes of a warp that arrived at one place are one line", "[protocol]") {
  Stream s;
  s.init(kFull, 64);
  for (uint32_t lane = 0; lane < 32; ++lane) s.arrive(kFull, {0, 0, lane});
  s.sleep(kFull, kConsumer, 0);
  const sim::Finding& f = deadlock(s);
  CHECK(has_note(f,
                 "  phase 0: 32 arrivals by CTA 0 warp 0 lanes 0xffffffff at PTX line 2: `mbarrier.arrive`"));
}

TEST_CASE("protocol: a deadlock before the first fill hints at the parity", "[protocol]") {
  Stream s;
  s.init(kEmpty, 1);
  s.init(kFull, 1);
  s.sleep(kEmpty, kProducer, 0);
  s.sleep(kFull, kConsumer, 0);
  const std::vector<std::string>& notes = deadlock(s).notes;
  CHECK(std::count(notes.begin(), notes.end(), "  nobody ever arrived there") == 2);
  CHECK(std::count(notes.begin(), notes.end(),
                   "  a wait for a stage that is free at first has to ask for parity 1; "
                   "a wait for data asks for parity 0, and whoever brings the data never did") == 1);
}

TEST_CASE("protocol: a deadlock on a parity that was not flipped says so", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  s.arrive(kFull, kProducer);
  s.wait(kFull, kConsumer, 0);
  s.arrive(kFull, kProducer);
  s.sleep(kFull, kConsumer, 0);
  const sim::Finding& f = deadlock(s);
  CHECK(has_note(f,
                 "  it last saw phase 0, phase 1 is complete, and parity 0 asks for the one after it: "
                 "parity not flipped?"));
}

TEST_CASE("protocol: a deadlock at barriers of threads lists who is not there", "[protocol]") {
  Stream s(96);
  SECTION("all of the CTA") {
    meet(s, {0, 0, 0}, 0, 0, 0, "bar.sync");
    s.exit({0, 1, 0}, 0xFFFFFFFF);
    const sim::Finding& f = deadlock(s);
    CHECK(f.summary == "CTA 0 warp 0 waits at barrier 0 for all threads, 32 are there");
    CHECK(has_note(f, "  not there: CTA 0 warp 2"));
    CHECK(f.missing == "the arrival of CTA 0 warp 2");
  }
  SECTION("a number of threads") {
    for (uint32_t warp = 0; warp < 2; ++warp) meet(s, {0, warp, 0}, 1, 0, 64, "bar.sync");
    for (uint32_t warp = 0; warp < 2; ++warp) meet(s, {0, warp, 0}, 1, 0, 64, "bar.sync", true);
    meet(s, {0, 0, 0}, 1, 1, 64, "bar.sync");
    const sim::Finding& f = deadlock(s);
    CHECK(has_note(f, "  not there: CTA 0 warp 1"));
    CHECK(has_note(f,
                   "CTA 0 warp 0 waits at barrier 1 for 64 threads, 32 are there at PTX line 1: `bar.sync`"));
  }
  SECTION("a number of threads that never met before") {
    meet(s, {0, 0, 0}, 1, 0, 64, "bar.sync");
    const sim::Finding& f = deadlock(s);
    CHECK(f.missing == "32 threads at barrier 1 of CTA 0");
  }
  SECTION("who only arrives does not wait") {
    meet(s, {0, 0, 0}, 1, 0, 64, "bar.arrive");
    const sim::Finding& f = deadlock(s);
    CHECK(f.summary == "nothing can move, and no wait for a barrier was seen");
  }
  SECTION("of the cluster") {
    s.cta(1, 0, 1);
    for (uint32_t warp = 0; warp < 3; ++warp) {
      SyncEvent e = s.event(Kind::kClusterArrive, {0, warp, 0}, "barrier.cluster.arrive");
      e.mask = 0xFFFFFFFF;
      s.send(e);
    }
    const sim::Finding& f = deadlock(s);
    CHECK(
        f.notes ==
        std::vector<std::string>{
            "CTA 0 warps 0, 1, 2: each waits for the cluster barrier at PTX line 1: `barrier.cluster.arrive`",
            "  not there: CTA 1 warp 0, CTA 1 warp 1, CTA 1 warp 2"});
  }
}

TEST_CASE("protocol: a deadlock over the columns of a pair names the CTA that never asked", "[protocol]") {
  Stream s(32);
  s.cta(1, 0, 1);
  const auto columns = [&](Kind kind, uint64_t cta, const char* text, int64_t amount) {
    SyncEvent e = s.event(kind, {cta, 0, 0}, text);
    e.mask = 0xFFFFFFFF;
    e.cta = cta;
    e.amount = amount;
    e.partner = Thread{1 - cta, 0, 0};
    s.send(e);
  };
  SECTION("and waits for nothing") {
    columns(Kind::kTmemAsk, 0, "tcgen05.dealloc.cta_group::2", 64);
    const sim::Finding f = deadlock(s);
    CHECK(f.summary ==
          "CTA 0 warp 0 waits in tcgen05.dealloc of 64 columns for CTA 1, the other one of its pair, "
          "which never asked");
    CHECK(f.missing == "tcgen05.dealloc by a warp of CTA 1");
  }
  SECTION("and has left") {
    columns(Kind::kTmemAsk, 0, "tcgen05.alloc.cta_group::2", 64);
    s.exit({1, 0, 0}, 0xFFFFFFFF);
    s.cta_exit(1);
    CHECK(deadlock(s).summary ==
          "CTA 0 warp 0 waits in tcgen05.alloc of 64 columns for CTA 1, the other one of its pair, "
          "which has left without asking");
  }
  SECTION("or that both lack columns") {
    columns(Kind::kTmemAlloc, 0, "tcgen05.alloc.cta_group::2", 512);
    columns(Kind::kTmemAlloc, 1, "tcgen05.alloc.cta_group::2", 512);
    columns(Kind::kTmemAsk, 0, "tcgen05.alloc.cta_group::2", 64);
    columns(Kind::kTmemAsk, 1, "tcgen05.alloc.cta_group::2", 64);
    const sim::Finding f = deadlock(s);
    CHECK(f.summary ==
          "CTA 0 warp 0 waits in tcgen05.alloc of 64 columns of tensor memory, of which its CTA holds 512 of "
          "512");
    CHECK(has_note(f,
                   "  CTA 0 warp 0 lane 0 allocated columns 0..511 at PTX line 1: "
                   "`tcgen05.alloc.cta_group::2`"));
  }
  SECTION("who has got them waits no more") {
    columns(Kind::kTmemAsk, 0, "tcgen05.alloc.cta_group::2", 64);
    columns(Kind::kTmemAlloc, 1, "tcgen05.alloc.cta_group::2", 64);
    CHECK(deadlock(s).summary == "nothing can move, and no wait for a barrier was seen");
  }
}

TEST_CASE("protocol: a livelock names first what the circle reads", "[protocol]") {
  Stream s(64);
  meet(s, {0, 1, 0}, 0, 0, 0, "bar.sync");
  sim::Spin spin{{0, 0, 3}, 1u << 3, s.at("ld.acquire.gpu.u32"), Stream::shared(0, 0x800, 4)};
  const bool reads = GENERATE(true, false);
  if (!reads) spin.region.reset();
  s.checker.spins(spin);
  s.finish("livelock: 67108865 warp instructions changed nothing that another thread could see");
  REQUIRE(s.rules() == "deadlock");
  const sim::Finding& f = s.findings[0];
  CHECK(f.later.inst == spin.inst);
  CHECK(f.has_region == reads);
  CHECK(f.summary ==
        (reads
             ? "CTA 0 warp 0 lane 3 reads shared [0x800, 0x804) of CTA 0 again and again, which nobody will "
               "write: every other thread has left, sleeps, or runs in a circle, too"
             : "CTA 0 warp 0 lane 3 runs in a circle and reads nothing there that another thread could "
               "write"));
  CHECK(
      has_note(f, "CTA 0 warp 1 waits at barrier 0 for all threads, 32 are there at PTX line 1: `bar.sync`"));
}

}  // namespace protocol_threads_test
