// freedom_test.cpp -- the liberties a policy may take with one warp: tensor memory loads and stores that take
// effect late, another elected lane, lanes that stay diverged after a branch.
#include "sim/exec/policy.h"
#include "sim/unit/recorder.hpp"
#include "sim/unit/tensor_fixture.hpp"
#include "support/catch.hpp"

namespace freedom_test {

using namespace sim_test;
using sim::FaultKind;
using Sync = sim::SyncEvent::Kind;

struct Free : sim::DefaultPolicy {
  bool early = true, together = true, hold = false;
  uint32_t first_choice = 0;
  size_t next(const std::vector<sim::Agent>& agents) override {
    if (hold)
      for (size_t i = 0; i < agents.size(); ++i)
        if (agents[i].kind == sim::Agent::Kind::kWarp) return i;
    return sim::DefaultPolicy::next(agents);
  }
  bool load_early() override { return early; }
  bool reconverge() override { return together; }
  uint32_t quantum() override { return together ? 512 : 1; }
  uint32_t leader(uint32_t members) override {
    return members >> first_choice & 1 ? first_choice : uint32_t(__builtin_ctz(members));
  }
};

static Free late() {
  Free policy;
  policy.early = false;
  policy.hold = true;
  return policy;
}

static Free apart() {
  Free policy;
  policy.together = false;
  return policy;
}

// Runs `body` with `threads` threads, each of which stores %r9 to its word of the result.
static std::vector<uint32_t> run(Free policy, const std::string& body, uint32_t threads = 32,
                                 Recorder* recorder = nullptr) {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(threads);
  sim::LaunchOptions options;
  options.policy = &policy;
  options.observer = recorder;
  machine.run(kernel_text(".param .u64 out", R"(
    .reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  )" + body + " st.global.u32 [%rd1], %r9; ret;",
                          ".shared .align 8 .b8 cell[8];"),
              shape(1, threads), {&out}, options);
  return machine.fetch(out, threads);
}

// Allocates 32 columns at %r3, whose first column holds 100 + lane; `body` runs, and they are freed.
static std::string with_columns(const std::string& body) {
  return R"(
    mov.u32 %r2, cell;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
    ld.shared.u32 %r3, [%r2];
    add.u32 %r4, %r1, 100; add.u32 %r5, %r1, 200;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r4};
    tcgen05.wait::st.sync.aligned;)" +
         body + "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;";
}

const std::string kLoad = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r3];";
const std::string kWaitLd = "tcgen05.wait::ld.sync.aligned;";
const std::string kOverwrite =
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r5}; tcgen05.wait::st.sync.aligned;";

TEST_CASE("a load that was not waited for before its cells are overwritten may see the new values",
          "[freedom]") {
  const std::string missing = with_columns(kLoad + kOverwrite + kWaitLd);
  const std::string right = with_columns(kLoad + kWaitLd + kOverwrite);
  CHECK(run(Free{}, missing)[3] == 103);
  CHECK(run(late(), missing)[3] == 203);
  for (const Free& policy : {Free{}, late()}) CHECK(run(policy, right)[3] == 103);
}

TEST_CASE("a late load takes the value when its register is first used, and says so once", "[freedom]") {
  const std::string use = with_columns(kLoad + "add.u32 %r10, %r9, 0;" + kOverwrite + kWaitLd);
  Recorder early_seen, late_seen;
  CHECK(run(Free{}, use, 32, &early_seen)[3] == 103);
  CHECK(run(late(), use, 32, &late_seen)[3] == 103);
  for (const Recorder* seen : {&early_seen, &late_seen}) {
    const auto loads = seen->of(sim::AsyncIssue::Kind::kTmemLoad);
    const auto uses = seen->of(Sync::kTmemUse);
    REQUIRE(loads.size() == 1);
    REQUIRE(uses.size() == 1);
    CHECK(uses[0].async_id == loads[0].id);
    int steps = 0;
    for (const auto& landing : seen->landings) steps += landing.id == loads[0].id;
    CHECK(steps == 3);
  }
}

TEST_CASE("overwriting the register of a late load does not bring the load back later", "[freedom]") {
  const std::string body = with_columns(kLoad + "mov.u32 %r9, 7;" + kWaitLd);
  for (const Free& policy : {Free{}, late()}) CHECK(run(policy, body)[3] == 7);
}

TEST_CASE("a late store reaches its cells when the policy lands it or when it is waited for", "[freedom]") {
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r5};";
  const std::string wait = "tcgen05.wait::st.sync.aligned;";
  const std::string body = with_columns(store + "mov.u32 %r5, 0;" + kLoad + kWaitLd + wait);
  CHECK(run(Free{}, body)[3] == 203);
  CHECK(run(late(), body)[3] == 103);  // the load did not wait for the store
  CHECK(run(late(), with_columns(store + "mov.u32 %r5, 0;" + wait + kLoad + kWaitLd))[3] == 203);
}

