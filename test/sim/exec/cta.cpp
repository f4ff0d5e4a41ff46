// cta.cpp -- how clusters of CTAs begin and end.
#include "sim/exec/exec.h"
#include "sim/exec/occupancy.h"
#include "sim/exec/report.h"
#include "sim/text.h"

namespace sim {

Cta::Cta(Cluster& owner, uint32_t rank_in_cluster, size_t shared_bytes)
    : cluster(&owner),
      rank(rank_in_cluster),
      shared(shared_bytes, "shared memory of CTA rank " + std::to_string(rank_in_cluster)) {}

static void report_start(const Cta& cta) {
  const Cluster& cluster = *cta.cluster;
  if (cluster.grid->observer == nullptr) return;
  SyncEvent event;
  event.kind = SyncEvent::Kind::kCtaStart;
  event.thread.cta = cta.linear;
  event.cta = cta.linear;
  event.object = cta.shared.size();
  event.phase = cta.rank;
  event.amount = int64_t(cluster.index);
  cluster.grid->observer->sync(event);
}

std::unique_ptr<Cluster> start_cluster(Grid& grid, uint64_t index) {
  const Dim3 &g = grid.config.grid, &b = grid.config.block, &c = grid.config.cluster;
  const uint64_t nx = g.x / c.x, ny = g.y / c.y;
  auto cluster = std::make_unique<Cluster>();
  cluster->grid = &grid;
  cluster->index = index;
  cluster->id[0] = uint32_t(index % nx);
  cluster->id[1] = uint32_t(index / nx % ny);
  cluster->id[2] = uint32_t(index / nx / ny);
  const uint32_t threads = b.x * b.y * b.z;
  const size_t shared_bytes = grid.shared_shift + grid.kernel.dynamic_smem_offset + grid.config.dynamic_smem;
  for (uint32_t rank = 0; rank < c.x * c.y * c.z; ++rank) {
    auto cta = std::make_unique<Cta>(*cluster, rank, shared_bytes);
    cta->ctaid[0] = cluster->id[0] * c.x + rank % c.x;
    cta->ctaid[1] = cluster->id[1] * c.y + rank / c.x % c.y;
    cta->ctaid[2] = cluster->id[2] * c.z + rank / c.x / c.y;
    cta->linear = (uint64_t(cta->ctaid[2]) * g.y + cta->ctaid[1]) * g.x + cta->ctaid[0];
    cta->shared_begin += grid.shared_shift;
    for (uint32_t first = 0; first < threads; first += 32) {
      auto warp = std::make_unique<Warp>();
      warp->cta = cta.get();
      warp->index = first / 32;
      warp->live = threads - first >= 32 ? 0xFFFFFFFF : (1u << (threads - first)) - 1;
      warp->registers = std::make_unique_for_overwrite<uint64_t[]>(grid.kernel.register_names.size() * 32);
      warp->written.resize(grid.kernel.register_names.size());
      warp->registers_held = uint32_t(registers_at_launch(grid.machine, grid.kernel.info));
      if (grid.kernel.local_bytes != 0)
        warp->local = std::make_unique<Bytes>(size_t(grid.kernel.local_bytes) * 32, "local memory");
      auto fragment = std::make_unique<Fragment>();
      fragment->pc = grid.kernel.functions[0].entry;
      fragment->mask = warp->live;
      warp->fragments.push_back(std::move(fragment));
      cta->warps.push_back(std::move(warp));
    }
    cta->live_warps = uint32_t(cta->warps.size());
    cluster->ctas.push_back(std::move(cta));
  }
  cluster->live_ctas = uint32_t(cluster->ctas.size());
  for (const auto& cta : cluster->ctas) report_start(*cta);
  return cluster;
}

void exit_lanes(Exec& x) {
  const uint32_t lanes = x.mask;
  x.fragment->mask &= ~lanes;
  x.warp.live &= ~lanes;
  drop_from_joins(x.warp, x.fragment->join, lanes);
  x.changed();
  SyncEvent event;
  event.kind = SyncEvent::Kind::kExit;
  event.cta = x.cta.linear;
  x.report(event, lanes);
  if (x.warp.live == 0 && --x.cta.live_warps == 0) {
    try {
      check_exit(x.cta);
    } catch (const Fault& fault) {
      x.outlive(fault, lanes);
    }
    event.kind = SyncEvent::Kind::kCtaExit;
    x.report(event, lanes);
    x.grid.releasing_ctas += !x.cta.launched_dependents;
    --x.cluster.live_ctas;
  }
  check_named_barriers(x.cta);
  check_cluster_barrier(x.cluster);
}

// Names the barriers that the pending operation would still signal in this CTA.
static std::string pending_barriers(const Cta& cta, const AsyncOp& op) {
  std::string out;
  if (!op.copy) return out;
  for (const Copy::Target& target : op.copy->targets) {
    if (target.barrier_cta != &cta) continue;
    out += "; it signals the mbarrier at shared offset " + hex(target.barrier);
    const auto found = cta.mbarriers.find(target.barrier);
    if (found != cta.mbarriers.end())
      out += " (phase " + std::to_string(found->second.phase()) + ", pending arrivals " +
             std::to_string(found->second.pending()) + ", " + pending_bytes(found->second) + ")";
  }
  return out;
}

void check_exit(Cta& cta) {
  for (const auto& op : cta.cluster->pending)
    if ((op->ranks >> cta.rank & 1) != 0 && !(op->copy && op->copy->may_outlive_cta()))
      throw Fault(FaultKind::kProtocol,
                  "the CTA exits while an asynchronous operation still uses its memory: warp " +
                      std::to_string(op->warp) + " of CTA rank " + std::to_string(op->issuer->rank) +
                      " issued " + describe(*op->inst->statement) + pending_barriers(cta, *op));
  for (const auto& [offset, barrier] : cta.mbarriers) {
    if (barrier.tx() == 0) continue;
    const bool lacks = barrier.tx() > 0;
    throw Fault(FaultKind::kProtocol, "the CTA exits although " +
                                          std::to_string(lacks ? barrier.tx() : -barrier.tx()) +
                                          (lacks ? " bytes fewer" : " bytes more") +
                                          " have arrived at the mbarrier at shared offset " + hex(offset) +
                                          " than it was told to expect");
  }
  if (cta.tmem && cta.tmem->allocated_columns() != 0)
    throw Fault(FaultKind::kProtocol, "the CTA exits with " + std::to_string(cta.tmem->allocated_columns()) +
                                          " tensor memory columns allocated");
}

}  // namespace sim
