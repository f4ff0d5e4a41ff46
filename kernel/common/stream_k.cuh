// stream_k.cuh -- stream-K: which k-tiles of which tiles a CTA computes where CTAs share tiles along K. Every
// CTA takes whole tiles first, as many as all have alike. The tiles that are left are fewer than CTAs, and
// teams of CTAs share them: the k-tiles of a team, one tile after another, are cut into spans of equal
// length, one for each member. Three members share two tiles so:
//
//   tiles     |         0         |         1         |
//   k-tiles    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9
//   members   |      0      |      1      |     2     |
//
// A team takes every count-th of the tiles that are left, and its members are every count-th CTA. So
// neighbouring CTAs have neighbouring tiles, as those of DenseScheduler do, and are at the same place of K
// at the same time: then L2 sends what they read in common fewer times. (One sequence of all k-tiles, with a
// span for each CTA, has CTAs at every place of K. Measured on an H100, k-tiles took up to 45 % longer so.)
// The schedule follows from the problem and the grid alone, so all roles agree on it. It is plain arithmetic,
// tested on the host.
#pragma once

#include <cstdint>

#include "kernel/common/scheduler.cuh"
#include "kernel/stream_k.h"
#include "ptx/host_device.h"

namespace dualgemm {

template <class Traits>
class StreamScheduler {
 public:
  DUALGEMM_HOST_DEVICE constexpr StreamScheduler(TileGrid grid, int32_t m, int32_t k_tiles, Teams teams,
                                                 uint32_t cta, uint32_t ctas)
      : grid_(grid), m_(m), k_tiles_(static_cast<uint32_t>(k_tiles)), teams_(teams), ctas_(ctas), next_(cta) {
    const uint32_t tiles = static_cast<uint32_t>(grid.m_tiles) * static_cast<uint32_t>(grid.n_tiles) *
                           static_cast<uint32_t>(grid.problems);
    whole_ = tiles / ctas * ctas;
    team_ = cta % teams.count;
    const uint32_t left = tiles - whole_, member = cta / teams.count;
    if (member >= teams.members || team_ >= left) return;
    units_ = ((left - team_ - 1) / teams.count + 1) * k_tiles_;
    unit_ = begin(member);
    end_ = begin(member + 1);
    member_ = member;
  }

  // Stores the next tile and this CTA's part of it, or returns false after the last.
  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    if (next_ < whole_) {
      find(tile, next_);
      tile.part = {{0, static_cast<int32_t>(k_tiles_)}, 0, 1, 0, 0, 0};
      next_ += ctas_;
      return true;
    }
    if (unit_ >= end_) return false;
    const uint32_t of_team = unit_ / k_tiles_, begin = of_team * k_tiles_, end = begin + k_tiles_;
    const uint32_t first = owner(begin), last = owner(end - 1), part_end = end_ < end ? end_ : end;
    const uint32_t shared = of_team * teams_.count + team_;
    find(tile, whole_ + shared);
    tile.part.k = {static_cast<int32_t>(unit_ - begin), static_cast<int32_t>(part_end - begin)};
    tile.part.index = static_cast<int32_t>(member_ - first);
    tile.part.count = static_cast<int32_t>(last - first + 1);
    tile.part.first_cta = static_cast<int32_t>(first * teams_.count + team_);
    tile.part.cta_step = static_cast<int32_t>(teams_.count);
    tile.part.shared = static_cast<int32_t>(shared);
    unit_ = part_end;
    return true;
  }

 private:
  // A team has a few tiles, of at most 2^23 k-tiles, so that all of this has 32 bits.
  DUALGEMM_HOST_DEVICE constexpr uint32_t begin(uint32_t member) const {
    return units_ * member / teams_.members;
  }
  // Returns the member that has a k-tile of its team: the last that begins at it or before.
  DUALGEMM_HOST_DEVICE constexpr uint32_t owner(uint32_t unit) const {
    return ((unit + 1) * teams_.members - 1) / units_;
  }
  DUALGEMM_HOST_DEVICE constexpr void find(Tile& tile, uint32_t number) const {
    DenseScheduler<Traits>(grid_, m_, number, 1).next(tile);
  }

  TileGrid grid_;
  int32_t m_;
  uint32_t k_tiles_;
  Teams teams_;
  uint32_t ctas_, next_;  // the next whole tile
  uint32_t whole_ = 0;    // tiles before those that are left
  uint32_t team_ = 0, member_ = 0;
  uint32_t units_ = 0;           // k-tiles of the team
  uint32_t unit_ = 0, end_ = 0;  // of them, those of this CTA's span that it has not had
};

}  // namespace dualgemm
