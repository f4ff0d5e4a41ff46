// schedule_test.cpp -- what the schedules promise: each run is a function of mode and seed, each mode does
// what its name says, and the program that waits as it should gives the same result under all of them.
#include <algorithm>
#include <stdexcept>

#include "sim/unit/copies_fixture.hpp"

namespace schedule_test {

using namespace sim_test;
using sim::Agent;
using sim::FaultKind;

// Passes every question on and writes down the answers.
class Recorder : public sim::Policy {
 public:
  struct Choice {
    std::vector<Agent> agents;
    size_t chosen;
  };
  explicit Recorder(sim::Policy& policy) : policy_(policy) {}
  void start() override {
    log.clear();
    choices.clear();
    policy_.start();
  }
  size_t next(const std::vector<Agent>& agents) override {
    const size_t chosen = policy_.next(agents);
    choices.push_back({agents, chosen});
    return note(chosen);
  }
  uint32_t quantum() override { return note(policy_.quantum()); }
  bool overlaps_grids() const override { return policy_.overlaps_grids(); }
  size_t next_grid(const std::vector<uint64_t>& grids) override { return note(policy_.next_grid(grids)); }
  uint64_t slice() override { return note(policy_.slice()); }
  uint64_t clusters_to_begin(uint64_t room) override { return note(policy_.clusters_to_begin(room)); }
  size_t next_cluster(const std::vector<uint64_t>& clusters) override {
    return note(policy_.next_cluster(clusters));
  }
  bool cancel() override { return note(policy_.cancel()); }
  bool wake_early() override { return note(policy_.wake_early()); }
  bool at_once() override { return note(policy_.at_once()); }
  bool keep_tensor_order() override { return note(policy_.keep_tensor_order()); }
  uint32_t pieces(uint64_t bytes) override { return note(policy_.pieces(bytes)); }
  uint32_t piece(uint32_t left) override { return note(policy_.piece(left)); }
  uint32_t leader(uint32_t members) override { return note(policy_.leader(members)); }
  uint32_t shared_shift(uint32_t align) override { return note(policy_.shared_shift(align)); }
  bool reconverge() override { return policy_.reconverge(); }
  bool load_early() override { return note(policy_.load_early()); }

  std::vector<uint64_t> log;
  std::vector<Choice> choices;

 private:
  template <class T>
  T note(T answer) {
    log.push_back(uint64_t(answer));
    return answer;
  }
  sim::Policy& policy_;
};

// Ranks 0 and 1 exchange their buffers by st.async, and everybody reports a word of the peer's.
static std::string exchange() {
  return std::string(kInit) + R"(
    xor.b32 %r7, %r4, 1; shl.b32 %r50, %r1, 2; add.u32 %r50, %r50, %r3;
    mapa.shared::cluster.u32 %r8, %r50, %r7; mapa.shared::cluster.u32 %r9, %r2, %r7;
    mad.lo.u32 %r10, %r4, 1000, %r1;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r8], %r10, [%r9];)" +
         kWait + kReport + kLeave;
}

static Words exchanged() {
  Words out;
  for (uint32_t i = 0; i < 128; ++i) out.push_back(1000 * (i / 64 ^ 1) + i % 64);
  return out;
}

static std::vector<std::string> mode_names() {
  std::vector<std::string> out;
  for (const sim::Mode& mode : sim::modes()) out.push_back(mode.name);
  return out;
}

TEST_CASE("schedules: a program that waits as it should gives one result under every mode and seed",
          "[schedule]") {
  for (const std::string& mode : mode_names())
    for (uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(mode, seed);
      const auto policy = sim::make_policy(mode, seed);
      Machine machine;
      CHECK(run(machine, machine.make(Words{0}), {exchange(), 64, 2, {}, mode, policy.get()}) == exchanged());
    }
}

TEST_CASE("schedules: the choices of a run are a function of mode and seed", "[schedule]") {
  const auto log = [](sim::Policy& policy) {
    Recorder recorder(policy);
    Machine machine;
    run(machine, machine.make(Words{0}), {exchange(), 64, 2, {}, "default", &recorder});
    return recorder.log;
  };
  for (const std::string& mode : mode_names()) {
    CAPTURE(mode);
    const auto first = sim::make_policy(mode, 7), second = sim::make_policy(mode, 7);
    const std::vector<uint64_t> run = log(*first);
    CHECK(run == log(*first));
    CHECK(run == log(*second));
  }
  for (const char* mode : {"random", "tear", "diverge", "strict-tensor"}) {
    CAPTURE(mode);
    std::vector<std::vector<uint64_t>> logs;
    for (uint64_t seed = 0; seed < 8; ++seed) logs.push_back(log(*sim::make_policy(mode, seed)));
    std::sort(logs.begin(), logs.end());
    CHECK(std::adjacent_find(logs.begin(), logs.end()) == logs.end());
  }
}

