// cost_model.cpp -- the equations; the constants are in cost_constants.h.
#include "host/cost_model.h"

#include <algorithm>
#include <cmath>

#include "host/sf_layout.h"
#include "kernel/scheduler.cuh"

namespace dualgemm {
namespace {

// What the kernel does, as far as time goes.
constexpr double kChunkColumns = 32;  // of each product that an epilogue warp has in registers: epilogue.cuh
constexpr int32_t kSharedColumns = 64;  // of overlapped accumulators: config.h
constexpr int32_t kAtomColumns = 4;     // of tensor memory: scale factors of 128 rows and one mma step
constexpr int32_t kWindowSteps =
    2;  // mma steps of a window, where scale factors pass through those: config.h

// What an instance and a shape need, whichever machine runs it.
struct Work {
  const Instance& i;
  const Shape& shape;
  const CostConstants& t;

  double us(double cycles) const { return cycles / t.clock; }
  int32_t mma_steps() const { return i.tile_k / kSfAtomElems; }      // of a k-tile
  int32_t scale_atoms() const { return 1 + 2 * i.sfb_blocks; }       // of 128 rows, per mma step
  int32_t acc_columns() const { return i.mmas_per_step * i.mma_n; }  // of an accumulator pair
  int64_t b_boxes() const { return 2 * i.tile_n / (i.b_box_rows * i.cta_group); }
  int64_t operand_bytes() const { return (i.a_box_rows + b_boxes() * i.b_box_rows) * i.tile_k / 2; }
  int64_t scale_bytes() const { return int64_t{scale_atoms()} * kSfAtomBytes * mma_steps(); }

  // Tiles that the rows of one problem need. The rows of a group are not known here: they are taken as spread
  // evenly over 1 .. 2 m - 1, whose mean is m.
  double row_tiles() const {
    if (!shape.grouped) return static_cast<double>(ceil_div(shape.m, i.tile_m));
    const int64_t rows = 2 * int64_t{shape.m} - 1, full = rows / i.tile_m, rest = rows % i.tile_m;
    const int64_t sum =
        i.tile_m * full * (full + 1) / 2 + rest * (full + 1);  // ceil(x / tile_m), x = 1 .. rows
    return static_cast<double>(sum) / static_cast<double>(rows);
  }

  int64_t tiles() const {
    return static_cast<int64_t>(
        std::ceil(row_tiles() * static_cast<double>(ceil_div(shape.n, i.tile_n) * shape.problems)));
  }

  // Bytes to and from DRAM: A once, C once, B1 and B2 once, or once for each band of tiles when a pass over
  // them pushes the first rows out of L2 again. Half a byte and a sixteenth per element of an operand.
  double dram_bytes() const {
    const double k_bytes = shape.k * 9.0 / 16, bands = row_tiles() / kBandTiles;
    const double weights = 2 * k_bytes * shape.n;
    const double band = k_bytes * std::min(bands, 1.0) * kBandTiles * i.tile_m;
    const double passes = weights + band > t.l2_bytes ? std::ceil(bands) : 1;
    return shape.problems * (k_bytes * shape.m + weights * passes + 2.0 * shape.m * shape.n);
  }

  // Per k-tile: the bytes and the copies that bring them. Of the scale factors of B1 and B2 each CTA of a
  // pair brings one, for both CTAs.
  double fill_us(double active_sms) const {
    const auto bytes = static_cast<double>(operand_bytes() + scale_bytes());
    const double copies =
        static_cast<double>(1 + b_boxes()) + (i.cta_group == 2 ? 2.0 : 3.0) / i.scale_k_tiles;
    return std::max(bytes / t.fill_per_sm + copies * t.per_copy, bytes * active_sms / t.fill_all_sms);
  }

  // Cycles of the mma of 64 elements of K, published for kinds with the same data path: the multiplication,
  // or the reading of A and B from shared memory if that is longer. The second may find A in the tensor core.
  double mma_cycles() const {
    const double n = i.mma_n;
    const double first = std::max(n / 2, i.cta_group == 2 ? 35.5 + n / 8 : 32 + n / 4);
    const double next = i.keeps_a ? std::max(n / 2, 32.0) : first;
    return first + (i.mmas_per_step - 1) * next;
  }

  // Per k-tile: mma and copies of scale factors run one after another. Where the columns for all slots do not
  // fit, they pass through windows in turn: the copies into one wait until the mma that read it are known to
  // be done.
  double tensor_us() const {
    const double step = mma_cycles() + scale_atoms() * t.scale_copy;
    const int32_t accumulators =
        i.overlapped ? 2 * acc_columns() - kSharedColumns : i.acc_stages * acc_columns();
    const int32_t left = kTmemColumns - accumulators, step_columns = scale_atoms() * kAtomColumns;
    if (i.scale_stages * i.scale_k_tiles * mma_steps() * step_columns <= left) return us(mma_steps() * step);
    const int32_t windows = left / (kWindowSteps * step_columns);
    const double window = kWindowSteps * step;
    return us(mma_steps() / kWindowSteps * std::max(window, (window + t.commit) / windows));
  }

