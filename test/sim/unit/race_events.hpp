// race_events.hpp -- streams of machine events written by hand, and what the race checker says to them. Two
// CTAs (0 and 1) of one cluster are resident; barriers are initialised and known to everybody unless a test
// starts with `bare`.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "sim/check/race.h"
#include "sim/decode/program.h"

namespace race_test {

using sim::AsyncIssue;
using sim::MbarrierRef;
using sim::Memory;
using sim::Order;
using sim::Region;
using sim::Scope;
using sim::SyncEvent;
using sim::Thread;
using Kind = AsyncIssue::Kind;
using Sync = SyncEvent::Kind;

constexpr uint32_t kWarp = 0xFFFFFFFF;
constexpr uint64_t kNoPhase = ~uint64_t(0);

inline Thread at(uint64_t cta, uint32_t warp, uint32_t lane = 0) { return {cta, warp, lane}; }
inline Region shared(uint64_t cta, uint64_t address, uint32_t bytes) {
  Region r;
  r.memory = Memory::kShared;
  r.cta = cta;
  r.address = address;
  r.bytes = bytes;
  return r;
}
inline Region global(uint64_t address, uint32_t bytes) {
  Region r;
  r.address = address;
  r.bytes = bytes;
  return r;
}
inline Region tensor(uint64_t cta, uint16_t column, uint16_t columns, uint16_t lane = 0,
                     uint16_t lanes = 128) {
  Region r;
  r.memory = Memory::kTensor;
  r.cta = cta;
  r.column = column;
  r.columns = columns;
  r.lane = lane;
  r.lanes = lanes;
  return r;
}

class Events {
 public:
  enum Start { kReady, kBare };
  explicit Events(Start start = kReady) {
    for (uint64_t cta : {0, 1}) begin(cta, 0);
    if (start == kBare) return;
    for (uint64_t cta : {0, 1}) {
      for (uint32_t b = 0; b < 4; ++b) init(at(cta, 0), bar(b, cta));
      fence(at(cta, 0), SyncEvent::Fence::kMbarrierInit);
    }
    cluster_sync();
  }
  // Returns the rules that were broken, by name, each once.
  std::string broken() {
    checker.finish(nullptr);
    std::set<std::string> ids;
    for (const sim::Finding& f : found) ids.insert(f.rule->id);
    std::string out;
    for (const std::string& id : ids) out += (out.empty() ? "" : " ") + id;
    return out;
  }

  static MbarrierRef bar(uint32_t index, uint64_t cta = 0) { return {cta, 0x400 + 8 * index}; }

  // ---- accesses ----
  void access(Thread t, Region r, bool write, Order order = Order::kWeak, Scope scope = Scope::kSys,
              bool atomic = false, uint64_t digest = 0) {
    sim::Access a;
    a.thread = t;
    a.mask = 1u << t.lane;
    a.region = r;
    a.region.write = write;
    a.order = order;
    a.scope = scope;
    a.atomic = atomic;
    a.digest = digest;
    a.inst = inst();
    checker.accesses({a});
  }
  void write(Thread t, Region r, uint64_t digest = 0) {
    access(t, r, true, Order::kWeak, Scope::kSys, false, digest);
  }
  void read(Thread t, Region r) { access(t, r, false); }
  // Adds a read by ld.global.nc.
  void read_non_coherent(Thread t, Region r) {
    sim::Access load;
    load.thread = t;
    load.mask = 1u << t.lane;
    load.region = r;
    load.non_coherent = true;
    load.inst = inst();
    checker.accesses({load});
  }
  // Adds one instruction of a whole warp: lane i touches r advanced by i * step.
  // Stores with the same digest store the same bytes.
  // `collective`: the lanes together make one access.
  void warp_access(uint64_t cta, uint32_t warp, Region r, bool write, uint32_t step, uint64_t digest = 0,
                   bool collective = false) {
    const sim::Inst* one = inst();
    std::vector<sim::Access> all;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      sim::Access& a = all.emplace_back();
      a.thread = at(cta, warp, lane);
      a.mask = kWarp;
      a.region = r;
      a.region.address += lane * step;
      a.region.write = write;
      a.digest = digest;
      a.collective = collective;
      a.inst = one;
    }
    checker.accesses(all);
  }
  void warp_write(uint64_t cta, uint32_t warp, uint64_t address) {
    warp_access(cta, warp, shared(cta, address, 4), true, 4);
  }
  void warp_read(uint64_t cta, uint32_t warp, uint64_t address) {
    warp_access(cta, warp, shared(cta, address, 4), false, 4);
  }