TEST_CASE("schedules: an unknown mode is named, with those there are", "[schedule]") {
  try {
    sim::make_policy("latest", 1);
    FAIL("no exception");
  } catch (const std::invalid_argument& unknown) {
    const std::string text = unknown.what();
    CHECK(text.find("latest") != std::string::npos);
    for (const std::string& mode : mode_names()) CHECK(text.find(mode) != std::string::npos);
  }
}

TEST_CASE("schedules: a warp that polls memory ends under every mode, whoever sets the flag", "[schedule]") {
  const bool first_polls = GENERATE(false, true);
  const std::string poller = first_polls ? "setp.lt.u32 %p3, %r1, 32;" : "setp.ge.u32 %p3, %r1, 32;";
  const std::string body = poller + R"(
    bar.sync 0;
    @%p3 bra POLL;
  DELAY:  // longer than a turn
    add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 400;
    @%p5 bra DELAY;
    st.volatile.global.u32 [%rd9], %r4;
    bra END;
  POLL:
    ld.volatile.global.u32 %r50, [%rd9]; setp.ne.u32 %p4, %r50, 0;
    @%p4 bra POLL;
  END:
    ret;)";
  for (const std::string& mode : mode_names()) {
    if (mode == "diverge") continue;  // slow: its turns are short
    for (uint64_t seed = 0; seed < 2; ++seed) {
      CAPTURE(mode, seed, first_polls);
      const auto policy = sim::make_policy(mode, seed);
      Machine machine;
      CHECK_NOTHROW(run(machine, machine.make(Words{1}), {body, 64, 1, {}, mode, policy.get()}));
    }
  }
}

// Thread 0 stores the word 1 to `in`, overwrites its source with 2 where @OVERWRITE stands, and reports what
// it reads back where @LOOK stands.
static uint32_t stored(const std::string& rest, const std::string& mode) {
  const std::string body = R"(
    mov.u32 %r51, 1; st.shared.u32 [%r3], %r51; st.shared.u32 [%r3+4], %r51; st.shared.u32 [%r3+8], %r51;
    st.shared.u32 [%r3+12], %r51;
    mov.u32 %r52, 2;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 16;
    cp.async.bulk.commit_group;
    )" + rest + R"(
    st.global.u32 [%rd1], %r53;
    ret;)";
  Machine machine;
  uint32_t* in = machine.make(Words(4, 7));
  return run(machine, in, {body, 1, 1, {}, mode})[0];
}

const std::string kOverwrite = "st.shared.u32 [%r3], %r52;\n";
const std::string kLook = "ld.global.u32 %r53, [%rd9];\n";

TEST_CASE("late: a store takes the bytes its source holds when it is read, not when it was issued",
          "[schedule]") {
  const std::string rest = kOverwrite + "cp.async.bulk.wait_group 0;" + kLook;
  CHECK(stored(rest, "early") == 1);
  CHECK(stored(rest, "late") == 2);
}

TEST_CASE("late: wait_group.read covers the source of a store and not its destination", "[schedule]") {
  const std::string read = "cp.async.bulk.wait_group.read 0;\n", all = "cp.async.bulk.wait_group 0;\n";
  for (const char* mode : {"default", "early", "late", "tear", "reverse", "random"}) {
    CAPTURE(mode);
    CHECK(stored(read + kOverwrite + all + kLook, mode) == 1);
  }
  CHECK(stored(read + kLook, "early") == 1);
  const auto fault = fault_of([&] { stored(read + kLook, "late"); });
  CHECK(fault.kind() == FaultKind::kPoison);
}

TEST_CASE("late: a load takes the global bytes of the moment it reads them", "[schedule]") {
  const auto result = [](const char* mode) {
    const std::string body = std::string(kInit) + R"(
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 16, [%r2];
      mov.u32 %r51, 2; st.global.u32 [%rd9], %r51;)" +
                             kWait + kReport + "ret;";
    Machine machine;
    return run(machine, machine.make(Words(4, 1)), {body, 1, 1, {}, mode})[0];
  };
  CHECK(result("early") == 1);
  CHECK(result("late") == 2);
}

// Copies land in `count` pieces: each time the last of the remaining pieces, or each time the first one.
// After each piece warps run until none can.
class OnePiece : public sim::Policy {
 public:
  OnePiece(uint32_t count, bool last_first) : count_(count), last_first_(last_first) {}
  size_t next(const std::vector<Agent>& agents) override {
    for (size_t i = 0; i < agents.size(); ++i)
      if (agents[i].kind == Agent::Kind::kWarp) return i;
    return 0;
  }
  uint32_t pieces(uint64_t) override { return count_; }
  uint32_t piece(uint32_t left) override { return last_first_ ? left - 1 : 0; }

