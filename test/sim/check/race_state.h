// race_state.h -- what the race checker remembers: the knowledge of every lane, what every barrier has
// collected phase by phase, every asynchronous operation and how its completion is learned, and which work of
// the host follows which.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/check/finding.h"
#include "sim/check/knowledge.h"
#include "sim/check/shadow.h"
#include "sim/exec/per_grid.h"

namespace sim {

inline uint64_t warp_number(const Thread& t) { return t.cta << 8 | t.warp; }
inline Component threads_of(const Thread& t) { return component(Part::kThreads, warp_number(t)); }
inline Thread thread_of(Component warp, uint32_t lane) {
  const uint64_t number = (warp & 0x00FFFFFFFFFFFFFF) >> 8;
  return {number >> 8, uint32_t(number & 0xFF), lane};
}

struct AsyncOperation {
  AsyncIssue::Kind kind = AsyncIssue::Kind::kBulkLoad;
  uint64_t id = 0;
  Thread thread;
  uint32_t mask = 0;
  Time issued = 0;
  int group = 0;
  const Inst* inst = nullptr;
  // Completion is learned from a queue: the operation is complete, or has read its sources, when the
  // component `done`, or `sources`, reaches `issued` for these lanes. 0 means that it is learned from
  // mbarriers.
  Component done = 0, sources = 0;
  uint32_t lanes = 0;
  struct Signal {
    MbarrierRef ref;
    Component barrier = 0;
    int64_t left = 0;     // bytes not yet signalled
    uint64_t phases = 0;  // known once this many phases of the barrier are known to be complete; 0: not yet
    bool landed = false;
  };
  std::vector<Signal> signals;
  // Bulk stores: the first one of the same instruction that takes the same source to the same place, which
  // may be this one, and the lanes that issued such a store before this one.
  const AsyncOperation* same_store = nullptr;
  uint32_t same_lanes = 0;
  VectorClock cause;            // what led to the issue
  VectorClock complete_before;  // kCommit: operations that were complete at the issue
  Region accumulator;           // kMma, kTmemCopy: the tensor memory it writes
  bool is(AsyncIssue::Kind other) const { return kind == other; }
  bool tensor_core() const { return is(AsyncIssue::Kind::kMma) || is(AsyncIssue::Kind::kTmemCopy); }
  // True for copies by the generic proxy: cp.async, st.async.
  bool generic() const { return is(AsyncIssue::Kind::kCpAsync) || is(AsyncIssue::Kind::kStAsync); }
  // True when `clock` knows the end of its touching `region`. What it writes has been written for good when
  // the same stores of other lanes have ended, too.
  bool known(const VectorClock& clock, bool write, const Region& region) const;
};

struct LastWait {
  bool any = false;
  MbarrierRef barrier;
  uint64_t phase = 0;
};

struct WarpState {
  Component threads = 0;
  std::array<KnowledgePtr, 32> knows;
  std::array<LastWait, 32> waited;
  std::array<std::vector<Time>, 32> bulk_groups, copy_groups;  // when each was closed
  uint32_t bulk_lanes = 0, copy_lanes = 0;                     // lanes that ever issued one
  std::vector<Time> wgmma_issued;                              // when each was
  std::vector<size_t> wgmma_groups;                            // size of wgmma_issued as each was closed
};

struct CtaState {
  bool started = false, exited = false, launched_dependents = false;
  uint64_t cluster = 0, rank = 0;
  std::vector<std::unique_ptr<WarpState>> warps;
  std::map<uint64_t, std::map<uint64_t, Gathered>> named;  // by number, by generation
  Gathered at_exit;                                        // of every thread that has left
};

struct Arrivals {
  Gathered here;    // by threads of the barrier's CTA, and completions
  Gathered remote;  // by other CTAs, at a scope that includes the barrier's
  Gathered narrow;  // by other CTAs, at a scope that does not
  bool has_remote = false, has_narrow = false;
  Site remote_site, narrow_site;
};

struct BarrierState {
  Component id = 0;
  Thread init_thread;
  const Inst* init_inst = nullptr;
  Time init = 0;
  bool used_by_async_proxy = false;
  std::map<uint64_t, Arrivals> open;  // by phase
  Arrivals complete;                  // of every phase a wait has seen
};

// The latest strong store to a place, and what an acquire that reads it learns.
struct Publication {
  Knowledge by_release;
  uint64_t cta = 0;
  Scope scope = Scope::kCta;
};

struct CommitRecord {
  Time issued = 0;
  const AsyncOperation* operation = nullptr;
};

// Bulk stores of one instruction that take the same source to the same place.
struct BulkStore {
  const AsyncOperation* first = nullptr;
  uint32_t lanes = 0;
  std::vector<Region> reads, writes;
};

// Says what a grid did about programmatic dependent launch.
struct GridConduct {
  bool waits =
      false;  // some thread executed griddepcontrol.wait, so that the grid ends after what it waited for
  // Every CTA had executed its wait when it first executed griddepcontrol.launch_dependents, or has left
  // without executing that.
  bool waits_before_launch = true;
};

// Knows which work of the host is ordered before which. Grids may run together. Which work a grid starts
// after depends on what the grids before it had done by then, and which work its griddepcontrol.wait waits
// for depends on what they have done when that wait returns.
class HostOrder {
 public:
  void add(const HostWork& work);
  void started(uint64_t work) { settle(work, kStart); }
  void waited(uint64_t work) { settle(work, kWaited); }  // griddepcontrol.wait has returned
  // Says how a grid has behaved so far.
  void ran(uint64_t work, const GridConduct& conduct);
  // True when `work` may have started before a grid that it follows had waited for the grids before itself.
  bool follows_early_launch(uint64_t work) const;
  // True when `earlier` is complete before `later` begins or, with `waited`, before griddepcontrol.wait
  // returns in it.
  bool before(uint64_t earlier, uint64_t later, bool waited) const;
  const std::string& what(uint64_t work) const;
  bool programmatic(uint64_t work) const;
  // True when one device does both.
  bool same_device(uint64_t a, uint64_t b) const;