  // ---- synchronisation ----
  SyncEvent event(Sync kind, Thread t, uint32_t mask = 0) {
    SyncEvent e;
    e.kind = kind;
    e.thread = t;
    e.mask = mask != 0 ? mask : 1u << t.lane;
    e.cta = t.cta;
    e.inst = inst();
    return e;
  }
  void begin(uint64_t cta, uint64_t cluster) {
    SyncEvent e = event(Sync::kCtaStart, at(cta, 0));
    e.amount = int64_t(cluster);
    checker.sync(e);
  }
  void init(Thread t, MbarrierRef b) {
    SyncEvent e = event(Sync::kMbarrierInit, t);
    e.mbarrier = b;
    e.amount = 1;
    checker.sync(e);
  }
  void arrive(Thread t, MbarrierRef b, uint64_t phase, Order order = Order::kRelease,
              Scope scope = Scope::kCta) {
    SyncEvent e = event(Sync::kMbarrierArrive, t);
    e.mbarrier = b;
    e.phase = phase;
    e.amount = 1;
    e.order = order;
    e.scope = scope;
    checker.sync(e);
  }
  void wait(Thread t, MbarrierRef b, uint64_t phase, Order order = Order::kAcquire,
            Scope scope = Scope::kCta) {
    SyncEvent e = event(Sync::kMbarrierWait, t);
    e.mbarrier = b;
    e.phase = phase;
    e.order = order;
    e.scope = scope;
    checker.sync(e);
  }
  void bar_sync(uint64_t cta, std::vector<uint32_t> warps, uint64_t number = 0) {
    const uint64_t generation = generations_++;
    for (const Sync kind : {Sync::kBarrierArrive, Sync::kBarrierLeave})
      for (uint32_t warp : warps) {
        SyncEvent e = event(kind, at(cta, warp), kWarp);
        e.object = number;
        e.phase = generation;
        checker.sync(e);
      }
  }
  void cluster_sync(Order arrive = Order::kRelease, Order wait = Order::kAcquire, uint32_t warps = 6) {
    const uint64_t generation = generations_++;
    for (const Sync kind : {Sync::kClusterArrive, Sync::kClusterWait})
      for (uint64_t cta : {0, 1})
        for (uint32_t warp = 0; warp < warps; ++warp) {
          SyncEvent e = event(kind, at(cta, warp), kWarp);
          e.phase = generation;
          e.order = kind == Sync::kClusterArrive ? arrive : wait;
          e.scope = Scope::kCluster;
          checker.sync(e);
        }
  }
  void plain(Sync kind, Thread t, uint32_t mask = 0) { checker.sync(event(kind, t, mask)); }
  void warp_sync(uint64_t cta, uint32_t warp) { plain(Sync::kWarpSync, at(cta, warp), kWarp); }
  void fence(Thread t, SyncEvent::Fence which, uint32_t mask = 0, uint8_t spaces = 0,
             Order order = Order::kWeak, Scope scope = Scope::kCta) {
    SyncEvent e = event(Sync::kFence, t, mask);
    e.fence = which;
    e.spaces = spaces;
    e.order = order;
    e.scope = scope;
    checker.sync(e);
  }
  void tensormap_fence(Thread t, Order order, uint64_t address, Scope scope = Scope::kGpu) {
    SyncEvent e = event(Sync::kFence, t);
    e.fence = SyncEvent::Fence::kProxyTensormap;
    e.order = order;
    e.scope = scope;
    e.address = address;
    e.bytes = 128;
    checker.sync(e);
  }
  void proxy_fence(Thread t, uint32_t mask = 0) { fence(t, SyncEvent::Fence::kProxyAsync, mask); }
  void before(Thread t, uint32_t mask = 0) { fence(t, SyncEvent::Fence::kTensorBefore, mask); }
  void after(Thread t, uint32_t mask = 0) { fence(t, SyncEvent::Fence::kTensorAfter, mask); }
  void group_wait(Sync kind, Thread t, int64_t amount, bool read = false) {
    SyncEvent e = event(kind, t);
    e.amount = amount;
    e.read = read;
    checker.sync(e);
  }
  void columns(Sync kind, uint64_t cta, uint32_t warp, uint64_t first, int64_t count) {
    SyncEvent e = event(kind, at(cta, warp), kWarp);
    e.object = first;
    e.amount = count;
    checker.sync(e);
  }
  void exit_cta(uint64_t cta, std::vector<uint32_t> warps) {
    for (uint32_t warp : warps) plain(Sync::kExit, at(cta, warp), kWarp);
    plain(Sync::kCtaExit, at(cta, 0));
  }

