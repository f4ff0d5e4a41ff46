// report.cpp -- the texts that name a place in a running grid, and the report of a grid that cannot move.
#include "sim/exec/report.h"

#include <algorithm>

#include "sim/exec/exec.h"
#include "sim/exec/spin.h"
#include "sim/text.h"

namespace sim {

static std::string lanes_text(uint32_t lanes) {
  if ((lanes & (lanes - 1)) == 0 && lanes != 0) return "lane " + std::to_string(__builtin_ctz(lanes));
  return "lanes " + hex(lanes);
}

static bool reaches(const AsyncOp& op, const Cta& cta, uint32_t offset) {
  if (op.copy)
    return std::any_of(op.copy->targets.begin(), op.copy->targets.end(), [&](const Copy::Target& target) {
      return target.barrier_cta == &cta && target.barrier == offset;
    });
  const MbarrierRef barrier{cta.linear, offset};
  return std::find(op.signals.begin(), op.signals.end(), barrier) != op.signals.end();
}

// Names the operations in flight that will reach the barrier.
static std::string signalling(const Cta& cta, uint32_t offset) {
  std::string out;
  for (const auto& op : cta.cluster->pending)
    if (reaches(*op, cta, offset))
      out += "; pending for it: warp " + std::to_string(op->warp) + " of CTA rank " +
             std::to_string(op->issuer->rank) + " issued " + describe(*op->inst->statement);
  return out;
}

static std::string tensor_memory_text(const Cta& cta) {
  std::string out = "waits for tensor memory: its CTA holds " +
                    std::to_string(cta.tmem ? cta.tmem->allocated_columns() : 0) + " of " +
                    std::to_string(Tmem::kColumns) + " columns";
  if (cta.tmem_request.state != TmemRequest::State::kAsked) return out;
  const TmemRequest& mine = cta.tmem_request;
  const Cta& peer = *cta.cluster->ctas[cta.rank ^ 1];
  return out + ", it asks to " + (mine.free ? "free " : "allocate ") + std::to_string(mine.columns) +
         ", and CTA rank " + std::to_string(peer.rank) + ", its pair, has " +
         (peer.tmem_request.state == TmemRequest::State::kAsked ? "asked too" : "not asked");
}

static std::string waiting_for(const Warp& warp, const Fragment& fragment) {
  const Wait& wait = fragment.wait;
  const Cta& cta = *warp.cta;
  switch (wait.kind) {
    case Wait::Kind::kNone: return "can run";
    case Wait::Kind::kMbarrier: {
      std::string out = "waits for ";
      for (const Wait::Phase& phase : wait.phases) {
        const auto found = phase.cta->mbarriers.find(phase.offset);
        out += "mbarrier at shared offset " + hex(phase.offset) + ", parity " + std::to_string(wait.parity);
        if (found != phase.cta->mbarriers.end())
          out += " (phase " + std::to_string(found->second.phase()) + ", pending arrivals " +
                 std::to_string(found->second.pending()) + " of " + std::to_string(found->second.expected()) +
                 ", " + pending_bytes(found->second) + ")";
        out += signalling(*phase.cta, phase.offset);
        if (&phase != &wait.phases.back()) out += "; ";
      }
      return out;
    }
    case Wait::Kind::kNamedBarrier: {
      const NamedBarrier& barrier = cta.named[wait.barrier];
      const uint32_t expected = barrier.expected != 0 ? barrier.expected : 32 * cta.live_warps;
      return "waits for named barrier " + std::to_string(wait.barrier) + " (" +
             std::to_string(barrier.arrived) + " of " + std::to_string(expected) + " threads)";
    }
    case Wait::Kind::kClusterBarrier: {
      std::string out = "waits for the cluster barrier; not arrived:";
      for (const auto& other : cta.cluster->ctas)
        for (const auto& w : other->warps)
          if ((w->live & ~w->cluster_arrived) != 0)
            out += " CTA rank " + std::to_string(other->rank) + " warp " + std::to_string(w->index);
      return out;
    }
    case Wait::Kind::kWarp:
      return "waits for lanes " + hex(wait.members & warp.live & ~wait.lanes) +
             " of its warp at this instruction" +
             (wait.aligned ? ": an aligned instruction in divergent code" : "");
    case Wait::Kind::kTmem: return tensor_memory_text(cta);
    case Wait::Kind::kGroups: return "waits for its groups of copies";
    case Wait::Kind::kRegisters:
      return "waits for registers: its threads hold " + std::to_string(warp.registers_held) +
             " each and need " + std::to_string(wait.allowed) +
             " more together, but the pool of the CTA has " + std::to_string(cta.register_pool);
    case Wait::Kind::kWgmma: return wgmma_wait_text(warp, wait.generation);
    case Wait::Kind::kGrids: return "waits for the grids before its own";
    case Wait::Kind::kTrap: return "has executed a trap";
  }
  return "";
}

static std::string circle_text(const Spin& spin) {
  if (!spin.region) return "runs in a circle";
  return std::string("reads ") + (spin.region->memory == Memory::kShared ? "shared" : "global") +
         " address " + hex(spin.region->address) + " again and again, which nobody will write,";
}

std::string pending_bytes(const Mbarrier& barrier) {
  return barrier.tx() < 0 ? std::to_string(-barrier.tx()) + " bytes more than expected"
                          : "pending bytes " + std::to_string(barrier.tx());
}

std::string where(const Grid& grid, const Cta& cta) {
  std::string out = "CTA (" + std::to_string(cta.ctaid[0]) + "," + std::to_string(cta.ctaid[1]) + "," +
                    std::to_string(cta.ctaid[2]) + ")";
  const Dim3& c = grid.config.cluster;
  if (c.x * c.y * c.z > 1)
    out += " rank " + std::to_string(cta.rank) + " of cluster " + std::to_string(cta.cluster->index);
  return out;
}

std::string deadlock_report(const Grid& grid, const std::vector<Spin>& spins) {
  constexpr int kMaxLines = 64;
  std::string out;
  int lines = 0;
  const auto line = [&](const Cta& cta, const std::string& warps, uint32_t lanes, const std::string& what,
                        const Inst& inst) {
    if (++lines > kMaxLines) return;
    out += "  " + where(grid, cta) + ", " + warps + ", " + lanes_text(lanes) + " " + what + " at " +
           describe(*inst.statement) + "\n";
  };
  for (size_t i = 0; i < spins.size(); ++i) {
    const Spin& spin = spins[i];
    // Warps that run in one circle are one line.
    const auto alike = [&](const Spin& other) {
      return other.thread.cta == spin.thread.cta && other.inst == spin.inst && other.mask == spin.mask &&
             circle_text(other) == circle_text(spin);
    };
    const auto here = spins.begin() + std::ptrdiff_t(i);
    if (std::any_of(spins.begin(), here, alike)) continue;
    std::string warps = std::to_string(spin.thread.warp);
    const bool several = std::any_of(here + 1, spins.end(), alike);
    for (auto other = here + 1; other != spins.end(); ++other)
      if (alike(*other)) warps += ", " + std::to_string(other->thread.warp);
    for (const auto& cluster : grid.resident)
      for (const auto& cta : cluster->ctas)
        if (cta->linear == spin.thread.cta)
          line(*cta, (several ? "warps " : "warp ") + warps, spin.mask,
               (several ? "each " : "") + circle_text(spin), *spin.inst);
  }
  for (const auto& cluster : grid.resident)
    for (const auto& cta : cluster->ctas)
      for (const auto& warp : cta->warps) {
        for (const auto& fragment : warp->fragments)
          if (spins.empty() || fragment->wait.kind != Wait::Kind::kNone)
            line(*cta, "warp " + std::to_string(warp->index), fragment->mask, waiting_for(*warp, *fragment),
                 grid.kernel.code[fragment->pc]);
        for (const auto& join : warp->joins)
          line(*cta, "warp " + std::to_string(warp->index), join->arrived,
               "waits for lanes " + hex(join->expected & ~join->arrived) + " to reconverge",
               grid.kernel.code[join->pc]);
      }
  if (lines > kMaxLines) out += "  ... and " + std::to_string(lines - kMaxLines) + " more\n";
  return out;
}

Fault given_up(const Grid& grid, uint64_t quiet, const std::vector<Running>& running) {
  constexpr size_t kMaxLines = 16;
  const auto lines_of = [](const Running& one) {
    return "PTX lines " + std::to_string(one.first_line) + " to " + std::to_string(one.last_line);
  };
  std::string out = "gave up after " + std::to_string(quiet) +
                    " warp instructions that changed nothing another thread could see";
  if (running.empty()) return Fault(FaultKind::kGivenUp, out + " in kernel " + grid.kernel.info.name);
  out += ", in " + lines_of(running.front()) + " at last" +
         "\n  whether they ever end is not known; --patience or SIM_PATIENCE lets them go on for longer";
  for (size_t i = 1; i < std::min(running.size(), kMaxLines); ++i) {
    const Warp& warp = *running[i].warp;
    out += "\n  " + where(grid, *warp.cta) + ", warp " + std::to_string(warp.index) + ", " +
           lanes_text(running[i].mask) + ": " + lines_of(running[i]);
  }
  if (running.size() > kMaxLines)
    out += "\n  and " + std::to_string(running.size() - kMaxLines) + " more warps";
  return located(Fault(FaultKind::kGivenUp, out), grid, *running.front().warp, running.front().mask,
                 *running.front().inst);
}

Fault located(const Fault& fault, const Grid& grid, const Warp& warp, uint32_t lanes, const Inst& inst) {
  return Fault(fault.kind(), std::string(fault.what()) + "\n  in kernel " + grid.kernel.info.name + ", " +
                                 where(grid, *warp.cta) + ", warp " + std::to_string(warp.index) + ", " +
                                 lanes_text(lanes) + "\n  at " + describe(*inst.statement));
}

void throw_at(const Fault& fault, const Grid& grid, const Warp& warp, uint32_t lanes, const Inst& inst) {
  throw located(fault, grid, warp, lanes, inst);
}

bool Grid::outlives(const Fault& fault) const {
  const FaultKind kind = fault.kind();
  const bool known = kind == FaultKind::kPoison || kind == FaultKind::kBounds ||
                     kind == FaultKind::kMisaligned || kind == FaultKind::kAlignment ||
                     kind == FaultKind::kProtocol || kind == FaultKind::kTrap || kind == FaultKind::kAssert ||
                     kind == FaultKind::kDeadlock;
  if (!go_on || !known) return false;
  observer->outlived(kind, fault.what());
  return true;
}

void Exec::outlive(const Fault& fault, uint32_t lanes) const {
  tell_accesses();
  if (!grid.go_on || !grid.outlives(located(fault, grid, warp, lanes, grid.kernel.code[fragment->pc])))
    throw fault;
}

}  // namespace sim
