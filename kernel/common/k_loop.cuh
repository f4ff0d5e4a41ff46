// k_loop.cuh -- the k-tiles of one tile of C, in the order in which the load roles bring them and the
// multiply role reads them. With split-K a CTA has a part of these k-tiles, its slice of K; with stream-K its
// part differs from tile to tile. It is plain arithmetic, tested on the host.
#pragma once

#include <cstdint>

#include "kernel/common/scheduler.cuh"
#include "ptx/host_device.h"

namespace dualgemm {

// Returns the k-tiles of one slice of K. Slices differ by at most one k-tile and may be empty.
DUALGEMM_HOST_DEVICE constexpr KRange k_range(int32_t k_tiles, uint32_t slice, int32_t slices) {
  const int32_t s = static_cast<int32_t>(slice);
  return {k_tiles * s / slices, k_tiles * (s + 1) / slices};
}

struct KTile {
  int32_t index;  // along K
};

// `i` counts the k-tiles of a tile from 0 to length().
template <class Traits>
struct KLoop {
  KRange range;

  DUALGEMM_HOST_DEVICE constexpr KLoop(int32_t k_tiles, uint32_t slice)
      : range(k_range(k_tiles, slice, Traits::kPlan.tile.split_k)) {}
  // Turns to the next tile; with stream-K the CTA may have other k-tiles of that one.
  DUALGEMM_HOST_DEVICE constexpr void enter(const Tile& tile) {
    if constexpr (Traits::kPlan.tile.stream_k) range = tile.part.k;
  }
  DUALGEMM_HOST_DEVICE constexpr int32_t length() const { return range.end - range.first; }
  DUALGEMM_HOST_DEVICE constexpr KTile operator[](int32_t i) const { return {range.first + i}; }
  // The first k-tile replaces what the accumulators hold, the others add to it.
  DUALGEMM_HOST_DEVICE constexpr bool accumulates(int32_t i) const { return i > 0; }

  // A scale stage begins with the k-tile at i if that is the 0th in it, and ends after scales.k_tiles of them
  // or with the last of the tile.
  DUALGEMM_HOST_DEVICE constexpr int32_t in_scale_stage(int32_t i) const {
    return i % Traits::kPlan.scales.k_tiles;
  }
  DUALGEMM_HOST_DEVICE constexpr bool ends_scale_stage(int32_t i) const {
    return in_scale_stage(i) == Traits::kPlan.scales.k_tiles - 1 || i == length() - 1;
  }
};

}  // namespace dualgemm
