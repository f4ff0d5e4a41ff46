// stream_k.cuh -- stream-K: where the tiles do not fill the SMs evenly, CTAs share tiles along K. All
// k-tiles of these tiles, one tile after another, are cut into spans of equal length, one for each CTA:
//
//   tiles     |      0      |      1      |      2      |
//   k-tiles    0 1 2 3 4 5 6 0 1 2 3 4 5 6 0 1 2 3 4 5 6
//   CTAs      |    0    |   1   |   2   |   3   |   4   |
//
// Tile 0 has parts of CTA 0 and 1, tile 1 of CTA 1, 2 and 3.
//
// A CTA takes whole tiles first, as many as every CTA gets alike, but for the last round of these: between
// one and two tiles for each CTA are shared, or all where there are fewer tiles than CTAs. So no CTA has
// less than others to do by more than a k-tile, and most tiles have two parts at most. The order of tiles
// is that of DenseScheduler. The schedule follows from the problem and the grid alone, so all roles agree
// on it. It is plain arithmetic, tested on the host.
#pragma once

#include <cstdint>

#include "kernel/common/scheduler.cuh"
#include "ptx/host_device.h"

namespace dualgemm {

// `units` k-tiles in spans for some CTAs: each has `least`, and the first `more` of them have one more.
struct Spans {
  uint32_t least, more;

  DUALGEMM_HOST_DEVICE constexpr Spans(uint32_t units, uint32_t ctas)
      : least(units / ctas), more(units % ctas) {}
  DUALGEMM_HOST_DEVICE constexpr uint32_t begin(uint32_t cta) const {
    return cta * least + (cta < more ? cta : more);
  }
  // Returns the CTA that has a unit.
  DUALGEMM_HOST_DEVICE constexpr uint32_t owner(uint32_t unit) const {
    const uint32_t longer = more * (least + 1);
    return unit < longer ? unit / (least + 1) : more + (unit - longer) / least;
  }
};

// Returns how many tiles are computed whole: those before the others.
DUALGEMM_HOST_DEVICE constexpr uint32_t whole_tiles(uint32_t tiles, uint32_t ctas) {
  const uint32_t rounds = tiles / ctas;
  if (tiles % ctas == 0) return tiles;
  return rounds > 1 ? (rounds - 1) * ctas : 0;
}

// The k-tiles of all shared tiles, fewer than two for each CTA, are a number of 32 bits: K has at most 2^23
// k-tiles, and kMostStreamCtas (kernel/plan.h) are fewer than 256.
template <class Traits>
class StreamScheduler {
 public:
  DUALGEMM_HOST_DEVICE constexpr StreamScheduler(TileGrid grid, int32_t m, int32_t k_tiles, uint32_t cta,
                                                 uint32_t ctas)
      : grid_(grid),
        m_(m),
        k_tiles_(static_cast<uint32_t>(k_tiles)),
        ctas_(ctas),
        whole_(whole_tiles(tiles(), ctas)),
        spans_((tiles() - whole_) * k_tiles_, ctas),
        cta_(cta),
        next_(cta),
        unit_(spans_.begin(cta)),
        end_(spans_.begin(cta + 1)) {}

  // Stores the next tile and this CTA's part of it, or returns false after the last.
  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    if (next_ < whole_) {
      find(tile, next_);
      tile.part = {{0, static_cast<int32_t>(k_tiles_)}, 0, 1, 0, 0};
      next_ += ctas_;
      return true;
    }
    if (unit_ >= end_) return false;
    const uint32_t shared = unit_ / k_tiles_, begin = shared * k_tiles_, end = begin + k_tiles_;
    const uint32_t first_cta = spans_.owner(begin), last_cta = spans_.owner(end - 1);
    const uint32_t part_end = end_ < end ? end_ : end;
    find(tile, whole_ + shared);
    tile.part.k = {static_cast<int32_t>(unit_ - begin), static_cast<int32_t>(part_end - begin)};
    tile.part.index = static_cast<int32_t>(cta_ - first_cta);
    tile.part.count = static_cast<int32_t>(last_cta - first_cta + 1);
    tile.part.first_cta = static_cast<int32_t>(first_cta);
    tile.part.shared = static_cast<int32_t>(shared);
    unit_ = part_end;
    return true;
  }

 private:
  DUALGEMM_HOST_DEVICE constexpr uint32_t tiles() const {
    return static_cast<uint32_t>(grid_.m_tiles) * static_cast<uint32_t>(grid_.n_tiles) *
           static_cast<uint32_t>(grid_.problems);
  }
  DUALGEMM_HOST_DEVICE constexpr void find(Tile& tile, uint32_t number) const {
    DenseScheduler<Traits>(grid_, m_, number, 1).next(tile);
  }

  TileGrid grid_;
  int32_t m_;
  uint32_t k_tiles_, ctas_;
  uint32_t whole_;  // tiles before those that are shared
  Spans spans_;
  uint32_t cta_, next_;  // the next whole tile
  uint32_t unit_, end_;  // k-tiles of this CTA's span that are left
};

}  // namespace dualgemm
