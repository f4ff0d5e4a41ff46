// copy_events_test.cpp -- what a watcher is told of copies: the exact bytes at issue, groups, and how CTAs
// and grids begin and end.
#include <map>
#include <set>

#include "sim/unit/copies_fixture.hpp"

namespace copy_events_test {

using namespace sim_test;
using sim::AsyncIssue;
using sim::FaultKind;
using sim::Memory;
using sim::Region;
using sim::SyncEvent;

struct Watcher : sim::Observer {
  std::vector<AsyncIssue> issues;
  std::vector<sim::TensorMap> maps;
  std::vector<SyncEvent> events;
  std::vector<std::string> ends;
  int starts = 0;
  void start(const sim::GridStart& e) override {
    ++starts;
    CHECK(e.config->block.x != 0);
  }
  void finish(const char* fault) override { ends.push_back(fault == nullptr ? "" : fault); }
  void issue(const AsyncIssue& e) override {
    issues.push_back(e);
    if (e.map != nullptr) maps.push_back(*e.map);
  }
  void sync(const SyncEvent& e) override { events.push_back(e); }

  std::vector<SyncEvent> of(SyncEvent::Kind kind) const {
    std::vector<SyncEvent> out;
    for (const SyncEvent& e : events)
      if (e.kind == kind) out.push_back(e);
    return out;
  }
};

// Returns the bytes of regions of one memory, each at most once.
static std::set<uint64_t> bytes_of(const std::vector<Region>& regions, Memory memory) {
  std::set<uint64_t> out;
  for (const Region& region : regions) {
    REQUIRE(region.memory == memory);
    for (uint64_t i = 0; i < region.bytes; ++i) REQUIRE(out.insert(region.address + i).second);
  }
  return out;
}

static std::set<uint64_t> words(uint64_t base, const std::vector<int64_t>& indices) {
  std::set<uint64_t> out;
  for (const int64_t index : indices)
    for (uint64_t i = 0; index >= 0 && i < 4; ++i) out.insert(base + uint64_t(index) * 4 + i);
  return out;
}

constexpr uint32_t kBuffer = 1024, kBar = 1024 + 2048;  // shared offsets of the fixture's variables

TEST_CASE("the issue of a TMA load names the global bytes inside the tensor, the whole box, and its barrier",
          "[copy_events]") {
  const uint32_t rank = GENERATE(1u, 2u, 3u, 4u, 5u);
  const Tensor tensor = of_rank(rank);
  const std::vector<int64_t> from = elements(tensor);
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  std::string list;
  const std::string set = coordinates(tensor, &list), bytes = std::to_string(from.size() * 4);
  const std::string load = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " + bytes +
                           ";\ncp.async.bulk.tensor." + std::to_string(rank) +
                           "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, " +
                           list + "], [%r2];\n";
  Watcher seen;
  run(machine, in,
      {set + kInit + load + kWait + "ret;", 1, 1, encode(tensor, in), "default", nullptr, &seen});
  REQUIRE(seen.issues.size() == 1);
  const AsyncIssue& issue = seen.issues[0];
  CHECK(issue.kind == AsyncIssue::Kind::kTensorLoad);
  CHECK(bytes_of(issue.reads, Memory::kGlobal) == words(reinterpret_cast<uint64_t>(in), from));
  REQUIRE(issue.writes.size() == 1);
  CHECK(issue.writes[0].memory == Memory::kShared);
  CHECK(issue.writes[0].write);
  CHECK(issue.writes[0].address == kBuffer);
  CHECK(issue.writes[0].bytes == from.size() * 4);
  REQUIRE(issue.barriers.size() == 1);
  CHECK(issue.barriers[0].barrier == sim::MbarrierRef{0, kBar});
  CHECK(issue.barriers[0].bytes == int64_t(from.size() * 4));
  REQUIRE(seen.maps.size() == 1);
  CHECK(seen.maps[0].rank == rank);
  for (uint32_t i = 0; i < rank; ++i) CHECK(issue.coordinates[i] == tensor.at[i]);
}

TEST_CASE("the issue of a TMA store names the bytes of both sides that lie inside the tensor",
          "[copy_events]") {
  const uint32_t swizzle = GENERATE(0u, 3u);
  const int64_t x = GENERATE(int64_t(0), int64_t(16), int64_t(8), int64_t(40));
  CAPTURE(swizzle, x);
  const Tensor tensor = matrix(x, 4, swizzle);
  const std::vector<int64_t> to = elements(tensor);
  Machine machine;
  uint32_t* in = machine.make(counting(size_t(tensor.words), 1));
  std::string list;
  const std::string body = coordinates(tensor, &list) + R"(
    shl.b32 %r50, %r1, 2; add.u32 %r50, %r3, %r50; st.shared.u32 [%r50], %r1;
    fence.proxy.async.shared::cta; bar.sync 0;
    @!%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd5, )" +
                           list + R"(], [%r3];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret;)";
  Watcher seen;
  run(machine, in, {body, 256, 1, encode(tensor, in), "default", nullptr, &seen});
  REQUIRE(seen.issues.size() == 1);
  const AsyncIssue& issue = seen.issues[0];
  CHECK(issue.kind == AsyncIssue::Kind::kTensorStore);
  CHECK(bytes_of(issue.writes, Memory::kGlobal) == words(reinterpret_cast<uint64_t>(in), to));
  std::vector<int64_t> inside;
  for (uint32_t i = 0; i < to.size(); ++i)
    inside.push_back(to[i] >= 0 ? int64_t(shared_word(i, swizzle)) : -1);
  CHECK(bytes_of(issue.reads, Memory::kShared) == words(kBuffer, inside));
  CHECK(issue.barriers.empty());
}

