// stream_k_test.cpp -- with stream-K every k-tile of every tile is computed by one CTA, no CTA has much
// more to do than another, and what the parts of a tile say of each other agrees.
#include "kernel/common/stream_k.cuh"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/rng.h"

namespace stream_k_test {

using namespace dualgemm;

struct Traits {
  static constexpr dualgemm::Plan kPlan = [] {
    dualgemm::Plan plan{};
    plan.tile.m = 128;
    plan.tile.stream_k = true;
    return plan;
  }();
};

struct Launch {
  TileGrid grid;
  int32_t k_tiles;
  uint32_t ctas;

  uint32_t tiles() const { return static_cast<uint32_t>(grid.m_tiles * grid.n_tiles * grid.problems); }
  Teams teams() const { return teams_for(tiles(), static_cast<uint32_t>(k_tiles), ctas); }
  int32_t rows() const { return grid.m_tiles * 128 - 5; }
  // It stops past the number of tiles there are, so a scheduler that never ends fails.
  std::vector<Tile> of_cta(uint32_t cta) const {
    const Shares shares = shares_for(tiles(), static_cast<uint32_t>(k_tiles), ctas);
    StreamScheduler<Traits> scheduler(grid, rows(), k_tiles, shares, cta, ctas);
    std::vector<Tile> out;
    for (Tile tile; out.size() <= tiles() && scheduler.next(tile);) out.push_back(tile);
    return out;
  }
};

// Fewer tiles than CTAs, more, as many, several rounds; from one k-tile on. Then any numbers.
std::vector<Launch> launches() {
  std::vector<Launch> out;
  for (const TileGrid grid :
       {TileGrid{1, 1, 1}, {1, 5, 1}, {2, 3, 1}, {4, 40, 1}, {3, 11, 4}, {17, 9, 2}, {1, 40, 1}, {5, 53, 1}})
    for (const int32_t k_tiles : {1, 2, 3, 7, 32, 101})
      for (const uint32_t ctas : {1u, 2u, 7u, 78u, 131u, 132u})
        if (ctas <= kMostMembers * static_cast<uint32_t>(grid.m_tiles * grid.n_tiles * grid.problems))
          out.push_back({grid, k_tiles, ctas});
  dualgemm_test::Rng rng(1);
  while (out.size() < 600) {
    const TileGrid grid{rng.between(1, 6), rng.between(1, 40), rng.between(1, 2)};
    const auto tiles = static_cast<uint32_t>(grid.m_tiles * grid.n_tiles * grid.problems);
    out.push_back({grid, rng.between(1, 90), 1 + rng.below(std::min(kMostStreamCtas, kMostMembers * tiles))});
  }
  return out;
}

using Place = std::tuple<int32_t, int32_t, int32_t>;  // problem, m, n
Place place_of(const Tile& tile) { return {tile.problem, tile.m, tile.n}; }

TEST_CASE("stream-K computes every k-tile of every tile once", "[scheduler][stream_k]") {
  for (const Launch& launch : launches()) {
    INFO(launch.tiles() << " tiles of " << launch.k_tiles << " k-tiles, " << launch.ctas << " CTAs");
    std::map<Place, std::vector<int32_t>> times;
    for (uint32_t cta = 0; cta < launch.ctas; ++cta)
      for (const Tile& tile : launch.of_cta(cta)) {
        REQUIRE((0 <= tile.part.k.first && tile.part.k.first < tile.part.k.end &&
                 tile.part.k.end <= launch.k_tiles));
        REQUIRE(tile.row == tile.m * 128);
        REQUIRE(tile.rows == launch.rows() - tile.row);
        auto& of_tile = times[place_of(tile)];
        of_tile.resize(static_cast<size_t>(launch.k_tiles));
        for (int32_t k = tile.part.k.first; k < tile.part.k.end; ++k) ++of_tile[static_cast<size_t>(k)];
      }
    CHECK(times.size() == launch.tiles());
    for (const auto& [place, of_tile] : times)
      CHECK(std::all_of(of_tile.begin(), of_tile.end(), [](int32_t n) { return n == 1; }));
  }
}

// The work of whole tiles alone is rounds of all k-tiles of a tile.
TEST_CASE("stream-K ends sooner than whole tiles, or shares none", "[scheduler][stream_k]") {
  int32_t sooner = 0;
  for (const Launch& launch : launches()) {
    INFO(launch.tiles() << " tiles of " << launch.k_tiles << " k-tiles, " << launch.ctas << " CTAs");
    int32_t most = 0;
    bool shared = false;
    for (uint32_t cta = 0; cta < launch.ctas; ++cta) {
      int32_t work = 0;
      for (const Tile& tile : launch.of_cta(cta)) {
        work += tile.part.k.end - tile.part.k.first;
        shared = shared || tile.part.count > 1;
      }
      most = std::max(most, work);
    }
    const uint32_t rounds = (launch.tiles() + launch.ctas - 1) / launch.ctas;
    const int32_t whole = static_cast<int32_t>(rounds) * launch.k_tiles;
    CHECK(shared == (launch.teams().members > 1));
    if (shared) CHECK(most + static_cast<int32_t>(kKTilesOfExchange) < whole);
    else CHECK(most == whole);
    sooner += shared ? 1 : 0;
  }
  CHECK(sooner > 30);
}

// 5120 columns with 128, 256, 512 and 1024 rows on an H100 are 40 to 320 tiles.
TEST_CASE("teams of stream-K are as large as the tiles that are left need", "[scheduler][stream_k]") {
  CHECK((teams_for(40, 32, 132) == Teams{3, 44}));
  CHECK((teams_for(80, 32, 132) == Teams{3, 44}));
  CHECK((teams_for(160, 32, 132) == Teams{4, 33}));
  CHECK((teams_for(320, 32, 132) == Teams{2, 66}));
  CHECK((teams_for(132, 32, 132) == Teams{1, 132}));
  CHECK((teams_for(131, 32, 132) == Teams{1, 132}));
  CHECK((teams_for(40, 2, 132) == Teams{1, 132}));
  // All CTAs may be one team.
  CHECK((teams_for(1, 10, 4) == Teams{4, 1}));
  CHECK((teams_for(2, 15, 3) == Teams{3, 1}));
  CHECK((teams_for(1, 10, 2) == Teams{2, 1}));
}

TEST_CASE("stream-K: the parts of a tile agree on who has which", "[scheduler][stream_k]") {
  for (const Launch& launch : launches()) {
    INFO(launch.tiles() << " tiles of " << launch.k_tiles << " k-tiles, " << launch.ctas << " CTAs");
    std::map<Place, std::vector<std::pair<uint32_t, TilePart>>> parts;
    std::map<int32_t, Place> shared;
    for (uint32_t cta = 0; cta < launch.ctas; ++cta) {
      int32_t unfinished = 0, beginnings = 0;
      for (const Tile& tile : launch.of_cta(cta)) {
        const TilePart& part = tile.part;
        parts[place_of(tile)].push_back({cta, part});
        if (part.count == 1) continue;
        ++unfinished;
        beginnings += part.index == 0 ? 1 : 0;
        CHECK((part.index == 0) == (part.k.first == 0));
        // A counter belongs to one tile, and there is room for it.
        CHECK(part.shared < static_cast<int32_t>(launch.ctas));
        CHECK(shared.emplace(part.shared, place_of(tile)).first->second == place_of(tile));
      }
      // The two places of a CTA: for the beginning of a tile and for what goes on.
      CHECK(unfinished <= static_cast<int32_t>(kPartsOfCta));
      CHECK(beginnings <= 1);
      CHECK(unfinished - beginnings <= 1);
    }
    for (const auto& [place, of_tile] : parts) {
      CHECK(of_tile.size() == static_cast<size_t>(of_tile.front().second.count));
      int32_t k = 0;
      for (size_t i = 0; i < of_tile.size(); ++i) {  // in the order of CTAs, which is that of K
        const auto& [cta, part] = of_tile[i];
        CHECK(part.index == static_cast<int32_t>(i));
        CHECK(part.count == of_tile.front().second.count);
        if (part.count > 1) CHECK(static_cast<uint32_t>(part.first_cta + part.index * part.cta_step) == cta);
        CHECK(part.k.first == std::exchange(k, part.k.end));
      }
    }
  }
}

// A multiple of a tile's k-tiles has more than 32 bits nowhere, though K has up to 31 (params.h).
TEST_CASE("stream-K: spans of the longest K there may be are as long as each other",
          "[scheduler][stream_k]") {
  const uint32_t k_tiles = uint32_t{1} << 23;
  for (uint32_t ctas = 1; ctas <= kMostStreamCtas; ++ctas)
    for (uint32_t tiles = 1; tiles < 2 * ctas; ++tiles) {
      const Shares shares = shares_for(tiles, k_tiles, ctas);
      const uint64_t of_others = tiles % ctas / shares.teams.count;
      for (const uint64_t full : {0, 1}) {
        const uint32_t* const begin = shares.begin[1 - full];
        CHECK(begin[0] == 0);
        CHECK(begin[shares.teams.members] == (of_others + full) * k_tiles);
        const uint64_t least = begin[shares.teams.members] / shares.teams.members;
        for (uint32_t i = 0; i < shares.teams.members; ++i)
          CHECK(begin[i + 1] - uint64_t{begin[i]} - least <= 1);
      }
    }
}

TEST_CASE("stream-K shares no tile where all CTAs have as many", "[scheduler][stream_k]") {
  for (const uint32_t rounds : {1u, 3u}) {
    const Launch launch{{4, static_cast<int32_t>(33 * rounds), 1}, 9, 132};
    for (uint32_t cta = 0; cta < launch.ctas; ++cta) {
      const std::vector<Tile> tiles = launch.of_cta(cta);
      CHECK(tiles.size() == rounds);
      for (const Tile& tile : tiles) CHECK(tile.part.count == 1);
    }
  }
}

}  // namespace stream_k_test
