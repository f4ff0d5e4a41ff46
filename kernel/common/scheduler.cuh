// scheduler.cuh -- which tiles of C a CTA computes, and in which order. The order is static and the kernel
// persistent: CTA (or cluster) i of P takes one of tiles 0 to P - 1, one of P to 2 P - 1, and so on (Turns).
// Every role walks the same sequence by itself, so no tile is ever communicated. It is plain arithmetic,
// tested on the host.
#pragma once

#include <cstdint>

#include "kernel/plan.h"
#include "ptx/host_device.h"

namespace dualgemm {

// Names some k-tiles of a tile, from `first` up to `end`.
struct KRange {
  int32_t first, end;
  DUALGEMM_HOST_DEVICE constexpr bool empty() const { return first == end; }
};

// Says what a CTA computes of a tile with stream-K (stream_k.cuh). Parts are numbered in the order of K.
struct TilePart {
  KRange k;
  int32_t index, count;         // this part, and how many the tile has
  int32_t first_cta, cta_step;  // the CTA of part 0, and from each to that of the next
  int32_t shared;               // the number of the tile among those that are shared
};

struct Tile {
  int32_t m, n;       // in tiles of its problem
  int32_t problem;    // whose weights, scale factors and alphas it needs
  int32_t a_problem;  // outermost coordinate in A, SFA and C
  int32_t row;        // its first row, in A and C
  int32_t rows;       // rows of the problem from `row` to its end: at least 1, may be more than a tile has
  int32_t sfa_block;  // block of 128 rows of SFA where those rows begin
  TilePart part;      // only with stream-K
};

// Tiles are numbered down M first: the CTAs that read the same rows of B1 and B2 have neighbouring numbers,
// run at the same time on neighbouring SMs, and fetch those weights into their half of L2 once. Tiles of M
// come in bands, one band after another, so that the rows of A in use stay in L2 (architecture.h says of how
// many rows).
struct TileGrid {
  int32_t m_tiles, n_tiles, problems;
};

// The numbers of the tiles of a CTA, ascending: i, i + P, i + 2 P, ... Where tiles with few rows take less
// time than others, they are i, P + (i + 1) mod P, 2 P + (i + 2) mod P, ... if P is even: if M has two
// tiles, every second tile has few rows, and each CTA gets as many of these as the others.
template <class Traits>
class Turns {
  static constexpr bool kRotates = Traits::kPlan.few_rows() < Traits::kPlan.tile.m;

 public:
  DUALGEMM_HOST_DEVICE constexpr Turns(uint32_t first, uint32_t stride) : place_(first), stride_(stride) {}

  // Returns the number of the next tile.
  DUALGEMM_HOST_DEVICE constexpr uint32_t tile() const { return turn_ + place_; }
  DUALGEMM_HOST_DEVICE constexpr void advance() {
    turn_ += stride_;
    if (kRotates && stride_ % 2 == 0 && ++place_ == stride_) place_ = 0;
  }

 private:
  uint32_t turn_ = 0, place_, stride_;
};

template <class Traits>
class DenseScheduler {
 public:
  DUALGEMM_HOST_DEVICE constexpr DenseScheduler(TileGrid grid, int32_t m, uint32_t first, uint32_t stride)
      : m_tiles_(static_cast<uint32_t>(grid.m_tiles)),
        n_tiles_(static_cast<uint32_t>(grid.n_tiles)),
        tiles_(m_tiles_ * n_tiles_ * static_cast<uint32_t>(grid.problems)),
        m_(m),
        turns_(first, stride) {}

  // Stores the next tile, or returns false after the last.
  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    const uint32_t next = turns_.tile();
    if (next >= tiles_) return false;
    const uint32_t problem = next / (m_tiles_ * n_tiles_), in_problem = next % (m_tiles_ * n_tiles_);
    constexpr uint32_t kTiles = Traits::kPlan.band_tiles();
    const uint32_t band = in_problem / (kTiles * n_tiles_), in_band = in_problem % (kTiles * n_tiles_);
    const uint32_t left = m_tiles_ - band * kTiles;
    const uint32_t band_tiles = left < kTiles ? left : kTiles;  // of M, in this band
    tile.m = static_cast<int32_t>(band * kTiles + in_band % band_tiles);
    tile.n = static_cast<int32_t>(in_band / band_tiles);
    tile.problem = tile.a_problem = static_cast<int32_t>(problem);
    tile.row = tile.m * Traits::kPlan.tile.m;
    tile.rows = m_ - tile.row;
    tile.sfa_block = tile.row / kSfAtomRows;
    turns_.advance();
    return true;
  }