 private:
  // The moments of a piece of work: it starts; its griddepcontrol.wait returns; its stream has come past it,
  // which means that everything before it is complete.
  enum Moment { kStart, kWaited, kPassed, kMoments };
  struct Work {
    // Earlier work that need not be complete at the moment, sorted; it is kept once no later event can change
    // it. Work that is not programmatic has one moment only, kPassed.
    std::array<std::optional<std::vector<uint64_t>>, kMoments> beside;
    std::vector<uint64_t> after, stream;  // what it waits for; that, and what its stream has not come past
    bool programmatic = false;
    GridConduct conduct;
    std::string what;
    int device = 0;
  };
  void settle(uint64_t work, Moment moment);
  // `room` is for what is not settled.
  const std::vector<uint64_t>& beside(uint64_t id, Moment moment, std::vector<uint64_t>& room) const;
  static Moment moment_of_predecessor(const Work& predecessor, bool programmatic, Moment moment);
  std::vector<uint64_t> combine(uint64_t id, const Work& work, Moment moment) const;
  bool find_before(uint64_t earlier, uint64_t later, bool waited) const;
  std::map<uint64_t, Work> works_;
  // Answers of before() since the list of works last changed: most accesses ask the same question as the
  // access before them.
  struct Answer {
    uint64_t earlier = 0, later = 0;
    bool waited = false, known = false, before = false;
  };
  mutable std::array<Answer, 32> answers_;
};

// What is remembered of one grid.
struct GridState {
  uint64_t work = 0;
  GridConduct conduct;
  std::unordered_map<uint64_t, CtaState> ctas;
  std::pair<uint64_t, CtaState*> latest_cta{0, nullptr};  // the one of them that was asked for last
  std::unordered_map<uint64_t, std::map<uint64_t, Gathered>> clusters;  // barrier generations
  std::map<std::pair<uint64_t, uint32_t>, BarrierState> barriers;
  std::map<std::tuple<Memory, uint64_t, uint64_t>, Publication> published;  // by memory, owner, address
  std::unordered_map<uint64_t, AsyncOperation*> by_id;
  std::unordered_map<Component, std::vector<CommitRecord>> commits;  // by queue and lane of the issuer
  uint64_t store_instruction = 0;  // the latest execution of an instruction that issued bulk stores
  std::vector<BulkStore> stores;   // what it issued, once for each source and place
  Knowledge sequential;            // passes between fence.sc
  CtaShadow shadow;
};

struct RaceState {
  Time now = 0;
  PerGrid<GridState> grid;
  uint64_t next_barrier = 1;
  std::deque<AsyncOperation> operations;
  GlobalShadow global;
  HostOrder host;
  KnowledgePtr nothing = std::make_shared<const Knowledge>();

  CtaState& cta(uint64_t index) {
    auto& [latest, state] = grid->latest_cta;
    if (state == nullptr || latest != index) grid->latest_cta = {index, &grid->ctas[index]};
    return *state;
  }
  WarpState& warp(const Thread& t);
  const Knowledge& knowledge(const Thread& t) { return *warp(t).knows[t.lane]; }
  BarrierState* barrier(const MbarrierRef& ref);
  AsyncOperation* operation(uint64_t id);
  // True when a thread of `by` can tell that `cta` runs: its `knowledge` has something that a thread of `cta`
  // did.
  bool begun(uint64_t cta, uint64_t by, const Knowledge& knowledge) const {
    return cta == by || knowledge.cause.mentions(component(Part::kThreads, cta << 8),
                                                 component(Part::kThreads, (cta << 8) + 255, 255));
  }
  // Visits the knowledge of `lanes`; lanes that know the same share one object, which is visited once.
  template <class Visit>
  static void for_groups(const WarpState& w, uint32_t lanes, Visit&& visit) {
    while (lanes != 0) {
      const KnowledgePtr knowledge = w.knows[size_t(__builtin_ctz(lanes))];
      uint32_t group = 0;
      for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        const uint32_t lane = uint32_t(__builtin_ctz(rest));
        if (w.knows[lane] == knowledge) group |= 1u << lane;
      }
      lanes &= ~group;
      visit(knowledge, group);
    }
  }
  // The lanes acquire what was gathered.
  static void learn(WarpState& w, uint32_t lanes, Gathered& gathered) {
    for_groups(w, lanes, [&](const KnowledgePtr& before, uint32_t group) {
      const KnowledgePtr after = gathered.teach(before);
      for (; group != 0; group &= group - 1) w.knows[size_t(__builtin_ctz(group))] = after;
    });
  }
  // Changes the knowledge of `lanes`; lanes that know the same are changed once and go on sharing.
  template <class Change>
  static void update(WarpState& w, uint32_t lanes, Change&& change) {
    KnowledgePtr latest;
    for_groups(w, lanes, [&](const KnowledgePtr& before, uint32_t group) {
      auto after = std::make_shared<Knowledge>(*before);
      change(*after, group);
      KnowledgePtr result = after;
      if (after->same(*before)) result = before;
      else if (latest && after->same(*latest)) result = latest;
      latest = result;
      for (uint32_t rest = group; rest != 0; rest &= rest - 1) w.knows[size_t(__builtin_ctz(rest))] = result;
    });
  }
};

inline Component queue_lane(Component queue, uint32_t lane) { return queue | lane; }

}  // namespace sim
