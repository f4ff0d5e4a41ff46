// tune_test.cpp -- dualgemm-tune without a GPU: when a ranking is firm, the layers of a model's config.json,
// lists of shapes, and the file that grows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/shapes.h"
#include "bench/tune/model_config.h"
#include "bench/tune/ranking.h"
#include "bench/tune/store.h"
#include "support/catch.hpp"
#include "support/rng.h"
#include "support/tuning.h"

namespace tune_test {

using bench::Ranking;
using bench::Shape;

// Plays rounds until the ranking is firm: instance i takes us[i], times up to `noise` more or less.
static Ranking played(const std::vector<double>& us, size_t usual, double noise, uint64_t seed = 1) {
  dualgemm_test::Rng random(seed);
  Ranking ranking(us.size(), usual);
  while (!ranking.firm()) {
    std::vector<double> round;
    for (const size_t i : ranking.left()) round.push_back(us[i] * (1 + noise * (2 * random.unit() - 1)));
    ranking.add_round(round);
  }
  return ranking;
}

TEST_CASE("ranking: the fastest wins, and soon where it is far ahead", "[bench][tune]") {
  const Ranking clear = played({12, 10, 15, 30}, 0, 0.01);
  CHECK(clear.winner() == 1);
  CHECK(clear.rounds() == 8);
  CHECK(clear.left() == std::vector<size_t>{1});
  CHECK(played({7}, 0, 0.5).winner() == 0);
}

TEST_CASE("ranking: among equals the usual one stays, and other noise decides nothing", "[bench][tune]") {
  int right = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Ranking equal = played({10, 10.001, 10.002}, 2, 0.0005, seed);
    CHECK(equal.winner() == 2);
    CHECK(equal.rounds() == 12);
    right += played({10.1, 10}, 0, 0.01, seed).winner() == 1;
  }
  // 1 % apart, with noise of 1 % either way: the difference of two medians of 12 has a standard deviation of
  // about 0.4 %, so that it is below 0.3 % in one ranking of 20.
  CHECK(right >= 27);
}

TEST_CASE("ranking: who is a quarter slower is timed once", "[bench][tune]") {
  Ranking ranking(3, 0);
  ranking.add_round({10, 12.6, 12.4});
  CHECK(ranking.left() == std::vector<size_t>{0, 2});
  // A leader that is found late: of the others nobody is timed any more who was left behind.
  for (int round = 0; round < 7; ++round) ranking.add_round({10, 9.9});
  CHECK(ranking.median_us(2) == 9.9);
}

TEST_CASE("ranking: it ends after the rounds it is given", "[bench][tune]") {
  Ranking ranking(2, 0, 2);
  for (int round = 0; round < 2; ++round) {
    CHECK_FALSE(ranking.firm());
    ranking.add_round({10, 10.1});
  }
  CHECK(ranking.firm());
}

static std::vector<std::string> texts(const std::vector<Shape>& all) {
  std::vector<std::string> out;
  for (const Shape& x : all) out.push_back(std::to_string(x.products) + ": " + bench::shape_text(x));
  return out;
}

TEST_CASE("config.json: the layers of a dense model, divided", "[bench][tune]") {
  const std::string llama =
      R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64,
          "num_key_value_heads": 8, "vocab_size": 128256})";
  std::vector<std::string> left_out;
  CHECK(texts(bench::shapes_of_model(llama, "x", 1, {1}, &left_out)) ==
        std::vector<std::string>{"1: 1 x 10240 x 8192", "1: 1 x 8192 x 8192", "2: 1 x 28672 x 8192",
                                 "1: 1 x 8192 x 28672"});
  CHECK(texts(bench::shapes_of_model(llama, "x", 8, {16}, &left_out)) ==
        std::vector<std::string>{"1: 16 x 1280 x 8192", "1: 16 x 8192 x 1024", "2: 16 x 3584 x 8192",
                                 "1: 16 x 8192 x 3584"});
  CHECK(left_out.empty());
  CHECK(bench::shapes_of_model(llama, "x", 8, {1, 2, 3}, &left_out).size() == 12);
  CHECK_THROWS_WITH(bench::shapes_of_model(llama, "x", 3, {1}, &left_out), Catch::Contains("no layer"));
  CHECK(left_out.size() == 4);
  CHECK_THAT(left_out.at(0), Catch::Equals("qkv: does not divide by 3"));
}

