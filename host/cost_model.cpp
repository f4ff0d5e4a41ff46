// cost_model.cpp -- the equations. Every number about the kernel comes from its plan, every other from
// cost_constants.h.
#include "host/cost_model.h"

#include <algorithm>
#include <cmath>

#include "host/epilogue_work.h"
#include "host/sf_layout.h"

namespace dualgemm {
namespace {

// An instance and a shape need this, whichever machine runs them.
struct Work {
  const Plan& p;
  const EpilogueKind& epilogue;
  const Shape& shape;
  const CostConstants& t;

  double us(double cycles) const { return cycles / t.clock; }
  // These are the scale factors of one k-tile.
  int64_t scale_bytes() const { return p.scales.stage_bytes / p.scales.k_tiles; }
  int64_t fill_bytes() const { return p.operands.stage_bytes + scale_bytes(); }
  // One mma step has this many atoms of scale factors, each of 128 rows: those of A, and of each B.
  int32_t scale_atoms() const { return p.scales.stage_bytes / p.scales.steps / kSfAtomBytes; }
  // An accumulator has this many rows in one CTA.
  int32_t lanes() const { return p.mma.m / p.mma.cta_group; }
  int32_t acc_columns() const { return p.mma.accumulators * p.mma.columns; }
  // Returns in how many chunks the epilogue takes that many accumulator columns, of both products together.
  double chunks(int32_t columns) const {
    const int32_t width = epilogue.general ? work::kGeneralChunk : p.epilogue.chunk_columns;
    const int32_t at_once = 2 * width * p.epilogue.warps * 32 / lanes();
    return static_cast<double>(ceil_div(columns, at_once));
  }
  double chunks() const { return chunks(acc_columns()); }

  // Returns the bytes to and from DRAM: A once, C and what else is written once, B1 and B2 once, or once
  // for each band of tiles when a pass over them pushes the first rows out of L2 again. An element of an
  // operand takes half a byte and a sixteenth.
  double dram_bytes() const {
    const double k_bytes = shape.k * 9.0 / 16, bands = mean_m_tiles(shape, p.tile) / kBandTiles;
    const double weights = p.mma.accumulators * k_bytes * shape.n;
    const double band = k_bytes * std::min(bands, 1.0) * kBandTiles * p.tile.m;
    const double passes = weights + band > t.l2_bytes ? std::ceil(bands) : 1;
    const double written = written_bits() / 8 * shape.m * shape.n;
    return shape.problems * (k_bytes * shape.m + weights * passes + written);
  }

  // Returns the time of a k-tile's bytes and of the copies that bring them. Of the scale factors of B1 and B2
  // each CTA of a pair brings one, for both CTAs.
  double fill_us(double active_sms) const {
    const auto bytes = static_cast<double>(fill_bytes());
    const double scale_copies = 1 + static_cast<double>(p.mma.products) / p.mma.cta_group;
    const double copies = 1 + p.operands.b_boxes + scale_copies / p.scales.k_tiles;
    return std::max(bytes / t.fill_per_sm + copies * t.per_copy, bytes * active_sms / t.fill_all_sms);
  }

  // Returns the time of a k-tile's mma, and of the delay by the copies of scale factors. Where tensor memory
  // has no room for every stage of scale factors, they pass through windows in turn: the copies into one wait
  // until the mma that read it are known to be done.
  double tensor_us() const {
    const double mma = t.mma_cycles(p);
    const double step = mma + scale_atoms() * (mma < kLongStepCycles ? t.scale_copy_short : t.scale_copy);
    if (p.tmem.resident_scales || p.tmem.windows == 0) return us(p.mma.steps * step);
    const double window = p.tmem.window_steps * step;
    return us(p.mma.steps / p.tmem.window_steps * std::max(window, (window + t.commit) / p.tmem.windows));
  }

  // Returns the time of one round of a ring for a k-tile, from issue to arrival, the mma that read the stage,
  // and the way back to the load thread. A stage's bytes are in flight for the first part of it.
  double latency_us(double active_sms, double tensor) const {
    const auto ring_bytes = static_cast<double>(p.ring_bytes());
    const double in_use = tensor + us(t.commit + t.wake);
    const double in_flight = ring_bytes * t.latency / (t.latency + in_use);
    const double round = t.latency + t.per_byte * in_flight * active_sms + in_use;
    const int32_t scale_k_tiles = p.scales.k_tiles;
    return std::max(round / p.operands.stages,
                    (round + (scale_k_tiles - 1) * tensor) / (p.scales.stages * scale_k_tiles));
  }

