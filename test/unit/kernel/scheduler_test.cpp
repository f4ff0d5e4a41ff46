// scheduler_test.cpp -- every tile of C of every problem is computed by exactly one CTA, with the rows and
// scale factors that belong to it, in an order that keeps CTAs which share weights next to each other.
#include "kernel/common/scheduler.cuh"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "kernel/common/k_loop.cuh"
#include "support/catch.hpp"
#include "support/rng.h"

namespace scheduler_test {

using namespace dualgemm;

// The schedulers need to know this of a kernel.
template <int kRows, bool kPreparedA = false>
struct TilesOf {
  static constexpr int32_t kTileM = kRows;
  static constexpr dualgemm::Plan kPlan = [] {
    dualgemm::Plan plan{};
    plan.tile.m = kRows;
    plan.tile.split_k = 1;
    plan.a16.from_pass = kPreparedA;
    return plan;
  }();
};
using Rows64 = TilesOf<64>;
using Rows128 = TilesOf<128>;
using Rows256 = TilesOf<256>;
using FewRows = TilesOf<256, true>;  // tiles with few rows take less time
static_assert(FewRows::kPlan.few_rows() < 256 && Rows256::kPlan.few_rows() == 256);

static int32_t ceil_div(int32_t value, int32_t divisor) { return (value + divisor - 1) / divisor; }

// Returns all tiles of one CTA. It stops past the number of tiles there are, so a scheduler that never ends
// fails.
template <class Scheduler>
static std::vector<Tile> tiles_of(Scheduler scheduler, size_t limit) {
  std::vector<Tile> tiles;
  for (Tile tile; tiles.size() <= limit && scheduler.next(tile);) tiles.push_back(tile);
  return tiles;
}

template <class Cfg>
static std::vector<Tile> dense_tiles(int32_t m, int32_t n_tiles, int32_t problems, uint32_t cta,
                                     uint32_t ctas) {
  const int32_t m_tiles = ceil_div(m, Cfg::kTileM);
  return tiles_of(DenseScheduler<Cfg>({m_tiles, n_tiles, problems}, m, cta, ctas),
                  static_cast<size_t>(m_tiles) * n_tiles * problems);
}

// Groups have these numbers of rows and follow each other, or have `capacity` rows each.
struct Groups {
  std::vector<int32_t> rows;
  bool offsets;

