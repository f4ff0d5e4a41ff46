// cube_test.cpp -- every combination of what a launch may ask for is accepted; and the campaign of `make
// cube`: each is launched, and every instance computes every activation, with edges, under every checker of
// the judge.
#include <algorithm>
#include <array>
#include <map>
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

// Rows from one to more than a tile has, so that the library chooses different tiles; biases of either type,
// of two products both or one of them; factors of rows of A, and of C or not.
ProblemSet problems_of(const Combination& x, Rng& rng) {
  constexpr int32_t kRows[] = {9, 1, 70, 131}, kColumns[] = {48, 80, 176, 336},
                    kDepths[] = {80, 16, 272, 528};
  const int32_t m = kRows[rng.between(0, 3)], n = kColumns[rng.between(0, 3)], k = kDepths[rng.between(0, 3)];
  const uint64_t seed = rng.bits();
  ProblemSet set = x.group_mode == DUALGEMM_GROUP_NONE
                       ? make_batch(Data::kFullRange, x.batch, m, n, k, seed, Alphas::kOwn)
                       : make_groups(x.group_mode, Data::kFullRange, {3, 0, m}, n, k, seed, 2);
  const int32_t left_out = rng.between(0, 3);
  const dualgemm_dtype_t bias_dtype = rng.below(2) == 0 ? DUALGEMM_DTYPE_BF16 : DUALGEMM_DTYPE_FP32;
  for (Problem& p : set.problems) {
    if (x.biases) p.bias_dtype = bias_dtype, give_biases(p, rng);
    if (x.row_scale) give_row_scale(p, rng);
    if (x.row_scale && left_out == 0) give_c_row_scale(p, rng);
    if (left_out == 1 && x.products == 2) p.bias1.clear();
    if (left_out == 2) p.bias2.clear();
  }
  give_encode(set, x.c_dtype);
  if (x.products == 1) leave_one_product(set, x.linear_activation);
  if (x.c_add) give_c_add(set, seed);
  return set;
}

// Returns the general instances that take it, each with every type of C.
std::vector<NamedInstance> instances_of(int32_t products, bool grouped) {
  if (products == 2) return general_instances(grouped);
  std::vector<NamedInstance> all = one_product_instances();
  std::erase_if(all, [&](const NamedInstance& x) {
    return x.info.general == 0 || (x.info.grouped != 0) != grouped || x.info.a_dtype != DUALGEMM_DTYPE_NVFP4;
  });
  return all;
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

// The library chooses the instance of half of the launches. The others get one of those that there are for
// them: of those that split K, which run all their tiles at once, where the number of SMs is not limited.
SetOptions options_of(const Combination& x, Rng& rng) {
  SetOptions options;
  if (rng.below(2) == 0) {
    std::vector<NamedInstance> all = instances_of(x.products, x.group_mode != DUALGEMM_GROUP_NONE);
    std::erase_if(all, [&](const NamedInstance& instance) {
      return instance.dtype != x.c_dtype || (x.max_sms != 0 && instance.info.split_k > 1) ||
             ((x.flags & DUALGEMM_FLAG_BATCH_INVARIANT) != 0 && instance.info.stream_k != 0);
    });
    options = SetOptions(use(all[rng.below(static_cast<uint32_t>(all.size()))]));
  }
  options.dtype = x.c_dtype;
  options.activation = x.activation;
  options.flags = x.flags | (rng.below(5) == 0 ? DUALGEMM_FLAG_EXACT_ACT : 0);
  options.max_sms = x.max_sms;
  options.d = options.amax = rng.below(2) == 0;
  options.d_dtype = kBeforeActivation[rng.below(std::size(kBeforeActivation))];
  // With PDL the launch before writes C, too.
  options.add_in_place = x.c_add && !(x.flags & DUALGEMM_FLAG_PDL) && rng.below(2) == 0;
  return options;
}

int32_t activation_of(const Combination& x) {
  return x.products == 2 ? int32_t{x.activation} : int32_t{x.linear_activation};
}

std::string text(const Combination& x) {
  return "products " + std::to_string(x.products) + ", c_dtype " + std::to_string(x.c_dtype) +
         ", activation " + std::to_string(activation_of(x)) + (x.biases ? ", biases" : "") +
         (x.row_scale ? ", row factors" : "") + (x.c_add ? ", c_add" : "") + ", group_mode " +
         std::to_string(x.group_mode) + ", batch " + std::to_string(x.batch) + ", flags " +
         std::to_string(x.flags) + ", max_sms " + std::to_string(x.max_sms);
}

void check_combination(const Combination& x, const SetOptions& options, Rng& rng) {
  INFO(text(x) << ", instance " << options.instance_id);
  Judged judged;
  check_launch(problems_of(x, rng), options);
  CHECK(judged.findings() == "");
}

// Returns combinations that have each choice of one thing together with each choice of any other: of those
// that are left, always one that has most of the pairs that are missing. The activations of one product count
// as those of two with their numbers.
std::vector<Combination> every_pair() {
  using Pair = std::array<int32_t, 4>;  // a thing and its choice, another and its choice
  const auto pairs_of = [](const Combination& x) {
    const int32_t launch = 10 * x.group_mode + x.batch;
    const std::array<int32_t, 10> chosen = {x.products,
                                            x.c_dtype,
                                            activation_of(x),
                                            x.biases,
                                            x.row_scale,
                                            x.c_add,
                                            launch,
                                            static_cast<int32_t>(x.flags & DUALGEMM_FLAG_PDL),
                                            static_cast<int32_t>(x.flags & DUALGEMM_FLAG_BATCH_INVARIANT),
                                            x.max_sms};
    std::vector<Pair> pairs;
    for (int32_t i = 0; i < 10; ++i)
      for (int32_t j = 0; j < i; ++j) pairs.push_back({i, chosen[i], j, chosen[j]});
    return pairs;
  };
  const std::vector<Combination> all = bench::every_combination();
  std::set<Pair> missing;
  for (const Combination& x : all)
    for (const Pair& pair : pairs_of(x)) missing.insert(pair);
  std::vector<Combination> some;
  while (!missing.empty()) {
    const auto gained = [&](const Combination& x) {
      int32_t gained = 0;
      for (const Pair& pair : pairs_of(x)) gained += missing.contains(pair);
      return gained;
    };
    some.push_back(*std::max_element(all.begin(), all.end(), [&](const Combination& x, const Combination& y) {
      return gained(x) < gained(y);
    }));
    for (const Pair& pair : pairs_of(some.back())) missing.erase(pair);
  }
  return some;
}

}  // namespace