  // Per k-tile: one round of a ring, from issue to arrival, the mma that read the slot, and the way back to
  // the load thread. A slot's bytes are in flight for the first part of it.
  double latency_us(double active_sms, double tensor) const {
    const auto ring_bytes =
        static_cast<double>(i.stages * operand_bytes() + i.scale_stages * i.scale_k_tiles * scale_bytes());
    const double in_use = tensor + us(t.commit + t.wake);
    const double in_flight = ring_bytes * t.latency / (t.latency + in_use);
    const double round = t.latency + t.per_byte * in_flight * active_sms + in_use;
    return std::max(round / i.stages,
                    (round + (i.scale_k_tiles - 1) * tensor) / (i.scale_stages * i.scale_k_tiles));
  }

  double results() const {  // of one CTA and tile
    return std::min(i.tile_m, shape.m) * static_cast<double>(i.tile_n) / (i.cta_group * i.split_k);
  }
  double read_cycles(int32_t columns) const { return t.tensor_read + columns * 128 * 4 / t.tensor_bytes; }
  double epilogue_us() const { return us(t.commit + read_cycles(acc_columns()) + results() / t.results); }

  // Between two tiles: what the tensor core waits for before it may write accumulators again.
  double exposed_us() const {
    if (i.overlapped) return us(t.commit + read_cycles(kSharedColumns) + t.wake);
    if (i.acc_stages > 1) return 0;
    // Two warps share the columns; the last chunk is read after the arithmetic of those before it.
    const double chunks = acc_columns() / 2.0 / 2 / kChunkColumns;
    return us(t.commit + read_cycles(acc_columns()) + results() / t.results * (chunks - 1) / chunks + t.wake);
  }

  // Two barriers of the cluster, and fp32 of both products from each of the other slices of K.
  double exchange_us() const {
    if (i.split_k == 1) return 0;
    const double received = results() * 2 * 4 * (i.split_k - 1);
    return us(2 * t.cluster_barrier + t.exchange + t.exchange_per_kb * received / 1024);
  }

  double start_us() const {
    double start = t.latency + us(t.wake);
    if (i.cta_group == 2) start += us(t.cluster_barrier) / 2;
    if (i.grouped) start += us(t.load);
    return start;
  }
};

}  // namespace

int32_t clusters_at_once(const Machine& machine, int32_t size) {
  const int32_t by_sms = machine.sms / size;
  if (size == 2 && machine.clusters_of_2 > 0) return std::min(by_sms, machine.clusters_of_2);
  if (size < 4 || by_sms == 0) return by_sms;
  // Clusters of four do not cross the borders of a GPC: of the 148 SMs of a B200 they reach 34 times four by
  // its published GPC sizes; two less to be safe, and in proportion on other machines.
  const int32_t known =
      machine.clusters_of_4 > 0 ? machine.clusters_of_4 : std::max(1, 32 * machine.sms / 148);
  return std::min(by_sms, known);
}

int64_t tile_count(const Instance& instance, Shape shape) {
  return ceil_div(shape.m, instance.tile_m) * ceil_div(shape.n, instance.tile_n) * shape.problems;
}

bool cost_of(const Instance& i, Shape shape, const Machine& machine, Cost* cost,
             const CostConstants& constants) {
  const int32_t cluster = i.cta_group * i.split_k;
  const int64_t at_once = clusters_at_once(machine, cluster);
  if (at_once == 0 || shape.grouped != (i.grouped != 0)) return false;

  const Work work{i, shape, constants};
  Cost c{};
  c.tiles = work.tiles();
  c.waves = ceil_div(c.tiles, at_once);
  if (i.split_k > 1 && c.waves > 1) return false;
  c.k_tiles = ceil_div(ceil_div(shape.k, i.tile_k), i.split_k);
  c.fill_bytes = work.operand_bytes() + work.scale_bytes();
  // SMs at work at the same time, averaged over the launch: the last wave may be smaller.
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
  const double supply = std::max({c.fill_us, c.dram_us, c.latency_us});
  const double stalled = std::max(0.0, c.exposed_us - i.stages * supply);
  const double tile = std::max({steps * c.tensor_us + c.exposed_us, steps * supply + stalled, c.epilogue_us});
  const double first = std::min<double>(steps, i.stages);
  const double last_tile =
      first * std::max({c.fill_us, c.dram_us, c.tensor_us}) + (steps - first) * std::max(supply, c.tensor_us);
  c.total_us =
      constants.fixed + work.start_us() + (waves - 1) * tile + last_tile + c.epilogue_us + work.exchange_us();
  *cost = c;
  return true;
}

}  // namespace dualgemm
