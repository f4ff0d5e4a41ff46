// cost_sm100.cpp -- the equations for compute capability 10.x: the tensor core works at the same time as the
// epilogue of the tile before, on accumulators in tensor memory.
#include <algorithm>

#include "host/common/sf_layout.h"
#include "host/model/cost_work.h"

namespace dualgemm {
namespace {

struct Sm100 : Work {
  // One mma step has this many atoms of scale factors, each of 128 rows: those of A, and of each B.
  int32_t scale_atoms() const { return p.scales.stage_bytes / p.scales.steps / kSfAtomBytes; }
  // An accumulator has this many rows in one CTA.
  int32_t lanes() const { return p.mma.m / p.mma.cta_group; }
  int32_t acc_columns() const { return p.mma.accumulators * p.mma.columns; }
  // Returns in how many chunks the epilogue takes that many accumulator columns, of all products together.
  double chunks(int32_t columns) const {
    const int32_t width = general ? work::kGeneralChunk : p.epilogue.chunk_columns;
    const int32_t at_once = p.mma.accumulators * width * p.epilogue.warps * 32 / lanes();
    return static_cast<double>(ceil_div(columns, at_once));
  }
  double chunks() const { return chunks(acc_columns()); }

  // Returns the time of a k-tile's mma, plus their delay by the copies of scale factors. Where tensor memory
  // cannot hold every stage of scale factors, these pass through windows in turn: the copies into a window
  // wait until the mma that read the window are known to have completed.
  double tensor_us() const {
    const double mma = t.mma_cycles(p);
    const double step = mma + scale_atoms() * (mma < kLongStepCycles ? t.scale_copy_short : t.scale_copy);
    if (p.tmem.resident_scales || p.tmem.windows == 0) return us(p.mma.steps * step);
    const double window = p.tmem.window_steps * step;
    return us(p.mma.steps / p.tmem.window_steps * std::max(window, (window + t.commit) / p.tmem.windows));
  }

  // Returns the time of one round of a ring for a k-tile: from the issue of the copies to their arrival, the
  // mma that read the stage, and the way back to the load thread. The bytes of a stage are in flight during
  // the first of these parts.
  double latency_us(double active_sms, double tensor) const {
    const auto ring_bytes = static_cast<double>(p.ring_bytes());
    const double in_use = tensor + us(t.commit + t.wake);
    const double in_flight = ring_bytes * t.latency / (t.latency + in_use);
    const double round = t.latency + t.per_byte * in_flight * active_sms + in_use;
    const int32_t scale_k_tiles = p.scales.k_tiles;
    return std::max(round / p.operands.stages,
                    (round + (scale_k_tiles - 1) * tensor) / (p.scales.stages * scale_k_tiles));
  }

  double read_cycles(int32_t columns) const {
    return chunks(columns) * t.tensor_read + columns * lanes() * int32_t{sizeof(float)} / t.tensor_bytes;
  }
  // The stores of a chunk go on during the arithmetic of the next chunk.
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
    // The last chunk of each warp is read after the arithmetic of the chunks before it.
    const double before = arithmetic_cycles() * (chunks() - 1) / chunks();
    return us(t.commit + read_cycles(acc_columns()) + before + t.wake);
  }

  // Returns the bytes of sums, in fp32, that the other slices of K send to one CTA: for each product, those
  // columns of the CTA's share that lie in C, in each lane of tensor memory that lies in C. A lane sends four
  // columns at a time.
  double received_bytes() const {
    const int32_t rows = std::min(shape.m, p.tile.m), columns = std::min(shape.n, p.tile.n);
    const int32_t in_lanes = std::min(p.mma.swap_ab ? columns : rows, lanes());
    const int32_t in_share = std::min(p.mma.swap_ab ? rows : columns, p.mma.columns / p.tile.split_k);
    return static_cast<double>((p.tile.split_k - 1) * p.mma.accumulators * in_lanes * ceil_div(in_share, 4)) *
           (4 * sizeof(float));
  }

  double start_us() const {
    double start = t.latency + us(t.wake);
    if (p.mma.cta_group == 2) start += us(t.cluster_barrier) / 2;
    if (p.tile.grouped) start += us(t.load);
    return start;
  }
};

}  // namespace

void cost_sm100(const Work& shared, const Machine&, Cost* cost) {
  const Sm100 work{shared};
  Cost& c = *cost;
  // `active` SMs work at the same time, on the average of all waves, of which the last one (the tail) may be
  // smaller.
  const auto waves = static_cast<double>(c.waves), steps = c.k_tiles;
  const double active = static_cast<double>(c.tiles * work.p.cluster_size()) / waves;
  c.fill_us = work.fill_us(active);
  c.tensor_us = work.tensor_us();
  c.dram_us = work.dram_bytes() / work.t.dram / (steps * waves);
  c.latency_us = work.latency_us(active, c.tensor_us);
  c.epilogue_us = work.epilogue_us();
  c.exposed_us = work.exposed_us();

  // A tile takes the time of the tensor core, or that of the supply. The supply goes on while the tensor core
  // waits for the epilogue, until the rings are full. The rounds of a ring count only after the ring has been
  // full once.
  const int32_t stages = work.p.operands.stages;
  const double supply = std::max({c.fill_us, c.dram_us, c.latency_us});
  const double stalled = std::max(0.0, c.exposed_us - stages * supply);
  const double tile = std::max({steps * c.tensor_us + c.exposed_us, steps * supply + stalled, c.epilogue_us});
  const double first = std::min<double>(steps, stages);
  const double last_tile =
      first * std::max({c.fill_us, c.dram_us, c.tensor_us}) + (steps - first) * std::max(supply, c.tensor_us);
  c.fixed_us = work.t.fixed;
  c.start_us = work.start_us();
  c.tiles_us = (waves - 1) * tile + last_tile;
  c.exchange_us = work.exchange_us(1, work.received_bytes());
  c.total_us = c.fixed_us + c.start_us + c.tiles_us + c.epilogue_us + c.exchange_us;
}

}  // namespace dualgemm
