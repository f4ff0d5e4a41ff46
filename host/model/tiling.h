// tiling.h -- how many tiles a launch has, how many clusters run at once on a machine, and how many CTAs a
// grid has: one answer to each of these questions for the rules, the cost model, the launch and the
// benchmark. It is nothing but arithmetic.
#pragma once

#include <cstdint>

#include "host/common/problem.h"
#include "kernel/plan.h"
#include "kernel/stream_k.h"

namespace dualgemm {

// The choice of an instance looks at a shape. It has `problems` problems of one size, each with m rows of A
// and C. If the shape is grouped, only the device knows the rows of a group, and m is the number of rows of a
// usual group.
struct Shape {
  int32_t m, n, k;
  int32_t problems = 1;
  bool grouped = false;
  CType c_type = CType::kBf16;  // that a general instance writes; a plain one has its own
  ActivationKind activation = ActivationKind::kSwiglu;
  int32_t d_bits = 0;  // of the elements of D1 and of D2 together, if they are asked for
  int32_t biases = 0;  // bias1, bias2: how many there are
  bool a_row_scale = false, c_row_scale = false;
  bool amax = false;
  bool exact = false;  // EXACT_ACT
  bool c_add = false;  // a matrix like C is read and added

  bool operator==(const Shape&) const = default;
};

// What a launch may use: the SMs, and how many clusters of two and of four CTAs, with full shared memory, the
// device runs at once. A number of clusters is -1 if none run, and 0 if it is not known; for 0
// clusters_at_once() scales the number of the architecture's largest chip by the SMs. If the launch is
// limited (max_sms), it may not have more CTAs at once than SMs, also where two of them would share one.
struct Machine {
  int32_t sms, clusters_of_2 = 0, clusters_of_4 = 0;
  bool limited = false;
  int32_t memory_gb_s = 0;  // 10^9 bytes per second at the pins of DRAM; 0: not known

  bool operator==(const Machine&) const = default;
};

// Returns the part of the device that a launch may use.
Machine machine_of(const dualgemm_args_t& args, const dualgemm_device_t& device);

// Count the tiles of one problem: along its rows of A and C, its columns of C, its elements of K.
int64_t m_tiles(const TilePlan& tile, int64_t rows);
int64_t n_tiles(const TilePlan& tile, int64_t columns);
int64_t k_tiles(const TilePlan& tile, int64_t k);

// Counts the tiles of C that a launch computes; with groups this is an upper bound, since their rows are not
// known here.
int64_t tile_bound(const Problem& problem, const TilePlan& tile);

// Count the tiles of a shape: those along M of one problem, and those of C in all problems. The rows of a
// group are assumed to be spread evenly over 1 .. 2 m - 1, whose mean is m.
double mean_m_tiles(const Shape& shape, const TilePlan& tile);
int64_t mean_tiles(const Shape& shape, const TilePlan& tile);

// Returns whether clusters of `size` CTAs run at all, as far as is known. Clusters of more than two CTAs
// count as clusters of four.
bool runs_clusters(const Machine& machine, int32_t size);
// Counts the clusters of `size` CTAs that run at the same time, with that many CTAs to an SM.
int32_t clusters_at_once(const Machine& machine, Arch arch, int32_t size, int32_t ctas_per_sm = 1);
// Does the same for a plan.
int32_t clusters_at_once(const Machine& machine, const Plan& plan);

// Returns the most CTAs that a launch with stream-K has, on any machine.
int64_t most_stream_ctas(int64_t tiles);

// Counts the clusters of a launch. Without split-K a launch has no more clusters than run at once, since each
// computes several tiles.
int64_t grid_clusters(const Plan& plan, int64_t tiles, const Machine& machine);

// Counts the CTAs of a launch.
int64_t grid_size(const Problem& problem, const Plan& plan, const Machine& machine);

}  // namespace dualgemm