 private:
  uint32_t m_tiles_, n_tiles_, tiles_;
  int32_t m_;
  Turns<Traits> turns_;
};

// The table has an entry for each group that has rows, in the order of the groups. One more entry follows,
// which tells where the last of these groups ends. It is written once per CTA (groups.cuh). It takes 10,256
// bytes of shared memory, and 14,352 for tiles of other than 128 rows.
template <int kTileRows>
struct GroupTable {
  static constexpr int32_t kEntries = kMaxGroups + 1;
  static constexpr uint16_t kNone = 0xFFFF;  // the problem of the entry after the last
  // Blocks of 128 rows of SFA are numbered like tiles of 128 rows.
  static constexpr bool kTilesAreBlocks = kTileRows == kSfAtomRows;

  int32_t m_tiles_before[kEntries];  // tiles down M of all groups before this one
  // Where A is shared, the group's first row in A and C, and the blocks of SFA before it; else how many
  // rows it has.
  int32_t rows[kEntries];
  int32_t sfa_blocks_before[kTilesAreBlocks ? 1 : kEntries];
  uint16_t problem[kEntries];  // the group's number

  DUALGEMM_HOST_DEVICE constexpr int32_t first_sfa_block(int32_t i) const {
    return kTilesAreBlocks ? m_tiles_before[i] : sfa_blocks_before[i];
  }
  DUALGEMM_HOST_DEVICE constexpr void set_first_sfa_block(int32_t i, int32_t block) {
    if constexpr (!kTilesAreBlocks) sfa_blocks_before[i] = block;
  }
};

// Tiles of one group and one n are neighbours, so that its weights come from DRAM once. The rows of the
// groups follow each other in A and C (`shared_a`), or each group has an A and a C of its own.
template <class Traits>
class GroupedScheduler {
 public:
  using Table = GroupTable<Traits::kPlan.tile.m>;

  DUALGEMM_HOST_DEVICE constexpr GroupedScheduler(const Table& table, int32_t n_tiles, bool shared_a,
                                                  uint32_t first, uint32_t stride)
      : table_(&table),
        n_tiles_(static_cast<uint32_t>(n_tiles)),
        shared_a_(shared_a),
        turns_(first, stride) {}

  DUALGEMM_HOST_DEVICE constexpr bool next(Tile& tile) {
    const Table& t = *table_;
    const auto before = [&](int32_t i) { return static_cast<uint32_t>(t.m_tiles_before[i]) * n_tiles_; };
    const uint32_t next = turns_.tile();
    while (t.problem[i_] != Table::kNone && next >= before(i_ + 1)) ++i_;
    if (t.problem[i_] == Table::kNone) return false;
    const auto m_tiles = static_cast<uint32_t>(t.m_tiles_before[i_ + 1] - t.m_tiles_before[i_]);
    const uint32_t in_group = next - before(i_);
    tile.m = static_cast<int32_t>(in_group % m_tiles);
    tile.n = static_cast<int32_t>(in_group / m_tiles);
    tile.problem = t.problem[i_];
    tile.a_problem = shared_a_ ? 0 : t.problem[i_];
    const int32_t row = tile.m * Traits::kPlan.tile.m;
    tile.row = shared_a_ ? t.rows[i_] + row : row;
    tile.rows = (shared_a_ ? t.rows[i_ + 1] - t.rows[i_] : t.rows[i_]) - row;
    tile.sfa_block = (shared_a_ ? t.first_sfa_block(i_) : 0) + row / kSfAtomRows;
    turns_.advance();
    return true;
  }
  // Moves on to the group of the next tile, or past the last group, by a binary search from the present entry
  // on. `groups` says how many entries have rows. It is for CTAs whose tiles lie many groups apart.
  DUALGEMM_HOST_DEVICE constexpr void seek(int32_t groups) {
    const Table& t = *table_;
    while (i_ < groups) {
      const int32_t middle = i_ + (groups - i_) / 2;
      if (turns_.tile() < static_cast<uint32_t>(t.m_tiles_before[middle + 1]) * n_tiles_) groups = middle;
      else i_ = middle + 1;
    }
  }

 private:
  const Table* table_;
  uint32_t n_tiles_;
  bool shared_a_;
  Turns<Traits> turns_;
  int32_t i_ = 0;  // the entry of the group of the last tile that was handed out
};

}  // namespace dualgemm
