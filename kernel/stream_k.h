// stream_k.h -- stream-K: where the tiles do not fill the SMs evenly, teams of CTAs share tiles along K. This
// file says how large teams are, common/stream_k.cuh which CTA computes what. It is plain C++ without CUDA
// types.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm {

// A launch with stream-K has at most this many CTAs, since its workspace holds the parts of no more.
inline constexpr uint32_t kMostStreamCtas = 132;
// Beside its whole tiles a CTA has parts of at most two shared tiles.
inline constexpr uint32_t kPartsOfCta = 2;
// A team has at most this many members. With more members more places of A would be in use at a time, and
// more parts would have to be added up.
inline constexpr uint32_t kMostMembers = 4;
// A team has to save more k-tiles than this, because the exchange of its parts takes as long as this many.
// The number is a fit to 34 times of one product on an H100 (bench/results/h100_linear.json): 5 leads to
// choices as good, 3 and 6 do not.
inline constexpr uint32_t kKTilesOfExchange = 4;

// Every CTA first computes the same number of whole tiles. The tiles that are left are fewer than the CTAs;
// teams share them.
struct Teams {
  uint32_t members;  // of a team; 1: the tiles that are left are computed whole, too
  uint32_t count;    // of teams

  bool operator==(const Teams&) const = default;
};

// Returns the largest number of k-tiles that a member has of the tiles that are left.
DUALGEMM_HOST_DEVICE constexpr uint32_t longest_span(Teams teams, uint32_t left, uint32_t k_tiles) {
  const uint32_t tiles = (left + teams.count - 1) / teams.count;
  return (tiles * k_tiles + teams.members - 1) / teams.members;
}

// Returns the teams that end soonest.
DUALGEMM_HOST_DEVICE constexpr Teams teams_for(uint32_t tiles, uint32_t k_tiles, uint32_t ctas) {
  const uint32_t left = tiles % ctas;
  Teams best{1, ctas};
  uint32_t least = longest_span(best, left, k_tiles);
  // A team has no more members than a tile has k-tiles, so that each member has one.
  for (uint32_t members = 2; members <= kMostMembers && members <= ctas && members <= k_tiles; ++members) {
    const Teams teams{members, ctas / members};
    const uint32_t span = longest_span(teams, left, k_tiles) + kKTilesOfExchange;
    if (span >= least) continue;
    best = teams;
    least = span;
  }
  return best;
}

// All that a CTA has to know about the teams. The device divides nothing: ptxas would have to assume that the
// result of a division differs from lane to lane, and would keep the state of the rings in registers of each
// lane.
struct Shares {
  uint32_t rounds;  // whole tiles of each CTA
  Teams teams;
  uint32_t full_teams;  // the first full_teams teams have a tile more than the others
  // Where the span of each member begins in its team's k-tiles; the next entry is where it ends. [0] is for
  // full teams, [1] for the others.
  uint32_t begin[2][kMostMembers + 1];
};

DUALGEMM_HOST_DEVICE constexpr Shares shares_for(uint32_t tiles, uint32_t k_tiles, uint32_t ctas) {
  Shares out{tiles / ctas, teams_for(tiles, k_tiles, ctas), 0, {}};
  const uint32_t left = tiles % ctas, of_others = left / out.teams.count;
  out.full_teams = left % out.teams.count;
  for (uint32_t other = 0; other < 2; ++other)
    for (uint32_t member = 0; member <= out.teams.members; ++member)
      out.begin[other][member] = (of_others + 1 - other) * k_tiles * member / out.teams.members;
  return out;
}

}  // namespace dualgemm