TEST_CASE("config.json: head sizes of their own, and models that also see", "[bench][tune]") {
  std::vector<std::string> left_out;
  const std::string gemma =
      R"({"vision_config": {"hidden_size": 1152}, "text_config": {"hidden_size": 5376, "intermediate_size": 21504,
          "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128}})";
  CHECK(texts(bench::shapes_of_model(gemma, "x", 2, {7}, &left_out)) ==
        std::vector<std::string>{"1: 7 x 4096 x 5376", "1: 7 x 5376 x 2048", "2: 7 x 10752 x 5376",
                                 "1: 7 x 5376 x 10752"});
}

TEST_CASE("config.json: experts are one launch, with as many rows as tokens choose", "[bench][tune]") {
  std::vector<std::string> left_out;
  const std::string qwen =
      R"({"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
          "num_experts_per_tok": 8, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128})";
  CHECK(texts(bench::shapes_of_model(qwen, "x", 1, {16}, &left_out)) ==
        std::vector<std::string>{"1: 16 x 5120 x 2048", "1: 16 x 2048 x 4096",
                                 "2: offsets 128, 128 x 768 x 2048", "1: offsets 128, 128 x 2048 x 768"});
  const std::string deepseek =
      R"({"hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
          "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "num_attention_heads": 128,
          "num_key_value_heads": 128, "kv_lora_rank": 512, "v_head_dim": 128})";
  left_out.clear();
  CHECK(texts(bench::shapes_of_model(deepseek, "x", 8, {4}, &left_out)) ==
        std::vector<std::string>{"1: 4 x 7168 x 2048", "2: 4 x 2304 x 7168", "1: 4 x 7168 x 2304",
                                 "2: 4 x 256 x 7168", "1: 4 x 7168 x 256", "2: offsets 256, 32 x 256 x 7168",
                                 "1: offsets 256, 32 x 7168 x 256"});
  CHECK(left_out == std::vector<std::string>{"qkv: attention is latent"});
}

TEST_CASE("config.json: what is none is refused by what it lacks", "[bench][tune]") {
  std::vector<std::string> left_out;
  const auto says = [&](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK_THROWS_WITH(bench::shapes_of_model(text, "x", 1, {1}, &left_out), Catch::Contains(part));
  };
  says("", "no JSON object");
  says("[1, 2]", "no JSON object");
  says("{\"hidden_size\": ", "no JSON object");
  says("{}", "no hidden_size");
  says(R"({"hidden_size": "many"})", "no hidden_size");
  says(R"({"hidden_size": -5})", "hidden_size is -5");
  says(R"({"hidden_size": 64})", "no num_attention_heads");
  says(R"({"hidden_size": 64, "num_attention_heads": 4})", "no intermediate_size");
  says(R"({"hidden_size": 64, "num_attention_heads": 4, "num_experts": 8})", "no num_experts_per_tok");
  says(R"({"hidden_size": 64, "num_attention_heads": 4, "num_experts": 8, "num_experts_per_tok": 2})",
       "no moe_intermediate_size");
  says(R"({"hidden_size": 64, "num_attention_heads": 4, "num_experts": 5000, "num_experts_per_tok": 2})",
       "5000 experts are too many");
}

TEST_CASE("lists of shapes: a line each, refused by its number", "[bench][tune]") {
  const std::vector<Shape> list =
      bench::parse_shape_list("# some\n2 16x4096x7168 contest weights  # few rows\n\n1 offsets:8~4x64x128\n");
  CHECK(texts(list) == std::vector<std::string>{"2: 16 x 4096 x 7168", "1: offsets 8, 32 x 64 x 128"});
  CHECK_THAT(list.at(0).label, Catch::StartsWith("contest weights"));
  for (const char* bad : {"3 1x2x3", "16x4096x7168", "2", "2 16x4096"})
    CHECK_THROWS_WITH(bench::parse_shape_list(std::string("2 1x8x32\n") + bad + "\n"),
                      Catch::StartsWith("line 2: "));
}

