// shapes_test.cpp -- what --shape says, and how rows are spread over groups.

#include "bench/shapes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace shapes_test {

using namespace bench;
using dualgemm_test::contains;
using Rows = std::vector<int32_t>;

TEST_CASE("a shape of the command line", "[bench]") {
  const Shape one = parse_shape("256x4096x7168");
  CHECK((one.m == 256 && one.n == 4096 && one.k == 7168));
  CHECK((one.problems() == 1 && !one.grouped() && one.rows() == 256));
  CHECK(shape_text(one) == "256 x 4096 x 7168");

  const Shape batch = parse_shape("8*16x720x2880");
  CHECK((batch.m == 16 && batch.problems() == 8 && batch.rows(7) == 16 && batch.rows() == 128));
  CHECK(!batch.grouped());
  CHECK(shape_text(batch) == "8 of 16 x 720 x 2880");

  const Shape offsets = parse_shape("offsets:40,0,248x4096x1536");
  CHECK(offsets.offsets());
  CHECK(offsets.group_rows == Rows{40, 0, 248});
  CHECK((offsets.m == 288 && offsets.rows() == 288 && offsets.n == 4096 && offsets.k == 1536));
  CHECK(shape_text(offsets) == "offsets 3, 288 x 4096 x 1536");

  const Shape masked = parse_shape("masked:40,0,248x4096x1536");
  CHECK((masked.grouped() && !masked.offsets()));
  CHECK(masked.group_rows == offsets.group_rows);
  CHECK((masked.m == 256 && masked.rows() == 288));  // room for 248, rounded up
  CHECK(shape_text(masked) == "masked 3, 288 x 4096 x 1536");

  CHECK(parse_shape("offsets:7x8x32").group_rows == Rows{7});
  CHECK(parse_shape("offsets:256~8x2048x7168").group_rows == bench::skewed_rows(256, 2048));
}

TEST_CASE("what is no shape is refused, by name", "[bench]") {
  for (const char* text : {"",
                           "x",
                           "256x4096",
                           "256x4096x7168x1",
                           " 256x4096x7168",
                           "-1x8x32",
                           "0x8x32",
                           "1x0x32",
                           "1x8x0",
                           "0*1x8x32",
                           "2*offsets:1x8x32",
                           "groups:1x8x32",
                           "offsets:x8x32",
                           "offsets:1,,2x8x32",
                           "offsets:1,x8x32",
                           "offsets:0,0x8x32",
                           "offsets:0~8x8x32",
                           "offsets:4~0x8x32",
                           "offsets:1025~1x8x32",
                           "offsets:1~2~3x8x32",
                           "99999999999x8x32",
                           "offsets:512~99999999x8x32",
                           "masked:2147483647x8x32"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_shape(text), std::runtime_error);
    if (*text != 0 && std::string(text) != "masked:2147483647x8x32")
      CHECK_THROWS_WITH(parse_shape(text), contains("--shape " + std::string(text)));
  }
  std::string many = "masked:1";
  for (int i = 0; i < DUALGEMM_MAX_GROUPS; ++i) many += ",1";
  CHECK_THROWS_WITH(parse_shape(many + "x8x32"), contains("too many"));
}

TEST_CASE("a shape whose rows would have gaps is a shape, which the benchmark refuses", "[bench]") {
  CHECK_NOTHROW(bench::check_compact(parse_shape("1x8x64")));
  for (const char* text : {"1x8x48", "100x7x33", "2*1x8x1", "masked:4x8x16"}) {
    INFO(text);
    CHECK_THROWS_WITH(bench::check_compact(parse_shape(text)), contains("K % 32 == 0"));
  }
}

TEST_CASE("skewed rows add up, and are distributed like an exponential", "[bench]") {
  for (const int32_t groups : {1, 2, 3, 7, 32, 64, 100, 128, 256, 512})
    for (const int32_t mean : {0, 1, 3, 8, 64, 1000}) {
      INFO(groups << " groups of " << mean << " on average");
      Rows rows = bench::skewed_rows(groups, int64_t{groups} * mean);
      REQUIRE(rows.size() == static_cast<size_t>(groups));
      CHECK(std::accumulate(rows.begin(), rows.end(), int64_t{0}) == int64_t{groups} * mean);
      CHECK(*std::min_element(rows.begin(), rows.end()) >= 0);
      if (groups >= 32 && mean > 0) CHECK(!std::is_sorted(rows.begin(), rows.end()));
      // The number of groups with more than x rows is groups * exp(-x / mean), but for rounding.
      for (const double x : {0.25 * mean, 1.0 * mean, 2.0 * mean}) {
        const auto above = std::count_if(rows.begin(), rows.end(), [x](int32_t r) { return r > x; });
        const double expected = groups * std::exp(-x / std::max(1, mean));
        if (mean >= 64) CHECK(std::fabs(static_cast<double>(above) - expected) <= 1 + 0.02 * groups);
      }
    }
  const Rows experts = bench::skewed_rows(256, 256 * 8);
  const auto empty = std::count(experts.begin(), experts.end(), 0);
  CHECK(empty == 15);  // as README.md says
  CHECK(*std::max_element(experts.begin(), experts.end()) == 52);
}

