// scheduler_test.cpp -- every tile of C is computed by exactly one CTA, in an order that keeps CTAs which
// share weights next to each other; groups of any size, empty ones included.
#include "kernel/scheduler.cuh"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

using dualgemm::Config;
using dualgemm::CType;
using dualgemm::DenseScheduler;
using dualgemm::GroupedScheduler;
using dualgemm::GroupTable;
using dualgemm::Options;
using dualgemm::Tile;

namespace {

using Pair = Config<256, 128, 1, CType::kFp16, Options{.stages = 2, .scale_stages = 2}>;
using Decode = Config<64, 128, 1, CType::kFp16, Options{.stages = 2, .scale_stages = 2, .grouped = true}>;

// The tiles of one CTA in order. Stops past the number of tiles there are, so a scheduler that never ends
// fails.
template <class Scheduler>
std::vector<Tile> walk(Scheduler scheduler, size_t at_most) {
  std::vector<Tile> tiles;
  for (Tile tile; tiles.size() <= at_most && scheduler.next(tile);) tiles.push_back(tile);
  return tiles;
}

std::vector<Tile> tiles_of(int m_tiles, int n_tiles, uint32_t cta, uint32_t ctas, int problems = 1) {
  const int m = m_tiles * Pair::kTileM - 5;  // a ragged last tile
  return walk(DenseScheduler<Pair>({m_tiles, n_tiles, problems}, m, cta, ctas),
              static_cast<size_t>(m_tiles) * n_tiles * problems);
}

}  // namespace

TEST_CASE("every tile is computed exactly once") {
  for (int m_tiles : {1, 2, 3, 8, 33})
    for (int n_tiles : {1, 2, 7, 64})
      for (uint32_t ctas : {1u, 2u, 5u, 148u, 3000u}) {
        INFO(m_tiles << " x " << n_tiles << " tiles on " << ctas << " CTAs");
        std::vector<int> count(m_tiles * n_tiles, 0);
        for (uint32_t cta = 0; cta < ctas; ++cta)
          for (const Tile& tile : tiles_of(m_tiles, n_tiles, cta, ctas)) {
            REQUIRE(tile.m >= 0);
            REQUIRE(tile.m < m_tiles);
            REQUIRE(tile.n >= 0);
            REQUIRE(tile.n < n_tiles);
            ++count[tile.n * m_tiles + tile.m];
          }
        for (int times : count) REQUIRE(times == 1);
      }
}

TEST_CASE("the load is even: no CTA has two tiles more than another") {
  for (uint32_t ctas : {1u, 7u, 148u}) {
    size_t least = SIZE_MAX, most = 0;
    for (uint32_t cta = 0; cta < ctas; ++cta) {
      const size_t tiles = tiles_of(4, 100, cta, ctas).size();
      least = std::min(least, tiles);
      most = std::max(most, tiles);
    }
    CHECK(most - least <= 1);
  }
}

TEST_CASE("CTAs with neighbouring numbers share rows of B until the M tiles run out") {
  for (uint32_t cta = 0; cta < 12; ++cta) {
    const Tile tile = tiles_of(4, 3, cta, 12).at(0);
    CHECK(tile.n == static_cast<int>(cta / 4));
    CHECK(tile.m == static_cast<int>(cta % 4));
  }
}

TEST_CASE("a CTA beyond the last tile has nothing to do, again and again") {
  DenseScheduler<Pair> scheduler({2, 3, 1}, 300, 6, 7);
  Tile tile{};
  tile.m = -1;
  CHECK(!scheduler.next(tile));
  CHECK(!scheduler.next(tile));
  CHECK(tile.m == -1);
}

TEST_CASE("tile numbers near 2^31 neither wrap nor repeat") {
  // 2^16 x 32767 tiles; the last CTA of 148 reaches the last tiles without overflow.
  DenseScheduler<Pair> scheduler({65536, 32767, 1}, 65536 * 256, 65536u * 32767u - 1, 148);
  Tile tile{};
  REQUIRE(scheduler.next(tile));
  CHECK(tile.m == 65535);
  CHECK(tile.n == 32766);
  CHECK(!scheduler.next(tile));
}

