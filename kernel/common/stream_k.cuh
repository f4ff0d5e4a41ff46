// stream_k.cuh -- stream-K: which k-tiles of which tiles a CTA computes where CTAs share tiles along K. First
// every CTA takes the same number of whole tiles. The tiles that are left are fewer than the CTAs, and teams
// of CTAs share them: the k-tiles of a team, one tile after another, are cut into spans of equal length, one
// for each member. Three members share two tiles so:
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
  DUALGEMM_HOST_DEVICE constexpr StreamScheduler(TileGrid grid, int32_t m, int32_t k_tiles,
                                                 const Shares& shares, uint32_t cta, uint32_t ctas)
      : grid_(grid),
        m_(m),
        k_tiles_(static_cast<uint32_t>(k_tiles)),
        shares_(&shares),
        cta_(cta),
        ctas_(ctas),
        turns_(shares.rounds) {
    for (uint32_t i = 1; i <= kMostMembers; ++i) member_ += cta >= i * shares.teams.count ? 1 : 0;
    team_ = cta - member_ * shares.teams.count;
    if (member_ >= shares.teams.members || begin(member_) == begin(member_ + 1)) return;
    first_ = tile_of(begin(member_));
    turns_ += tile_of(begin(member_ + 1) - 1) - first_ + 1;
  }

  // Stores the next tile and this CTA's part of it, or returns false after the last. The number of turns of a
  // loop over tiles is known before the loop. From that ptxas knows that the lanes of a warp do not diverge.
  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    if (turn_ >= turns_) return false;
    const uint32_t turn = turn_++;
    if (turn < shares_->rounds) {
      find(tile, turn * ctas_ + cta_);
      tile.part = {{0, static_cast<int32_t>(k_tiles_)}, 0, 1, 0, 0, 0};
      return true;
    }
    const uint32_t of_team = first_ + (turn - shares_->rounds), tile_begin = of_team * k_tiles_;
    const uint32_t tile_end = tile_begin + k_tiles_, span_begin = begin(member_),
                   span_end = begin(member_ + 1);
    const uint32_t first = owner(tile_begin), last = owner(tile_end - 1);
    const uint32_t shared = of_team * shares_->teams.count + team_;
    find(tile, shares_->rounds * ctas_ + shared);
    tile.part.k.first = static_cast<int32_t>(span_begin > tile_begin ? span_begin - tile_begin : 0);
    tile.part.k.end = static_cast<int32_t>((span_end < tile_end ? span_end : tile_end) - tile_begin);
    tile.part.index = static_cast<int32_t>(member_ - first);
    tile.part.count = static_cast<int32_t>(last - first + 1);
    tile.part.first_cta = static_cast<int32_t>(first * shares_->teams.count + team_);
    tile.part.cta_step = static_cast<int32_t>(shares_->teams.count);
    tile.part.shared = static_cast<int32_t>(shared);
    return true;
  }

 private:
  // Returns where the span of a member begins. The loop is unrolled, and picks one of a few constants.
  DUALGEMM_HOST_DEVICE constexpr uint32_t begin(uint32_t member) const {
    const bool other = team_ >= shares_->full_teams;
    uint32_t out = 0;
    for (uint32_t i = 1; i <= kMostMembers; ++i)
      if (member == i) out = other ? shares_->begin[1][i] : shares_->begin[0][i];
    return out;
  }
  // Returns the tile of the team that has a k-tile of it. A team has at most as many tiles as members.
  DUALGEMM_HOST_DEVICE constexpr uint32_t tile_of(uint32_t unit) const {
    uint32_t out = 0;
    for (uint32_t i = 1; i < kMostMembers; ++i) out += unit >= i * k_tiles_ ? 1 : 0;
    return out;
  }
  // Returns the member that has a k-tile of its team: the last that begins at it or before.
  DUALGEMM_HOST_DEVICE constexpr uint32_t owner(uint32_t unit) const {
    uint32_t out = 0;
    for (uint32_t i = 1; i < kMostMembers; ++i) out += i < shares_->teams.members && begin(i) <= unit ? 1 : 0;
    return out;
  }
  DUALGEMM_HOST_DEVICE constexpr void find(Tile& tile, uint32_t number) const {
    DenseScheduler<Traits>(grid_, m_, number, 1).next(tile);
  }

  TileGrid grid_;
  int32_t m_;
  uint32_t k_tiles_;
  const Shares* shares_;
  uint32_t cta_, ctas_;
  uint32_t turn_ = 0, turns_;  // whole tiles, then parts
  uint32_t team_ = 0, member_ = 0;
  uint32_t first_ = 0;  // tile of the team in which this CTA's span begins
};

}  // namespace dualgemm
