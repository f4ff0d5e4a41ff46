// together_test.cpp -- grids that run together on the machine: which grid may start when, how they take turns
// and share the machine, what griddepcontrol does, and what an observer is told of all this.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/exec/occupancy.h"
#include "sim/exec/policy.h"
#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace together_test {

using namespace sim_test;
using sim::FaultKind;

// Grids take turns of one instruction.
class InTurns : public sim::DefaultPolicy {
 public:
  uint32_t quantum() override { return 1; }
  uint64_t slice() override { return 1; }
  size_t next_grid(const std::vector<uint64_t>& grids) override {
    seen.push_back(grids);
    return ++turn_ % grids.size();
  }
  std::vector<std::vector<uint64_t>> seen;

 private:
  size_t turn_ = 0;
};

// Writes down where grids start, resume and end: "+1 +2 1 2 -2 1 -1".
struct Diary : sim::Observer {
  std::string text;
  uint64_t now = 0;
  void note(const std::string& what) { text += (text.empty() ? "" : " ") + what; }
  void start(const sim::GridStart& grid) override { note("+" + std::to_string(now = grid.work)); }
  void resume(uint64_t work) override { note(std::to_string(now = work)); }
  void finish(const char* fault) override {
    note((fault == nullptr ? "-" : "!") + std::to_string(now));
    if (fault != nullptr) faults.push_back(fault);
  }
  std::vector<std::string> faults;
};

// Launches of one kernel text each, which run together.
class Group {
 public:
  explicit Group(sim::Observer* observer = nullptr) { options_.observer = observer; }
  sim::Launch& add(const std::string& body, std::vector<void*> args,
                   const sim::LaunchConfig& config = shape(1, 1)) {
    modules_.push_back(sim::Module::load(kernel_text(".param .u64 a, .param .u64 b", R"(
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];)" + body + "\nret;"),
                                         machine.memory));
    launches_.push_back(std::make_unique<sim::Launch>(*modules_.back(), "k", config, args.data(),
                                                      machine.memory, options_.machine));
    launches_.back()->work = launches_.size();
    return *launches_.back();
  }
  void run(sim::Policy& policy) {
    options_.policy = &policy;
    std::vector<sim::Launch*> launches;
    for (const auto& launch : launches_) launches.push_back(launch.get());
    sim::run(launches, machine.memory, options_);
  }
  Machine machine;

 private:
  sim::LaunchOptions options_;
  std::vector<std::unique_ptr<sim::Module>> modules_;
  std::vector<std::unique_ptr<sim::Launch>> launches_;
};

// Waits until the word at %rd1 is what it says, and then stores the next number there.
static std::string answer(const std::string& label, uint32_t awaited) {
  return "\n" + label + ": ld.volatile.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, " +
         std::to_string(awaited) + ";\n@%p1 bra " + label + ";\nmov.u32 %r2, " + std::to_string(awaited + 1) +
         "; st.volatile.global.u32 [%rd1], %r2;\n";
}

static std::string store(const char* address, uint32_t value) {
  return "mov.u32 %r3, " + std::to_string(value) + "; st.volatile.global.u32 [" + address + "], %r3;\n";
}

// Goes round often before what follows.
const std::string kDelay = R"(
    mov.u32 %r4, 0;
  DELAY:
    add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 200;
    @%p2 bra DELAY;
)";
const std::string kLaunch = "griddepcontrol.launch_dependents;\n", kWait = "griddepcontrol.wait;\n";
const std::string kCopy = "ld.volatile.global.u32 %r5, [%rd1]; st.volatile.global.u32 [%rd2], %r5;\n";

TEST_CASE("together: two grids that answer each other come to their ends", "[together]") {
  Group group;
  uint32_t* word = group.machine.make(std::vector<uint32_t>(1, 0));
  group.add(answer("A", 0) + answer("B", 2) + answer("C", 4), {&word, &word});
  group.add(answer("A", 1) + answer("B", 3), {&word, &word});
  InTurns policy;
  group.run(policy);
  CHECK(group.machine.fetch(word, 1)[0] == 5);
  CHECK(policy.seen.front() == std::vector<uint64_t>{0, 1});
}

TEST_CASE("together: a grid that comes after another starts at its end", "[together]") {
  const bool ordered = GENERATE(false, true);
  Diary diary;
  Group group(&diary);
  uint32_t *word = group.machine.make(std::vector<uint32_t>(1, 0)), *seen = group.machine.make<uint32_t>(1);
  const sim::Launch& first = group.add(kDelay + store("%rd1", 7), {&word, &word});
  sim::Launch& second = group.add(kCopy, {&word, &seen});
  if (ordered) second.after.push_back(&first);
  InTurns policy;
  group.run(policy);
  CHECK(group.machine.fetch(seen, 1)[0] == (ordered ? 7 : 0));
  if (ordered) CHECK(diary.text == "+1 -1 +2 -2");
  else CHECK((diary.text.starts_with("+1 +2 1 2 ") && diary.text.ends_with(" -2 1 -1")));
}

