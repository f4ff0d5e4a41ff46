// The benchmark's arithmetic against a count of every copy and every step that a CTA would make.

#include "bench/budget.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

struct Work {
  int64_t tiles = 0, bytes = 0, flops = 0;
};

// What each SM has to do when clusters take the tiles in turns. A box counts in full, a step of 64 elements
// of K only where it exists, and a CTA of a pair does half of the operations.
std::map<int64_t, Work> work_of(const bench::Shape& shape, const dualgemm_config_info_t& c, int64_t sms) {
  std::map<int64_t, Work> work;
  const int64_t cluster = int64_t{c.cta_group} * c.split_k, at_once = sms / cluster;
  const int64_t k_tiles = (shape.k + c.tile_k - 1) / c.tile_k;
  int64_t tile = 0;
  for (int64_t n = 0; n < shape.n; n += c.tile_n)
    for (int64_t m = 0; m < shape.m; m += c.tile_m, ++tile)
      for (int64_t cta = 0; cta < cluster; ++cta) {
        Work& w = work[tile % at_once * cluster + cta];
        ++w.tiles;
        const int64_t slice = cta / c.cta_group;
        for (int64_t k = k_tiles * slice / c.split_k; k < k_tiles * (slice + 1) / c.split_k; ++k) {
          w.bytes += c.tile_m / c.cta_group * c.tile_k / 2;      // rows of A
          w.bytes += 2 * c.tile_n / c.cta_group * c.tile_k / 2;  // rows of B1 and B2
          for (int atom = 0; atom < c.tile_k / 64; ++atom) {
            w.bytes += 512;  // scale factors of 128 rows of A
            for (int row = 0; row < c.tile_n; row += 128) w.bytes += 2 * 512;  // and of B1 and B2
          }
          for (int64_t first = k * c.tile_k; first < std::min<int64_t>((k + 1) * c.tile_k, shape.k);
               first += 64)
            w.flops += 2ll * 2 * c.tile_m * c.tile_n * 64 / c.cta_group;
        }
      }
  return work;
}

}  // namespace

TEST_CASE("the budget of a problem is what its busiest SM does", "[bench]") {
  std::map<std::string, int> seen;
  std::vector<bench::Shape> shapes;
  for (const bench::Suite& suite : bench::suites())
    shapes.insert(shapes.end(), suite.shapes.begin(), suite.shapes.end());
  for (const int32_t m : {1, 70, 130, 300, 1000})
    for (const int32_t k : {64, 320, 832, 1600, 2624, 6208})  // ends in the middle of a k-tile
      for (const int32_t n : {200, 1536, 3584}) shapes.push_back({m, n, k, ""});
  for (const bench::Shape& shape : shapes)
    for (const int32_t sms : {4, 37, 148}) {
      dualgemm_device_t device = bench::described_b200();
      device.sm_count = sms;
      const bench::Budget b = bench::budget_of(shape, DUALGEMM_DTYPE_FP16, device);
      INFO(shape.m << " x " << shape.n << " x " << shape.k << " on " << sms << " SMs: " << b.config.name);
      ++seen[b.config.name];
      Work busiest;
      int64_t tiles = 0;
      const auto work = work_of(shape, b.config, sms);
      for (const auto& [sm, w] : work) {
        CHECK(sm < sms);
        tiles += w.tiles;
        busiest.tiles = std::max(busiest.tiles, w.tiles);
        busiest.bytes = std::max(busiest.bytes, w.bytes);
        busiest.flops = std::max(busiest.flops, w.flops);
      }
      CHECK(b.cluster == b.config.cta_group * b.config.split_k);
      CHECK(b.ctas == static_cast<int64_t>(work.size()));
      CHECK(b.tiles * b.cluster == tiles);
      CHECK(b.tiles_per_sm == busiest.tiles);
      CHECK(b.fill_bytes == busiest.bytes);
      CHECK(b.tensor_clocks == busiest.flops / bench::kFlopsPerClock);
    }
  CHECK(seen.size() >= 5);  // pairs, swapped tiles and splits among them
}