TEST_CASE("a batch: every tile of every problem exactly once, and where its rows are") {
  for (int m_tiles : {1, 3, 17, 40})
    for (uint32_t ctas : {1u, 3u, 148u}) {
      const int n_tiles = 5, problems = 4;
      std::vector<int> count(m_tiles * n_tiles * problems, 0);
      for (uint32_t cta = 0; cta < ctas; ++cta)
        for (const Tile& tile : tiles_of(m_tiles, n_tiles, cta, ctas, problems)) {
          REQUIRE(tile.problem == tile.a_problem);
          REQUIRE(tile.row == tile.m * 256);
          REQUIRE(tile.rows == m_tiles * 256 - 5 - tile.row);
          REQUIRE(tile.sfa_block == tile.m * 2);
          ++count.at((tile.problem * n_tiles + tile.n) * m_tiles + tile.m);
        }
      for (int times : count) REQUIRE(times == 1);
    }
}

TEST_CASE("many tiles of M go in bands, so that the rows of A in use are few") {
  const std::vector<Tile> tiles = tiles_of(40, 7, 0, 1);
  REQUIRE(tiles.size() == 40 * 7);
  for (size_t first = 0; first + 32 <= tiles.size(); ++first) {
    const auto [low, high] = std::minmax_element(tiles.begin() + first, tiles.begin() + first + 32,
                                                 [](const Tile& x, const Tile& y) { return x.m < y.m; });
    CHECK(high->m - low->m < 2 * 16);
  }
  // The weights of one n are used by a whole band before the next n is.
  for (int i = 0; i < 16; ++i) CHECK(tiles[i].n == 0);
  CHECK(tiles[16].n == 1);
}

TEST_CASE("groups: every tile of those that have rows exactly once") {
  // Rows of each group; the table leaves out the empty ones, as the kernel's does.
  const std::vector<std::vector<int>> cases = {
      {1}, {64}, {65}, {0, 0, 3, 0}, {200, 0, 64, 1, 0, 129}, {}, std::vector<int>(dualgemm::kMaxGroups, 1)};
  for (const std::vector<int>& sizes : cases)
    for (const bool shared_a : {true, false})
      for (uint32_t ctas : {1u, 4u, 148u}) {
        GroupTable table;
        int entries = 0, m_tiles = 0, row = 0, block = 0;
        for (size_t group = 0; group < sizes.size(); ++group) {
          if (sizes[group] == 0) continue;
          table.entry[entries++] = {m_tiles, static_cast<int>(group), shared_a ? row : 0, sizes[group],
                                    shared_a ? block : 0};
          m_tiles += (sizes[group] + 63) / 64;
          row += sizes[group];
          block += (sizes[group] + 127) / 128;
        }
        table.entry[entries] = {m_tiles, -1, 0, 0, 0};
        const int n_tiles = 3;
        std::vector<std::vector<int>> count(sizes.size());
        for (size_t group = 0; group < sizes.size(); ++group)
          count[group].resize((sizes[group] + 63) / 64 * n_tiles);
        for (uint32_t cta = 0; cta < ctas; ++cta)
          for (const Tile& tile :
               walk(GroupedScheduler<Decode>(table, n_tiles, shared_a, cta, ctas), m_tiles * n_tiles)) {
            const int size = sizes.at(tile.problem);
            REQUIRE(tile.rows == size - tile.m * 64);
            REQUIRE(tile.rows > 0);
            REQUIRE(tile.a_problem == (shared_a ? 0 : tile.problem));
            int first = 0, first_block = 0;  // of the group
            for (int group = 0; shared_a && group < tile.problem; ++group) {
              first += sizes[group];
              first_block += (sizes[group] + 127) / 128;
            }
            REQUIRE(tile.row == first + tile.m * 64);
            REQUIRE(tile.sfa_block == first_block + tile.m / 2);
            ++count[tile.problem].at(tile.n * ((size + 63) / 64) + tile.m);
          }
        for (const auto& group : count)
          for (int times : group) REQUIRE(times == 1);
      }
}
