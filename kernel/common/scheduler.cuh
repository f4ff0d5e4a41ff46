// scheduler.cuh -- which tiles of C a CTA computes, and in which order. The order is static and the kernel
// persistent: CTA (or cluster) i of P takes tiles i, i + P, i + 2 P, ... Every role walks the same sequence
// by itself, so no tile is ever communicated. It is plain arithmetic, tested on the host.
#pragma once

#include <cstdint>

#include "kernel/plan.h"
#include "ptx/host_device.h"

namespace dualgemm {

struct Tile {
  int32_t m, n;       // in tiles of its problem
  int32_t problem;    // whose weights, scale factors and alphas it needs
  int32_t a_problem;  // outermost coordinate in A, SFA and C
  int32_t row;        // its first row, in A and C
  int32_t rows;       // of the problem from there on: at least 1, and not clipped to those of a tile
  int32_t sfa_block;  // block of 128 rows of SFA where those rows begin
};

// Tiles are numbered down M first: the CTAs that read the same rows of B1 and B2 have neighbouring numbers,
// run at the same time on neighbouring SMs, and fetch those weights into their half of L2 once. Tiles of M
// come in bands of kBandTiles, one band after another, so that the rows of A in use stay in L2: 16 tiles of
// 256 rows with K = 16384 are 36 MB of 126.
struct TileGrid {
  int32_t m_tiles, n_tiles, problems;
};

template <class Traits>
class DenseScheduler {
 public:
  DUALGEMM_HOST_DEVICE constexpr DenseScheduler(TileGrid grid, int32_t m, uint32_t first, uint32_t stride)
      : m_tiles_(static_cast<uint32_t>(grid.m_tiles)),
        n_tiles_(static_cast<uint32_t>(grid.n_tiles)),
        tiles_(m_tiles_ * n_tiles_ * static_cast<uint32_t>(grid.problems)),
        m_(m),
        stride_(stride),
        next_(first) {}

  // Stores the next tile, or returns false after the last.
  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    if (next_ >= tiles_) return false;
    const uint32_t problem = next_ / (m_tiles_ * n_tiles_), in_problem = next_ % (m_tiles_ * n_tiles_);
    const uint32_t band = in_problem / (kBandTiles * n_tiles_),
                   in_band = in_problem % (kBandTiles * n_tiles_);
    const uint32_t left = m_tiles_ - band * kBandTiles;
    const uint32_t band_tiles = left < kBandTiles ? left : kBandTiles;  // of M, in this band
    tile.m = static_cast<int32_t>(band * kBandTiles + in_band % band_tiles);
    tile.n = static_cast<int32_t>(in_band / band_tiles);
    tile.problem = tile.a_problem = static_cast<int32_t>(problem);
    tile.row = tile.m * Traits::kPlan.tile.m;
    tile.rows = m_ - tile.row;
    tile.sfa_block = tile.row / kSfAtomRows;
    next_ += stride_;
    return true;
  }

 private:
  uint32_t m_tiles_, n_tiles_, tiles_;
  int32_t m_;
  uint32_t stride_, next_;
};

// The table has the groups that have rows, in order, and one more entry after the last. It is written once
// per CTA (groups.cuh).
struct GroupEntry {
  int32_t m_tiles_before;  // tiles down M of all groups before this one
  int32_t problem;         // the group's number
  int32_t row, rows;       // its first row in A and C, and how many it has
  int32_t sfa_block;       // its first block of 128 rows of SFA
};
struct GroupTable {
  GroupEntry entry[kMaxGroups + 1];
};

// Tiles of one group and one n are neighbours, so that its weights come from DRAM once.
template <class Traits>
class GroupedScheduler {
 public:
  DUALGEMM_HOST_DEVICE constexpr GroupedScheduler(const GroupTable& table, int32_t n_tiles, bool shared_a,
                                                  uint32_t first, uint32_t stride)
      : entry_(table.entry),
        n_tiles_(static_cast<uint32_t>(n_tiles)),
        shared_a_(shared_a),
        stride_(stride),
        next_(first) {}

  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    const auto before = [this](int i) { return static_cast<uint32_t>(entry_[i].m_tiles_before) * n_tiles_; };
    while (entry_->problem >= 0 && next_ >= before(1)) ++entry_;
    if (entry_->problem < 0) return false;
    const auto m_tiles = static_cast<uint32_t>(entry_[1].m_tiles_before - entry_[0].m_tiles_before);
    const uint32_t in_group = next_ - before(0);
    tile.m = static_cast<int32_t>(in_group % m_tiles);
    tile.n = static_cast<int32_t>(in_group / m_tiles);
    tile.problem = entry_->problem;
    tile.a_problem = shared_a_ ? 0 : entry_->problem;
    const int32_t row = tile.m * Traits::kPlan.tile.m;
    tile.row = entry_->row + row;
    tile.rows = entry_->rows - row;
    tile.sfa_block = entry_->sfa_block + row / kSfAtomRows;
    next_ += stride_;
    return true;
  }

 private:
  const GroupEntry* entry_;  // of the group of the last tile that was handed out
  uint32_t n_tiles_;
  bool shared_a_;
  uint32_t stride_, next_;
};

}  // namespace dualgemm
