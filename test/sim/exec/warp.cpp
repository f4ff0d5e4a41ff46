// warp.cpp -- how the lanes of a warp move: fragments that diverge at branches and meet again at the
// immediate post-dominator (or, when the policy says so, only where an instruction gathers them), waiting,
// and the instructions that need several lanes at once.
#include <algorithm>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/exec/report.h"
#include "sim/text.h"

namespace sim {

static void remove(Warp& warp, const Fragment* fragment) {
  auto& list = warp.fragments;
  list.erase(std::find_if(list.begin(), list.end(), [&](const auto& f) { return f.get() == fragment; }));
}

static void forget(Warp& warp, const std::shared_ptr<Join>& join) {
  warp.joins.erase(std::remove(warp.joins.begin(), warp.joins.end(), join), warp.joins.end());
}

static void set_join(Fragment& fragment, std::shared_ptr<Join> join) {
  fragment.join_pc = join ? join->pc : kNowhere;
  fragment.join = std::move(join);
}

// Is called at the place where the lanes of the fragment wait for the other lanes of the join. Returns false
// when they do wait; the fragment is gone then.
static bool enter_join(Warp& warp, Fragment* fragment) {
  while (fragment->pc == fragment->join_pc) {
    const std::shared_ptr<Join> join = fragment->join;
    join->arrived |= fragment->mask;
    if (join->arrived != join->expected) {
      join->calls = fragment->calls;
      if (std::find(warp.joins.begin(), warp.joins.end(), join) == warp.joins.end())
        warp.joins.push_back(join);
      remove(warp, fragment);
      return false;
    }
    fragment->mask = join->arrived;
    forget(warp, join);
    set_join(*fragment, join->parent);
  }
  return true;
}

static void leave_join(Warp& warp, const std::shared_ptr<Join>& join) {
  auto fragment = std::make_unique<Fragment>();
  fragment->pc = join->pc;
  fragment->mask = join->arrived;
  fragment->calls = join->calls;
  set_join(*fragment, join->parent);
  join->expected &= ~join->arrived;
  join->arrived = 0;
  forget(warp, join);
  warp.fragments.push_back(std::move(fragment));
}

// True when `b` sleeps at the meeting that `a` comes to: the same instruction (any bar.warp.sync matches any
// other).
static bool same_meeting(const Kernel& kernel, const Fragment& a, const Fragment& b, uint32_t members,
                         bool aligned) {
  if (b.wait.kind != Wait::Kind::kWarp || b.wait.members != members || b.wait.aligned != aligned)
    return false;
  if (aligned) return a.pc == b.pc && a.calls == b.calls;
  const Inst &ia = kernel.code[a.pc], &ib = kernel.code[b.pc];
  return a.pc == b.pc || (ia.operation == ib.operation && ia.statement->opcode == "bar");
}

// Returns the fault of `lanes` that execute an .aligned instruction without the other live lanes.
static Fault apart(const Grid& grid, const Warp& warp, const Fragment& fragment, uint32_t lanes) {
  std::string others;
  const std::vector<Inst>& code = grid.kernel.code;
  for (const auto& other : warp.fragments)
    if (other.get() != &fragment)
      others += "; lanes " + hex(other->mask) + " are at " + describe(*code[other->pc].statement);
  for (const auto& join : warp.joins)
    others +=
        "; lanes " + hex(join->arrived) + " wait to reconverge at " + describe(*code[join->pc].statement);
  if (fragment.mask != lanes) others += "; lanes " + hex(fragment.mask & ~lanes) + " have a false guard";
  return Fault(FaultKind::kProtocol, "aligned instruction in divergent code: lanes " + hex(lanes) + " of " +
                                         hex(warp.live) + " execute it" + others);
}

// Is called when nothing can move. If some lanes of a warp are at an .aligned instruction and the other lanes
// wait at other instructions, they will never meet, which is a fault.
static void check_apart(const Grid& grid, const Warp& warp) {
  const Fragment* parked = nullptr;
  for (const auto& fragment : warp.fragments) {
    if (fragment->wait.kind != Wait::Kind::kWarp) return;
    if (fragment->wait.aligned) parked = fragment.get();
  }
  if (parked != nullptr)
    throw_at(apart(grid, warp, *parked, parked->mask), grid, warp, parked->mask,
             grid.kernel.code[parked->pc]);
}

static bool ready(Warp& warp, Fragment& fragment) {
  Wait& wait = fragment.wait;
  if (wait.kind == Wait::Kind::kNone) return true;
  Cta& cta = *warp.cta;
  const Cluster& cluster = *cta.cluster;
  if (wait.checked_at == cluster.events) return false;
  bool done = false;
  switch (wait.kind) {
    case Wait::Kind::kNone: break;
    case Wait::Kind::kMbarrier:
      for (const Wait::Phase& phase : wait.phases) {
        const auto barrier = phase.cta->mbarriers.find(phase.offset);
        done = done || barrier == phase.cta->mbarriers.end() || barrier->second.phase() != phase.phase;
      }
      break;
    case Wait::Kind::kNamedBarrier: done = cta.named[wait.barrier].generation != wait.generation; break;
    case Wait::Kind::kClusterBarrier: done = cluster.barrier_generation > wait.generation; break;
    case Wait::Kind::kWarp: {
      uint32_t here = 0;
      for (const auto& other : warp.fragments)
        if (same_meeting(cluster.grid->kernel, fragment, *other, wait.members, wait.aligned))
          here |= other->wait.lanes;
      done = (here & wait.members & warp.live) == (wait.members & warp.live);
      break;
    }
    case Wait::Kind::kTmem: done = true; break;  // looks again whenever anything happened
    case Wait::Kind::kWgmma:
      done = cta.warpgroups[warp.index / kWarpgroup]->complete >= wait.generation;
      break;
    case Wait::Kind::kRegisters: done = cta.register_pool >= wait.allowed; break;
    case Wait::Kind::kGrids: done = cluster.grid->preceding_over(); break;
    case Wait::Kind::kTrap: break;
    case Wait::Kind::kGroups:
      done = true;
      SIM_FOR_LANES(lane, wait.lanes) {
        done =
            done && (wait.bulk ? warp.bulk_groups : warp.async_groups)[lane].at_most(wait.allowed, wait.read);
      }
      break;
  }
  wait.checked_at = cluster.events;
  return done;
}

static Fragment* pick(Warp& warp) {
  const size_t count = warp.fragments.size();
  for (size_t i = 0; i < count; ++i) {
    Fragment* fragment = warp.fragments[(warp.turn + i) % count].get();
    if (!ready(warp, *fragment)) continue;
    warp.turn = (warp.turn + i + 1) % count;
    fragment->wait = Wait{};
    return fragment;
  }
  return nullptr;
}

// Goes on after an instruction that could not be executed. Its result is zero, or true where it is a test, so
// that a loop that waits ends.
static void leave_out(Exec& x, const Inst& inst) {
  const auto fill = [&](const Value& value) {
    if (value.kind != Value::Kind::kRegister) return;
    SIM_FOR_LANES(lane, x.mask & ~x.warp.written[value.reg]) x.write(value, lane, value.bits == 1);
  };
  if (!inst.operands.empty() && inst.operands[0].kind != Operand::Kind::kAddress) {
    fill(inst.operands[0].value);
    for (const Value& item : inst.operands[0].items) fill(item);
  }
  x.fragment->entered = false;
  x.fragment->wait = Wait{};
  ++x.fragment->pc;
}

// On hardware a trap ends all threads of the grid, however far they are. Here the other threads go on as far
// as they can, as in a run of the program in which the trapped lanes were the slowest.
static void hold_trap(Exec& x) {
  x.fragment->wait.kind = Wait::Kind::kTrap;
  x.grid.trapped = true;
}

bool CopyGroups::at_most(uint32_t pending, bool read) const {
  for (size_t i = 0; i + pending < committed.size(); ++i)
    if ((read ? committed[i]->unread : committed[i]->pending) != 0) return false;
  return true;
}

bool can_run(Warp& warp) {
  for (const auto& fragment : warp.fragments) {
    if (fragment->wait.kind == Wait::Kind::kNone) return true;
    if (ready(warp, *fragment)) {
      fragment->wait = Wait{};
      return true;
    }
  }
  return false;
}

bool run_warp(Grid& grid, Warp& warp, uint32_t quantum) {
  Fragment* fragment = pick(warp);
  if (fragment == nullptr) return false;
  const std::vector<Inst>& code = grid.kernel.code;
  const Inst* inst = &code[fragment->pc];
  Exec x{grid, *warp.cta->cluster, *warp.cta, warp, fragment};
  try {
    for (; quantum > 0; --quantum) {
      if (fragment->pc == fragment->join_pc && !enter_join(warp, fragment)) break;
      inst = &code[fragment->pc];
      ++grid.stats.warp_instructions;
      x.mask = fragment->mask;
      x.next_pc = fragment->pc + 1;
      if (inst->guarded) {
        const uint32_t missing = x.mask & ~warp.written[inst->guard];
        if (missing != 0) {
          Value guard;
          guard.kind = Value::Kind::kRegister;
          guard.reg = inst->guard;
          x.source(guard, uint32_t(__builtin_ctz(missing)));
        }
        const uint64_t* predicate = &warp.registers[inst->guard * 32];
        uint32_t taken = 0;
        SIM_FOR_LANES(lane, x.mask) taken |= uint32_t(predicate[lane] & 1) << lane;
        x.mask &= inst->guard_negated ? ~taken : taken;
      }
      if (x.mask != 0) {
        if (grid.observer != nullptr)
          grid.observer->instruction(x.thread(uint32_t(__builtin_ctz(x.mask))), x.mask, *inst);
        if (!warp.transfers.empty()) use_registers(x, *inst);
        if (warp.wgmma && !inst->wgmma_registers.empty() && inst->operation != Operation::wgmma_mma)
          use_wgmma_registers(x, *inst);
        kHandlers[size_t(inst->operation)](x, *inst);
        x.tell_accesses();
      }
      fragment->pc = x.next_pc;
      if (fragment->mask == 0) {
        remove(warp, fragment);
        break;
      }
      if (fragment->wait.kind != Wait::Kind::kNone) break;
    }
  } catch (const Fault& fault) {
    x.tell_accesses();
    const Fault here = located(fault, grid, warp, x.mask, *inst);
    if (!grid.outlives(here)) throw here;
    if (fault.kind() == FaultKind::kTrap || fault.kind() == FaultKind::kAssert) hold_trap(x);
    else leave_out(x, *inst);
  }
  return true;
}

void diverge(Exec& x, uint32_t taken, uint32_t target, uint32_t rejoin) {
  Fragment& stay = *x.fragment;
  if (rejoin != kNowhere && rejoin != stay.join_pc && x.grid.policy.reconverge()) {
    auto join = std::make_shared<Join>();
    join->pc = rejoin;
    join->expected = stay.mask;
    join->parent = stay.join;
    set_join(stay, std::move(join));
  }
  auto jump = std::make_unique<Fragment>();
  jump->pc = target;
  jump->mask = taken;
  jump->calls = stay.calls;
  set_join(*jump, stay.join);
  stay.mask &= ~taken;
  x.warp.fragments.push_back(std::move(jump));
}

bool release_a_join(Cluster& cluster, bool others_come) {
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps) {
      check_apart(*cluster.grid, *warp);
      if (!warp->joins.empty()) {
        leave_join(*warp, std::shared_ptr<Join>(warp->joins.back()));
        warp->ahead |= others_come;
        ++cluster.events;
        return true;
      }
    }
  return false;
}

