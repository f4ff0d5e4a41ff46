// cost_constants.h -- what the cost model knows of a GPU, one table for each architecture: every constant
// with its source and, in the ranges, how far the sources allow it to be off.
//   published   a measurement by others
//   fit         to published times of other kernels, which do not tell these constants apart well
//   H200, H100  measured on one by the authors of this library
//   times       fit to the times of whole launches; host/MODEL.md says how `make calibrate` fits them anew
//   counted     of instructions in machine code
//   open        nobody has measured it, or the times do not tell; a value that makes sense
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "kernel/plan.h"

namespace dualgemm {

// L2 and DRAM have sectors of this size (CUDA C++ Programming Guide, device memory accesses).
inline constexpr int32_t kSectorBytes = 32;

// The mma of one step of K, with both products, take at least this long where N is 128 or more for each
// product. Copies of scale factors run during the preceding mma, in the time in which that mma leaves shared
// memory idle.
inline constexpr double kLongStepCycles = 128;

struct CostConstants {
  double clock;             // cycles per us
  double fill_per_sm;       // bytes per us into one SM
  double fill_all_sms;      // bytes per us from L2 to all SMs
  double per_copy;          // us of an SM's copy port per TMA instruction
  double dram;              // bytes per us inside a kernel of 10 us
  double l2_bytes;          // that hold different data
  double latency;           // us from the issue of a copy to its arrival, with nobody else about
  double per_byte;          // us more per byte in flight on the chip
  double scale_copy;        // cycles by which a copy of 128 scale factors delays the mma of a long step
  double scale_copy_short;  // and of a step under kLongStepCycles
  double commit;            // cycles from the last mma to a thread that waited for it
  double wake;              // cycles from an arrival on a barrier to the first mma after it
  double fixed;             // us: gap between launches on a stream, prologue, drain
  double cluster_barrier;   // cycles of arrive and wait
  double load;              // cycles of a load from DRAM by a thread
  double tensor_read;       // cycles of a load of tensor memory beside its bytes
  double tensor_bytes;      // per cycle and SM from tensor memory
  double special;           // special functions per cycle of an epilogue with eight warps, stores left out
  double special_of_four;   // and of one with four
  double instructions;      // per cycle, for one result each: beside special functions, of a general epilogue
  double fp64;              // operations of fp64 per cycle
  double l1_load;           // cycles of a load by a thread that finds its bytes in L1
  double store;             // cycles of an SM to store whole sectors of one row that lie side by side
  double store_part;        // and to store less than a sector
  double exchange;          // cycles of an exchange between the shared memories of a cluster
  double exchange_per_kb;   // cycles more per 1024 bytes
  double (*mma_cycles)(const Plan&) = nullptr;  // 10.x: of the mma of one step of K

