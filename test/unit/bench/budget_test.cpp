// budget_test.cpp -- the benchmark's arithmetic against a count of every copy and every step that a CTA would
// make.

#include "bench/budget.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace budget_test {

struct Work {
  int64_t tiles = 0, bytes = 0, flops = 0;
};

// Returns what each SM has to do when clusters take the tiles in turns. A box counts in full, a step of 64
// elements of K only where it exists, and a CTA of a pair does half of the operations.
static std::map<int64_t, Work> work_of(const bench::Shape& shape, const dualgemm::Instance& instance,
                                       int64_t sms, int64_t pairs) {
  std::map<int64_t, Work> work;
  const dualgemm::TilePlan& c = instance.plan.tile;
  const int64_t cta_group = instance.plan.mma.cta_group;
  const int64_t cluster = cta_group * c.split_k, at_once = cluster == 2 ? pairs : sms / cluster;
  const int64_t k_tiles = (shape.k + c.k - 1) / c.k;
  int64_t tile = 0;
  std::vector<int32_t> problems(shape.batch, shape.m);
  if (shape.grouped()) problems = shape.group_rows;
  for (const int32_t rows : problems)
    for (int64_t n = 0; n < shape.n; n += c.n)
      for (int64_t m = 0; m < rows; m += c.m, ++tile)
        for (int64_t cta = 0; cta < cluster; ++cta) {
          Work& w = work[tile % at_once * cluster + cta];
          ++w.tiles;
          const int64_t slice = cta / cta_group;
          for (int64_t k = k_tiles * slice / c.split_k; k < k_tiles * (slice + 1) / c.split_k; ++k) {
            w.bytes += c.m / cta_group * c.k / 2;                   // rows of A
            w.bytes += shape.products * c.n / cta_group * c.k / 2;  // rows of B1 and B2
            for (int atom = 0; atom < c.k / 64; ++atom) {
              w.bytes += 512;  // scale factors of 128 rows of A
              for (int row = 0; row < c.n; row += 128) w.bytes += shape.products * 512;  // and of B1, B2
            }
            for (int64_t first = k * c.k; first < std::min<int64_t>((k + 1) * c.k, shape.k); first += 64)
              w.flops += 2ll * shape.products * c.m * c.n * 64 / cta_group;
          }
        }
  return work;
}

TEST_CASE("the budget of a problem is what its busiest SM does", "[bench]") {
  std::map<std::string, int> seen;
  std::vector<bench::Shape> shapes;
  for (const bench::Suite& suite : bench::suites())
    shapes.insert(shapes.end(), suite.shapes.begin(), suite.shapes.end());
  for (const int32_t m : {1, 70, 130, 300, 1000})
    for (const int32_t k : {64, 320, 832, 1600, 2624, 6208})  // ends in the middle of a k-tile
      for (const int32_t n : {200, 1536, 3584}) shapes.push_back({m, n, k, ""});
  for (const char* text : {"5*70x200x832", "40*300x136x2624", "3*1x1536x320"})
    shapes.push_back(bench::parse_shape(text));
  for (const char* mode : {"offsets:", "masked:"})
    for (const char* rows : {"40,0,248,1,0", "0,129", "100~20", "512~1", "7~300"})
      for (const char* size : {"x200x832", "x1536x6208"})
        shapes.push_back(bench::parse_shape(std::string(mode) + rows + size));
  const size_t of_two = shapes.size();
  for (size_t i = 0; i < of_two; i += 3) shapes.emplace_back(shapes[i]).products = 1;
  for (const bench::Shape& shape : shapes)
    for (const int32_t sms : {4, 37, 147, 148}) {
      dualgemm_device_t device = bench::described_b200();
      device.sm_count = sms;
      // With 147 SMs one pair more is lost than the odd number explains.
      device.clusters_of_2 = sms == 147 ? 72 : 0;
      const bench::Budget b = bench::budget_of(shape, DUALGEMM_DTYPE_FP16, device);
      INFO(bench::shape_text(shape) << " on " << sms << " SMs: " << b.instance->name);
      CHECK(b.instance->plan.tile.grouped == shape.grouped());
      CHECK(b.instance->plan.mma.products == shape.products);
      ++seen[b.instance->name];
      Work busiest;
      int64_t tiles = 0;
      const auto work = work_of(shape, *b.instance, sms, sms == 147 ? 72 : sms / 2);
      for (const auto& [sm, w] : work) {
        CHECK(sm < sms);
        tiles += w.tiles;
        busiest.tiles = std::max(busiest.tiles, w.tiles);
        busiest.bytes = std::max(busiest.bytes, w.bytes);
        busiest.flops = std::max(busiest.flops, w.flops);
      }
      CHECK(b.cluster == b.instance->plan.mma.cta_group * b.instance->plan.tile.split_k);
      CHECK(b.ctas == static_cast<int64_t>(work.size()));
      CHECK(b.tiles * b.cluster == tiles);
      CHECK(b.tiles_per_sm == busiest.tiles);
      CHECK(b.fill_bytes == busiest.bytes);
      CHECK(b.tensor_clocks == busiest.flops / bench::tensor_rate(device).flops_per_clock);
    }
  CHECK(seen.size() >= 8);  // pairs, swap A/B, split-K and groups among them
}

