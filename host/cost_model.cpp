// cost_model.cpp -- the constants, each with its source, and the equations.
#include "host/cost_model.h"

#include <algorithm>

#include "host/sf_layout.h"

namespace dualgemm {
namespace {

// Published measurements on B200 and fits to published kernel times; the ranges are what the sources disagree
// by.
constexpr double kClock = 1965;         // cycles per us: boost clock of a B200
constexpr double kFillPerSm = 175e3;    // bytes per us into one SM: fit, 155e3 to 180e3
constexpr double kFillAllSms = 17.7e6;  // bytes per us from L2 to all SMs: fit, 15e6 to 18e6
constexpr double kPerCopy = 0.014;      // us of an SM's copy port per TMA instruction: fit
constexpr double kDram = 6.0e6;  // bytes per us inside a kernel of 10 us: fit, 5.5e6 to 7.2e6 in steady state
constexpr double kLatency = 0.88;  // us from the issue of a stage to its arrival, with nobody else about: fit
constexpr double kLatencyPerByte = 0.013e-6;  // us more per byte in flight on the chip: fit
constexpr double kScaleCopy = 13;             // cycles of tcgen05.cp in front of a mma: fit, 8 to 18
constexpr double kCommit = 112;               // cycles from the last mma to a thread that waited for it: fit
constexpr double kWake = 59;             // cycles from the bytes of a stage to the first mma on them: fit
constexpr double kFixed = 2.70;          // us: gap between launches, prologue, drain: fit
constexpr double kClusterBarrier = 370;  // cycles of arrive and wait: published
// Measured on an H200, taken over for B200: results of silu(a) * b per cycle with eight warps, stores left out,
// and the cost of a shared-memory exchange between CTAs.
constexpr double kResultsPerCycle = 6.8;
constexpr double kExchangeStart = 260, kExchangePerKilobyte = 50;  // cycles

// Cycles between two mma of K = 64 on different operands, published for kinds with the same data path.
double mma_cycles(int32_t cta_group, int32_t n) {
  return cta_group == 2 ? std::max(n / 2.0, 35.5 + n / 8.0) : std::max(n / 2.0, 32.0 + n / 4.0);
}

constexpr double us(double cycles) { return cycles / kClock; }

}  // namespace

int64_t tile_count(const Instance& instance, Shape shape) {
  return ceil_div(shape.m, instance.tile_m) * ceil_div(shape.n, instance.tile_n);
}

bool cost_of(const Instance& i, Shape shape, int32_t sms, Cost* cost) {
  const int32_t cluster = i.cta_group * i.split_k;
  const int64_t at_once = sms / cluster;
  if (at_once == 0) return false;

  Cost c{};
  c.tiles = tile_count(i, shape);
  c.waves = ceil_div(c.tiles, at_once);
  // SMs at work at the same time, averaged over the launch: the last wave may be smaller.
  const double active = static_cast<double>(c.tiles * cluster) / static_cast<double>(c.waves);
  const int64_t steps =
      ceil_div(ceil_div(shape.k, i.tile_k), i.split_k);  // per tile, of the CTA that has the most

  // Bytes that arrive in one SM per step, and the copies that bring them.
  const int64_t row_bytes = i.tile_k / 2;
  const int64_t scale_bytes = kSfAtomBytes * (i.tile_k / kSfAtomElems);
  const int64_t b_boxes = 2 * i.tile_n / (i.b_box_rows * i.cta_group);
  const double bytes =
      static_cast<double>((i.a_box_rows + b_boxes * i.b_box_rows) * row_bytes + 3 * scale_bytes);
  const double copies = static_cast<double>(1 + b_boxes) + (i.cta_group == 2 ? 2 : 3);
  c.fill_us = std::max(bytes / kFillPerSm + copies * kPerCopy, bytes * active / kFillAllSms);

  const double mma_steps = static_cast<double>(i.tile_k / kSfAtomElems);
  c.tensor_us = us(mma_steps * (i.mmas_per_step * mma_cycles(i.cta_group, i.mma_n) + 3 * kScaleCopy));

  // Every byte of A, B1 and B2 comes from DRAM once, spread evenly over the steps of the launch.
  const double unique =
      (shape.m + 2.0 * shape.n) * shape.k * 9 / 16;  // half a byte and a sixteenth per element
  c.dram_us = unique / kDram / static_cast<double>(steps * c.waves);

  c.latency_us =
      (kLatency + kLatencyPerByte * bytes * i.stages * active + c.tensor_us + us(kCommit + kWake)) / i.stages;

  const double step_us = std::max({c.fill_us, c.tensor_us, c.dram_us, c.latency_us});
  const double results = static_cast<double>(std::min<int64_t>(i.tile_m, shape.m)) * i.tile_n / cluster;
  const double epilogue_us = us(kCommit + results / kResultsPerCycle);
  double tile_us = step_us * static_cast<double>(steps);
  const double waves = static_cast<double>(c.waves);
  double start_us = kLatency + us(kWake);
  if (i.cta_group == 2) start_us += us(kClusterBarrier) / 2;
  if (i.split_k > 1) {
    // A cluster computes one tile and ends; the next one starts with an empty ring.
    const double received =
        results * 2 * 4 * (i.split_k - 1);  // fp32 of both products from every other slice
    const double exchange_us =
        us(2 * kClusterBarrier + kExchangeStart + kExchangePerKilobyte * received / 1024);
    c.total_us = kFixed + (start_us + tile_us + epilogue_us + exchange_us) * waves;
  } else {
    // With one accumulator per product the next tile waits for the epilogue, except for the reading of the
    // last columns.
    if (i.acc_stages == 1 && c.waves > 1) tile_us += epilogue_us;
    c.total_us = kFixed + start_us + tile_us * waves + epilogue_us;
  }
  *cost = c;
  return true;
}

}  // namespace dualgemm
