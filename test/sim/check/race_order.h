// race_order.h -- the ordering rules: may a touch happen while an earlier touch can still happen, and does it
// see what the earlier touch did? The answer depends only on the knowledge of the later party, and names the
// rules that are broken and what is missing.
#pragma once

#include <array>

#include "sim/check/race_state.h"

namespace sim {

enum class Lack : uint8_t {
  kNothing,
  kStart,         // a CTA that need not have begun
  kOrder,         // no synchronisation at all
  kCompletion,    // the asynchronous operation was not waited for
  kScope,         // an edge whose scope leaves a party out
  kAcquire,       // a relaxed wait or load without an acquire fence
  kProxyFence,    // generic, then asynchronous
  kOperandFence,  // operand of the tensor core, then generic
  kTensormapFence,
  kRelease,        // only relaxed signals lead here
  kBeforeFence,    // tcgen05.fence::before_thread_sync
  kAfterFence,     // tcgen05.fence::after_thread_sync
  kPair,           // tcgen05 operations of one thread that the ISA does not keep in order
  kMeet,           // elect, shfl, vote ... are no memory order
  kInstruction,    // lanes of one instruction
  kSameProxyOnly,  // asynchronous operations of two CTAs
  kGridWait,       // griddepcontrol.wait
  kHost,           // the host's work is concurrent
  kReadOnly,       // nothing inside a grid orders it
  kStartsTooSoon,  // the grid starts before the write is over
};

// What a peer CTA has to do before its shared memory is touched.
inline constexpr const char* kStart = "a cluster barrier, or another signal of that CTA, before the access";

struct Verdict {
  const char* rule = nullptr;  // null: in order
  Lack lack = Lack::kNothing;
  bool at_exit = false;  // the later party is a CTA that leaves
};

// The first verdict is about the order of two touches, the second about what their proxies need in addition.
// If the two are not ordered at all, there is no second verdict; if their order is weaker than the ISA
// demands, there is one.
using Verdicts = std::array<Verdict, 2>;

// Judges `later`, whose party has `knowledge`, against `earlier`. Both touch bytes of `region`, and one of
// them writes.
Verdicts judge(const RaceState& state, const Touch& earlier, const Touch& later, const Knowledge& knowledge,
               const Region& region);

// True for two strong stores of the same bytes that nothing orders, unless the later one reads the value of
// the earlier one, as an atomic does. Such stores are no race, but an access that follows `later` need not
// follow `earlier`.
bool overtakes(const RaceState& state, const Touch& earlier, const Touch& later, const Knowledge& knowledge,
               const Region& region);

// True for stores of the same bytes to the same place by lanes of one warp.
bool stores_the_same(const Touch& earlier, const Touch& later);

// True when the scope of each party includes the other party.
bool scopes_meet(const RaceState& state, uint64_t cta_a, Scope a, uint64_t cta_b, Scope b);

}  // namespace sim