void drop_from_joins(Warp& warp, std::shared_ptr<Join> join, uint32_t lanes) {
  for (; join; join = join->parent) {
    join->expected &= ~lanes;
    if (join->arrived != 0 && join->arrived == join->expected) leave_join(warp, join);
  }
}

void Exec::wait(Wait&& w, bool resume_after) {
  w.lanes = mask;
  w.checked_at = cluster.events;
  fragment->wait = std::move(w);
  if (!resume_after) next_pc = fragment->pc;
}

// The ISA makes a lane wait for those that its own mask names, and for no other lane. So a warp whose lanes
// have several masks is several groups, which hardware runs one after the other.
bool Exec::gather(const Value& mask_of, SyncEvent::Kind event) {
  const uint32_t members = uint32_t(source(mask_of, uint32_t(__builtin_ctz(mask))));
  uint32_t others = 0;
  SIM_FOR_LANES(lane, mask) others |= uint32_t(uint32_t(source(mask_of, lane)) != members) << lane;
  if (others != 0) {
    diverge(*this, others, fragment->pc, fragment->pc + 1);
    mask &= ~others;
  }
  if ((mask & ~members) != 0)
    throw Fault(FaultKind::kProtocol,
                "lanes " + hex(mask) + " execute the instruction but its member mask is " + hex(members));
  if (!meet(members, false)) return false;
  if (watched()) {
    SyncEvent met;
    met.kind = event;
    report(met, mask);
  }
  return true;
}