TEST_CASE("DRAM: every 512 bytes of scale factors and every row that a problem uses, once", "[bench]") {
  dualgemm_device_t device = bench::described_b200();
  const auto check = [&device](const char* text, dualgemm_dtype_t dtype, int64_t bits,
                               dualgemm_dtype_t a_dtype = DUALGEMM_DTYPE_NVFP4, int32_t products = 2) {
    bench::Shape shape = bench::parse_shape(text);
    shape.a_dtype = a_dtype;
    shape.products = products;
    INFO(text << ", type " << dtype << ", products " << products);
    int64_t bytes = 0;
    double flops = 0;
    const bool fp8 = a_dtype == DUALGEMM_DTYPE_FP8_E4M3;
    const auto factors = [&bytes, fp8](int32_t rows, int32_t k) {
      const dualgemm_dtype_t of = fp8 ? DUALGEMM_DTYPE_MXFP4 : DUALGEMM_DTYPE_NVFP4;
      std::set<int64_t> atoms;
      for (int32_t row = 0; row < rows; ++row)
        for (int32_t block = 0; block < k / (fp8 ? 32 : 16); ++block)
          atoms.insert(dualgemm_sf_offset_of(of, rows, k, row, block) / 512);
      bytes += 512 * static_cast<int64_t>(atoms.size());
    };
    for (int32_t problem = 0; problem < shape.problems(); ++problem) {
      const int32_t rows = shape.rows(problem);
      if (rows == 0) continue;  // its weights are not read
      const bool packed = a_dtype == DUALGEMM_DTYPE_NVFP4;
      if (fp8) bytes += int64_t{rows} * (shape.k + 4) + products * 2 * int64_t{shape.n};  // row by row
      else if (!packed) bytes += 2 * int64_t{rows} * shape.k;
      for (const int32_t of : {packed ? rows : 0, shape.n, products == 2 ? shape.n : 0}) {
        bytes += int64_t{of} * shape.k / 2;
        factors(of, shape.k);
      }
      if (dtype == DUALGEMM_DTYPE_NVFP4) factors(rows, shape.n);
      for (int32_t row = 0; row < rows; ++row) {
        bytes += bits * shape.n / 8;
        flops += products * 2.0 * shape.n * shape.k;
      }
    }
    const bench::Budget b = bench::budget_of(shape, dtype, device);
    CHECK(b.dram_bytes == bytes);
    CHECK(b.flops == flops);
  };
  for (const char* text :
       {"300x72x640", "1x8x32", "5*70x200x832", "offsets:40,0,248,1,0x200x832", "masked:40,0,248,1,0x200x832",
        "offsets:0,129x72x320", "masked:0,129x72x320", "offsets:20~3x136x192"}) {
    check(text, DUALGEMM_DTYPE_FP16, 16);
    check(text, DUALGEMM_DTYPE_BF16, 16);
    check(text, DUALGEMM_DTYPE_FP32, 32);
    check(text, DUALGEMM_DTYPE_FP8_E4M3, 8);
    check(text, DUALGEMM_DTYPE_FP16, 16, DUALGEMM_DTYPE_NVFP4, 1);
  }
  for (const char* text :
       {"300x80x640", "5*70x208x832", "offsets:40,0,248,1,0x208x832", "masked:0,129x80x320"})
    check(text, DUALGEMM_DTYPE_NVFP4, 4);
  device.cc_major = 9;
  for (const char* text : {"1x8x32", "5*70x200x832", "2048x3584x8192", "offsets:40,0,248x200x832"})
    for (const dualgemm_dtype_t a_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP8_E4M3})
      check(text, DUALGEMM_DTYPE_FP16, 16, a_dtype);
  check("5*70x200x832", DUALGEMM_DTYPE_BF16, 16, DUALGEMM_DTYPE_FP8_E4M3, 1);
}