TEST_CASE("the issue of a multicast names every destination and every barrier with the bytes it is given",
          "[copy_events]") {
  const std::string body = std::string(kInit) + R"(
    setp.eq.u32 %p3, %r4, 0; mov.b16 %h1, 3;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd9], 64, [%r2], %h1;)" +
                           kWait + kLeave;
  Watcher seen;
  Machine machine;
  uint32_t* in = machine.make(Words(16, 1));
  run(machine, in, {body, 1, 2, {}, "tear", nullptr, &seen});
  REQUIRE(seen.issues.size() == 1);
  const AsyncIssue& issue = seen.issues[0];
  REQUIRE(issue.reads.size() == 1);
  CHECK(issue.reads[0].address == reinterpret_cast<uint64_t>(in));
  CHECK(issue.reads[0].bytes == 64);
  REQUIRE(issue.writes.size() == 2);
  REQUIRE(issue.barriers.size() == 2);
  for (uint32_t cta = 0; cta < 2; ++cta) {
    CHECK(issue.writes[cta].cta == cta);
    CHECK(issue.writes[cta].bytes == 64);
    CHECK(issue.barriers[cta].barrier.cta == cta);
    CHECK(issue.barriers[cta].bytes == 64);
  }
}

TEST_CASE("groups tell when they are committed, and their waits when they end and what they allow",
          "[copy_events]") {
  const std::string body = R"(
    st.shared.u32 [%r3], %r1; st.shared.u32 [%r3+4], %r1; st.shared.u32 [%r3+8], %r1; st.shared.u32 [%r3+12], %r1;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    cp.async.bulk.wait_group 1;
    cp.async.bulk.wait_group 0;
    cp.async.ca.shared.global [%r3+16], [%rd9], 4; cp.async.commit_group; cp.async.wait_group 0;
    cp.async.ca.shared.global [%r3+20], [%rd9], 4; cp.async.wait_all;
    ret;)";
  const std::string mode = GENERATE("default", "late");
  Watcher seen;
  Machine machine;
  run(machine, machine.make(Words(4, 0)), {body, 1, 1, {}, mode, nullptr, &seen});
  CHECK(seen.of(SyncEvent::Kind::kBulkCommit).size() == 1);
  const auto waits = seen.of(SyncEvent::Kind::kBulkWait);
  REQUIRE(waits.size() == 3);
  CHECK((waits[0].read && waits[0].amount == 0));
  CHECK((!waits[1].read && waits[1].amount == 1));
  CHECK((!waits[2].read && waits[2].amount == 0));
  CHECK(seen.of(SyncEvent::Kind::kCpAsyncCommit).size() == 2);
  CHECK(seen.of(SyncEvent::Kind::kCpAsyncWait).size() == 2);
}

TEST_CASE(
    "a watcher sees each CTA begin, its lanes leave, and each CTA end, "
    "between the start and the end of the grid",
    "[copy_events]") {
  Watcher seen;
  Machine machine;
  run(machine, machine.make(Words{0}),
      {"@%p1 exit; bar.warp.sync 1; ret;", 48, 2, {}, "default", nullptr, &seen});
  CHECK(seen.starts == 1);
  CHECK(seen.ends == std::vector<std::string>{""});
  const auto begin = seen.of(SyncEvent::Kind::kCtaStart), end = seen.of(SyncEvent::Kind::kCtaExit);
  REQUIRE(begin.size() == 2);
  REQUIRE(end.size() == 2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK(begin[rank].cta == rank);
    CHECK(begin[rank].phase == rank);
    CHECK(begin[rank].amount == 0);
    CHECK(begin[rank].object == kBar + 16);
    uint64_t threads = 0;
    for (const SyncEvent& e : seen.of(SyncEvent::Kind::kExit))
      if (e.thread.cta == rank) threads += uint64_t(__builtin_popcount(e.mask));
    CHECK(threads == 48);
  }
}

