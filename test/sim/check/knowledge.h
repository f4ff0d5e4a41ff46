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
  // What the async proxy sees: in global memory, in all shared memory, in the shared memory of one CTA
  // (fences of shared::cta by its threads; sorted by CTA).
  VectorClock global, shared;
  std::vector<std::pair<uint64_t, VectorClock>> shared_of_cta;
  // Fences that work in only one direction come in pairs. This is what a release has made ready for an
  // acquire.
  VectorClock ready;
  // Within one CTA fences of every scope serve; between CTAs only fences of a wider scope than the CTA do.
  TensormapFences tensormap_of_cta, tensormap;
  VectorClock& in(uint64_t cta);
  void join(const ProxyFences& other);
  bool same(const ProxyFences& other) const;
};

struct Knowledge {
  VectorClock happens_before;  // synchronisation of the generic proxy, completions observed
  ProxyFences fenced;          // the parts of it that proxy fences have followed
  // `tensor` are the tcgen05 operations that later tcgen05 operations of this thread follow. `tensor_edge`
  // are those that travel with its synchronisation: the ones that before_thread_sync has added, and those
  // that were received. after_thread_sync moves `tensor_edge` to `tensor`.
  VectorClock tensor, tensor_edge;
  VectorClock inits;           // mbarrier.init that fence.mbarrier_init has followed, own or received
  VectorClock inits_unfenced;  // those that only a relaxed arrival at the cluster barrier has followed
  // What would be known if scopes did not matter, and if elect, shfl and vote ordered memory.
  VectorClock any_scope, meets;
  VectorClock narrow;  // the part of any_scope for which a too small scope was reported
  // What threads that this thread follows had parked: they know it, but did not acquire it, and this thread
  // cannot acquire it for them.
  VectorClock unacquired;
  // What must have happened before this thread could come to this point, over edges of any strength. It
  // orders no memory, except tcgen05.ld and .st that were waited for.
  VectorClock cause;
  // The parts of in_any_order() that proxy fences have followed: if the order is too weak, a fence that is
  // not among these is missing even if the order is made stronger.
  ProxyFences fenced_in_any_order;
  // Both are private to the thread. `parked` was learned by relaxed operations, and an acquire fence will
  // make it known. `offered` is what a release fence of `offered_scope` has made ready for relaxed operations
  // to carry.
  std::shared_ptr<const Knowledge> parked, offered;
  Scope offered_scope = Scope::kCta;

  // Returns what would be known if all that has led here, by edges of any strength, ordered memory.
  VectorClock in_any_order() const;
  // Adds everything that a thread comes to know when it synchronises with the one that released.
  void acquire(const Knowledge& released);
  // Adds only what travels with relaxed operations: the order of tcgen05 fences, inits, causes, and the proxy
  // fences that followed these.
  void acquire_relaxed(const Knowledge& released);
  // Acquires through an edge whose scope does not include one of the two parties; `reported` if that is a
  // finding.
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
  // Returns only what these lanes release.
  Knowledge released(Component warp, uint32_t lanes, Time now) const;
  // True when both hold the same objects in every part.
  bool same(const Knowledge& other) const;
  // Returns what a relaxed arrival carries: tcgen05 fences, inits, and what a release fence has prepared for
  // `scope`.
  Knowledge released_relaxed(Scope scope, Component warp, uint32_t lanes, Time now) const;
};

using KnowledgePtr = std::shared_ptr<const Knowledge>;

// What arrivals have released together. Most threads that arrive know the same as the thread that arrived
// before them, and most threads that leave a barrier learn the same as the thread before them. Both are
// computed once.
class Gathered : public Knowledge {
 public:
  void add(const KnowledgePtr& from, Component warp, uint32_t lanes, Time now);
  // Returns what a thread that knows `before` knows after acquiring this, when all have arrived. Threads that
  // then know the same share one object.
  KnowledgePtr teach(const KnowledgePtr& before);

 private:
  KnowledgePtr added_;             // the latest that was added
  KnowledgePtr before_, learned_;  // the latest that teach() was asked, and its answer
};

}  // namespace sim
