// scheduler_test.cpp -- every tile of C is computed by exactly one CTA, in an order that keeps CTAs which
// share weights next to each other.
#include "kernel/scheduler.cuh"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

using dualgemm::Tile;
using dualgemm::TileScheduler;

namespace {

// The tiles of one CTA in order. Stops past the number of tiles there are, so a scheduler that never ends
// fails.
std::vector<Tile> tiles_of(int m_tiles, int n_tiles, uint32_t cta, uint32_t ctas) {
  TileScheduler scheduler(m_tiles, n_tiles, cta, ctas);
  std::vector<Tile> tiles;
  for (Tile tile; tiles.size() <= static_cast<size_t>(m_tiles) * n_tiles && scheduler.next(tile);)
    tiles.push_back(tile);
  return tiles;
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
  TileScheduler scheduler(2, 3, 6, 7);
  Tile tile{-1, -1};
  CHECK(!scheduler.next(tile));
  CHECK(!scheduler.next(tile));
  CHECK(tile.m == -1);
}

TEST_CASE("tile numbers near 2^31 neither wrap nor repeat") {
  // 2^16 x 32767 tiles; the last CTA of 148 reaches the last tiles without overflow.
  TileScheduler scheduler(65536, 32767, 65536u * 32767u - 1, 148);
  Tile tile{};
  REQUIRE(scheduler.next(tile));
  CHECK(tile.m == 65535);
  CHECK(tile.n == 32766);
  CHECK(!scheduler.next(tile));
}
