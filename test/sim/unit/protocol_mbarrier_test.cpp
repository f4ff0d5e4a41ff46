// protocol_mbarrier_test.cpp -- the protocol checker on mbarriers: each rule on a stream that keeps it, and
// on a stream that breaks only this rule.
#include "protocol_stream.hpp"
#include "support/catch.hpp"

namespace protocol_mbarrier_test {

using namespace sim_test;
using Kind = SyncEvent::Kind;

const MbarrierRef kFull{0, 0x400}, kEmpty{0, 0x408};
const Thread kProducer{0, 0, 0}, kConsumer{0, 1, 0};

// Fills and releases a stage `fills` times, as pipelines do.
static void pipeline(Stream& s, int fills) {
  s.init(kFull, 1);
  s.init(kEmpty, 1);
  for (int i = 0; i < fills; ++i) {
    s.wait(kEmpty, kProducer, uint32_t(~i & 1));
    s.arrive(kFull, kProducer, 1024);
    s.land(kFull, s.send(s.load(kFull, kProducer, 0x800, 1024)), 1024);
    s.wait(kFull, kConsumer, uint32_t(i & 1));
    s.read(kConsumer, Stream::shared(0, 0x800, 1024));
    s.commit(kEmpty, kConsumer);
  }
  s.wait(kEmpty, kProducer, uint32_t(~fills & 1));
}

static void end(Stream& s) {
  s.cta_exit(0);
  s.finish();
}

TEST_CASE("protocol: a pipeline that keeps every rule is silent", "[protocol]") {
  Stream s;
  pipeline(s, GENERATE(1, 2, 3, 7));
  end(s);
  CHECK(s.rules() == "");
}

TEST_CASE("protocol: bytes landing in pieces, and before they are expected, are in order", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  const uint64_t id = s.send(s.load(kFull, kProducer, 0x800, 1024));
  s.land(kFull, id, 256);
  s.arrive(kFull, kProducer, 1024);
  s.land(kFull, id, 768);
  s.wait(kFull, kConsumer, 0);
  s.read(kConsumer, Stream::shared(0, 0x800, 1024));
  end(s);
  CHECK(s.rules() == "");
}

TEST_CASE("protocol: fewer bytes expected than issued: the phase completes without a copy", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  s.arrive(kFull, kProducer, 1024, "mbarrier.arrive.expect_tx");
  const uint64_t a = s.send(s.load(kFull, kProducer, 0x800, 1024));
  const uint64_t b = s.send(s.load(kFull, kProducer, 0xC00, 256, "cp.async.bulk.tensor sf"));
  s.land(kFull, a, 1024);
  REQUIRE(s.rules() == "mbarrier-bytes-in-other-phase");
  const sim::Finding& f = s.findings[0];
  CHECK(f.summary ==
        "phase 0 of mbarrier 0x400 of CTA 0 completes with 1024 bytes expected while 256 bytes "
        "of a copy issued for it have not landed");
  CHECK(f.earlier.async_id == b);
  CHECK(f.mbarrier == kFull);
  REQUIRE(f.notes.size() == 2);
  CHECK(f.notes[0] ==
        "phase 0: 1 arrival, 1024 bytes expected by CTA 0 warp 0 lane 0 at PTX line 2: "
        "`mbarrier.arrive.expect_tx`");
  CHECK(f.notes[1] ==
        "phase 0: 1024 bytes delivered by CTA 0 warp 0 lane 0 at PTX line 3: `cp.async.bulk.tensor`");
  s.land(kFull, b, 256);  // said once
  CHECK(s.rules() == "mbarrier-bytes-in-other-phase");
}

TEST_CASE("protocol: a plain arrival instead of expect_tx: the copies come after the phase", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  s.arrive(kFull, kProducer);
  s.send(s.load(kFull, kProducer, 0x800, 1024));
  s.send(s.load(kFull, kProducer, 0xC00, 1024));  // said once
  REQUIRE(s.rules() == "mbarrier-copy-before-observed");
  CHECK(s.findings[0].summary ==
        "a copy of 1024 bytes is issued for phase 1 of mbarrier 0x400 of CTA 0 "
        "although nobody saw phase 0 complete, which expected 0 bytes");
}

TEST_CASE("protocol: an arrival in a phase whose predecessor nobody saw", "[protocol]") {
  Stream s;
  s.init(kEmpty, 1);
  s.arrive(kEmpty, {0, 1, 0});
  s.arrive(kEmpty, {0, 1, 1});
  REQUIRE(s.rules() == "mbarrier-arrive-before-observed");
  CHECK(s.findings[0].summary ==
        "an arrival in phase 1 of mbarrier 0x408 of CTA 0 although nobody saw phase 0 complete "
        "(arrival count 1)");
}

TEST_CASE("protocol: bytes that nobody waits for", "[protocol]") {
  Stream s;
  pipeline(s, 2);
  s.arrive(kFull, kProducer, 1024);
  s.land(kFull, s.send(s.load(kFull, kProducer, 0x800, 1024)), 1024);
  s.read(kConsumer, Stream::shared(0, 0x800, 1024));
  end(s);
  REQUIRE(s.rules() == "mbarrier-bytes-unobserved");
  CHECK(s.findings[0].summary ==
        "1024 bytes landed in phase 2 of mbarrier 0x400 of CTA 0, which nobody saw complete before its end");
}

TEST_CASE("protocol: the arrival of a commit is waited for", "[protocol]") {
  const MbarrierRef done{0, 0x410};
  Stream s;
  s.init(kEmpty, 1);
  s.init(done, 1);
  s.commit(kEmpty, kConsumer);
  SECTION("a later one is seen") {
    s.commit(done, kConsumer);
    s.wait(done, kProducer, 0);
    end(s);
    CHECK(s.rules() == "mbarrier-commit-overtaken");  // nothing orders the two arrivals
  }
  SECTION("itself is seen") {
    s.wait(kEmpty, kProducer, 0);
    end(s);
    CHECK(s.rules() == "");
  }
  SECTION("one of another thread is seen") {
    s.commit(done, kProducer);
    s.wait(done, kProducer, 0);
    end(s);
    REQUIRE(s.rules() == "mbarrier-commit-unobserved");
    CHECK(s.findings[0].summary ==
          "a tcgen05.commit of CTA 0 warp 1 lane 0 arrives in phase 0 of mbarrier 0x408 of CTA 0, "
          "which nobody saw complete before its end; no later commit of the thread was waited for");
  }
}

TEST_CASE("protocol: a waiter that misses a phase", "[protocol]") {
  Stream s;
  s.init(kEmpty, 1);
  s.arrive(kEmpty, kConsumer);
  s.wait(kEmpty, kProducer, 0);
  s.wait(kEmpty, kProducer, 0);  // the same phase again is harmless
  s.arrive(kEmpty, kConsumer);
  SECTION("that nobody saw") {
    s.arrive(kEmpty, kConsumer);
    s.wait(kEmpty, kProducer, 0);
    REQUIRE(s.rules() == "mbarrier-arrive-before-observed mbarrier-phase-lap");
    CHECK(s.findings[1].summary ==
          "CTA 0 warp 0 lane 0 waits for parity 0 of mbarrier 0x408 of CTA 0 and sees phase 2; "
          "the last it saw was phase 0, and nobody saw what lies between");
  }
  SECTION("that another thread saw") {
    s.wait(kEmpty, {0, 2, 0}, 1);
    s.arrive(kEmpty, kConsumer);
    s.wait(kEmpty, kProducer, 0);
    REQUIRE(s.rules() == "mbarrier-phase-skipped");
  }
  SECTION("not at all") {
    s.wait(kEmpty, kProducer, 1);
    s.arrive(kEmpty, kConsumer);
    s.wait(kEmpty, kProducer, 0);
    CHECK(s.rules() == "");
  }
}

TEST_CASE("protocol: a consumer whose first wait finds the barrier fresh", "[protocol]") {
  Stream s;
  s.init(kFull, 1);
  s.arrive(kFull, kProducer, 1024);
  const uint64_t id = s.send(s.load(kFull, kProducer, 0x800, 1024));
  const uint32_t parity = GENERATE(0u, 1u);
  if (parity == 0) s.land(kFull, id, 1024);
  s.wait(kFull, kConsumer, parity);
  s.read(kConsumer, Stream::shared(0, 0x810, 4));
  if (parity == 0) {
    CHECK(s.rules() == "");
    return;
  }
  REQUIRE(s.rules() == "mbarrier-fresh-wait");
  CHECK(s.findings[0].summary ==
        "CTA 0 warp 1 lane 0 uses bytes of a copy on mbarrier 0x400 of CTA 0 after a wait "
        "that found the barrier fresh: no phase had completed");
  s.read(kConsumer, Stream::shared(0, 0x820, 4));  // said once
  CHECK(s.findings.size() == 1);
}

TEST_CASE("protocol: arrivals left in an incomplete phase at the end", "[protocol]") {
  Stream s;
  s.init(kEmpty, 2);
  s.arrive(kEmpty, kConsumer);
  end(s);
  REQUIRE(s.rules() == "mbarrier-open-at-end");
  CHECK(s.findings[0].summary == "mbarrier 0x408 of CTA 0 ends in phase 0 with 1 of 2 arrivals");
}

TEST_CASE("protocol: a fault about the bytes of a barrier is explained by the balance, once", "[protocol]") {
  Stream s;
  s.cta(1);
  s.init(kFull, 1);
  s.init({1, 0x400}, 1);
  s.arrive({1, 0x400}, {1, 0, 0}, 512);  // its bytes are still to come
  const auto leave = [&](const char* fault) {
    s.exit(kConsumer, 0xFFFFFFFF);
    s.finish(fault);
  };
  SECTION("fewer than expected") {
    s.arrive(kFull, kProducer, 2048);
    s.land(kFull, s.send(s.load(kFull, kProducer, 0x800, 1024)), 1024);
    leave(
        "the CTA exits although 1024 bytes fewer have arrived at the mbarrier at shared offset 0x400 than "
        "it was told to expect");
    REQUIRE(s.rules() == "mbarrier-byte-balance");
    CHECK(s.findings[0].summary ==
          "mbarrier 0x400 of CTA 0 ends with 1024 bytes more expected than arrived in phase 0: "
          "1 of 1 arrival, 2048 bytes expected, 1024 delivered");
    CHECK(s.checker.explained());
  }
  const char* const more =
      "the CTA exits although 1024 bytes more have arrived at the mbarrier at shared offset 0x400 than it was "
      "told to expect";
  SECTION("more than expected") {
    s.land(kFull, s.send(s.load(kFull, kProducer, 0x800, 1024)), 1024);
    leave(more);
    REQUIRE(s.rules() == "mbarrier-byte-balance");
    CHECK(s.findings[0].summary ==
          "mbarrier 0x400 of CTA 0 ends with 1024 bytes more arrived than expected in phase 0: "
          "0 of 1 arrival, 0 bytes expected, 1024 delivered");
    CHECK(s.checker.explained());
  }
  SECTION("more than expected, which made a phase complete early") {
    s.arrive(kFull, kProducer, 1024);
    const uint64_t a = s.send(s.load(kFull, kProducer, 0x800, 1024));
    const uint64_t b = s.send(s.load(kFull, kProducer, 0xC00, 1024));
    s.land(kFull, a, 1024);
    s.wait(kFull, kConsumer, 0);
    s.land(kFull, b, 1024);
    leave(more);
    CHECK(s.rules() == "mbarrier-bytes-in-other-phase");
    CHECK(s.checker.explained());
  }
  SECTION("another fault explains itself") {
    s.land(kFull, s.send(s.load(kFull, kProducer, 0x800, 1024)), 1024);
    leave("access of 4 bytes at shared offset 0x400");
    CHECK(s.rules() == "");
    CHECK_FALSE(s.checker.explained());
  }
}

TEST_CASE("protocol: an arrival follows a wait for the phase before by order, not by chance", "[protocol]") {
  struct Fixed : sim::Clocks {
    explicit Fixed(bool order) : order_(order) {}
    sim::Stamp now(const Thread&) const override { return {}; }
    bool ordered(const sim::Stamp&, const Thread&) const override { return order_; }
    bool order_;
  };
  const auto run = [](bool order) {
    const Fixed clocks(order);
    Stream s(64, &clocks);
    pipeline(s, 3);
    end(s);
    return s.rules();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "mbarrier-arrive-before-observed mbarrier-arrive-before-observed");  // once a barrier
}

TEST_CASE("protocol: one lane initialises an mbarrier", "[protocol]") {
  const auto run = [](uint32_t mask) {
    Stream s;
    SyncEvent e;
    e.kind = Kind::kMbarrierInit;
    e.mbarrier = kFull;
    e.amount = 1;
    e.mask = mask;
    s.send(e);
    return s.rules();
  };
  CHECK(run(0x1) == "");
  CHECK(run(0xF) == "mbarrier-init-by-lanes");
}

}  // namespace protocol_mbarrier_test