TEST_CASE("rows that are asked for replace those of shapes, and nothing is run twice", "[bench]") {
  const std::vector<Shape> shapes = {{1, 64, 128, "a"}, {8, 64, 128, "a"}, {1, 72, 128, "b"}};
  const std::vector<Shape> out = bench::with_rows(shapes, {16, 4, 16});
  REQUIRE(out.size() == 4);
  const std::vector<std::pair<int32_t, int32_t>> expected = {{16, 64}, {4, 64}, {16, 72}, {4, 72}};
  for (size_t i = 0; i < out.size(); ++i) CHECK(std::pair(out[i].m, out[i].n) == expected[i]);
  CHECK_THROWS_WITH(bench::with_rows({parse_shape("offsets:4,5x64x128")}, {1}), contains("--rows"));
}

TEST_CASE("the suites have the sizes of their names", "[bench]") {
  for (const bench::Suite& suite : bench::suites())
    for (const Shape& shape : suite.shapes) {
      INFO(suite.name << ": " << shape_text(shape));
      CHECK(shape.rows() > 0);
      CHECK(shape.n % 8 == 0);
      CHECK(shape.k % 32 == 0);
      CHECK(shape.grouped() == (suite.name == "grouped"));
      CHECK((shape.batch > 1) == (suite.name == "batch"));
      CHECK(shape.products == (suite.name.ends_with("linear") ? 1 : 2));
      for (int32_t problem = 0; problem < shape.problems(); ++problem) CHECK(shape.rows(problem) <= shape.m);
    }
}

TEST_CASE("the suites of models have all weights, all numbers of rows, and nothing twice", "[bench]") {
  size_t problems = 0;
  for (const char* name : {"models-gate-up", "models-linear"}) {
    INFO(name);
    const auto& all = bench::suites();
    const auto suite = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.name == name; });
    REQUIRE(suite != all.end());
    problems += suite->shapes.size();
    std::set<std::tuple<int32_t, int32_t, int32_t>> different;
    std::map<int32_t, int> by_rows;
    std::map<std::string, std::pair<int32_t, int32_t>> weights;
    for (const Shape& shape : suite->shapes) {
      CHECK(different.insert({shape.m, shape.n, shape.k}).second);
      ++by_rows[shape.m];
      weights[shape.label] = {shape.n, shape.k};
    }
    CHECK(by_rows.size() == 26);
    CHECK((by_rows.begin()->first == 1 && by_rows.rbegin()->first == 8192));
    // Each has its share, or a quarter less.
    for (const auto& [rows, count] : by_rows)
      CHECK(count >= static_cast<int>(suite->shapes.size()) / 26 * 3 / 4);
    using Size = std::pair<int32_t, int32_t>;
    if (suite->shapes.front().products == 2) {
      CHECK(weights.at("Llama-3.3-70B, 1/8") == Size{3584, 8192});
      CHECK(weights.at("GLM-4.5-Air expert, 1/8") == Size{176, 4096});
    } else {
      CHECK(weights.at("Llama-3.3-70B qkv, 1/8") == Size{1280, 8192});
      CHECK(weights.at("GLM-4.5 o") == Size{5120, 12288});
      // 8 heads, and a copy of a key and a value head
      CHECK(weights.at("Qwen3-235B-A22B qkv, 1/8") == Size{1280, 4096});
      CHECK(weights.at("Mixtral-8x22B expert down, 1/8") == Size{6144, 2048});
      CHECK(!weights.contains("GLM-4.5-Air expert down, 1/8"));  // 176 is no multiple of 32
      CHECK(!weights.contains("Qwen2.5-7B qkv, 1/8"));           // 28 heads
      CHECK(!weights.contains("Phi-4 qkv, 1/4"));                // 10 key and value heads
      CHECK(!weights.contains("DeepSeek-V3 qkv"));               // latent attention
    }
  }
  CHECK(problems == 400);
}

TEST_CASE("all parts together have every shape once", "[bench]") {
  std::vector<Shape> shapes;
  for (int32_t m = 1; m <= 10; ++m) shapes.push_back({m, 64, 128, ""});
  for (const int parts : {1, 3, 10}) {
    std::vector<int32_t> rows;
    for (int part = 1; part <= parts; ++part) {
      const auto some = bench::part_of(shapes, std::to_string(part) + "/" + std::to_string(parts));
      CHECK((some.size() == 10u / parts || some.size() == 10u / parts + 1));
      for (const Shape& shape : some) rows.push_back(shape.m);
    }
    std::sort(rows.begin(), rows.end());
    Rows expected(10);
    std::iota(expected.begin(), expected.end(), 1);
    CHECK(rows == expected);
  }
  for (const char* text : {"", "1", "0/2", "3/2", "1/0", "1/", "/2", "-1/2", "1/2/3", "11/12"})
    CHECK_THROWS_WITH(bench::part_of(shapes, text), contains("--part"));
}

}  // namespace shapes_test
