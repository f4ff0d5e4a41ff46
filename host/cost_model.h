// cost_model.h -- how long one launch of an instance is expected to take on a B200, in microseconds from
// launch to launch on a stream. Closed form, no state, no measurement of ours: nobody here has the GPU. It is
// made to rank instances.
#pragma once

#include <cstdint>

#include "host/cost_constants.h"
#include "kernel/instances.h"

namespace dualgemm {

// `problems` products of one size: m rows of A and C each. Grouped: only the device knows the rows of a
// group, and m is what a usual group has.
struct Shape {
  int32_t m, n, k;
  int32_t problems = 1;
  bool grouped = false;
};

// What a launch may use: SMs, and how many clusters of two and of four CTAs with full shared memory run on
// the device at once. 0 = not known: clusters_at_once() then assumes what the SMs allow.
struct Machine {
  int32_t sms, clusters_of_2 = 0, clusters_of_4 = 0;
};

struct Cost {
  int64_t tiles, waves;  // tiles of C; how many of them the busiest SM computes one after another
  int64_t k_tiles;       // of one tile, in the longest slice of K
  int64_t fill_bytes;    // per k-tile: what one SM brings into its shared memory
  double fill_us;        // per k-tile: bringing it
  double tensor_us;      // per k-tile: mma and copies of scale factors, which run one after another
  double dram_us;        // per k-tile: what all SMs together read for the first time, and write
  double latency_us;     // per k-tile: one round through the rings
  double exposed_us;     // per tile but the last: the tensor core waits for the epilogue
  double epilogue_us;    // of one tile
  double total_us;
};

// Clusters of `size` CTAs (1, 2 or 4) that run at the same time, one CTA to an SM.
int32_t clusters_at_once(const Machine& machine, int32_t size);

// False, and no cost, for an instance that cannot take the problem: a cluster that does not fit on the
// machine, a split of K in more than one wave, groups for a dense instance or the other way round.
bool cost_of(const Instance& instance, Shape shape, const Machine& machine, Cost* cost,
             const CostConstants& constants = kCostConstants);

// Tiles of C when `instance` computes `shape`; grouped: when every group has m rows.
int64_t tile_count(const Instance& instance, Shape shape);

}  // namespace dualgemm
