// cost_model.h -- how long one launch of an instance is expected to take on a B200, in microseconds from
// launch to launch on a stream. Closed form, no state, no measurement of ours: nobody here has the GPU. It is
// made to rank instances.
#pragma once

#include <cstdint>

#include "kernel/instances.h"

namespace dualgemm {

struct Shape {
  int32_t m, n, k;
};

struct Cost {
  int64_t tiles, waves;  // tiles of C; how many of them the busiest SM computes one after another
  double fill_us;        // per step of tile_k: bringing a stage into shared memory
  double tensor_us;      // per step: mma and copies of scale factors, which run one after another
  double dram_us;        // per step: what all SMs together read for the first time
  double latency_us;     // per step: one round through the ring of stages
  double total_us;
};

// `sms` SMs take part; an instance whose cluster does not fit on them has no cost (false).
bool cost_of(const Instance& instance, Shape shape, int32_t sms, Cost* cost);

// Tiles of C when `instance` computes an m x n output.
int64_t tile_count(const Instance& instance, Shape shape);

}  // namespace dualgemm