  template <class Cfg>
  GroupTable<Cfg::kTileM> table() const {
    GroupTable<Cfg::kTileM> table{};
    int32_t m_tiles = 0, first_row = 0, block = 0, entries = 0;
    for (size_t g = 0; g < rows.size(); ++g) {
      if (rows[g] > 0) {
        table.m_tiles_before[entries] = m_tiles;
        table.rows[entries] = offsets ? first_row : rows[g];
        table.set_first_sfa_block(entries, block);
        table.problem[entries++] = static_cast<uint16_t>(g);
      }
      m_tiles += ceil_div(rows[g], Cfg::kTileM);
      if (offsets) first_row += rows[g], block += ceil_div(rows[g], 128);
    }
    table.m_tiles_before[entries] = m_tiles;
    table.rows[entries] = first_row;
    table.problem[entries] = table.kNone;
    return table;
  }
};

// A scheduler that looks for each tile among all groups.
template <class Cfg>
struct Seeking {
  GroupedScheduler<Cfg> tiles;
  int32_t groups;  // that have rows
  bool next(Tile& tile) {
    tiles.seek(groups);
    return tiles.next(tile);
  }
};

static bool same(const Tile& x, const Tile& y) {
  return x.m == y.m && x.n == y.n && x.problem == y.problem && x.row == y.row && x.rows == y.rows;
}

template <class Cfg>
static void check_groups(const Groups& groups, int32_t n_tiles, uint32_t ctas) {
  const auto table = groups.table<Cfg>();
  std::map<std::tuple<int32_t, int32_t, int32_t>, int> count;  // by group, m and n
  size_t least = SIZE_MAX, most = 0, all = 0;
  for (uint32_t cta = 0; cta < ctas; ++cta) {
    const auto tiles = tiles_of(GroupedScheduler<Cfg>(table, n_tiles, groups.offsets, cta, ctas), 100000);
    const auto with_rows = static_cast<int32_t>(
        std::count_if(groups.rows.begin(), groups.rows.end(), [](int32_t m) { return m > 0; }));
    const auto sought = tiles_of(
        Seeking<Cfg>{GroupedScheduler<Cfg>(table, n_tiles, groups.offsets, cta, ctas), with_rows}, 100000);
    REQUIRE(std::equal(tiles.begin(), tiles.end(), sought.begin(), sought.end(), same));
    least = std::min(least, tiles.size());
    most = std::max(most, tiles.size());
    for (const Tile& tile : tiles) {
      REQUIRE(tile.problem >= 0);
      REQUIRE(tile.problem < static_cast<int32_t>(groups.rows.size()));
      const int32_t rows = groups.rows[tile.problem];
      REQUIRE(tile.m >= 0);
      REQUIRE(tile.m < ceil_div(rows, Cfg::kTileM));
      REQUIRE(tile.n >= 0);
      REQUIRE(tile.n < n_tiles);
      int32_t rows_before = 0, blocks_before = 0;
      for (int32_t g = 0; g < tile.problem && groups.offsets; ++g) {
        rows_before += groups.rows[g];
        blocks_before += ceil_div(groups.rows[g], 128);
      }
      REQUIRE(tile.a_problem == (groups.offsets ? 0 : tile.problem));
      REQUIRE(tile.row == rows_before + tile.m * Cfg::kTileM);
      REQUIRE(tile.rows == rows - tile.m * Cfg::kTileM);
      REQUIRE(tile.sfa_block == blocks_before + tile.m * Cfg::kTileM / 128);
      ++count[{tile.problem, tile.m, tile.n}];
    }
  }
  for (const int32_t rows : groups.rows) all += static_cast<size_t>(ceil_div(rows, Cfg::kTileM) * n_tiles);
  REQUIRE(count.size() == all);
  for (const auto& [tile, times] : count) REQUIRE(times == 1);
  REQUIRE(most - least <= 1);
}

TEMPLATE_TEST_CASE("every tile of every problem is computed exactly once", "[scheduler]", Rows64, Rows128,
                   Rows256, FewRows) {
  for (int32_t m : {1, 64, 129, 1000, 33 * 256})
    for (int32_t n_tiles : {1, 2, 7, 64})
      for (int32_t problems : {1, 3})
        for (uint32_t ctas : {1u, 5u, 148u}) {
          INFO(m << " rows, " << n_tiles << " tiles, " << problems << " problems on " << ctas << " CTAs");
          const int32_t m_tiles = ceil_div(m, TestType::kTileM);
          std::vector<int> count(static_cast<size_t>(m_tiles) * n_tiles * problems, 0);
          for (uint32_t cta = 0; cta < ctas; ++cta)
            for (const Tile& tile : dense_tiles<TestType>(m, n_tiles, problems, cta, ctas)) {
              REQUIRE((tile.m >= 0 && tile.m < m_tiles));
              REQUIRE((tile.n >= 0 && tile.n < n_tiles));
              REQUIRE((tile.problem >= 0 && tile.problem < problems));
              REQUIRE(tile.a_problem == tile.problem);
              REQUIRE(tile.row == tile.m * TestType::kTileM);
              REQUIRE(tile.rows == m - tile.row);
              REQUIRE(tile.sfa_block == tile.row / 128);
              ++count[(tile.problem * n_tiles + tile.n) * m_tiles + tile.m];
            }
          REQUIRE(std::all_of(count.begin(), count.end(), [](int times) { return times == 1; }));
        }
}

TEST_CASE("the load is even: no CTA has two tiles more than another", "[scheduler]") {
  for (uint32_t ctas : {1u, 7u, 148u}) {
    size_t least = SIZE_MAX, most = 0;
    for (uint32_t cta = 0; cta < ctas; ++cta) {
      const size_t tiles = dense_tiles<Rows128>(512, 100, 1, cta, ctas).size();
      least = std::min(least, tiles);
      most = std::max(most, tiles);
    }
    CHECK(most - least <= 1);
  }
}

TEST_CASE("where the last tile of M has few rows, no CTA has two of these more than another", "[scheduler]") {
  for (uint32_t ctas : {66u, 132u, 131u})
    for (int32_t m_tiles : {2, 3}) {
      INFO(ctas << " CTAs, " << m_tiles << " tiles of M");
      const int32_t m = (m_tiles - 1) * FewRows::kTileM + 1;
      int64_t least = INT64_MAX, most = 0;
      for (uint32_t cta = 0; cta < ctas; ++cta) {
        const auto tiles = dense_tiles<FewRows>(m, 1000, 1, cta, ctas);
        const int64_t few =
            std::count_if(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.rows == 1; });
        least = std::min(least, few);
        most = std::max(most, few);
      }
      CHECK(most - least <= 1);
    }
}

