// cost_constants.h -- what the cost model knows of a B200: every constant with its source and, in kRanges,
// how far the sources allow it to be off. None was measured by us on a Blackwell GPU.
//   published   a measurement on B200 by others
//   fit         to published times of other kernels, which do not tell these constants apart well
//   H200        measured by us on an H200 and taken over
#pragma once

namespace dualgemm {

struct CostConstants {
  double clock = 1965;           // cycles per us; published: boost clock
  double fill_per_sm = 175e3;    // bytes per us into one SM; fit
  double fill_all_sms = 17.7e6;  // bytes per us from L2 to all SMs; fit, published 15e6 to 17e6
  double per_copy = 0.014;       // us of an SM's copy port per TMA instruction; fit
  double dram = 6.0e6;         // bytes per us inside a kernel of 10 us; fit, published 7.2e6 in steady state
  double l2_bytes = 63e6;      // that hold different data; published: 126 MB in two halves with a copy each
  double latency = 0.88;       // us from the issue of a copy to its arrival, with nobody else about; fit
  double per_byte = 0.013e-6;  // us more per byte in flight on the chip; fit
  double scale_copy = 18.3;    // cycles of tcgen05.cp between two mma; published: copies of one thread
  double commit = 112;         // cycles from the last mma to a thread that waited for it; fit
  double wake = 59;            // cycles from an arrival on a barrier to the first mma after it; fit
  double fixed = 2.70;         // us: gap between launches on a stream, prologue, drain; fit
  double cluster_barrier = 370;  // cycles of arrive and wait; published
  double load = 882;             // cycles of a load from DRAM by a thread; published
  double tensor_read = 22;       // cycles of a tcgen05.ld beside its bytes; published
  double tensor_bytes = 1024;    // per cycle and SM from tensor memory; published
  double results = 6.8;          // silu(a) * b per cycle by eight warps, stores left out; H200
  double exchange = 260;         // cycles of an exchange between the shared memories of a cluster; H200
  double exchange_per_kb = 50;   // cycles more per 1024 bytes; H200
};

inline constexpr CostConstants kCostConstants{};

// The cycles of a mma are not among them: they are published within 1 %.
struct CostRange {
  const char* name;
  double CostConstants::*constant;
  double low, high;
};
inline constexpr CostRange kCostRanges[] = {
    {"clock", &CostConstants::clock, 1800, 1965},
    {"rate into an SM", &CostConstants::fill_per_sm, 155e3, 180e3},
    {"rate into all SMs", &CostConstants::fill_all_sms, 15e6, 18e6},
    {"time per copy", &CostConstants::per_copy, 0.010, 0.018},
    {"rate of DRAM", &CostConstants::dram, 5.5e6, 7.2e6},
    {"latency of a copy", &CostConstants::latency, 0.76, 1.0},
    {"latency per byte in flight", &CostConstants::per_byte, 0.005e-6, 0.03e-6},
    {"copy of scale factors", &CostConstants::scale_copy, 8, 18.3},
    {"commit", &CostConstants::commit, 72, 152},
    {"wake", &CostConstants::wake, 29, 89},
    {"fixed time", &CostConstants::fixed, 2.4, 3.0},
    {"cluster barrier", &CostConstants::cluster_barrier, 296, 444},
    {"activation", &CostConstants::results, 3.4, 8},
    {"exchange, per KB", &CostConstants::exchange_per_kb, 25, 100},
};

}  // namespace dualgemm
