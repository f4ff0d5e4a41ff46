// race_host_test.cpp -- the race checker across grids and the host's own work.
#include "sim/unit/race_events.hpp"
#include "support/catch.hpp"

namespace race_host_test {

using namespace race_test;

using Work = sim::HostWork;

static Work work(Work::Kind kind, uint64_t id, std::vector<uint64_t> after, std::vector<Region> regions = {},
                 bool programmatic = false) {
  Work w;
  w.kind = kind;
  w.id = id;
  w.after = std::move(after);
  w.regions = std::move(regions);
  w.programmatic = programmatic;
  w.what = "cudaMemcpyAsync";
  return w;
}
static void launch(Events& e, const Work& w) {
  e.checker.host(w);
  sim::GridStart start;
  start.work = w.id;
  e.checker.start(start);
  e.begin(0, 0);
}
static void launch(Events& e, uint64_t id, std::vector<uint64_t> after, bool programmatic = false) {
  launch(e, work(Work::Kind::kLaunch, id, std::move(after), {}, programmatic));
}
// The first grid, which is work 1.
struct Grid : Events {
  Grid() : Events(kBare) { launch(*this, 1, {}); }
};
static Region written(uint64_t address, uint32_t bytes) {
  Region r = global(address, bytes);
  r.write = true;
  return r;
}

// A launch after that work, which loads by TMA at once. Returns the rule that is broken.
static std::string broken_by_load(Events& e, std::vector<uint64_t> after) {
  launch(e, 2, std::move(after));
  e.init(at(0, 0), Events::bar(0));
  e.fence(at(0, 0), SyncEvent::Fence::kMbarrierInit);
  e.load(at(0, 0), shared(0, 0x2000, 256), Events::bar(0));
  return e.broken();
}

TEST_CASE("Grids of one stream are ordered, through every proxy", "[race]") {
  const auto run = [](std::vector<uint64_t> after) {
    Grid e;
    e.write(at(0, 0), global(0x10000, 4));
    e.checker.finish(nullptr);
    return broken_by_load(e, std::move(after));
  };
  CHECK(run({1}) == "");
  CHECK(run({}) == "race-grids");
}

TEST_CASE("Order of the host is transitive", "[race]") {
  Grid e;
  e.write(at(0, 0), global(0x10000, 4));
  launch(e, 2, {1});
  launch(e, 3, {2});
  e.write(at(0, 0), global(0x10000, 4));
  CHECK(e.broken() == "");
  launch(e, 4, {2});  // beside 3
  e.write(at(0, 0), global(0x10000, 4));
  CHECK(e.broken() == "race-grids");
}

TEST_CASE("A programmatic launch sees the preceding grid after griddepcontrol.wait", "[race]") {
  const auto run = [](bool wait) {
    Grid e;
    e.write(at(0, 0), global(0x10000, 4));
    launch(e, 2, {1}, true);
    if (wait) e.plain(Sync::kGridWait, at(0, 0));
    e.read(at(0, 0), global(0x10000, 4));
    return e.broken();
  };
  CHECK(run(true) == "");
  CHECK(run(false) == "race-grids");
}

TEST_CASE("What ld.global.nc reads was written before its grid could start", "[race]") {
  const Region word = global(0x10000, 4);
  const auto run = [&](bool programmatic, bool non_coherent, bool wait) {
    Grid e;
    e.write(at(0, 0), word);
    launch(e, 2, {1}, programmatic);
    if (wait) e.plain(Sync::kGridWait, at(0, 0));
    if (non_coherent) e.read_non_coherent(at(0, 0), word);
    else e.read(at(0, 0), word);
    return e.broken();
  };
  CHECK(run(true, false, true) == "");
  CHECK(run(true, true, true) == "non-coherent-read");
  CHECK(run(true, true, false) == "race-grids");
  CHECK(run(false, true, false) == "");

  // A grid that was let start by one that had waited begins behind the writes that that one waited for.
  const auto chain = [&](bool waits_first, bool last_waits) {
    Grid e;
    e.write(at(0, 0), word);
    e.exit_cta(0, {0});
    e.checker.finish(nullptr);
    launch(e, 2, {1}, true);
    if (waits_first) e.plain(Sync::kGridWait, at(0, 0));
    e.plain(Sync::kGridLaunch, at(0, 0));
    if (!waits_first) e.plain(Sync::kGridWait, at(0, 0));
    e.exit_cta(0, {0});
    e.checker.finish(nullptr);
    launch(e, 3, {2}, true);
    if (last_waits) e.plain(Sync::kGridWait, at(0, 0));
    e.read_non_coherent(at(0, 0), word);
    return e.broken();
  };
  CHECK(chain(true, false) == "");
  CHECK(chain(true, true) == "");
  CHECK(chain(false, true) == "non-coherent-read");
  CHECK(chain(false, false) == "race-grids");

  // A copy in front of a grid is over when that starts, and a write behind the grid comes when it has ended.
  Events e(Events::kBare);
  e.checker.host(work(Work::Kind::kCopy, 1, {}, {written(0x10000, 4)}));
  launch(e, 2, {1});
  e.read_non_coherent(at(0, 0), word);
  launch(e, 3, {2}, true);
  e.plain(Sync::kGridWait, at(0, 0));
  e.write(at(0, 0), word);
  CHECK(e.broken() == "");
}

TEST_CASE("griddepcontrol.wait travels with synchronisation", "[race]") {
  Grid e;
  e.write(at(0, 0), global(0x10000, 4));
  launch(e, 2, {1}, true);
  e.plain(Sync::kGridWait, at(0, 0));
  e.bar_sync(0, {0, 1});
  e.read(at(0, 1), global(0x10000, 4));
  CHECK(e.broken() == "");
  e.read(at(0, 2), global(0x10000, 4));
  CHECK(e.broken() == "race-grids");
}

TEST_CASE("A grid that is let start after a wait follows what was waited for", "[race]") {
  enum Middle {
    kWaitsThenLaunches,
    kLaunchesThenWaits,
    kOtherWarpLaunches,
    kOnlyWaits,
    kOnlyLaunches,
    kNeither
  };
  const auto run = [](Middle middle, bool last_waits, bool last_programmatic = true) {
    Grid e;
    e.write(at(0, 0), global(0x10000, 4));
    e.exit_cta(0, {0, 1});
    e.checker.finish(nullptr);
    launch(e, 2, {1}, true);
    if (middle == kLaunchesThenWaits || middle == kOnlyLaunches) e.plain(Sync::kGridLaunch, at(0, 0));
    if (middle != kNeither && middle != kOnlyLaunches) e.plain(Sync::kGridWait, at(0, 0));
    if (middle == kWaitsThenLaunches) e.plain(Sync::kGridLaunch, at(0, 0));
    if (middle == kOtherWarpLaunches) e.plain(Sync::kGridLaunch, at(0, 1));
    e.exit_cta(0, {0, 1});
    e.checker.finish(nullptr);
    launch(e, 3, {2}, last_programmatic);
    if (last_waits) e.plain(Sync::kGridWait, at(0, 0));
    e.read(at(0, 0), global(0x10000, 4));
    return e.broken();
  };
  // Read before the last grid has waited: whether the middle one had waited when it let it start.
  CHECK(run(kWaitsThenLaunches, false) == "");
  CHECK(run(kOnlyWaits, false) == "");
  CHECK(run(kLaunchesThenWaits, false) == "race-grids");
  CHECK(run(kOtherWarpLaunches, false) == "race-grids");
  CHECK(run(kOnlyLaunches, false) == "race-grids");
  // After it has waited: for the middle one, which ended after the first only if it waited for that.
  for (const Middle middle : {kWaitsThenLaunches, kLaunchesThenWaits, kOtherWarpLaunches, kOnlyWaits})
    CHECK(run(middle, true) == "");
  for (const Middle middle : {kOnlyLaunches, kNeither}) {
    CHECK(run(middle, true) == "race-grids");
    CHECK(run(middle, false, false) == "");  // an ordinary launch follows all of its stream
  }
}

TEST_CASE("Chains of dependent launches reach back as far as every grid between has waited", "[race]") {
  const auto run = [](uint64_t grids, uint64_t careless) {
    Grid e;
    e.write(at(0, 0), global(0x10000, 4));
    e.exit_cta(0, {0});
    e.checker.finish(nullptr);
    for (uint64_t id = 2; id <= grids; ++id) {
      std::vector<uint64_t> after;  // all that the stream has not come past
      for (uint64_t before = id - 1; before > 0; --before) after.push_back(before);
      launch(e, id, after, true);
      if (id != careless) e.plain(Sync::kGridWait, at(0, 0));
      if (id == grids) e.read(at(0, 0), global(0x10000, 4));
      e.exit_cta(0, {0});
      e.checker.finish(nullptr);
    }
    return e.broken();
  };
  for (uint64_t grids = 2; grids < 6; ++grids) CHECK(run(grids, 0) == "");
  for (uint64_t careless = 2; careless < 5; ++careless)
    CHECK(run(5, careless) == (careless == 2 ? "race-grids" : ""));
}

TEST_CASE("Copies of the host are ordered with grids like grids", "[race]") {
  const auto before = [](std::vector<uint64_t> after) {
    Events e(Events::kBare);
    e.checker.host(work(Work::Kind::kCopy, 1, {}, {written(0x10000, 4096)}));
    launch(e, 2, std::move(after));
    e.read(at(0, 0), global(0x10100, 4));
    return e.broken();
  };
  CHECK(before({1}) == "");
  CHECK(before({}) == "race-grids");
  const auto after = [](std::vector<uint64_t> order) {
    Grid e;
    e.write(at(0, 0), global(0x10100, 4));
    e.checker.host(work(Work::Kind::kCopy, 2, std::move(order), {global(0x10000, 4096)}));
    return e.broken();
  };
  CHECK(after({1}) == "");
  CHECK(after({}) == "race-grids");
}

TEST_CASE("A copy of the host beside a grid that loads by TMA", "[race]") {
  const auto run = [](std::vector<uint64_t> after) {
    Events e(Events::kBare);
    e.checker.host(work(Work::Kind::kSet, 1, {}, {written(0x10000, 4096)}));
    return broken_by_load(e, std::move(after));
  };
  CHECK(run({1}) == "");
  CHECK(run({}) == "race-grids");
}

// The events from here on belong to another grid.
static void turn_to(Events& e, uint64_t work) { e.checker.resume(work); }

TEST_CASE("Grids that run together are told apart by their work, not by the numbers of their CTAs",
          "[race]") {
  const bool together = GENERATE(false, true);
  Grid e;
  e.write(at(0, 0), shared(0, 0x2000, 4));
  if (!together) e.checker.finish(nullptr);
  launch(e, 2, {});
  e.read(at(0, 1), shared(0, 0x2000, 4));  // another CTA's
  e.write(at(0, 1), global(0x10000, 4));
  e.bar_sync(0, {0, 1});
  if (together) turn_to(e, 1);
  else launch(e, 3, {2});
  e.write(at(0, 2), global(0x20000, 4));
  CHECK(e.broken() == "");
  if (!together) return;
  e.read(at(0, 1), shared(0, 0x2000, 4));  // the barrier was the other grid's
  CHECK(e.broken() == "race-data");
}

TEST_CASE("Of grids that run together the one that was launched first may come later", "[race]") {
  const bool programmatic = GENERATE(false, true);
  Grid e;
  launch(e, 2, programmatic ? std::vector<uint64_t>{1} : std::vector<uint64_t>{}, programmatic);
  e.read(at(0, 0), global(0x10000, 4));
  turn_to(e, 1);
  e.write(at(0, 0), global(0x10000, 4));
  CHECK(e.broken() == "race-grids");
  REQUIRE(e.found.size() == 1);
  CHECK((e.found[0].missing.find("griddepcontrol.wait") != std::string::npos) == programmatic);
}

TEST_CASE("What a grid of a chain starts after is known when it starts, not when it is launched", "[race]") {
  const bool middle_waits_first = GENERATE(false, true);
  Events e(Events::kBare);
  e.checker.host(work(Work::Kind::kLaunch, 1, {}));
  e.checker.host(work(Work::Kind::kLaunch, 2, {1}, {}, true));
  e.checker.host(work(Work::Kind::kLaunch, 3, {2, 1}, {}, true));
  const auto start = [&](uint64_t id) {
    sim::GridStart start;
    start.work = id;
    e.checker.start(start);
    e.begin(0, 0);
  };
  start(1);
  e.plain(Sync::kGridLaunch, at(0, 0));
  start(2);
  if (!middle_waits_first) e.plain(Sync::kGridLaunch, at(0, 0));
  turn_to(e, 1);
  e.write(at(0, 0), global(0x10000, 4));
  e.exit_cta(0, {0});
  e.checker.finish(nullptr);
  turn_to(e, 2);
  e.plain(Sync::kGridWait, at(0, 0));
  if (middle_waits_first) e.plain(Sync::kGridLaunch, at(0, 0));
  start(3);
  e.read(at(0, 0), global(0x10000, 4));
  CHECK(e.broken() == (middle_waits_first ? "" : "race-grids"));
}

TEST_CASE("Of two grids that read, a write that follows one alone is a race with the other", "[race]") {
  const auto run = [](std::vector<uint64_t> second, std::vector<uint64_t> writer) {
    Grid e;
    e.read(at(0, 0), global(0x10000, 4));
    e.checker.finish(nullptr);
    launch(e, 2, std::move(second));
    e.read(at(0, 0), global(0x10000, 4));
    e.checker.finish(nullptr);
    launch(e, 3, std::move(writer));
    e.write(at(0, 0), global(0x10000, 4));
    return e.broken();
  };
  CHECK(run({}, {1, 2}) == "");
  CHECK(run({1}, {2}) == "");
  CHECK(run({}, {1}) == "race-grids");
  CHECK(run({}, {2}) == "race-grids");
}

TEST_CASE("Strong accesses of grids that nothing orders are no race where their scopes include each other",
          "[race]") {
  struct Party {
    Order order;
    Scope scope;
    bool atomic;
  };
  const auto run = [](const Party& first, const Party& second, int device = 0) {
    Grid e;
    e.access(at(0, 0), global(0x10000, 4), true, first.order, first.scope, first.atomic);
    e.checker.finish(nullptr);
    Work other = work(Work::Kind::kLaunch, 2, {});
    other.device = device;
    launch(e, other);
    e.access(at(0, 0), global(0x10000, 4), true, second.order, second.scope, second.atomic);
    return e.broken();
  };
  const Party atomic{Order::kRelaxed, Scope::kGpu, true}, release{Order::kRelease, Scope::kGpu, false},
      of_the_cta{Order::kRelaxed, Scope::kCta, true}, of_the_system{Order::kRelaxed, Scope::kSys, true},
      weak{Order::kWeak, Scope::kSys, false};
  CHECK(run(atomic, atomic) == "");
  CHECK(run(atomic, release) == "");
  CHECK(run(atomic, of_the_cta) == "race-grids");
  CHECK(run(of_the_cta, atomic) == "race-grids");
  CHECK(run(atomic, weak) == "race-grids");
  CHECK(run(weak, atomic) == "race-grids");
  CHECK(run(atomic, atomic, 1) == "race-grids");
  CHECK(run(of_the_system, of_the_system, 1) == "");
}

}  // namespace race_host_test
