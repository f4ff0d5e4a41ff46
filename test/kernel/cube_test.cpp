// cube_test.cpp -- every combination of what a launch may ask for is accepted; and the campaign of `make
// cube`: each is launched, and every instance computes every activation, with edges, under every checker of
// the judge.
#include <set>
#include <string>
#include <vector>

#include "bench/budget.h"
#include "bench/cube.h"
#include "kernel/extras.h"
#include "kernel/judged.h"

using namespace dualgemm_test;
using bench::Combination;

namespace {

// Rows from one to more than a tile has, so that the library chooses different tiles; biases are both or one
// of them, factors those of A, of C, or both.
ProblemSet problems_of(const Combination& x, uint64_t seed) {
  constexpr int32_t kRows[] = {9, 1, 70, 131}, kColumns[] = {48, 80, 176}, kDepths[] = {80, 16, 272, 528};
  Rng rng(seed);
  const int32_t m = kRows[rng.between(0, 3)], n = kColumns[rng.between(0, 2)], k = kDepths[rng.between(0, 3)];
  ProblemSet set = x.group_mode == DUALGEMM_GROUP_NONE
                       ? make_batch(Data::kFullRange, x.batch, m, n, k, seed, Alphas::kOwn)
                       : make_groups(x.group_mode, Data::kFullRange, {3, 0, m}, n, k, seed, 2);
  const int32_t left_out = rng.between(0, 2);
  for (Problem& p : set.problems) {
    if (x.biases) give_biases(p, rng);
    if (x.row_scale) give_row_scale(p, rng), give_c_row_scale(p, rng);
    if (left_out == 1) p.bias1.clear(), p.row_scale.clear();
    if (left_out == 2) p.bias2.clear(), p.c_row_scale.clear();
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

// The library chooses the instance of every second launch. The others get each that there is for them, in
// turn: of those that split K, which run all their tiles at once, where the number of SMs is not limited.
SetOptions options_of(const Combination& x, size_t turn) {
  SetOptions options;
  if (turn % 2 != 0) {
    std::vector<NamedInstance> all = general_instances(x.group_mode != DUALGEMM_GROUP_NONE);
    std::erase_if(all, [&](const NamedInstance& instance) {
      return instance.info.c_dtype != x.c_dtype || (x.max_sms != 0 && instance.info.split_k > 1);
    });
    options = SetOptions(use(all[turn / 2 % all.size()]));
  }
  options.dtype = x.c_dtype;
  options.activation = x.activation;
  options.flags = x.flags | (turn % 5 == 0 ? DUALGEMM_FLAG_EXACT_ACT : 0);
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
  size_t turn = 0;
  std::set<int32_t> asked_for;
  for (const Combination& x : bench::every_combination()) {
    const SetOptions options = options_of(x, ++turn);
    asked_for.insert(options.instance_id);
    INFO(text(x) << ", instance " << options.instance_id);
    Judged judged;
    check_launch(problems_of(x, turn), options);
    CHECK(judged.findings() == "");
  }
  CHECK(asked_for.size() == 1 + general_instances(false).size() + general_instances(true).size());
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
