// mbarrier_ops.cpp -- mbarrier instructions. The state machine is engine/mbarrier; here are addresses,
// waiting and the state words that arrive returns: (phase << 20) | pending arrivals before this one.
#include <algorithm>
#include <map>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/text.h"

namespace sim {
namespace {

constexpr int kPendingBits = 20;

// Names the barrier in the text of every fault that concerns it.
template <class Action>
auto on_barrier(const Cta& cta, uint32_t offset, Action&& action) {
  try {
    return action();
  } catch (const Fault& fault) {
    throw Fault(fault.kind(), "mbarrier at shared offset " + hex(offset) + " of CTA rank " +
                                  std::to_string(cta.rank) + ": " + fault.what());
  }
}

Exec::Shared barrier_at(const Exec& x, const Inst& inst, const Operand& operand, uint32_t lane) {
  const Exec::Shared at = x.shared_of(inst.space, x.address(operand, lane), 8);
  if (at.offset % 8 != 0)
    throw Fault(FaultKind::kMisaligned,
                "mbarrier at shared offset " + hex(at.offset) + ": not a multiple of 8");
  return at;
}

SyncEvent event_of(SyncEvent::Kind kind, const Cta& cta, uint32_t offset) {
  SyncEvent event;
  event.kind = kind;
  event.mbarrier = {cta.linear, offset};
  const auto barrier = cta.mbarriers.find(offset);
  if (barrier != cta.mbarriers.end()) event.phase = barrier->second.phase();
  return event;
}

// The event has the phase in which it counts, which is the phase before the barrier changes.
void tell(const Exec& x, const Inst& inst, SyncEvent& event, uint32_t lanes, Order order) {
  event.order = order_of(inst, order);
  event.scope = scope_of(inst, Scope::kCta);
  event.local_form = inst.space == Space::kShared;
  x.report(event, lanes);
}

// Reports what an asynchronous operation does to a barrier as it lands.
void tell_landing(SyncEvent::Kind kind, const Cta& cta, uint32_t offset, int64_t amount, int64_t bytes) {
  const Cluster& cluster = *cta.cluster;
  const AsyncOp* op = cluster.landing;
  if (cluster.grid->observer == nullptr || op == nullptr) return;
  SyncEvent event = event_of(kind, cta, offset);
  event.amount = amount;
  event.bytes = bytes;
  event.thread = {op->issuer->linear, op->warp, op->lane};
  event.mask = 1u << op->lane;
  event.async_id = op->id;
  event.inst = op->inst;
  event.order = Order::kRelease;
  event.scope = Scope::kCluster;
  cluster.grid->observer->sync(event);
}

// Reports the arrivals of an instruction. Lanes that do the same to one phase are one event, which is
// reported when another lane does something else or no lane is left, and before any other event.
class Arrivals {
 public:
  Arrivals(const Exec& x, const Inst& inst, bool drop) : x_(x), inst_(inst) {
    if (drop) event_.kind = SyncEvent::Kind::kMbarrierArriveDrop;
    else event_.kind = SyncEvent::Kind::kMbarrierArrive;
  }
  void add(uint32_t lane, const Exec::Shared& at, const Mbarrier& barrier, int64_t amount, int64_t bytes) {
    const MbarrierRef ref{at.cta->linear, at.offset};
    if (!(event_.mbarrier == ref) || event_.phase != barrier.phase() || event_.amount != amount ||
        event_.bytes != bytes)
      tell_all();
    event_.mbarrier = ref;
    event_.phase = barrier.phase();
    event_.amount = amount;
    event_.bytes = bytes;
    lanes_ |= 1u << lane;
  }
  void tell_all() {
    if (lanes_ != 0 && x_.watched()) tell(x_, inst_, event_, lanes_, Order::kRelease);
    lanes_ = 0;
  }