  // ---- asynchronous operations ----
  uint64_t instruction = 0;  // that issues those which follow
  uint64_t issue(Kind kind, Thread t, std::vector<Region> reads, std::vector<Region> writes,
                 std::vector<AsyncIssue::Signal> barriers = {}, int group = 1) {
    AsyncIssue i;
    i.kind = kind;
    i.id = ++last_id_;
    i.thread = t;
    i.mask = kind == Kind::kTmemLoad || kind == Kind::kTmemStore ? kWarp : 1u << t.lane;
    i.cta_group = group;
    i.reads = std::move(reads);
    i.writes = std::move(writes);
    for (Region& r : i.writes) r.write = true;
    i.barriers = std::move(barriers);
    i.inst = inst();
    i.instruction = instruction;
    checker.issue(i);
    return i.id;
  }
  uint64_t load(Thread t, Region to, MbarrierRef b) {
    return issue(Kind::kTensorLoad, t, {global(0x10000, to.bytes)}, {to}, {{b, to.bytes}});
  }
  void landed(uint64_t id, MbarrierRef b, uint64_t phase, int64_t bytes) {
    checker.land({sim::AsyncLanding::Step::kSourcesRead, id});
    checker.land({sim::AsyncLanding::Step::kPiece, id});
    SyncEvent e = event(Sync::kMbarrierCompleteTx, at(b.cta, 0));
    e.mbarrier = b;
    e.phase = phase;
    e.bytes = bytes;
    e.async_id = id;
    checker.sync(e);
    checker.land({sim::AsyncLanding::Step::kComplete, id});
  }
  uint64_t store(Thread t, Region from, Region to) { return issue(Kind::kTensorStore, t, {from}, {to}); }
  uint64_t mma(Thread t, std::vector<Region> reads, Region d, int group = 1) {
    return issue(Kind::kMma, t, std::move(reads), {d}, {}, group);
  }
  uint64_t cp(Thread t, Region from, Region to, int group = 1) {
    return issue(Kind::kTmemCopy, t, {from}, {to}, {}, group);
  }
  // Adds a commit and its arrival.
  void commit(Thread t, MbarrierRef b, uint64_t phase, int group = 1) {
    const uint64_t id = issue(Kind::kCommit, t, {}, {}, {{b, 0}}, group);
    SyncEvent e = event(Sync::kMbarrierArrive, t);
    e.mbarrier = b;
    e.phase = phase;
    e.amount = 1;
    e.async_id = id;
    checker.sync(e);
  }
  void ld(uint64_t cta, uint32_t warp, uint16_t column, uint16_t count) {
    issue(Kind::kTmemLoad, at(cta, warp), {tensor(cta, column, count, uint16_t(32 * (warp % 4)), 32)}, {});
  }
  void st(uint64_t cta, uint32_t warp, uint16_t column, uint16_t count) {
    issue(Kind::kTmemStore, at(cta, warp), {}, {tensor(cta, column, count, uint16_t(32 * (warp % 4)), 32)});
  }

  // Every event is an instruction of its own, of this statement.
  const sim::Inst* inst() {
    insts_.emplace_back().statement = statement;
    return &insts_.back();
  }
  const sim::ptx::Statement* statement = nullptr;

  std::vector<sim::Finding> found;
  sim::RaceChecker checker{[this](sim::Finding f) { found.push_back(std::move(f)); }};

 private:
  std::deque<sim::Inst> insts_;
  uint64_t last_id_ = 0, generations_ = 0;
};

}  // namespace race_test
