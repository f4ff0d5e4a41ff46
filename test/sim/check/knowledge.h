// knowledge.h -- what a thread knows, through which proxy, and how knowledge passes from one thread to
// another. Plain happens-before is not enough on this machine: a generic write that happened before a bulk
// copy is seen by it only across a proxy fence, and tensor memory has fences of its own. So a thread carries
// several clocks, and each instruction that orders anything moves some of them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/check/clock.h"

namespace sim {

// Fences of the tensormap proxy: what a release has made ready, and what an acquire of the map at an address
// has let in of it (sorted).
struct TensormapFences {
  VectorClock ready;
  std::vector<std::pair<uint64_t, VectorClock>> seen;
  VectorClock& at(uint64_t address);
  void join(const TensormapFences& other);
  bool same(const TensormapFences& other) const;
};

// The parts of a clock that proxy fences have followed.
struct ProxyFences {
  // What the async proxy sees: in global memory, in all shared memory, in that of one CTA alone (fences of
  // shared::cta by its threads; sorted by CTA).
  VectorClock global, shared;
  std::vector<std::pair<uint64_t, VectorClock>> shared_of_cta;
  // Fences that work one way only come in pairs. This is what a release has made ready for an acquire to let
  // in.
  VectorClock ready;
  // Fences of every scope serve the CTA of both parties, those of a wider one other CTAs, too.
  TensormapFences tensormap_of_cta, tensormap;
  VectorClock& in(uint64_t cta);
  void join(const ProxyFences& other);
  bool same(const ProxyFences& other) const;
};

struct Knowledge {
  VectorClock happens_before;  // synchronisation of the generic proxy, completions observed
  ProxyFences fenced;          // the parts of it that proxy fences have followed
  // `tensor` are the tcgen05 operations that later ones of this thread follow. `tensor_edge` are those that
  // travel with its synchronisation: what before_thread_sync has added and what was received.
  // after_thread_sync moves the latter to the former.
  VectorClock tensor, tensor_edge;
  VectorClock inits;           // mbarrier.init that fence.mbarrier_init has followed, own or received
  VectorClock inits_unfenced;  // those that only a relaxed arrival at the cluster barrier has followed
  // What would be known if scopes did not matter, and if elect, shfl and vote ordered memory.
  VectorClock any_scope, meets;
  VectorClock narrow;  // the part of any_scope of which it was reported that the scope is too small
  // What those whom this thread follows had parked: they know it, but did not acquire it, and this thread
  // cannot do that for them.
  VectorClock unacquired;
  // What must have happened for this thread to be here, over edges of any strength. It says nothing of memory
  // except for tcgen05.ld and .st that were waited for.
  VectorClock cause;
  // The parts of in_any_order() that proxy fences have followed: where the order is too weak, a fence that is
  // not here is missing whichever way the order is made.
  ProxyFences fenced_in_any_order;
  // Private to the thread. `parked` was learned by relaxed operations and waits for an acquire fence.
  // `offered` is what a release fence of `offered_scope` has made ready for relaxed operations to carry.
  std::shared_ptr<const Knowledge> parked, offered;
  Scope offered_scope = Scope::kCta;

  // Returns what would be known if all that has led here, by edges of any strength, ordered memory.
  VectorClock in_any_order() const;
  // Adds everything that a thread comes to know when it synchronises with the one that released.
  void acquire(const Knowledge& released);
  // Adds only what travels with relaxed operations: the order of tcgen05 fences, inits, causes and the fences
  // that followed those.
  void acquire_relaxed(const Knowledge& released);
  // Acquires through an edge whose scope leaves one of the parties out; `reported` if that is a finding.
  void acquire_narrow(const Knowledge& released, bool reported);
  void park(const Knowledge& released);
  // True when `question` has a clock that would be known if relaxed waits and loads acquired.
  template <typename Question>
  bool but_for_acquire(const Question& question) const {
    return question(unacquired) ||
           (parked && (question(parked->happens_before) || question(parked->unacquired)));
  }
  // Acquires what `lanes` of a warp, which know `from`, release at `now`: all that they know and all that
  // they did.
  void acquire_from(const Knowledge& from, Component warp, uint32_t lanes, Time now);
  // Returns that alone.
  Knowledge released(Component warp, uint32_t lanes, Time now) const;
  // True when both hold the same objects in every part.
  bool same(const Knowledge& other) const;
  // Returns what a relaxed arrival carries: tcgen05 fences, inits, and what a release fence has prepared for
  // `scope`.
  Knowledge released_relaxed(Scope scope, Component warp, uint32_t lanes, Time now) const;
};

using KnowledgePtr = std::shared_ptr<const Knowledge>;

// What arrivals have released together. Most who arrive know the same as the one before them, and most who
// leave a barrier learn the same as the one before them: both are worked out once.
class Gathered : public Knowledge {
 public:
  void add(const KnowledgePtr& from, Component warp, uint32_t lanes, Time now);
  // Returns what one who knows `before` knows after acquiring this, when all have arrived. Those who then
  // know the same share it.
  KnowledgePtr teach(const KnowledgePtr& before);

 private:
  KnowledgePtr added_;             // the latest that was added
  KnowledgePtr before_, learned_;  // the latest that teach() was asked, and its answer
};

}  // namespace sim