 private:
  uint32_t count_;
  bool last_first_;
};

struct Landings : sim::Observer {
  std::vector<sim::AsyncIssue> issues;
  std::vector<sim::AsyncLanding> steps;
  void issue(const sim::AsyncIssue& e) override {
    issues.push_back(e);
    issues.back().map = nullptr;
  }
  void land(const sim::AsyncLanding& e) override { steps.push_back(e); }
  size_t pieces_of(uint64_t id) const {
    return size_t(std::count_if(steps.begin(), steps.end(), [&](const sim::AsyncLanding& e) {
      return e.id == id && e.step == sim::AsyncLanding::Step::kPiece;
    }));
  }
};

TEST_CASE("tear: each piece of a copy lands by itself, and its bytes are counted with it", "[schedule]") {
  // Four pieces of 32 bytes. The second thread waits for a phase of 32 bytes, then reads one word.
  const auto read = [](bool last_first, int word) {
    const std::string body = std::string(kInit) + R"(
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 32;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 128, [%r2];)" +
                             kWait + "ld.shared.u32 %r51, [%r3+" + std::to_string(4 * word) + R"(];
      st.global.u32 [%rd1], %r51;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 96; mov.u32 %r6, 1;
    REST:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r6;
      @!%p2 bra REST;
      ret;)";
    OnePiece policy(4, last_first);
    Machine machine;
    return run(machine, machine.make(counting(32, 1)), {body, 1, 1, {}, "default", &policy})[0];
  };
  CHECK(read(false, 7) == 8);
  CHECK(read(true, 24) == 25);
  CHECK(fault_of([&] { read(false, 8); }).kind() == FaultKind::kPoison);
  CHECK(fault_of([&] { read(true, 23); }).kind() == FaultKind::kPoison);
}

TEST_CASE("tear: a wait for a group covers every piece of its stores", "[schedule]") {
  const std::string body = R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r50, %r3; st.shared.u32 [%r50], %r1;
    fence.proxy.async.shared::cta; bar.warp.sync 0xFFFFFFFF;
    @!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    bar.warp.sync 0xFFFFFFFF;
    mul.wide.u32 %rd10, %r1, 4; add.s64 %rd10, %rd10, %rd9; ld.global.u32 %r51, [%rd10];
    st.global.u32 [%rd1], %r51; ret;)";
  OnePiece policy(4, GENERATE(false, true));
  Machine machine;
  CHECK(run(machine, machine.make(Words(32, 7)), {body, 32, 1, {}, "default", &policy}) == counting(32, 0));
}

TEST_CASE("tear: the destinations of a multicast land apart, in either order", "[schedule]") {
  // Rank 0 sends to both ranks; the rank whose bytes land first takes the first ticket.
  const std::string body = std::string(kInit) + R"(
    setp.eq.u32 %p3, %r4, 0; mov.b16 %h1, 3;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd9+16], 64, [%r2], %h1;)" +
                           kWait + "atom.global.add.u32 %r51, [%rd9], 1; st.global.u32 [%rd1], %r51;" +
                           kLeave;
  const bool last_first = GENERATE(false, true);
  OnePiece policy(2, last_first);
  Machine machine;
  const Words out = run(machine, machine.make(Words(20, 0)), {body, 1, 2, {}, "default", &policy});
  CHECK(out == (last_first ? Words{1, 0} : Words{0, 1}));
}

TEST_CASE("schedules: every operation reads its sources, lands in pieces and completes, in this order",
          "[schedule]") {
  bool torn = false;
  for (const std::string& mode : mode_names())
    for (uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(mode, seed);
      const std::string body = std::string(kInit) + R"(
        @%p1 bra WAIT;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 640;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 512, [%r2];
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3+512], [%rd9], 128, [%r2];)" +
                               kWait + kReport + "ret;";
      const auto policy = sim::make_policy(mode, seed);
      Landings seen;
      Machine machine;
      run(machine, machine.make(counting(128, 1)), {body, 32, 1, {}, mode, policy.get(), &seen});
      REQUIRE(seen.issues.size() == 2);
      for (const sim::AsyncIssue& issue : seen.issues) {
        std::vector<int> steps;
        for (const sim::AsyncLanding& e : seen.steps)
          if (e.id == issue.id) steps.push_back(int(e.step));
        std::vector<int> expected(seen.pieces_of(issue.id), int(sim::AsyncLanding::Step::kPiece));
        REQUIRE(!expected.empty());
        torn = torn || expected.size() > 1;
        expected.insert(expected.begin(), int(sim::AsyncLanding::Step::kSourcesRead));
        expected.push_back(int(sim::AsyncLanding::Step::kComplete));
        CHECK(steps == expected);
      }
    }
  CHECK(torn);
}

