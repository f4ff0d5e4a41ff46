// race.h -- the happens-before race checker. Every access, and every byte that an asynchronous operation may
// touch between issue and completion, is compared with the earlier touches (of either kind) of the same
// bytes; two touches that are not ordered by synchronisation, through the right proxies and at the right
// scope, are a finding. A finding follows only from the order of synchronisation, so one run is enough for
// all schedules in which threads take the same paths.
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "sim/check/race_order.h"

namespace sim {

class RaceChecker : public Observer, public Clocks {
 public:
  explicit RaceChecker(FindingSink sink) : sink_(std::move(sink)) {}
  void host(const HostWork& work) override;
  void start(const GridStart& grid) override;
  void resume(uint64_t work) override;
  void finish(const char* fault) override;
  void accesses(const std::vector<Access>& all) override;
  void issue(const AsyncIssue& issue) override;
  void land(const AsyncLanding& landing) override;
  void sync(const SyncEvent& event) override;

  Stamp now(const Thread& thread) const override;
  bool ordered(const Stamp& stamp, const Thread& thread) const override;

 private:
  struct Hit {
    Touch earlier;
    Verdict verdict;
    uint64_t from = 0, to = 0;  // bytes, or columns of tensor memory
    LineMask mask;
    Touch later;
    Region region;
    const Knowledge* knowledge;  // of the later party, until the hits are reported
  };
  // race.cpp
  void leave_grid();
  void touch(const Touch& later, const Region& region, const Knowledge& knowledge);
  void touch_line(Line& line, const Touch& touch, const Region& region, const Knowledge& knowledge,
                  uint64_t base);
  void touch_runs(const Touch& later, const std::vector<Region>& regions, const Knowledge& knowledge);
  void touch_run(const Runs& run, const Region& region, const Knowledge& knowledge);
  void compare_with_runs(const Touch& later, const Region& region, const Knowledge& knowledge);
  bool touchable(const Touch& later, const Region& region, const Knowledge& knowledge);
  void hit(const Touch& earlier, const Touch& later, const Verdict& verdict, const Region& region,
           const Knowledge& knowledge, uint64_t from, uint64_t to, LineMask mask);
  void find_same_stores(const AsyncIssue& issue, AsyncOperation& op);
  void issue_regions(const AsyncIssue& issue, const AsyncOperation& op, const Knowledge& knowledge);
  void publish(const Access& a);
  // race_mbarrier.cpp
  void mbarrier(const SyncEvent& e);
  void mbarrier_init(const SyncEvent& e);
  void check_init(BarrierState& b, const MbarrierRef& ref, const Site& site, const Knowledge& knowledge,
                  bool asynchronous);
  void mbarrier_arrive(const SyncEvent& e, BarrierState& b);
  void mbarrier_complete_tx(const SyncEvent& e, BarrierState& b);
  void mbarrier_wait(const SyncEvent& e, BarrierState& b);
  // race_sync.cpp
  void barrier_arrive(const SyncEvent& e, Gathered& record);
  void launch_dependents(const SyncEvent& e);
  void warp_sync(const SyncEvent& e);
  void warp_meet(const SyncEvent& e);
  void fence(const SyncEvent& e);
  void proxy_fence(const SyncEvent& e, ProxyFences& fences, VectorClock before, uint32_t lanes);
  void thread_fence(const SyncEvent& e, Knowledge& knowledge, uint32_t lanes, Component warp);
  void groups(const SyncEvent& e);
  void wgmma_groups(const SyncEvent& e);
  void tensor_memory(const SyncEvent& e);
  void leave_cta(const SyncEvent& e);
  // race_report.cpp
  void report_hits();
  Finding finding_of(const Hit& hit) const;
  void report(Finding finding, const Inst* earlier, const Inst* later);
  std::string missing(const Hit& hit, const Touch& later, const Region& region,
                      const Knowledge& knowledge) const;
  std::string covering(const AsyncOperation& op, const Region& region, bool write) const;

  struct Waited {  // the latest wait: who knew what, saw what, knows what
    KnowledgePtr before, after;
    std::tuple<Component, uint64_t, bool, bool> seen;
  };

  FindingSink sink_;
  RaceState state_;
  Waited waited_;
  std::vector<Hit> hits_;  // of the event, to be reported at its end
  // Hits that may be one finding: those with the same rule, the same earlier party and the same memory.
  std::map<std::tuple<const char*, const Inst*, const AsyncOperation*, Memory, uint64_t>, std::vector<size_t>>
      alike_;
  std::set<std::tuple<const Rule*, const Inst*, const Inst*>> reported_;
};

// Read what a synchronising event says.
inline bool releases(Order o) { return o == Order::kRelease || o == Order::kAcqRel || o == Order::kSeqCst; }
inline bool acquires(Order o) { return o == Order::kAcquire || o == Order::kAcqRel || o == Order::kSeqCst; }
inline uint32_t lanes_of(const SyncEvent& e) { return e.mask != 0 ? e.mask : 1u << e.thread.lane; }
inline Site site_of(const SyncEvent& e) { return {e.thread, e.mask, e.async_id, e.inst}; }
template <class Visit>
void for_lanes(uint32_t lanes, Visit&& visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(uint32_t(__builtin_ctz(lanes)));
}

}  // namespace sim