 private:
  const Exec& x_;
  const Inst& inst_;
  SyncEvent event_;
  uint32_t lanes_ = 0;
};

void arrive(Exec& x, const Inst& inst, uint32_t lane, bool drop, Arrivals& arrivals) {
  const bool counted = inst.operands.size() > 2;
  const Exec::Shared at = barrier_at(x, inst, inst.operands[1], lane);
  const uint64_t amount = counted ? x.source(inst.operands[2].value, lane) : 1;
  const bool expects = inst.has(Q::kExpectTx);
  const int32_t count = expects ? 1 : int32_t(amount);
  const int64_t bytes = expects ? int64_t(uint32_t(amount)) : 0;
  Mbarrier& barrier = at.cta->mbarrier(at.offset);
  const uint64_t state = (barrier.phase() << kPendingBits) | uint32_t(barrier.pending());
  arrivals.add(lane, at, barrier, count, bytes);
  on_barrier(*at.cta, at.offset, [&] {
    if (expects) barrier.expect_tx(bytes);
    const bool completed = drop ? barrier.arrive_drop(count) : barrier.arrive(count);
    if (completed && inst.has(Q::kNoComplete))
      throw Fault(FaultKind::kProtocol, "arrive.noComplete completed the phase");
    return completed;
  });
  if (inst.operands[0].value.kind == Value::Kind::kRegister) {
    if (at.cta != &x.cta)
      throw Fault(FaultKind::kProtocol, "arrive on another CTA's mbarrier returns no state");
    x.write(inst.operands[0].value, lane, state);
  }
  x.changed();
}

void arrive(Exec& x, const Inst& inst, bool drop) {
  if (inst.has(Q::kExpectTx) && inst.operands.size() <= 2)
    throw Fault(FaultKind::kUnsupported, "expect_tx needs a byte count");
  Arrivals arrivals(x, inst, drop);
  try {
    SIM_FOR_LANES(lane, x.mask) arrive(x, inst, lane, drop, arrivals);
  } catch (const Fault&) {
    arrivals.tell_all();
    throw;
  }
  arrivals.tell_all();
}

// Reports one event for the lanes that asked the same of the same barrier and got the same answer.
void tell_answers(const Exec& x, const Inst& inst, uint32_t passed) {
  const auto question = [&](uint32_t lane) {
    return std::pair(barrier_at(x, inst, inst.operands[1], lane).offset,
                     x.source(inst.operands[2].value, lane));
  };
  for (uint32_t rest = x.mask; rest != 0;) {
    const uint32_t first = uint32_t(__builtin_ctz(rest));
    const auto [offset, asked] = question(first);
    const bool done = passed >> first & 1;
    uint32_t same = 0;
    SIM_FOR_LANES(lane, rest) {
      if (question(lane) == std::pair(offset, asked) && bool(passed >> lane & 1) == done) same |= 1u << lane;
    }
    rest &= ~same;
    SyncEvent event =
        event_of(done ? SyncEvent::Kind::kMbarrierWait : SyncEvent::Kind::kMbarrierTest, x.cta, offset);
    if (done) --event.phase;  // the youngest completed one; of a fresh barrier none has
    event.has_parity = inst.has(Q::kParity);
    if (event.has_parity) event.parity = uint32_t(asked);
    tell(x, inst, event, same, Order::kAcquire);
  }
}

// Performs try_wait and test_wait, which ask whether the phases of the lanes have completed.
void test(Exec& x, const Inst& inst, bool may_sleep) {
  uint32_t passed = 0;
  Wait w;
  w.kind = Wait::Kind::kMbarrier;
  SIM_FOR_LANES(lane, x.mask) {
    const Exec::Shared at = barrier_at(x, inst, inst.operands[1], lane);
    if (at.cta != &x.cta) throw Fault(FaultKind::kProtocol, "waiting on the mbarrier of another CTA");
    const Mbarrier& barrier = at.cta->mbarrier(at.offset);
    const uint64_t asked = x.source(inst.operands[2].value, lane);
    const bool done = inst.has(Q::kParity) ? barrier.test_parity(uint32_t(asked))
                                           : barrier.test_phase(asked >> kPendingBits);
    if (inst.has(Q::kParity) && asked > 1)
      throw Fault(FaultKind::kProtocol, "phase parity " + std::to_string(asked) + ": it is 0 or 1");
    if (done) passed |= 1u << lane;
    const Wait::Phase phase{at.cta, at.offset, barrier.phase()};
    if (w.phases.empty() || w.phases.back().offset != phase.offset) w.phases.push_back(phase);
    w.parity = inst.has(Q::kParity) ? asked : asked >> kPendingBits;
  }
  if (may_sleep && passed == 0 && !x.wakes_early()) {
    if (x.watched() && !x.fragment->entered) tell_answers(x, inst, passed);
    x.fragment->entered = true;
    x.wait(std::move(w), false);
    return;
  }
  if (x.watched()) tell_answers(x, inst, passed);
  x.fragment->entered = false;
  SIM_FOR_LANES(lane, x.mask) x.write(inst.operands[0].value, lane, passed >> lane & 1);
}

}  // namespace

Mbarrier& Cta::mbarrier(uint32_t offset) {
  const auto found = mbarriers.find(offset);
  if (found == mbarriers.end())
    throw Fault(FaultKind::kProtocol, "no mbarrier was initialised at shared offset " + hex(offset) +
                                          " of CTA rank " + std::to_string(rank));
  return found->second;
}

void mbarrier_complete_tx(Cta& cta, uint32_t offset, int64_t bytes) {
  Mbarrier& barrier = cta.mbarrier(offset);
  tell_landing(SyncEvent::Kind::kMbarrierCompleteTx, cta, offset, 0, bytes);
  on_barrier(cta, offset, [&] { return barrier.complete_tx(bytes); });
  ++cta.cluster->events;
}

void mbarrier_arrive(Cta& cta, uint32_t offset, int32_t count) {
  Mbarrier& barrier = cta.mbarrier(offset);
  tell_landing(SyncEvent::Kind::kMbarrierArrive, cta, offset, count, 0);
  on_barrier(cta, offset, [&] { return barrier.arrive(count); });
  ++cta.cluster->events;
}

// Bytes that are expected or complete: the second operand says how many.
template <class Result>
static void count_bytes(Exec& x, const Inst& inst, SyncEvent::Kind kind, Result (Mbarrier::*count)(int64_t)) {
  SIM_FOR_LANES(lane, x.mask) {
    const Exec::Shared at = barrier_at(x, inst, inst.operands[0], lane);
    const int64_t bytes = int64_t(uint32_t(x.source(inst.operands[1].value, lane)));
    Mbarrier& barrier = at.cta->mbarrier(at.offset);
    if (x.watched()) {
      SyncEvent event = event_of(kind, *at.cta, at.offset);
      event.bytes = bytes;
      tell(x, inst, event, 1u << lane, Order::kRelaxed);
    }
    on_barrier(*at.cta, at.offset, [&] { return (barrier.*count)(bytes); });
    x.changed();
  }
}

namespace op {

// Lanes of one instruction may name one object with one count: a warp that initialises its barrier without
// electing a lane leaves the same state as a single store, and kernels in use do that. Any later init of a
// live object is a fault.
void mbarrier_init(Exec& x, const Inst& inst) {
  struct Init {
    int64_t count = 0;
    uint32_t lanes = 0;
  };
  std::map<uint32_t, Init> done;  // by this instruction, by offset
  SIM_FOR_LANES(lane, x.mask) {
    const Exec::Shared at = barrier_at(x, inst, inst.operands[0], lane);
    if (at.cta != &x.cta) throw Fault(FaultKind::kProtocol, "mbarrier.init on another CTA's shared memory");
    const int64_t count = int64_t(uint32_t(x.source(inst.operands[1].value, lane)));
    const auto [first, is_first] = done.emplace(at.offset, Init{count, 0});
    first->second.lanes |= 1u << lane;
    if (!is_first) {
      if (first->second.count != count)
        throw Fault(FaultKind::kProtocol, "lanes of one mbarrier.init give the mbarrier at shared offset " +
                                              hex(at.offset) + " the counts " +
                                              std::to_string(first->second.count) + " and " +
                                              std::to_string(count));
      continue;
    }
    const bool fresh = on_barrier(x.cta, at.offset,
                                  [&] { return x.cta.mbarriers.emplace(at.offset, Mbarrier(count)).second; });
    if (!fresh)
      throw Fault(FaultKind::kProtocol,
                  "mbarrier.init on the live mbarrier at shared offset " + hex(at.offset));
    x.cta.shared.poison(at.offset, 8);
    x.cta.mbarrier_low = std::min(x.cta.mbarrier_low, at.offset);
    x.cta.mbarrier_high = std::max(x.cta.mbarrier_high, at.offset + 8);
    x.changed();
  }
  if (!x.watched()) return;
  for (const auto& [offset, init] : done) {
    SyncEvent event = event_of(SyncEvent::Kind::kMbarrierInit, x.cta, offset);
    event.amount = init.count;
    tell(x, inst, event, init.lanes, Order::kWeak);
  }
}

void mbarrier_inval(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const Exec::Shared at = barrier_at(x, inst, inst.operands[0], lane);
    at.cta->mbarrier(at.offset);
    if (x.watched()) {
      SyncEvent event = event_of(SyncEvent::Kind::kMbarrierInval, *at.cta, at.offset);
      tell(x, inst, event, 1u << lane, Order::kWeak);
    }
    at.cta->mbarriers.erase(at.offset);
    x.changed();
  }
}

void mbarrier_arrive(Exec& x, const Inst& inst) { arrive(x, inst, false); }
void mbarrier_arrive_drop(Exec& x, const Inst& inst) { arrive(x, inst, true); }

void mbarrier_expect_tx(Exec& x, const Inst& inst) {
  count_bytes(x, inst, SyncEvent::Kind::kMbarrierExpectTx, &Mbarrier::expect_tx);
}
void mbarrier_complete_tx(Exec& x, const Inst& inst) {
  count_bytes(x, inst, SyncEvent::Kind::kMbarrierCompleteTx, &Mbarrier::complete_tx);
}

void mbarrier_try_wait(Exec& x, const Inst& inst) { test(x, inst, true); }
void mbarrier_test_wait(Exec& x, const Inst& inst) { test(x, inst, false); }

void mbarrier_pending_count(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask)
  x.write(inst.operands[0].value, lane, x.source(inst.operands[1].value, lane) & ((1u << kPendingBits) - 1));
}

}  // namespace op
}  // namespace sim