TEST_CASE("together: launch_dependents lets the next grid start, and griddepcontrol.wait waits for the end",
          "[together]") {
  const auto seen_by_second = [](const std::string& first, const std::string& second) {
    Diary diary;
    Group group(&diary);
    uint32_t *word = group.machine.make(std::vector<uint32_t>(1, 0)), *seen = group.machine.make<uint32_t>(1);
    sim::Launch& before = group.add(first, {&word, &word}, shape(2, 1));
    group.add(second, {&word, &seen}).preceding.push_back(&before);
    InTurns policy;
    group.run(policy);
    return std::pair(group.machine.fetch(seen, 1)[0], diary.text.substr(0, 5));
  };
  const std::string write = kDelay + store("%rd1", 7);
  CHECK(seen_by_second(kLaunch + write, kCopy) == std::pair(0u, std::string("+1 +2")));
  CHECK(seen_by_second(kLaunch + write, kWait + kCopy) == std::pair(7u, std::string("+1 +2")));
  // If the first grid has no griddepcontrol.launch_dependents, or not all of its CTAs execute one, the second
  // starts when the first has ended.
  CHECK(seen_by_second(write, kCopy) == std::pair(7u, std::string("+1 -1")));
  const std::string one_of_two = "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p3, %r6, 0;\n@%p3 " + kLaunch;
  CHECK(seen_by_second(one_of_two + write, kCopy) == std::pair(7u, std::string("+1 -1")));
}

TEST_CASE("together: in a chain of three griddepcontrol.wait waits for the grid before alone", "[together]") {
  const bool middle_waits = GENERATE(false, true);
  Group group;
  uint32_t *word = group.machine.make(std::vector<uint32_t>(1, 0)), *seen = group.machine.make<uint32_t>(1);
  const sim::Launch& first = group.add(kLaunch + kDelay + store("%rd1", 7), {&word, &word});
  sim::Launch& second = group.add(kLaunch + (middle_waits ? kWait : ""), {&word, &word});
  sim::Launch& third = group.add(kWait + kCopy, {&word, &seen});
  second.preceding.push_back(&first);
  third.preceding.push_back(&second);
  InTurns policy;
  group.run(policy);
  CHECK(group.machine.fetch(seen, 1)[0] == (middle_waits ? 7 : 0));
}

TEST_CASE("together: a later grid gets of the machine what an earlier one does not need", "[together]") {
  struct Residents : sim::Observer {
    uint64_t now = 0, fit = 0, ctas = 0, most = 0;
    uint64_t begun[3] = {}, left[3] = {};
    bool earlier_has_room = true;
    void start(const sim::GridStart& grid) override { now = grid.work; }
    void resume(uint64_t work) override { now = work; }
    void sync(const sim::SyncEvent& e) override {
      begun[now] += e.kind == sim::SyncEvent::Kind::kCtaStart;
      left[now] += e.kind == sim::SyncEvent::Kind::kCtaExit;
      const uint64_t second = begun[2] - left[2];
      most = std::max(most, begun[1] - left[1] + second);
      earlier_has_room = earlier_has_room && second + std::min(fit, ctas - left[1]) <= fit;
    }
  } residents;
  const size_t shared = 200 << 10;  // one CTA on an SM
  const sim::LaunchOptions defaults;
  residents.fit = uint64_t(sim::max_active_clusters(defaults.machine, {}, shape(1, 1, 1, shared)));
  residents.ctas = GENERATE_COPY(residents.fit / 2, residents.fit, 2 * residents.fit);
  Group group(&residents);
  uint32_t* word = group.machine.make(std::vector<uint32_t>(1, 0));
  for (int i = 0; i < 2; ++i)
    group.add(kDelay, {&word, &word}, shape(uint32_t(residents.ctas), 1, 1, shared));
  InTurns policy;
  group.run(policy);
  CHECK(residents.most == residents.fit);
  CHECK(residents.earlier_has_room);
}

TEST_CASE("together: the fault of one grid ends all, and the observer is told of each", "[together]") {
  Diary diary;
  Group group(&diary);
  uint32_t* word = group.machine.make(std::vector<uint32_t>(1, 0));
  group.add(answer("A", 0) + answer("B", 2), {&word, &word});
  group.add(answer("A", 1) + "trap;", {&word, &word});
  InTurns policy;
  CHECK(fault_of([&] { group.run(policy); }).kind() == FaultKind::kTrap);
  REQUIRE(diary.faults.size() == 2);
  CHECK(diary.faults[0] == "the fault of another grid");
  CHECK(diary.faults[1].find("trap") != std::string::npos);
  CHECK(diary.text.ends_with("!1 2 !2"));
}

TEST_CASE("together: grids that wait for a grid that waits for ever are no party to its deadlock",
          "[together]") {
  Diary diary;
  Group group(&diary);
  uint32_t* word = group.machine.make(std::vector<uint32_t>(1, 0));
  const std::string meet_apart = "mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 6; bar.sync %r1, 96;";
  const sim::Launch& first = group.add(kLaunch + meet_apart, {&word, &word}, shape(1, 96));
  group.add(kWait, {&word, &word}).preceding.push_back(&first);
  InTurns policy;
  const sim::Fault fault = fault_of([&] { group.run(policy); });
  CHECK(fault.kind() == FaultKind::kDeadlock);
  CHECK(says(fault, "waits for named barrier 0"));
  CHECK_FALSE(says(fault, "griddepcontrol"));
  CHECK(diary.text.ends_with("!2 1 !1"));
}

}  // namespace together_test
