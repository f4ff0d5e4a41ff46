// bands.cuh -- the tiles of a CTA that moves factors or quantises. The scheduler of the GEMM makes them, with
// bands of 128 rows as the tiles of M. So the code that finds, clamps and lays out the rows of batches and
// groups is the code that does so for A and C.
#pragma once

#include "kernel/common/groups.cuh"
#include "kernel/convert/params.h"
#include "kernel/epilogue/list.h"
#include "ptx/sync.cuh"

namespace dualgemm::convert {

template <bool kGrouped>
struct BandTraits {
  static constexpr Plan kPlan = [] {
    Plan plan{};
    plan.tile.m = kSfAtomRows;
    plan.tile.split_k = plan.mma.cta_group = 1;
    plan.tile.grouped = kGrouped;
    return plan;
  }();
};

// Calls body(tile) for every tile of this CTA, with all of its threads. The memory that the arguments point
// to is used only after the wait for the preceding grid.
template <bool kGrouped, class Body>
DUALGEMM_DEVICE void for_each_tile(const BandParams& rows, const Body& body) {
  using Traits = BandTraits<kGrouped>;
  ptx::griddepcontrol_wait();
  // All grids before this one have ended, and the next one waits for this one by itself.
  ptx::griddepcontrol_launch_dependents();
  Tile tile;
  if constexpr (kGrouped) {
    __shared__ GroupTable<kSfAtomRows> table;
    __shared__ int32_t groups;
    if (threadIdx.x < 32) {
      const int32_t count = write_group_table<Traits>(rows, table);
      if (threadIdx.x == 0) groups = count;
    }
    __syncthreads();
    auto tiles = scheduler_of<Traits>(rows, table);
    for (tiles.seek(groups); tiles.next(tile); tiles.seek(groups)) body(tile);
  } else {
    auto tiles = scheduler_of<Traits>(rows, Nothing{});
    while (tiles.next(tile)) body(tile);
  }
}

// Returns where the factors of a band begin. Its atoms follow each other.
template <class Byte>
DUALGEMM_DEVICE Byte* band_of(Byte* factors, int64_t stride, const Tile& tile, int32_t atoms) {
  return factors + tile.a_problem * stride + int64_t{tile.sfa_block} * atoms * kSfAtomBytes;
}

}  // namespace dualgemm::convert