  // Returns what one result takes in memory. Sixteen of an NVFP4 C have a factor of eight bits in common.
  double written_bits() const {
    return epilogue.c_bits + (epilogue.c_type == CType::kNvfp4 ? 0.5 : 0.0) + shape.d_bits;
  }
  double results() const {  // of one CTA and tile
    return std::min(p.tile.m, shape.m) * static_cast<double>(p.tile.n) / p.cluster_size();
  }
  double special_cycles() const {
    if (shape.exact) return 0;
    return results() * special_functions(shape.activation) /
           (p.epilogue.warps < 8 ? t.special_of_four : t.special);
  }
  // Returns what a general epilogue issues for one result beside what the special functions cover.
  work::Instructions general_work() const {
    const double steps =
        work::kFrame + shape.biases * work::kBias + (shape.a_row_scale ? work::kARowScale : 0) +
        (shape.c_row_scale ? work::kCRowScale : 0) + (shape.amax ? work::kAmax : 0) +
        (shape.d_bits > 0 ? work::kBothD : 0) + work::output_instructions(epilogue.c_type, p.mma.swap_ab);
    if (shape.exact) {
      const work::Instructions exact = work::exact_instructions(shape.activation);
      return {steps + exact.all, exact.fp64};
    }
    const double covered = special_functions(shape.activation) * work::kCoveredBySpecial;
    return {std::max(0.0, steps + work::activation_instructions(shape.activation) - covered)};
  }
  // Returns the time of what is added to the special functions, as if nothing overlapped. A warp waits for
  // the bias of every column, and in each tile for the first bytes of every vector, which come from DRAM.
  double general_cycles() const {
    if (!epilogue.general) return 0;
    const work::Instructions issued = general_work();
    const int32_t vectors = shape.biases + (shape.a_row_scale ? 1 : 0) + (shape.c_row_scale ? 1 : 0);
    const double waits = shape.biases * t.l1_load / (32 * p.epilogue.warps);
    return results() * (issued.all / t.instructions + issued.fp64 / t.fp64 + waits) + vectors * t.load;
  }
  double arithmetic_cycles() const { return special_cycles() + general_cycles(); }
  double store_cycles() const {
    const double stores = results() * epilogue.c_bits / 8 / epilogue.store_bytes;
    const double of_factors = epilogue.c_type == CType::kNvfp4 ? results() / kSfBlock : 0;
    const double of_d = results() * shape.d_bits / 8 / kSectorBytes;
    return stores * (epilogue.store_bytes < kSectorBytes ? t.store_part : t.store) +
           of_factors * t.store_part + of_d * t.store;
  }
  double read_cycles(int32_t columns) const {
    return chunks(columns) * t.tensor_read + columns * lanes() * int32_t{sizeof(float)} / t.tensor_bytes;
  }
  // The stores of a chunk go on during the arithmetic of the next.
  double epilogue_us() const {
    const double arithmetic = arithmetic_cycles(), store = store_cycles();
    return us(t.commit + read_cycles(acc_columns()) + std::max(arithmetic, store) +
              std::min(arithmetic, store) / chunks());
  }

  // Returns the time for which the tensor core waits between two tiles, before it may write accumulators
  // again.
  double exposed_us() const {
    if (p.tmem.overlapped()) return us(t.commit + read_cycles(p.tmem.shared_columns) + t.wake);
    if (p.tmem.acc_stages > 1) return 0;
    // The last chunk of each warp is read after the arithmetic of those before it.
    const double before = arithmetic_cycles() * (chunks() - 1) / chunks();
    return us(t.commit + read_cycles(acc_columns()) + before + t.wake);
  }

  // Returns the time of two barriers of the cluster, and of the exchange of fp32 sums of both products with
  // each of the other slices of K.
  double exchange_us() const {
    if (p.tile.split_k == 1) return 0;
    const double received = results() * 2 * sizeof(float) * (p.tile.split_k - 1);
    return us(2 * t.cluster_barrier + t.exchange + t.exchange_per_kb * received / 1024);
  }

  double start_us() const {
    double start = t.latency + us(t.wake);
    if (p.mma.cta_group == 2) start += us(t.cluster_barrier) / 2;
    if (p.tile.grouped) start += us(t.load);
    return start;
  }
};

}  // namespace

bool cost_of(const Instance& i, Shape shape, const Machine& machine, Cost* cost,
             const CostConstants& constants) {
  const Plan& plan = i.plan;
  const int32_t cluster = plan.cluster_size();
  const int64_t at_once = clusters_at_once(machine, plan.arch, cluster);
  if (at_once == 0 || shape.grouped != plan.tile.grouped) return false;

  const Work work{plan, i.epilogue, shape, constants};
  Cost c{};
  c.tiles = mean_tiles(shape, plan.tile);
  c.waves = ceil_div(c.tiles, at_once);
  if (plan.tile.split_k > 1 && c.waves > 1) return false;
  c.k_tiles = ceil_div(k_tiles(plan.tile, shape.k), plan.tile.split_k);
  c.fill_bytes = work.fill_bytes();
  // So many SMs are at work at the same time, averaged over the launch: the last wave, the tail, may be
  // smaller.
  const auto waves = static_cast<double>(c.waves), steps = static_cast<double>(c.k_tiles);
  const double active = static_cast<double>(c.tiles * cluster) / waves;
  c.fill_us = work.fill_us(active);
  c.tensor_us = work.tensor_us();
  c.dram_us = work.dram_bytes() / constants.dram / (steps * waves);
  c.latency_us = work.latency_us(active, c.tensor_us);
  c.epilogue_us = work.epilogue_us();
  c.exposed_us = work.exposed_us();

  // A tile takes what the tensor core takes, or what the supply takes: that goes on while the epilogue is
  // waited for, until the rings are full. The rounds of a ring count once it has been full.
  const int32_t stages = plan.operands.stages;
  const double supply = std::max({c.fill_us, c.dram_us, c.latency_us});
  const double stalled = std::max(0.0, c.exposed_us - stages * supply);
  const double tile = std::max({steps * c.tensor_us + c.exposed_us, steps * supply + stalled, c.epilogue_us});
  const double first = std::min<double>(steps, stages);
  const double last_tile =
      first * std::max({c.fill_us, c.dram_us, c.tensor_us}) + (steps - first) * std::max(supply, c.tensor_us);
  c.fixed_us = constants.fixed;
  c.start_us = work.start_us();
  c.tiles_us = (waves - 1) * tile + last_tile;
  c.exchange_us = work.exchange_us();
  c.total_us = c.fixed_us + c.start_us + c.tiles_us + c.epilogue_us + c.exchange_us;
  *cost = c;
  return true;
}

bool cost_of(const Instance& instance, Shape shape, const Machine& machine, Cost* cost) {
  return cost_of(instance, shape, machine, cost, cost_table(instance.plan.arch).constants);
}

}  // namespace dualgemm
