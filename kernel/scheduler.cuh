// scheduler.cuh -- which tiles of C a CTA computes, and in which order. Static and persistent: CTA i takes
// tiles i, i + CTAs, i + 2 CTAs, ... Every role walks the same sequence by itself, so no tile is ever
// communicated. Plain arithmetic, tested on the host.
#pragma once

#include <cstdint>

#include "ptx/descriptor.h"

namespace dualgemm {

struct Tile {
  int32_t m, n;  // in tiles
};

// Tiles are numbered down M first: the CTAs that read the same rows of B1 and B2 have neighbouring numbers,
// run at the same time on neighbouring SMs, and fetch those weights into their part of the chip once.
class TileScheduler {
 public:
  DUALGEMM_HOST_DEVICE constexpr TileScheduler(int32_t m_tiles, int32_t n_tiles, uint32_t cta, uint32_t ctas)
      : m_tiles_(static_cast<uint32_t>(m_tiles)),
        tiles_(static_cast<uint32_t>(m_tiles) * static_cast<uint32_t>(n_tiles)),
        stride_(ctas),
        next_(cta) {}

  // Stores the next tile of this CTA, or returns false after the last.
  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    if (next_ >= tiles_) return false;
    tile = {static_cast<int32_t>(next_ % m_tiles_), static_cast<int32_t>(next_ / m_tiles_)};
    next_ += stride_;
    return true;
  }

 private:
  uint32_t m_tiles_, tiles_, stride_, next_;
};

// The k-tiles of one slice of K. Slices differ by at most one k-tile and may be empty.
struct KRange {
  int32_t first, end;
  DUALGEMM_HOST_DEVICE constexpr bool empty() const { return first == end; }
};
DUALGEMM_HOST_DEVICE constexpr KRange k_range(int32_t k_tiles, uint32_t slice, int32_t slices) {
  const int32_t s = static_cast<int32_t>(slice);
  return {k_tiles * s / slices, k_tiles * (s + 1) / slices};
}

}  // namespace dualgemm