TEST_CASE("the end of a grid that faults carries the fault's text", "[copy_events]") {
  Watcher seen;
  Machine machine;
  const auto fault = fault_of([&] {
    run(machine, machine.make(Words{0}), {"trap;", 1, 1, {}, "default", nullptr, &seen});
  });
  CHECK(seen.ends == std::vector<std::string>{fault.what()});
}

TEST_CASE(
    "a CTA that exits under a copy is told which barrier the copy would have signalled, "
    "and what is missing",
    "[copy_events]") {
  const std::string body = std::string(kInit) + R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 32;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd9], 16, [%r2];
    ret;)";
  Machine machine;
  const auto fault = fault_of([&] { run(machine, machine.make(Words(4, 1)), {body, 1, 1, {}, "late"}); });
  CHECK(fault.kind() == FaultKind::kProtocol);
  CHECK(says(fault, "exits while an asynchronous operation still uses its memory"));
  CHECK(says(fault, "mbarrier at shared offset 0xc00 (phase 0, pending arrivals 0, pending bytes 32)"));
}

TEST_CASE(
    "a CTA may exit when its own part of a multicast has landed, "
    "and when its stores have not read their sources",
    "[copy_events]") {
  // The policy lands rank 1's piece first; rank 1 leaves while rank 0 still waits.
  class PeerFirst : public sim::Policy {
    size_t next(const std::vector<sim::Agent>& agents) override {
      for (size_t i = 0; i < agents.size(); ++i)
        if (agents[i].kind == sim::Agent::Kind::kWarp) return i;
      return 0;
    }
    uint32_t pieces(uint64_t) override { return 2; }
    uint32_t piece(uint32_t left) override { return left - 1; }
  } policy;
  const std::string multicast = std::string(kInit) + R"(
    setp.eq.u32 %p3, %r4, 0; mov.b16 %h1, 3;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd9], 64, [%r2], %h1;)" +
                                kWait + kReport + "ret;";
  Machine machine;
  CHECK(run(machine, machine.make(Words(16, 3)), {multicast, 1, 2, {}, "default", &policy}) == Words(2, 3));

  const auto store = [&](const std::string& wait) {
    const std::string body = R"(
      st.shared.u32 [%r3], %r1; st.shared.u32 [%r3+4], %r1; st.shared.u32 [%r3+8], %r1; st.shared.u32 [%r3+12], %r1;
      fence.proxy.async.shared::cta;
      cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r3], 16;
      cp.async.bulk.commit_group;)" +
                             wait + "ret;";
    uint32_t* in = machine.make(Words(4, 7));
    run(machine, in, {body, 1, 1, {}, "late"});
    return machine.fetch(in, 4);
  };
  CHECK(store("cp.async.bulk.wait_group.read 0;") == Words(4, 0));
  CHECK(store("") == Words(4, 0));  // store-unwaited-at-exit, and nothing worse
}

TEST_CASE("cp.async may be under way when its CTA exits, and finds the memory of that CTA alone",
          "[copy_events]") {
  // Copies move only when no warp can: those of every CTA land when all CTAs of their round have left.
  class WarpsFirst : public sim::Policy {
    size_t next(const std::vector<sim::Agent>& agents) override {
      for (size_t i = 0; i < agents.size(); ++i)
        if (agents[i].kind == sim::Agent::Kind::kWarp) return i;
      return 0;
    }
    uint64_t clusters_to_begin(uint64_t room) override { return room; }
  } policy;
  struct Landings : sim::Observer {
    std::set<uint64_t> exited, late;
    void sync(const SyncEvent& e) override {
      if (e.kind == SyncEvent::Kind::kCtaExit) exited.insert(e.cta);
    }
    void issue(const AsyncIssue& e) override { cta_of[e.id] = e.thread.cta; }
    void land(const sim::AsyncLanding& e) override {
      if (e.step == sim::AsyncLanding::Step::kComplete && exited.contains(cta_of.at(e.id)))
        late.insert(cta_of.at(e.id));
    }
    std::map<uint64_t, uint64_t> cta_of;
  } seen;
  const std::string body = R"(
    st.shared.u32 [%r3], %r42;
    ld.shared.u32 %r51, [%r3]; st.global.u32 [%rd1], %r51;
    cp.async.ca.shared.global [%r3], [%rd9], 4;
    ret;)";
  constexpr uint32_t kCtas = 400;  // more than are on the machine at a time
  Machine machine;
  uint32_t *out = machine.make(Words(kCtas)), *in = machine.make(Words(1, 0xEEEEEEEE));
  MapBytes map;
  sim::LaunchOptions options;
  options.policy = &policy;
  options.observer = &seen;
  machine.run(kernel_text(kParams, kCopyProlog + body, kSharedVariables), shape(kCtas, 1), {&out, &in, &map},
              options);
  CHECK(machine.fetch(out, kCtas) == counting(kCtas, 0));
  CHECK(seen.late.size() == kCtas);
}

}  // namespace copy_events_test