TEST_CASE("an A of 16 bits goes into shared memory as such", "[bench]") {
  dualgemm_device_t device = bench::described_b200();
  device.cc_major = 9;
  int passes = 0;
  for (const char* text : {"1x3584x8192", "256x4096x7168", "2048x3584x8192", "offsets:40,0,248x200x832"}) {
    bench::Shape shape = bench::parse_shape(text);
    shape.a_dtype = DUALGEMM_DTYPE_BF16;
    const bench::Budget b = bench::budget_of(shape, DUALGEMM_DTYPE_BF16, device);
    INFO(text << ": " << b.instance->name);
    passes += b.instance->plan.prepared_a();
    const dualgemm::TilePlan& c = b.instance->plan.tile;
    const int64_t k_tiles = ((shape.k + c.k - 1) / c.k + c.split_k - 1) / c.split_k;
    const int64_t factors = c.k / 64 * 2 * 512 * ((c.n + 127) / 128);
    CHECK(b.fill_bytes == b.tiles_per_sm * k_tiles * (2 * c.m * c.k + 2 * c.n * c.k / 2 + factors));
  }
  CHECK((passes > 0 && passes < 4));  // both ways are among them
}

TEST_CASE("an A in FP8 has half of the bytes of one in 16 bits, and twice its rate", "[bench]") {
  dualgemm_device_t device = bench::described_b200();
  device.cc_major = 9;
  const int64_t rate = bench::tensor_rate(device, DUALGEMM_DTYPE_FP8_E4M3).flops_per_clock;
  CHECK(rate == 2 * bench::tensor_rate(device, DUALGEMM_DTYPE_BF16).flops_per_clock);
  for (const char* text : {"1x3584x8192", "256x4096x7168", "2048x3584x8192", "offsets:40,0,248x200x832"}) {
    bench::Shape shape = bench::parse_shape(text);
    shape.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
    const bench::Budget b = bench::budget_of(shape, DUALGEMM_DTYPE_BF16, device);
    INFO(text << ": " << b.instance->name);
    const dualgemm::TilePlan& c = b.instance->plan.tile;
    const int64_t k_tiles = ((shape.k + c.k - 1) / c.k + c.split_k - 1) / c.split_k;
    const int64_t factors = c.k / 128 * 2 * 512 * ((c.n + 127) / 128);
    CHECK(b.fill_bytes == b.tiles_per_sm * k_tiles * (c.m * c.k + 2 * c.n * c.k / 2 + factors));
    // Whole k-tiles, but for steps of 32 beyond the end of K, of which the last part has some.
    const double whole = 4.0 * c.m * c.n * c.k * static_cast<double>(b.tiles_per_sm * k_tiles) / rate;
    CHECK(static_cast<double>(b.tensor_clocks) <= whole);
    CHECK(static_cast<double>(b.tensor_clocks) > whole * (1 - 1.0 / static_cast<double>(k_tiles)));
  }
}

}  // namespace budget_test
