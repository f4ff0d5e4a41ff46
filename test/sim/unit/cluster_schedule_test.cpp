// cluster_schedule_test.cpp -- the order of clusters is a choice of the schedule, like that of warps: a grid
// whose clusters wait for each other runs both ways, within what the machine holds at once.
#include <algorithm>
#include <map>
#include <set>

#include "sim/check/race.h"
#include "sim/exec/occupancy.h"
#include "sim/schedule/schedule.h"
#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace cluster_schedule_test {

using namespace sim_test;

// Cluster 0 writes the word 41 behind the flag and sets the flag. Cluster 1 counts how often it finds the
// flag unset, and reports the count and the word.
static std::string handover(const std::string& order) {
  return kernel_text(".param .u64 flag, .param .u64 out", R"(
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, 0;
    @%p1 bra POLL;
    mov.u32 %r3, 41; st.global.u32 [%rd1+4], %r3;
    mov.u32 %r4, 1; st.release.gpu.global.u32 [%rd1], %r4;
    bra END;
  POLL:
    ld.)" + order + R"(.gpu.global.u32 %r5, [%rd1]; setp.ne.u32 %p2, %r5, 0;
    @%p2 bra READ;
    add.u32 %r2, %r2, 1;
    bra POLL;
  READ:
    ld.global.u32 %r6, [%rd1+4];
    st.global.u32 [%rd2], %r2; st.global.u32 [%rd2+4], %r6;
  END:
    ret;)");
}

struct Outcome {
  uint32_t polls = 0, word = 0;
  std::set<std::string> findings;
  bool operator==(const Outcome&) const = default;
};

static Outcome run(const std::string& mode, uint64_t seed, const std::string& order = "acquire") {
  Machine machine;
  Outcome out;
  const std::vector<uint32_t> zeros(2, 0);
  uint32_t *flag = machine.make(zeros), *report = machine.make(zeros);
  sim::RaceChecker checker([&](const sim::Finding& finding) { out.findings.insert(finding.rule->id); });
  const auto policy = sim::make_policy(mode, seed);
  sim::LaunchOptions options;
  options.policy = policy.get();
  options.observer = &checker;
  machine.run(handover(order), shape(2, 1), {&flag, &report}, options);
  out.polls = machine.fetch(report, 2)[0];
  out.word = machine.fetch(report, 2)[1];
  return out;
}

TEST_CASE("clusters: by default the first runs first, in reverse the last, and both hand the word over",
          "[schedule]") {
  const Outcome first = run("default", 0), last = run("reverse", 0);
  CHECK(first.polls == 0);
  CHECK(last.polls > 0);
  for (const Outcome& outcome : {first, last}) {
    CHECK(outcome.word == 41);
    CHECK(outcome.findings.empty());
  }
}

TEST_CASE("clusters: the seeds of random run both orders, and a seed runs the same one again", "[schedule]") {
  std::set<bool> waited;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    CAPTURE(seed);
    const Outcome outcome = run("random", seed);
    CHECK(outcome.word == 41);
    CHECK(outcome.findings.empty());
    CHECK(run("random", seed) == outcome);
    waited.insert(outcome.polls > 0);
  }
  CHECK(waited.size() == 2);
}

TEST_CASE("clusters: under every mode the hand-over ends, and without an acquire it is a race",
          "[schedule]") {
  for (const sim::Mode& mode : sim::modes()) {
    CAPTURE(mode.name);
    CHECK(run(mode.name, 3).findings.empty());
    CHECK(run(mode.name, 3, "relaxed").findings == std::set<std::string>{"race-data"});
  }
}

TEST_CASE("clusters: as many as the machine holds are resident, every one runs once in a round",
          "[schedule]") {
  // A slice is one instruction, and whatever fits begins at once.
  class Crowd : public sim::DefaultPolicy {
   public:
    uint64_t slice() override { return 1; }
    uint32_t quantum() override { return 1; }
    uint64_t clusters_to_begin(uint64_t room) override { return room; }
    size_t next_cluster(const std::vector<uint64_t>& clusters) override {
      most = std::max(most, clusters.size());
      rising = rising && std::is_sorted(clusters.begin(), clusters.end());
      ++turns[clusters.back()];
      return clusters.size() - 1;
    }
    size_t most = 0;
    bool rising = true;
    std::map<uint64_t, int> turns;
  } policy;
  constexpr uint32_t kClusters = 100;
  const size_t shared = 200 << 10;  // one CTA on an SM
  const std::string ptx = kernel_text("", R"(
    .reg .b32 %r<4>;
    mov.u32 %r1, 1; add.u32 %r1, %r1, %r1; add.u32 %r1, %r1, %r1;
    ret;)");
  Machine machine;
  sim::LaunchOptions options;
  options.policy = &policy;
  const sim::LaunchConfig config = shape(2 * kClusters, 32, 2, shared);
  machine.run(ptx, config, {}, options);
  const int fit = sim::max_active_clusters(options.machine, {}, config);
  CHECK(policy.most == size_t(fit));
  CHECK(fit < int(kClusters));
  CHECK(policy.rising);
  CHECK(policy.turns.at(kClusters - 1) == policy.turns.at(1));
}

}  // namespace cluster_schedule_test