TEST_CASE("the policy may land a load before anybody waits for it", "[freedom]") {
  Free policy;
  policy.early = false;  // and the default order lands it before the warp's next turn
  const auto spin = R"(
    mov.u32 %r20, 0;
  SPIN:
    add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 1000;
    @%p1 bra SPIN;)";
  CHECK(run(policy, with_columns(kLoad + spin + kOverwrite + kWaitLd))[3] == 103);
}

TEST_CASE("tensor memory is not freed, and no thread exits, before loads and stores are waited for",
          "[freedom]") {
  for (const Free& policy : {Free{}, late()}) {
    const auto freed = fault_of([&] { run(policy, with_columns(kLoad) + "mov.u32 %r9, 0;"); });
    CHECK(freed.kind() == FaultKind::kProtocol);
    CHECK(says(freed, "tcgen05.ld"));
    const auto stored = fault_of([&] {
      run(policy, with_columns("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r5};") + "mov.u32 %r9, 0;");
    });
    CHECK(says(stored, "tcgen05.st"));
    const auto exits = fault_of([&] { run(policy, with_columns(kLoad + "exit;")); });
    CHECK(exits.kind() == FaultKind::kProtocol);
    CHECK(says(exits, "tcgen05.ld"));
  }
}

TEST_CASE("the product is the same when loads are late and when lanes stay apart", "[freedom]") {
  for (const Shape* shape : {&kSingle, &kPair}) {
    std::vector<std::vector<float>> results;
    for (Free policy : {Free{}, late(), apart()}) {
      Machine machine;
      const uint32_t ctas = shape->group[0] == '2' ? 2 : 1;
      const size_t count = size_t(128) * ctas * size_t(shape->columns);
      float* out = machine.make<float>(count);
      sim::LaunchOptions options;
      options.policy = &policy;
      machine.run(multiply(*shape, kWaitForMma, kFree), sim_test::shape(ctas, 128, ctas, 18432 + 64), {&out},
                  options);
      results.push_back(machine.fetch(out, count));
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }
}

TEST_CASE("the policy elects the lane, and a lane outside the mask is refused", "[freedom]") {
  const std::string body = R"(
    setp.ge.u32 %p1, %r1, 8;
    mov.u32 %r9, 99;
    @%p1 bra END;
    elect.sync %r9|%p2, 0xFF;
    selp.u32 %r9, 1, 0, %p2;
  END:)";
  Free policy;
  policy.first_choice = 5;
  const auto out = run(policy, body);
  for (uint32_t lane = 0; lane < 8; ++lane) CHECK(out[lane] == (lane == 5 ? 1 : 0));
  struct Wrong : Free {
    uint32_t leader(uint32_t) override { return 20; }
  };
  Machine machine;
  Wrong wrong;
  sim::LaunchOptions options;
  options.policy = &wrong;
  CHECK_THROWS_AS(
      machine.run(kernel_text("", ".reg .pred %p<2>; .reg .b32 %r<2>; elect.sync %r1|%p1, 0xFF; ret;"),
                  shape(1, 8), {}, options),
      std::logic_error);
}

// Lane 0 takes a branch; after it the lanes read what the others have written.
std::string exchange(const std::string& sync) {
  return R"(
    mov.u32 %r2, cell; mov.u32 %r9, 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra REST;
    mov.u32 %r3, 41;
    add.u32 %r3, %r3, 1;
    st.shared.u32 [%r2], %r3;
  REST:
)" + sync +
         R"(
    ld.shared.u32 %r9, [%r2];)";
}

TEST_CASE("lanes that stay apart do not see each other's writes before they synchronise", "[freedom]") {
  CHECK(run(Free{}, exchange(""))[31] == 42);
  CHECK(fault_of([] { run(apart(), exchange("")); }).kind() == FaultKind::kPoison);
  for (const char* sync :
       {"bar.warp.sync -1;", "bar.sync 0;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"})
    CHECK(run(apart(), exchange(sync)) == std::vector<uint32_t>(32, 42));
}

TEST_CASE("lanes that were gathered go on together", "[freedom]") {
  Recorder seen;
  const auto out =
      run(apart(), exchange("bar.warp.sync -1; activemask.b32 %r20;") + "mov.u32 %r9, %r20;", 32, &seen);
  CHECK(out == std::vector<uint32_t>(32, 0xFFFFFFFF));
  CHECK(seen.of(Sync::kWarpSync).size() == 1);
}

TEST_CASE("an aligned instruction waits for lanes that are apart, and names those that cannot come",
          "[freedom]") {
  const auto fault = fault_of([] {
    run(apart(), R"(
      mov.u32 %r9, 0;
      setp.ne.u32 %p1, %r1, 0;
      @%p1 bra OTHER;
      bar.sync 0; bra END;
    OTHER:
      bar.sync 1;
    END:)");
  });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "aligned instruction in divergent code"));
  const auto guarded =
      fault_of([] { run(apart(), "mov.u32 %r9, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bar.sync 0;"); });
  CHECK(says(guarded, "aligned instruction in divergent code"));
}