TEST_CASE("one-late: for every asynchronous instruction there is a small seed that makes it the last",
          "[schedule]") {
  const std::string load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes ";
  const std::string body = std::string(kInit) + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 48;\n" +
                           load + "[%r3], [%rd9], 16, [%r2];\n" + load + "[%r3+16], [%rd9], 16, [%r2];\n" +
                           load + "[%r3+32], [%rd9], 16, [%r2];\n" + kWait + "ret;";
  std::vector<uint64_t> last;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto policy = sim::make_policy("one-late", seed);
    Landings seen;
    Machine machine;
    run(machine, machine.make(Words(4, 1)), {body, 1, 1, {}, "default", policy.get(), &seen});
    REQUIRE(seen.steps.back().step == sim::AsyncLanding::Step::kComplete);
    last.push_back(seen.steps.back().id);
  }
  CHECK(last == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE("starve: the victim moves only when nobody else can", "[schedule]") {
  struct Kind {
    const char* mode;
    uint64_t (*of)(const Agent&);
    uint64_t victims;
  };
  const Kind kind = GENERATE(
      Kind{"starve-warp", [](const Agent& a) { return a.kind == Agent::Kind::kWarp ? a.id : 99; }, 4},
      Kind{"starve-cta", [](const Agent& a) { return uint64_t(a.rank); }, 2});
  for (uint64_t seed = 0; seed < kind.victims; ++seed) {
    CAPTURE(kind.mode, seed);
    const auto policy = sim::make_policy(kind.mode, seed);
    Recorder recorder(*policy);
    Machine machine;
    CHECK(run(machine, machine.make(Words{0}), {exchange(), 64, 2, {}, "default", &recorder}) == exchanged());
    bool moved = false;
    for (const Recorder::Choice& choice : recorder.choices) {
      if (kind.of(choice.agents[choice.chosen]) != seed) continue;
      moved = true;
      CHECK(std::all_of(choice.agents.begin(), choice.agents.end(),
                        [&](const Agent& a) { return kind.of(a) == seed; }));
    }
    CHECK(moved);
  }
}

TEST_CASE("random and tear: shared windows begin later, by the same for all CTAs of a grid", "[schedule]") {
  const auto addresses = [](const std::string& mode, uint64_t seed) {
    const auto policy = sim::make_policy(mode, seed);
    Machine machine;
    return run(
        machine, machine.make(Words{0}),
        {"st.shared.u32 [%r3+2044], %r3; ld.shared.u32 %r51, [%r3+2044]; st.global.u32 [%rd1], %r51; ret;",
         1,
         2,
         {},
         mode,
         policy.get()});
  };
  const Words usual = addresses("default", 0);
  for (const char* mode : {"random", "tear"}) {
    bool moved = false;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      CAPTURE(mode, seed);
      const Words shifted = addresses(mode, seed);
      const uint32_t shift = shifted[0] - usual[0];
      CHECK(shift % 1024 == 0);
      CHECK(shift <= sim::Policy::kMaxSharedShift);
      CHECK(shifted[1] - usual[1] == shift);
      moved = moved || shift != 0;
    }
    CHECK(moved);
  }
}

TEST_CASE("a program that takes the shared window's start for granted falls out of a shifted one",
          "[schedule]") {
  class Shifted : public sim::DefaultPolicy {
    uint32_t shared_shift(uint32_t) override { return 2048; }
  } policy;
  const auto store = [&](const char* address) {
    Machine machine;
    run(machine, machine.make(Words{0}),
        {std::string("mov.u32 %r50, ") + address + "; st.shared.u32 [%r50], %r6; ret;",
         1,
         1,
         {},
         "default",
         &policy});
  };
  CHECK_NOTHROW(store("3072"));
  CHECK_NOTHROW(store("buffer"));
  CHECK(fault_of([&] { store("1024"); }).kind() == FaultKind::kBounds);
}

TEST_CASE("waits that always wake early neither pass nor hide a deadlock", "[schedule]") {
  class Sleepless : public sim::DefaultPolicy {
    bool wake_early() override { return true; }
  } policy;
  Machine machine;
  const auto fault = fault_of([&] {
    run(machine, machine.make(Words{0}),
        {std::string(kInit) + kWait + "ret;", 32, 1, {}, "default", &policy});
  });
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "nothing can move"));
  CHECK(run(machine, machine.make(Words{0}), {exchange(), 64, 2, {}, "default", &policy}) == exchanged());
}

}  // namespace schedule_test