bool Exec::meet(uint32_t members, bool aligned) {
  const uint32_t needed = members & warp.live;
  uint32_t here = mask;
  std::vector<Fragment*> others;
  for (const auto& other : warp.fragments)
    if (other.get() != fragment && same_meeting(grid.kernel, *fragment, *other, members, aligned)) {
      here |= other->wait.lanes;
      others.push_back(other.get());
    }
  if ((here & needed) != needed) {
    Wait w;
    w.kind = Wait::Kind::kWarp;
    w.members = members;
    w.aligned = aligned;
    wait(std::move(w), false);
    return false;
  }
  for (Fragment* other : others) {
    if ((warp.ahead || !grid.policy.reconverge()) && other->pc == fragment->pc &&
        other->calls == fragment->calls) {
      if (other->join != fragment->join) {
        drop_from_joins(warp, other->join, other->mask);
        drop_from_joins(warp, fragment->join, fragment->mask);
        set_join(*fragment, nullptr);
      }
      fragment->mask |= other->mask;
      remove(warp, other);
    } else {
      other->wait = Wait{};
      ++other->pc;
    }
  }
  mask = here & needed;
  return true;
}

bool Exec::converged() {
  if (mask == warp.live) return true;
  if ((grid.policy.reconverge() && !warp.ahead) || mask != fragment->mask) {
    outlive(apart(grid, warp, *fragment, mask), mask);
    mask = fragment->mask;
    if (mask == warp.live) return true;
  }
  return meet(0xFFFFFFFF, true);
}

}  // namespace sim