TEST_CASE("CTAs with neighbouring numbers share rows of B until the M tiles of a band run out",
          "[scheduler]") {
  constexpr int32_t band_tiles = Rows256::kPlan.band_tiles();
  const int32_t m_tiles = 2 * band_tiles + 3, n_tiles = 5;
  const std::vector<Tile> tiles = dense_tiles<Rows256>(m_tiles * 256, n_tiles, 2, 0, 1);
  size_t i = 0;
  for (int32_t problem = 0; problem < 2; ++problem)
    for (int32_t band = 0; band < m_tiles; band += band_tiles)
      for (int32_t n = 0; n < n_tiles; ++n)
        for (int32_t m = band; m < std::min<int32_t>(band + band_tiles, m_tiles); ++m, ++i) {
          REQUIRE(tiles[i].problem == problem);
          REQUIRE(tiles[i].n == n);
          REQUIRE(tiles[i].m == m);
        }
  CHECK(i == tiles.size());
}

TEST_CASE("a band has 16 tiles, and where A has 16 bits at most 1024 rows", "[scheduler]") {
  dualgemm::Plan plan{};
  for (const auto& [arch, rows, tiles] : {std::tuple{dualgemm::Arch::kSm100, 256, 16u},
                                          {dualgemm::Arch::kSm90, 8, 16u},
                                          {dualgemm::Arch::kSm90, 128, 8u},
                                          {dualgemm::Arch::kSm90, 256, 4u}}) {
    plan.arch = arch;
    plan.tile.m = rows;
    CHECK(plan.band_tiles() == tiles);
  }
}

TEST_CASE("a CTA beyond the last tile has nothing to do, again and again", "[scheduler]") {
  DenseScheduler<Rows128> scheduler({2, 3, 1}, 200, 6, 7);
  Tile tile{};
  tile.m = -1;
  CHECK(!scheduler.next(tile));
  CHECK(!scheduler.next(tile));
  CHECK(tile.m == -1);
}

TEST_CASE("tile numbers near 2^31 neither wrap nor repeat", "[scheduler]") {
  // There are 2^16 x 32767 tiles; the last CTA of 148 reaches the last tiles without overflow.
  DenseScheduler<Rows256> scheduler({65536, 32767, 1}, 65536 * 256, 65536u * 32767u - 1, 148);
  Tile tile{};
  REQUIRE(scheduler.next(tile));
  CHECK(tile.m == 65535);
  CHECK(tile.n == 32766);
  CHECK(!scheduler.next(tile));
}

TEMPLATE_TEST_CASE("every tile of every group is computed exactly once", "[scheduler][grouped]", Rows64,
                   Rows128, Rows256, FewRows) {
  dualgemm_test::Rng random(1);
  const auto number = [&](int32_t low, int32_t high) { return random.between(low, high); };
  std::vector<std::vector<int32_t>> sizes = {{0}, {0, 0, 0}, {1}, {0, 300, 0}, {100, 0, 200, 30}};
  for (int i = 0; i < 20; ++i) {
    sizes.emplace_back(number(1, 40));
    for (int32_t& rows : sizes.back()) rows = number(0, 2) == 0 ? 0 : number(1, 600);
  }
  sizes.push_back(std::vector<int32_t>(dualgemm::kMaxGroups, 1));
  for (const auto& rows : sizes)
    for (const bool offsets : {false, true})
      for (const uint32_t ctas : {1u, 3u, 148u}) check_groups<TestType>({rows, offsets}, 3, ctas);
}

TEST_CASE("tiles that share the weights of a group have neighbouring numbers", "[grouped]") {
  const Groups groups{{600, 0, 300}, true};
  const auto table = groups.table<Rows256>();
  const auto tiles = tiles_of(GroupedScheduler<Rows256>(table, 2, true, 0, 1), 100);
  std::vector<std::tuple<int32_t, int32_t, int32_t>> order;
  for (const Tile& tile : tiles) order.emplace_back(tile.problem, tile.n, tile.m);
  CHECK(order == decltype(order){{0, 0, 0},
                                 {0, 0, 1},
                                 {0, 0, 2},
                                 {0, 1, 0},
                                 {0, 1, 1},
                                 {0, 1, 2},
                                 {2, 0, 0},
                                 {2, 0, 1},
                                 {2, 1, 0},
                                 {2, 1, 1}});
}

TEST_CASE("slices of K follow each other and differ by at most one k-tile", "[scheduler]") {
  for (int32_t k_tiles : {1, 2, 3, 7, 28, 1000})
    for (int32_t slices : {1, 2, 4}) {
      int32_t next = 0;
      for (int32_t slice = 0; slice < slices; ++slice) {
        const auto range = dualgemm::k_range(k_tiles, static_cast<uint32_t>(slice), slices);
        CHECK(range.first == next);
        CHECK(range.end - range.first >= k_tiles / slices);
        CHECK(range.end - range.first <= ceil_div(k_tiles, slices));
        CHECK(range.empty() == (range.end == range.first));
        next = range.end;
      }
      CHECK(next == k_tiles);
    }
}

}  // namespace scheduler_test
