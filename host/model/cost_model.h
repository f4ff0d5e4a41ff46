// cost_model.h -- how long one launch of an instance is expected to take, in microseconds from launch to
// launch on a stream. It is a closed form without state. The constants of an architecture are in
// cost_constants.h. It is made to rank instances.
#pragma once

#include <cstdint>

#include "host/model/cost_constants.h"
#include "host/model/tiling.h"
#include "kernel/instance.h"

namespace dualgemm {

struct Cost {
  int64_t tiles, waves;  // tiles of C; how many of them the busiest SM computes one after another
  double k_tiles;        // of one tile, in the longest slice of K; with stream-K: of a CTA in a wave
  int64_t fill_bytes;    // per k-tile: what one SM brings into its shared memory
  double fill_us;        // per k-tile: bringing it
  double tensor_us;      // per k-tile: mma and copies of scale factors, which run one after another
  double dram_us;        // per k-tile: what all SMs together read for the first time, and write
  double latency_us;     // per k-tile: one round through the rings
  double exposed_us;     // per tile except the last: the tensor core waits for the epilogue
  double epilogue_us;    // of one tile
  double fixed_us;       // gap between launches, prologue, drain
  double start_us;       // until the first copies have arrived
  double tiles_us;       // the tiles without the epilogue of the last one
  double exchange_us;    // of sums between the slices of K
  double total_us;       // the sum of the four times above and of one epilogue
};

// Returns false, and no cost, for an instance that cannot take the problem: a cluster that does not fit on
// the machine; split-K in more than one wave, unless split_k_in_waves (Architecture) and all SMs are free
// (max_sms); groups for a dense instance or the other way round; a type of C that a general instance does not
// write. The second form is for constants other than those of the instance's architecture.
bool cost_of(const Instance& instance, Shape shape, const Machine& machine, Cost* cost);
bool cost_of(const Instance& instance, Shape shape, const Machine& machine, Cost* cost,
             const CostConstants& constants);

}  // namespace dualgemm