  // The following constants are only for 9.0.
  double expand_weight = 0;      // cycles of an SM to expand an element of B1 or B2
  double expand_bf16 = 1;        // times that to bf16
  double expand_mxfp4 = 1;       // times that from MXFP4 to FP8
  double expand_activation = 0;  // and one of A
  double order_activation = 0;   // and to put one of A in order, in tiles of few rows
  double multiply_adds = 0;      // of wgmma, per cycle and SM
  double least_columns = 0;      // a wgmma of fewer columns takes as long as one of these
  double begin = 0;       // us from the start of a CTA to its first k-tile, beside the latency of a copy
  double beside = 0;      // the part of the shorter of expanding and wgmma that few columns do not hide
  double chain = 0;       // cycles of a warpgroup for a step of K, however little there is to multiply
  double round = 0;       // us of a round of the ring of operands
  double turn = 0;        // cycles from the last wgmma of a tile to its results, and to the next tile
  double finish = 0;      // cycles for a result on its way through shared memory
  double meet = 0;        // us more until the CTAs of a cluster have met for the exchange
  double fill_apart = 1;  // bytes per us from L2 to all SMs, where neighbours read different places of K
  double pass = 0;        // us of a launch that prepares A, and
  double pass_bytes = 1;  // bytes per us of it
};

// How far a constant may be off. The cycles of an mma have no range.
struct CostRange {
  const char* name;
  double CostConstants::*constant;
  double low, high;
};

struct Work;
struct Machine;
struct Cost;
// Complete a cost that has tiles, waves, k-tiles and bytes already, each for its architecture.
void cost_sm90(const Work& work, const Machine& machine, Cost* cost);
void cost_sm100(const Work& work, const Machine& machine, Cost* cost);

struct CostTable {
  CostConstants constants;
  std::span<const CostRange> ranges;
  void (*complete)(const Work&, const Machine&, Cost*);
  // Of devices whose DRAM has so many 10^9 bytes per second at its pins, or more.
  int32_t fast_memory_gb_s = std::numeric_limits<int32_t>::max();
  CostConstants with_fast_memory = constants;
};

// ---- B200: we measured none of these on a Blackwell GPU --------------------------------------------------

// The cycles of an mma are those of the multiplication, or those of reading A and B from shared memory if
// these are more. They agree within 1 % with published cycles of kinds with the same data path. The second
// mma of a step may find A in the tensor core.
inline double b200_mma_cycles(const Plan& plan) {
  const MmaPlan& mma = plan.mma;
  const double n = mma.n;
  const double first = std::max(n / 2, mma.cta_group == 2 ? 35.5 + n / 8 : 32 + n / 4);
  const double next = mma.keep_a ? std::max(n / 2, 32.0) : first;
  return first + (mma.per_step - 1) * next;
}

inline constexpr CostConstants kB200Costs{
    .clock = 1965,            // published: boost clock
    .fill_per_sm = 175e3,     // fit
    .fill_all_sms = 17.7e6,   // fit, published 15e6 to 17e6
    .per_copy = 0.014,        // fit
    .dram = 6.0e6,            // fit, published 7.2e6 in steady state
    .l2_bytes = 63e6,         // published: 126 MB in two halves with a copy each
    .latency = 0.88,          // fit
    .per_byte = 0.013e-6,     // fit
    .scale_copy = 0,          // published, but for another chip of this tensor core (sm_110)
    .scale_copy_short = 4,    // open: such mma leave shared memory little time
    .commit = 112,            // fit
    .wake = 59,               // fit
    .fixed = 2.4,             // fit: 1.6 between launches, 0.6 of prologue, 0.2 of drain beside the stores
    .cluster_barrier = 370,   // published
    .load = 882,              // published
    .tensor_read = 22,        // published: tcgen05.ld
    .tensor_bytes = 1024,     // published
    .special = 13.6,          // H200: 6.8 results of SwiGLU, which takes two each
    .special_of_four = 11.8,  // H200
    .instructions = 80,       // H200: what goes with 13.6 special functions (epilogue_work.h)
    .fp64 = 64,               // published: 40 TFLOPS of a B200
    .l1_load = 39,            // published
    .store = 1,               // published: one line per cycle, of however many bytes
    .store_part = 1,          // the same
    .exchange = 260,          // H200
    .exchange_per_kb = 50,    // H200
    .mma_cycles = b200_mma_cycles,
};

// Where the two ends of a range have sources of their own, a comment names them. The other ranges reach as
// far as the source of the constant allows (kB200Costs names it).
inline constexpr CostRange kB200Ranges[] = {
    {"clock", &CostConstants::clock, 1800, 1965},
    {"rate into an SM", &CostConstants::fill_per_sm, 155e3, 180e3},
    {"rate into all SMs", &CostConstants::fill_all_sms, 15e6, 18e6},
    {"time per copy", &CostConstants::per_copy, 0.010, 0.018},
    {"rate of DRAM", &CostConstants::dram, 5.5e6, 7.2e6},
    {"latency of a copy", &CostConstants::latency, 0.76, 1.0},
    {"latency per byte in flight", &CostConstants::per_byte, 0.005e-6, 0.03e-6},
    // low: published for sm_110; high: published for a GB300
    {"copy of scale factors, long step", &CostConstants::scale_copy, 0, 12.4},
    // low: the mma hides it; high: what a copy alone takes, published
    {"copy of scale factors, short step", &CostConstants::scale_copy_short, 0, 18},
    {"commit", &CostConstants::commit, 72, 152},
    {"wake", &CostConstants::wake, 29, 89},
    {"fixed time", &CostConstants::fixed, 2.2, 3.0},
    {"cluster barrier", &CostConstants::cluster_barrier, 296, 444},
    {"special functions", &CostConstants::special, 6.8, 16},
    // low: a kernel whose results wait for each other, on an H200; high: the roof of the unit
    {"special functions, four warps", &CostConstants::special_of_four, 5.6, 16},
    // low: the slowest step by test/sass/schedule.py, a model of an H200; high: a warp a clock and scheduler
    {"instructions", &CostConstants::instructions, 66, 128},
    // low: published, 1.25 TFLOPS of a B300
    {"operations of fp64", &CostConstants::fp64, 2, 64},
    // low: published; high: all SMs of an H200 store, also in the next line
    {"store of sectors", &CostConstants::store, 1, 2.5},
    {"store of parts of sectors", &CostConstants::store_part, 1, 3.6},
    {"exchange, per KB", &CostConstants::exchange_per_kb, 25, 100},
};

// ---- H100, H200 ------------------------------------------------------------------------------------------

// "times" stands for a fit to the times of all plain instances (CUDA graphs, cold weights, driver
// 580.159.04) with M from 1 to 4096, of one and two products, with an A in NVFP4 and in bf16: layers of 25
// models on an H200 (2026-11-28), five pairs of weights on both (2026-11-26), and linear layers of three
// models on an H100 (2026-11-27). host/MODEL.md says how far the fit is from these times.
inline constexpr CostConstants kH100Costs{
    .clock = 1980,  // H100: the highest, which launches hold up to some hundred rows
    .fill_per_sm =
        213e3,  // times; H200: 89 bytes per cycle in a loop of producer and consumer are 176e3 at 1980 MHz
    .fill_all_sms = 17.0e6,  // H200: 65 bytes per cycle and SM where the two SMs of a TPC read the same lines
    .per_copy = 0.0093,      // H200: 18.5 cycles of the thread that issues
    .dram = 3.2e6,           // times; H100: 3.0e6 of a copy from one place to another
    .l2_bytes = 25e6,        // H100 has 50 MB in two partitions; open whether each keeps a copy, as on a B200
    .latency = 0.70,         // H200: 1393 cycles for 16 KB from DRAM
    .per_byte = 0,           // it is in `round`
    .scale_copy = 0,         // there is no tensor memory
    .scale_copy_short = 0,
    .commit = 0,
    .wake = 70,              // H200: 63 to 76, of a whole warp
    .fixed = 2.0,            // times: 0.97 in a graph, and what the gap of a stream is longer (H200)
    .cluster_barrier = 382,  // H200: with release and acquire, in steady state
    .load = 655,             // H200: 560 from the near half of the chip, 750 from the far one
    .tensor_read = 0,        // accumulators are in registers
    .tensor_bytes = std::numeric_limits<double>::infinity(),
    .special = 13.6,             // H200
    .special_of_four = 11.8,     // H200
    .instructions = 80,          // H200, as for a B200
    .fp64 = 64,                  // published: 34 TFLOPS
    .l1_load = 39,               // open: that of a B200
    .store = 1.1,                // H200, of one SM
    .store_part = 2,             // H200, of one SM
    .exchange = 260,             // H200
    .exchange_per_kb = 50.5,     // H200
    .expand_weight = 0.026,      // times
    .expand_bf16 = 1.27,         // counted: 413 instructions of the loop, 325 to fp16
    .expand_mxfp4 = 0.88,        // counted: 285
    .expand_activation = 0.052,  // times
    .order_activation = 0.0385,  // times
    .multiply_adds = 2048,       // published
    .least_columns = 16,         // open: the times do not tell it from 8 to 48
    .begin = 0.9,                // times
    .beside = 0.6,               // times
    .chain = 170,                // times
    .round = 0.86,               // times
    .turn = 300,                 // times: with the start of the next tile
    .finish = 0.1,               // times
    .meet = 0.24,                // times
    .fill_apart = 10.6e6,        // times: split-K in up to four slices
    .pass = 2.75,                // times, with what its launch keeps the next waiting
    .pass_bytes = 4.8e6,  // times; H100: 2.4e6 of a pass by itself, which the kernel's start hides in part
};

// An H200 has the constants of an H100, except those of DRAM and L2 (driver 580.159.04, 2026-11-23).
constexpr CostConstants h200_costs() {
  CostConstants costs = kH100Costs;
  costs.dram = 4.4e6;     // those times on an H200
  costs.l2_bytes = 30e6;  // 60 MB in two partitions
  return costs;
}
inline constexpr CostConstants kH200Costs = h200_costs();

// A comment says what the two ends of a range are.
inline constexpr CostRange kHopperRanges[] = {
    // low: a large product under a power limit; high: the highest clock
    {"clock", &CostConstants::clock, 1400, 1980},
    // low: an H100, all SMs at once; high: an H200
    {"rate of DRAM", &CostConstants::dram, 2.3e6, 4.4e6},
    // low and high: fits with other constants held
    {"expansion of a weight", &CostConstants::expand_weight, 0.025, 0.036},
    // low: a third of the smaller fit; high: a third above the fit
    {"expansion of an activation", &CostConstants::expand_activation, 0.015, 0.07},
    // low: as to fp16; high: twice what its machine code has more
    {"expansion to bf16", &CostConstants::expand_bf16, 1, 1.5},
    // low: the instructions of the expansion alone; high: as to fp16
    {"expansion from MXFP4", &CostConstants::expand_mxfp4, 0.6, 1},
    // low: four bytes through shared memory, 128 in a cycle; high: tiles of 128 rows, on an H200
    {"order of an activation", &CostConstants::order_activation, 0.031, 0.1},
    {"least columns of a wgmma", &CostConstants::least_columns, 8, 48},
    {"not hidden", &CostConstants::beside, 0.2, 0.7},
    {"chain of a step", &CostConstants::chain, 170, 300},
    {"round of the ring", &CostConstants::round, 0.6, 2.4},
    // low: the kernel; high: a grid whose CTAs begin anew for each tile
    {"turn of a tile", &CostConstants::turn, 300, 2500},
    {"finish of a result", &CostConstants::finish, 0.1, 0.5},
    // low: nearly all of it is in the exchange; high: the first fit, to larger weights
    {"meeting of a cluster", &CostConstants::meet, 0.1, 3},
    // low: a fit in which it is part of the fixed time; high: twice the fit
    {"start of a CTA", &CostConstants::begin, 0, 1.8},
    // low: what tiles of 128 rows in two slices of K got, with 128 CTAs; high: as if neighbours read the same
    {"rate into SMs apart", &CostConstants::fill_apart, 6.5e6, 17.0e6},
    // low and high: ways to send them, st.async and one bulk copy per warp
    {"exchange, per KB", &CostConstants::exchange_per_kb, 47, 68},
    // low: the smallest sum of its parts; high: the largest
    {"fixed time", &CostConstants::fixed, 1.0, 3.5},
    {"rate into an SM", &CostConstants::fill_per_sm, 174e3, 213e3},
    {"special functions", &CostConstants::special, 10.4, 16},
    {"instructions", &CostConstants::instructions, 66, 128},
    {"store of sectors", &CostConstants::store, 1.1, 2.5},
    {"pass over A", &CostConstants::pass, 1.2, 4.5},
    // low: a pass by itself, on an H100; high: twice the fit
    {"bytes of the pass", &CostConstants::pass_bytes, 2.4e6, 10e6},
};

// The tables are in the order of Arch. The pins of an H100 have 3352e9 bytes per second, those of an H200
// 4814e9: the boundary is their mean. Other boards of Hopper lie on either side of it, and were not measured.
inline constexpr CostTable kCostTables[] = {{kH100Costs, kHopperRanges, cost_sm90, 4083, kH200Costs},
                                            {kB200Costs, kB200Ranges, cost_sm100}};
constexpr const CostTable& cost_table(Arch arch) { return kCostTables[static_cast<int32_t>(arch)]; }

// Returns the constants of a device of this architecture; 0 is DRAM that is not known.
constexpr const CostConstants& cost_constants(Arch arch, int32_t memory_gb_s) {
  const CostTable& table = cost_table(arch);
  return memory_gb_s >= table.fast_memory_gb_s ? table.with_fast_memory : table.constants;
}

}  // namespace dualgemm