TEST_CASE("no combination of output, activation, biases, row factors, launch and flags is refused",
          "[cube]") {
  const std::string table = bench::cube_markdown(bench::described_b200());
  INFO(table);
  CHECK(table.find("refusal") == std::string::npos);
  // Of one product three types of C have launches with an addend and without, and the others without alone.
  CHECK(bench::every_combination().size() == 5 * 4 * 224 + (3 * 2 + 2) * 4 * 192);
}

TEST_CASE("the cube: every pair of choices gives what the reference says, and nothing is found", "[cube]") {
  Rng rng(1);
  const std::vector<Combination> some = every_pair();
  CHECK(some.size() < 80);
  for (const Combination& x : some) check_combination(x, options_of(x, rng), rng);
}

namespace {

void check_every_combination(int32_t products) {
  Rng rng(2);
  std::set<std::pair<int32_t, int32_t>> asked_for;    // an instance, a type of C
  std::map<std::pair<bool, bool>, int32_t> launches;  // of instances that are asked for, with limited SMs
  for (const Combination& x : bench::every_combination()) {
    if (x.products != products) continue;
    const SetOptions options = options_of(x, rng);
    if (options.instance_id != 0) asked_for.insert({options.instance_id, x.c_dtype});
    ++launches[{options.instance_id != 0, x.max_sms != 0}];
    check_combination(x, options, rng);
  }
  CHECK(asked_for.size() == instances_of(products, false).size() + instances_of(products, true).size());
  CHECK(launches.size() == 4);
  for (const auto& [kind, count] : launches) CHECK(count > 1000);
}

// Checks an instance with an activation at one of the shapes around its edges, asked for everything else that
// it computes.
void check_activation(const NamedInstance& instance, int32_t activation, uint32_t flags, size_t turn) {
  INFO(instance.name << ", activation " << activation << ", flags " << flags);
  ProblemSet set = around_edges(instance.info, turn);
  give_all(set, extras().back(), 2);
  give_encode(set, instance.dtype);
  SetOptions options = use(instance);
  options.flags = flags;
  options.d = options.amax = true;
  if (instance.info.products == 1) {
    leave_one_product(set, static_cast<dualgemm_linear_activation_t>(activation));
    if (bench::takes_addend(instance.dtype)) give_c_add(set, turn);
    options.add_in_place = flags == 0;
  } else {
    options.activation = static_cast<dualgemm_activation_t>(activation);
  }
  Judged judged;
  check_launch(set, options);
  CHECK(judged.findings() == "");
}

void check_every_activation(int32_t products) {
  size_t turn = 0;
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : instances_of(products, grouped))
      for (int32_t activation = 0; activation < (products == 2 ? 7 : 6); ++activation)
        for (const uint32_t flags : {uint32_t{0}, uint32_t{DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_PDL}})
          check_activation(instance, activation, flags, turn++);
}

}  // namespace

TEST_CASE("the cube: every combination of two products gives what the reference says, and nothing is found",
          "[.cube]") {
  check_every_combination(2);
}
TEST_CASE("the cube: every combination of one product gives what the reference says, and nothing is found",
          "[.cube]") {
  check_every_combination(1);
}

TEST_CASE("the cube: every instance of two products computes every activation, and nothing is found",
          "[.cube]") {
  check_every_activation(2);
}
TEST_CASE("the cube: every instance of one product computes every activation, and nothing is found",
          "[.cube]") {
  check_every_activation(1);
}