TEST_CASE("the list of models: 60 shapes, of which the last 20 have weights of no suite", "[bench][tune]") {
  std::ifstream file(MODELS);
  const std::vector<Shape> list = bench::parse_shape_list({std::istreambuf_iterator<char>(file), {}});
  REQUIRE(list.size() == 60);
  std::set<std::pair<int32_t, int32_t>> known;
  for (const bench::Suite& suite : bench::suites())
    for (const Shape& shape : suite.shapes) known.emplace(shape.n, shape.k);
  for (size_t i = 0; i < list.size(); ++i) {
    INFO(bench::shape_text(list[i]));
    CHECK_NOTHROW(bench::check_compact(list[i]));
    if (i >= 40) CHECK(known.count({list[i].n, list[i].k}) == 0);
  }
}

static const bench::StorePlace kPlace{"A GPU", "1.2.3-4", 132, 13000};

static dualgemm::TuningLine line_of(const char* shape, const std::string& instance) {
  dualgemm::TuningLine line = bench::key_of(bench::parse_shape(shape), DUALGEMM_DTYPE_BF16, false);
  line.instance = instance;
  return line;
}

static std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("the file grows by entries, keeps what it has, and is replaced as a whole", "[bench][tune]") {
  const dualgemm_test::TemporaryFile place("", "store");
  const std::string path = place.path() + ".tuning";
  std::filesystem::remove(path);
  {
    bench::Store store(path, kPlace, false);
    CHECK_FALSE(std::filesystem::exists(path));
    store.add(line_of("16x64x64", "m1"), "10.0 us");
    store.add(line_of("32x64x64", "m2"), "");
    CHECK(store.has(line_of("16x64x64", "")));
  }
  bench::Store again(path, kPlace, false);
  CHECK(again.size() == 2);
  CHECK(again.has(line_of("16x64x64", "")));
  CHECK_FALSE(again.has(line_of("17x64x64", "")));
  CHECK_FALSE(again.has(bench::key_of(bench::parse_shape("16x64x64"), DUALGEMM_DTYPE_FP16, false)));
  again.add(line_of("16x64x64", "m3"), "9.0 us");
  CHECK(again.size() == 2);
  const std::string text = text_of(path);
  CHECK_THAT(text, Catch::Contains("2 NVFP4 BF16 plain dense 1 64 64 16 m3  # 9.0 us\n"));
  CHECK(text.find("m1") == std::string::npos);
  CHECK(text.ends_with(dualgemm_test::tuning_end(text.substr(0, text.find("end ")), 2)));
  // Nothing else is left beside it.
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    CHECK(entry.path().string().find(path + ".") == std::string::npos);
  CHECK(bench::Store(path, kPlace, true).size() == 0);
  bench::StorePlace other = kPlace;
  other.driver = 12000;
  CHECK_THROWS_WITH(bench::Store(path, other, false),
                    Catch::Contains("is for another GPU, driver or library"));
  std::ofstream(path, std::ios::app) << "x";
  CHECK_THROWS_WITH(bench::Store(path, kPlace, false), Catch::Contains("line 10: "));
  std::filesystem::remove(path);
  bench::Store nowhere("/nowhere/at/all.tuning", kPlace, false);
  CHECK_THROWS_WITH(nowhere.add(line_of("16x64x64", "m1"), ""), Catch::Contains("/nowhere/at/all.tuning"));
}

TEST_CASE("an entry of an A in FP8 is another one than that of an A in NVFP4", "[bench][tune]") {
  const dualgemm_test::TemporaryFile place("", "store");
  const std::string path = place.path() + ".tuning";
  Shape shape = bench::parse_shape("16x64x64");
  shape.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  dualgemm::TuningLine line = bench::key_of(shape, DUALGEMM_DTYPE_BF16, false);
  line.instance = "m1";
  bench::Store(path, kPlace, true).add(line, "");
  CHECK_THAT(text_of(path), Catch::Contains("2 FP8_E4M3 BF16 plain dense 1 64 64 16 m1\n"));
  const bench::Store again(path, kPlace, false);
  CHECK(again.has(line));
  CHECK_FALSE(again.has(line_of("16x64x64", "")));
  std::filesystem::remove(path);
}

TEST_CASE("the key of a shape counts the rows of all problems", "[bench][tune]") {
  const std::map<std::string, int64_t> rows = {
      {"300x64x64", 300}, {"4*64x64x64", 256}, {"offsets:40,0,60x64x64", 100}, {"masked:16~20x64x64", 320}};
  for (const auto& [shape, expected] : rows) {
    INFO(shape);
    CHECK(line_of(shape.c_str(), "").rows == expected);
  }
}

}  // namespace tune_test
