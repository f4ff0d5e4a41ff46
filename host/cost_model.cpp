// cost_model.cpp -- the constants, each with its source, and the equations.
#include "host/cost_model.h"

#include <algorithm>
#include <cmath>

#include "host/sf_layout.h"
#include "kernel/scheduler.cuh"

namespace dualgemm {
namespace {

// Published measurements on B200 and fits to published kernel times; the ranges are what the sources disagree
// by.
constexpr double kClock = 1965;         // cycles per us: boost clock of a B200
constexpr double kFillPerSm = 175e3;    // bytes per us into one SM: fit, 155e3 to 180e3
constexpr double kFillAllSms = 17.7e6;  // bytes per us from L2 to all SMs: fit, 15e6 to 18e6
constexpr double kPerCopy = 0.014;      // us of an SM's copy port per TMA instruction: fit
constexpr double kDram = 6.0e6;  // bytes per us inside a kernel of 10 us: fit, 5.5e6 to 7.2e6 in steady state
constexpr double kLatency = 0.88;  // us from the issue of a copy to its arrival, with nobody else about: fit
constexpr double kLatencyPerByte = 0.013e-6;  // us more per byte in flight on the chip: fit
constexpr double kScaleCopy = 18.3;           // cycles of tcgen05.cp in front of a mma: fit, 8 to 18
constexpr double kCommit = 112;               // cycles from the last mma to a thread that waited for it: fit
constexpr double kWake = 59;             // cycles from an arrival on a barrier to the first mma after it: fit
constexpr double kFixed = 2.70;          // us: gap between launches, prologue, drain: fit
constexpr double kClusterBarrier = 370;  // cycles of arrive and wait: published
constexpr double kTensorReadStart = 22;  // cycles of a tcgen05.ld beside its bytes: published
constexpr double kTensorReadBytesPerCycle = 1024;  // of one SM: published
constexpr double kL2Bytes = 63e6;  // that hold different data: 126 MB in two halves, each with its own copy
constexpr double kLoad = 882;      // cycles of a load from DRAM by a thread: published
// Measured on an H200, taken over for B200: results of silu(a) * b per cycle with eight warps, stores left
// out, and the cost of a shared-memory exchange between CTAs.
constexpr double kResultsPerCycle = 6.8;
constexpr double kExchangeStart = 260, kExchangePerKilobyte = 50;  // cycles

// What the kernel does, as far as time goes.
constexpr double kChunkColumns = 32;  // of each product that an epilogue warp has in registers: epilogue.cuh
constexpr int32_t kSharedColumns = 64;  // of overlapped accumulators: config.h
constexpr int32_t kAtomColumns = 4;     // of tensor memory: scale factors of 128 rows and one mma step
constexpr int32_t kWindowSteps =
    2;  // mma steps of a window, where scale factors pass through those: config.h

constexpr double us(double cycles) { return cycles / kClock; }

// Cycles of all mma of 64 elements of K, published for kinds with the same data path: the multiplication, or
// the reading of A and B from shared memory, if that is longer. A may be in the tensor core from the mma
// before.
double mma_cycles(const Instance& i, bool keeps_a) {
  const double n = i.mma_n;
  const double first = std::max(n / 2, i.cta_group == 2 ? 35.5 + n / 8 : 32 + n / 4);
  const double next = keeps_a ? std::max(n / 2, 32.0) : first;
  return first + (i.mmas_per_step - 1) * next;
}

// Tiles that the rows of one problem need. The rows of a group are not known here: they are taken as spread
// evenly over 1 .. 2 m - 1, whose mean is m.
double row_tiles(const Instance& i, Shape shape) {
  if (!shape.grouped) return static_cast<double>(ceil_div(shape.m, i.tile_m));
  const int64_t rows = 2 * int64_t{shape.m} - 1, full = rows / i.tile_m, rest = rows % i.tile_m;
  const int64_t sum =
      i.tile_m * full * (full + 1) / 2 + rest * (full + 1);  // of ceil(x / tile_m), x = 1 .. rows
  return static_cast<double>(sum) / static_cast<double>(rows);
}

// Bytes to and from DRAM: A once, C once, B1 and B2 once, or once for each band of tiles when a pass over
// them pushes the first rows out of L2 again. Half a byte and a sixteenth per element of an operand.
double dram_bytes(const Instance& i, Shape shape) {
  const double k_bytes = shape.k * 9.0 / 16, bands = row_tiles(i, shape) / kBandTiles;
  const double weights = 2 * k_bytes * shape.n, band = k_bytes * std::min(bands, 1.0) * kBandTiles * i.tile_m;
  const double passes = weights + band > kL2Bytes ? std::ceil(bands) : 1;
  return shape.problems * (k_bytes * shape.m + weights * passes + 2.0 * shape.m * shape.n);
}

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

bool cost_of(const Instance& i, Shape shape, const Machine& machine, Cost* cost, bool keeps_a) {
  const int32_t cluster = i.cta_group * i.split_k;
  const int64_t at_once = clusters_at_once(machine, cluster);
  if (at_once == 0 || shape.grouped != (i.grouped != 0)) return false;

  Cost c{};
  c.tiles = static_cast<int64_t>(
      std::ceil(row_tiles(i, shape) * static_cast<double>(ceil_div(shape.n, i.tile_n) * shape.problems)));
  c.waves = ceil_div(c.tiles, at_once);
  if (i.split_k > 1 && c.waves > 1) return false;
  // SMs at work at the same time, averaged over the launch: the last wave may be smaller.
  const double waves = static_cast<double>(c.waves);
  const double active = static_cast<double>(c.tiles * cluster) / waves;
  c.k_tiles = ceil_div(ceil_div(shape.k, i.tile_k), i.split_k);
  const auto steps = static_cast<double>(c.k_tiles);

  // Bytes that arrive in one SM per k-tile, and the copies that bring them. Of the scale factors of B1 and B2
  // each CTA of a pair brings one, for both CTAs.
  const int64_t b_boxes = 2 * i.tile_n / (i.b_box_rows * i.cta_group);
  const int64_t operand_bytes = (i.a_box_rows + b_boxes * i.b_box_rows) * i.tile_k / 2;
  const int32_t mma_steps = i.tile_k / kSfAtomElems;
  const int32_t scale_atoms = 1 + 2 * i.sfb_blocks;  // of 128 rows, per mma step
  const int64_t scale_bytes = int64_t{scale_atoms} * kSfAtomBytes * mma_steps;
  c.fill_bytes = operand_bytes + scale_bytes;
  const auto bytes = static_cast<double>(c.fill_bytes);
  const double copies = static_cast<double>(1 + b_boxes) + (i.cta_group == 2 ? 2.0 : 3.0) / i.scale_k_tiles;
  c.fill_us = std::max(bytes / kFillPerSm + copies * kPerCopy, bytes * active / kFillAllSms);

  const int32_t columns = i.mmas_per_step * i.mma_n;  // of an accumulator pair
  const double mma_step = mma_cycles(i, keeps_a) + scale_atoms * kScaleCopy;
  c.tensor_us = us(mma_steps * mma_step);
  const int32_t scale_columns =
      kTmemColumns - (i.overlapped ? 2 * columns - kSharedColumns : i.acc_stages * columns);
  if (i.scale_stages * i.scale_k_tiles * mma_steps * scale_atoms * kAtomColumns > scale_columns) {
    // Windows taken in turns: the copies into one wait until the mma that read it are known to be done.
    const int32_t windows = scale_columns / (kWindowSteps * scale_atoms * kAtomColumns);
    const double window = kWindowSteps * mma_step;
    c.tensor_us = us(mma_steps / kWindowSteps * std::max(window, (window + kCommit) / windows));
  }

  c.dram_us = dram_bytes(i, shape) / kDram / (steps * waves);

  // One round of a ring: issue to arrival, the mma that read the slot, and the way back to the load thread. A
  // slot's bytes are in flight for the first part of it.
  const double in_use = c.tensor_us + us(kCommit + kWake);
  const auto ring_bytes =
      static_cast<double>(i.stages * operand_bytes + i.scale_stages * i.scale_k_tiles * scale_bytes);
  const double arrival = kLatency + kLatencyPerByte * ring_bytes * active * kLatency / (kLatency + in_use);
  c.latency_us =
      std::max((arrival + in_use) / i.stages,
               (arrival + in_use + (i.scale_k_tiles - 1) * c.tensor_us) / (i.scale_stages * i.scale_k_tiles));

  // The epilogue of one tile, and the part of it that the tensor core has to wait for before the next.
  const double rows = std::min(i.tile_m, shape.m);
  const double results = rows * i.tile_n / cluster;
  const double arithmetic = results / kResultsPerCycle;
  const auto read = [](int32_t of_columns) {
    return kTensorReadStart + of_columns * 128 * 4 / kTensorReadBytesPerCycle;
  };
  c.epilogue_us = us(kCommit + read(columns) + arithmetic);
  if (i.overlapped) {
    c.exposed_us = us(kCommit + read(kSharedColumns) + kWake);
  } else if (i.acc_stages == 1) {
    // Two warps share the columns; the last chunk is read after the arithmetic of those before it.
    const double chunks = columns / 2.0 / 2 / kChunkColumns;
    c.exposed_us = us(kCommit + read(columns) + arithmetic * (chunks - 1) / chunks + kWake);
  }

  // A tile takes what the tensor core takes, or what the supply takes: that goes on while the epilogue is
  // waited for until the ring is full. The rounds of the ring count once it has been full.
  const double supply_us = std::max({c.fill_us, c.dram_us, c.latency_us});
  const double first_us = std::max({c.fill_us, c.dram_us, c.tensor_us});
  const double stalled_us = std::max(0.0, c.exposed_us - i.stages * supply_us);
  const double tile_us =
      std::max({steps * c.tensor_us + c.exposed_us, steps * supply_us + stalled_us, c.epilogue_us});
  const double in_ring = std::min<double>(steps, i.stages);
  const double last_us = in_ring * first_us + (steps - in_ring) * std::max(supply_us, c.tensor_us);

  double start_us = kLatency + us(kWake);
  if (i.cta_group == 2) start_us += us(kClusterBarrier) / 2;
  if (i.grouped) start_us += us(kLoad);
  c.total_us = kFixed + start_us + (waves - 1) * tile_us + last_us + c.epilogue_us;
  if (i.split_k > 1) {
    const double received = results * 2 * 4 * (i.split_k - 1);  // fp32 of both products from the other slices
    c.total_us += us(2 * kClusterBarrier + kExchangeStart + kExchangePerKilobyte * received / 1024);
  }
  *cost = c;
  return true;
}

}  // namespace dualgemm
