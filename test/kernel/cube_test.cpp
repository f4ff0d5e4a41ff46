// cube_test.cpp -- every combination of what a launch may ask for is accepted; and the campaign of `make
// cube`: each is launched, and every instance computes every activation, with edges, under every checker of
// the judge.
#include <string>
#include <vector>

#include "bench/budget.h"
#include "bench/cube.h"
#include "kernel/extras.h"
#include "kernel/judged.h"

using namespace dualgemm_test;
using bench::Combination;

namespace {

// Rows from one to more than a tile has, so that the library chooses different tiles.
ProblemSet problems_of(const Combination& x, uint64_t seed) {
  constexpr int32_t kRows[] = {9, 1, 70, 131}, kColumns[] = {48, 80, 176};
  Rng rng(seed);
  const int32_t m = kRows[rng.between(0, 3)], n = kColumns[rng.between(0, 2)], k = 80;
  ProblemSet set = x.group_mode == DUALGEMM_GROUP_NONE
                       ? make_batch(Data::kFullRange, x.batch, m, n, k, seed, Alphas::kOwn)
                       : make_groups(x.group_mode, Data::kFullRange, {3, 0, m}, n, k, seed, 2);
  for (Problem& p : set.problems) {
    if (x.biases) give_biases(p, rng);
    if (x.row_scale) give_row_scale(p, rng);
  }
  give_encode(set, x.c_dtype);
  return set;
}

// Returns a launch of an instance around the edges of its tile: five shapes and two kinds of launch in turn.
ProblemSet around_edges(const dualgemm_instance_info_t& info, size_t turn) {
  struct Shape {
    int32_t m, n, k;
  };
  const Shape shapes[] = {{info.tile_m + 3, info.tile_n + 16, 272},
                          {1, 16, 16},
                          {info.tile_m - 1, info.tile_n, info.split_k * info.tile_k},
                          {info.tile_m, 2 * info.tile_n + 48, 80},
                          {2 * info.tile_m + 1, 32, info.split_k * info.tile_k + 16}};
  const auto [m, n, k] = shapes[turn % std::size(shapes)];
  const bool other = turn / std::size(shapes) % 2 != 0;
  if (info.grouped == 0) return make_batch(Data::kFullRange, other ? 2 : 1, m, n, k, turn, Alphas::kOwn);
  return make_groups(other ? DUALGEMM_GROUP_MASKED : DUALGEMM_GROUP_OFFSETS, Data::kFullRange, {m, 0, 5}, n,
                     k, turn, 3);
}

SetOptions options_of(const Combination& x) {
  SetOptions options;
  options.dtype = x.c_dtype;
  options.activation = x.activation;
  options.flags = x.flags;
  options.max_sms = x.max_sms;
  return options;
}

std::string text(const Combination& x) {
  return "c_dtype " + std::to_string(x.c_dtype) + ", activation " + std::to_string(x.activation) +
         (x.biases ? ", biases" : "") + (x.row_scale ? ", row factors" : "") + ", group_mode " +
         std::to_string(x.group_mode) + ", batch " + std::to_string(x.batch) + ", flags " +
         std::to_string(x.flags) + ", max_sms " + std::to_string(x.max_sms);
}

}  // namespace

TEST_CASE("no combination of output, activation, biases, row factors, launch and flags is refused",
          "[cube]") {
  const std::string table = bench::cube_markdown(bench::described_b200());
  INFO(table);
  CHECK(table.find("refusal") == std::string::npos);
  CHECK(bench::every_combination().size() == 5 * 4 * 224);
}

TEST_CASE("the cube: every combination gives what the reference says, and nothing is found", "[.cube]") {
  uint64_t seed = 0;
  for (const Combination& x : bench::every_combination()) {
    INFO(text(x));
    Judged judged;
    check_launch(problems_of(x, ++seed), options_of(x));
    CHECK(judged.findings() == "");
  }
}

TEST_CASE("the cube: every instance computes every activation, and nothing is found", "[.cube]") {
  size_t turn = 0;
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances(grouped))
      for (const dualgemm_activation_t activation : kActivations)
        for (const uint32_t flags : {uint32_t{0}, uint32_t{DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_PDL}}) {
          INFO(instance.info.name << ", activation " << activation << ", flags " << flags);
          ProblemSet set = around_edges(instance.info, turn++);
          give_all(set, extras().back(), 2);
          give_encode(set, static_cast<dualgemm_dtype_t>(instance.info.c_dtype));
          SetOptions options = use(instance);
          options.activation = activation;
          options.flags = flags;
          options.d = options.amax = true;
          Judged judged;
          check_launch(set, options);
          CHECK(judged.findings() == "");
        }
}