// %r3 is the mask of the even lanes in those and of the odd lanes in the others, %r4 = lane & 1.
const char* const kGroups =
    "and.b32 %r4, %r1, 1; shl.b32 %r3, 0x55555555, %r4; shl.b32 %r5, 1, %r1; setp.lt.u32 %p1, %r1, 8;";

TEST_CASE("lanes that are together and have different member masks meet group by group", "[freedom]") {
  struct Case {
    std::string text;
    uint32_t even, odd;
  };
  const Case form = GENERATE(Case{"shfl.sync.idx.b32 %r9, %r1, %r4, 31, %r3;", 0, 1},
                             Case{"vote.sync.ballot.b32 %r9, %p1, %r3;", 0x55, 0xAA},
                             Case{"match.any.sync.b32 %r9, %r4, %r3;", 0x55555555, 0xAAAAAAAA},
                             Case{"match.all.sync.b32 %r9|%p2, %r4, %r3;", 0x55555555, 0xAAAAAAAA},
                             Case{"redux.sync.or.b32 %r9, %r5, %r3;", 0x55555555, 0xAAAAAAAA},
                             Case{"elect.sync %r9|%p2, %r3;", 0, 1},
                             Case{"st.shared.u8 [cell], %r4; bar.warp.sync %r3; mov.u32 %r9, %r4;", 0, 1},
                             // Three groups: the odd lanes, lane 0, and the other even lanes.
                             Case{"setp.eq.u32 %p3, %r1, 0; @%p3 mov.u32 %r3, 1;"
                                  "setp.eq.and.u32 %p4, %r4, 0, !%p3; @%p4 mov.u32 %r3, 0x55555554;"
                                  "redux.sync.or.b32 %r9, %r5, %r3; @%p3 mov.u32 %r9, 0x55555554;",
                                  0x55555554, 0xAAAAAAAA});
  const bool together = GENERATE(true, false);
  CAPTURE(form.text, together);
  Free policy;
  policy.together = together;
  // Behind it the whole warp is at an aligned instruction, and meets under one mask.
  const auto out = run(policy, kGroups + form.text + "bar.sync 0; shfl.sync.idx.b32 %r9, %r9, %r1, 31, -1;");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane % 2 == 0 ? form.even : form.odd));
}

TEST_CASE("a guard takes lanes out of their group", "[freedom]") {
  const auto out = run(GENERATE(Free{}, apart()), std::string(kGroups) + R"(
    mov.u32 %r9, 7; shl.b32 %r3, 0x55, %r4;
    @%p1 redux.sync.or.b32 %r9, %r5, %r3;)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    CHECK(out[lane] == (lane >= 8 ? 7 : lane % 2 == 0 ? 0x55u : 0xAAu));
}

TEST_CASE("a lane is in its own member mask, and nothing comes to it from another group", "[freedom]") {
  const Free policy = GENERATE(Free{}, apart());
  const auto fault = [&](const std::string& text) { return fault_of([&] { run(policy, kGroups + text); }); };
  const auto outside =
      fault("setp.eq.u32 %p2, %r1, 3; @%p2 mov.u32 %r3, 1; redux.sync.or.b32 %r9, %r5, %r3;");
  CHECK(outside.kind() == FaultKind::kProtocol);
  CHECK(says(outside, "lanes 0x8 execute the instruction but its member mask is 0x1"));
  CHECK(fault("shfl.sync.bfly.b32 %r9, %r1, 1, 31, %r3;").kind() == FaultKind::kPoison);
}

TEST_CASE("a group waits for the lanes that its member mask names, and for no others", "[freedom]") {
  const auto odd_lanes_name_all = [](const std::string& rest) {
    return run(GENERATE(Free{}, apart()), std::string(kGroups) + R"(
      setp.eq.u32 %p2, %r4, 1; @%p2 mov.u32 %r3, -1;
      redux.sync.or.b32 %r9, %r5, %r3;)" + rest);
  };
  // The even lanes, which have been at the instruction for each other only, come to the end.
  const auto out = odd_lanes_name_all("");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane % 2 == 0 ? 0x55555555u : 0xAAAAAAAAu));
  CHECK(fault_of([&] { odd_lanes_name_all("bar.sync 0;"); }).kind() == FaultKind::kProtocol);
  CHECK(fault_of([&] { odd_lanes_name_all("barrier.sync 0;"); }).kind() == FaultKind::kDeadlock);
}

TEST_CASE("bar.red gives every thread the result of its own generation", "[freedom]") {
  // Warp 1 runs ahead into the next generation, of other threads, before warp 0 reads its result.
  const auto out = run(late(), R"(
    setp.lt.u32 %p1, %r1, 16;
    barrier.red.popc.aligned.u32 %r9, 2, 64, %p1;
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra END;
    setp.eq.u32 %p3, %r1, %r1;
    barrier.red.popc.aligned.u32 %r8, 2, 32, %p3;
  END:)",
                       64);
  CHECK(out == std::vector<uint32_t>(64, 16));
}

}  // namespace freedom_test
