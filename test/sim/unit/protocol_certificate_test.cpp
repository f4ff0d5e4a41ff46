// protocol_certificate_test.cpp -- which barriers are certified,
// with an order of events that the test draws by hand.
#include "protocol_stream.hpp"
#include "sim/check/certificate.h"
#include "support/catch.hpp"

namespace protocol_certificate_test {

using namespace sim_test;
using Kind = SyncEvent::Kind;

// Every lane is a component; `learn` draws an edge from all that one thread did to what another does next.
class DrawnClocks : public sim::Clocks {
 public:
  void tick(Thread t) { ++known_[id(t)][id(t)]; }
  void learn(Thread from, Thread to) {
    for (const auto& [thread, time] : std::map(known_[id(from)])) {
      sim::Time& mine = known_[id(to)][thread];
      mine = std::max(mine, time);
    }
  }
  sim::Stamp now(const Thread& t) const override { return {id(t), t.lane, known_.at(id(t)).at(id(t))}; }
  bool ordered(const sim::Stamp& stamp, const Thread& t) const override {
    const auto mine = known_.find(id(t));
    if (mine == known_.end()) return false;
    const auto time = mine->second.find(stamp.thread);
    return time != mine->second.end() && time->second >= stamp.time;
  }

 private:
  static uint64_t id(const Thread& t) { return t.cta << 16 | uint64_t(t.warp) << 8 | t.lane; }
  std::map<uint64_t, std::map<uint64_t, sim::Time>> known_;
};

const MbarrierRef kFull{0, 0x400}, kEmpty{0, 0x408};
const Thread kProducer{0, 0, 0}, kConsumer{0, 1, 0};

struct Run {
  DrawnClocks clocks;
  std::vector<sim::Finding> found;
  sim::Certifier certifier{clocks, [this](sim::Finding f) { found.push_back(std::move(f)); }};
  uint64_t last_id = 0;

  void event(Kind kind, MbarrierRef b, Thread t, int64_t amount = 0, int64_t bytes = 0, uint64_t id = 0) {
    SyncEvent e;
    e.kind = kind;
    e.thread = t;
    e.mask = 1u << t.lane;
    e.mbarrier = b;
    e.amount = amount;
    e.bytes = bytes;
    e.async_id = id;
    clocks.tick(t);
    certifier.sync(e);
  }
  void init(MbarrierRef b, int64_t count) { event(Kind::kMbarrierInit, b, kProducer, count); }
  void arrive(MbarrierRef b, Thread t, int64_t bytes = 0) { event(Kind::kMbarrierArrive, b, t, 1, bytes); }
  void wait(MbarrierRef b, Thread t) { event(Kind::kMbarrierWait, b, t); }
  uint64_t copy(MbarrierRef b, Thread t, int64_t bytes) {
    AsyncIssue issue;
    issue.id = ++last_id;
    issue.thread = t;
    issue.kind = AsyncIssue::Kind::kTensorLoad;
    issue.barriers = {{b, bytes}};
    clocks.tick(t);
    certifier.issue(issue);
    return issue.id;
  }
  void land(MbarrierRef b, uint64_t id, int64_t bytes) {
    event(Kind::kMbarrierCompleteTx, b, {99, 0, 0}, 0, bytes, id);
  }
  // Fills and releases a stage once; the waits are drawn as edges, or not.
  void fill(int i, bool consumer_learns = true, bool producer_learns = true) {
    if (i > 0 && producer_learns) clocks.learn(kConsumer, kProducer);
    wait(kEmpty, kProducer);
    arrive(kFull, kProducer, 64);
    land(kFull, copy(kFull, kProducer, 64), 64);
    if (consumer_learns) clocks.learn(kProducer, kConsumer);
    wait(kFull, kConsumer);
    arrive(kEmpty, kConsumer);
  }
  std::string reasons() {
    SyncEvent exit;
    exit.kind = Kind::kCtaExit;
    certifier.sync(exit);
    certifier.finish(nullptr);
    std::string out;
    for (const auto& b : certifier.certificate().barriers)
      out += (out.empty() ? "" : "; ") + std::to_string(b.barrier.offset) + ": " +
             (b.certified() ? "certified" : b.reason);
    return out;
  }
};

TEST_CASE("certificate: a ring whose ends wait for each other is certified", "[protocol]") {
  Run run;
  run.init(kFull, 1);
  run.init(kEmpty, 1);
  const int fills = GENERATE(1, 2, 5);
  for (int i = 0; i < fills; ++i) run.fill(i);
  CHECK(run.reasons() == "1024: certified; 1032: certified");
  CHECK(run.certifier.certificate().certified() == 2);
  CHECK(run.found.empty());
  CHECK(run.certifier.certificate().complete);
}

TEST_CASE("certificate: order of the run alone certifies nothing", "[protocol]") {
  Run run;
  run.init(kFull, 1);
  run.init(kEmpty, 1);
  SECTION("the producer does not learn that the stage was read") {
    for (int i = 0; i < 2; ++i) run.fill(i, true, false);
    CHECK(run.reasons() ==
          "1024: an arrival of CTA 0 warp 0 lane 0 in phase 1 comes after no wait that saw phase 0; "
          "1032: certified");
  }
  SECTION("the consumer does not learn that the stage was free") {
    for (int i = 0; i < 2; ++i) run.fill(i, false, true);
    CHECK(run.reasons() ==
          "1024: certified; "
          "1032: the wait of CTA 0 warp 0 lane 0 for the phase before the first comes before nothing "
          "that phase 0 needs");
    REQUIRE(run.found.size() == 1);  // of two waits; one that is not repeated harms nobody
    CHECK(run.found[0].rule->id == std::string("mbarrier-lagging-waiter"));
    CHECK(run.found[0].summary ==
          "CTA 0 warp 0 lane 0 waits again on mbarrier 0x408 of CTA 0, "
          "whose phase 0 could complete before the thread saw the phase before the first");
  }
}

TEST_CASE("certificate: bytes of another phase, missing phases and open ends are refused", "[protocol]") {
  Run run;
  run.init(kFull, 1);
  SECTION("a copy that the phase did not count") {
    run.copy(kFull, kProducer, 64);
    run.arrive(kFull, kProducer);
    CHECK(run.reasons() == "1024: phase 0 completes without an operation issued for it");
  }
  SECTION("a thread that missed a phase") {
    for (int i = 0; i < 2; ++i) {
      run.arrive(kFull, kProducer);
      if (i == 0) run.wait(kFull, kProducer);
    }
    run.wait(kFull, kConsumer);
    CHECK(run.reasons() == "1024: CTA 0 warp 1 lane 0 waits for phase 1 without having seen phase 0");
  }
  SECTION("arrivals left over") {
    run.init(kEmpty, 2);
    run.arrive(kEmpty, kConsumer);
    CHECK(run.reasons() == "1024: certified; 1032: it ends in the middle of phase 0");
  }
}

TEST_CASE("certificate: a run that faults certifies nothing", "[protocol]") {
  Run run;
  run.init(kFull, 1);
  run.certifier.finish("deadlock");
  CHECK(run.certifier.certificate().certified() == 0);
  CHECK_FALSE(run.certifier.certificate().complete);
}

}  // namespace protocol_certificate_test
