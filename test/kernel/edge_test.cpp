// edge_test.cpp -- every instance on shapes around the edges of its tiles and rings, with every checker of
// the simulator watching: right results, nothing found, and every mbarrier certified to behave the same in
// every schedule. A general instance is asked for everything that it computes.

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

struct Shape {
  int32_t m, n, k, max_sms;
};

// Returns by how many columns C may be smaller or larger.
int32_t column_step(const NamedInstance& instance) { return instance.dtype == DUALGEMM_DTYPE_NVFP4 ? 16 : 8; }

bool of_fp8(const NamedInstance& instance) { return instance.info.a_dtype == DUALGEMM_DTYPE_FP8_E4M3; }

// Returns k, or the next one that has whole blocks of MXFP4 if the instance takes that.
int32_t whole_blocks(const NamedInstance& instance, int32_t k) {
  return of_fp8(instance) ? (k + 31) / 32 * 32 : k;
}

// Gives problems the operands that the instance takes, with MXFP4 all that rows may have.
ProblemSet suited(const NamedInstance& instance, ProblemSet set) {
  if (!of_fp8(instance)) return set;
  Rng rng(7);
  for (Problem& p : set.problems) {
    p = with_fp8(p, Mx::kFullRange, rng.word());
    for (int side : {0, 1}) give_exponents(p, side, 10 - 30 * side, rng.word());
    if (instance.info.general == 0) give_row_scale(p, rng);
  }
  return set;
}

// The main loop of a general instance is that of the plain one with the same tile: only a test of every
// instance takes all depths of both.
enum class Depths { kAll, kSome };

std::vector<Shape> edges(const NamedInstance& instance, Depths depths) {
  const dualgemm_instance_info_t& info = instance.info;
  const int32_t m = info.tile_m, n = info.tile_n, k = info.tile_k, scale_stage = info.scale_k_tiles * k;
  const int32_t step = column_step(instance);
  std::vector<Shape> out = {{1, step, 16, 0}};
  // The rows are around the tile; the second k-tile has one of its four steps. Rows and columns are cut
  // off by different means: each is met on either side of the tile.
  const int32_t sign = instance.id % 2 == 0 ? 1 : -1;
  for (int32_t rows : {m - 1, m, m + 1})
    for (int32_t columns : {n - step, n, n + step})
      if (thorough() || (rows - m) * step == sign * (columns - n)) out.push_back({rows, columns, k + 16, 0});
  // K is around a step, a k-tile, a scale stage, a part of K, and the depth of the rings.
  std::vector<int32_t> deep = {64, k - 16, info.split_k * k + 64};
  if (depths == Depths::kAll)
    deep.insert(deep.end(), {k, 2 * k + 48, scale_stage + 16, info.stages * k, (info.stages + 1) * k,
                             info.scale_stages * scale_stage + k});
  if (depths == Depths::kAll && thorough())
    deep.insert(deep.end(), {80, 2 * k, 3 * k, (info.stages - 1) * k, info.scale_stages * scale_stage - 16,
                             2 * info.stages * k + 240});
  for (int32_t depth : deep) out.push_back({m / 2 + 9, 3 * step, depth, 0});
  // There are more tiles than CTAs, an odd and an even number of k-tiles in each. What splits K launches all
  // its tiles.
  const int32_t one_cluster = info.split_k > 1 ? 0 : info.cta_group;
  out.push_back({thorough() ? 2 * m + 1 : m + 1, 2 * n + step, k + 16, one_cluster});
  if (depths == Depths::kAll || thorough()) out.push_back({m + 1, 3 * n, 2 * k + 80, one_cluster});
  return out;
}

template <Depths kDepths>
void check_edges(const NamedInstance& instance) {
  Judged judged;
  for (const Shape& shape : edges(instance, kDepths)) {
    INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k);
    ProblemSet set = suited(instance, make_batch(Data::kFullRange, 1, shape.m, shape.n,
                                                 whole_blocks(instance, shape.k), shape.m + shape.k));
    SetOptions options = use_all_of(instance, set);
    options.max_sms = shape.max_sms;
    check_launch(set, options);
  }
  CHECK(judged.findings_and_certificate() == "");
}

void check_batch(const NamedInstance& instance) {
  Judged judged;
  ProblemSet set = make_batch(Data::kFullRange, 3, instance.info.tile_m + 1, 64 + column_step(instance), 272,
                              5, Alphas::kOwn);
  SetOptions options = use_all_of(instance, set);
  options.max_sms = instance.info.split_k > 1 ? 0 : instance.info.cta_group;
  options.gap = 1;
  check_launch(set, options);
  CHECK(judged.findings_and_certificate() == "");
}

void check_grouped_edges(const NamedInstance& instance, dualgemm_group_mode_t mode, Depths depths) {
  const dualgemm_instance_info_t& info = instance.info;
  const int32_t m = info.tile_m, n = info.tile_n, k = info.tile_k, scale_stage = info.scale_k_tiles * k;
  const int32_t step = column_step(instance);
  Judged judged;
  // K and columns do not know how groups are found: each shape has one of the modes.
  int32_t turn = instance.id;
  const auto check = [&](const std::vector<int32_t>& rows, int32_t columns, int32_t deep, int32_t max_sms) {
    if (!thorough() && (++turn % 2 == 0) != (mode == DUALGEMM_GROUP_OFFSETS)) return;
    INFO("rows " << text(rows) << ", n " << columns << ", k " << deep);
    ProblemSet set = suited(instance, make_groups(mode, Data::kFullRange, rows, columns,
                                                  whole_blocks(instance, deep), 7 + deep, 1));
    SetOptions options = use_all_of(instance, set);
    options.max_sms = max_sms;
    check_launch(set, options);
  };
  check({0, 0, 0}, 64 + step, 256, 0);
  check({1}, step, 16, 0);
  for (int32_t columns : {n - step, n, n + step}) check({m - 1, 0, m, m + 1, 1}, columns, k + 16, 0);
  std::vector<int32_t> deep = {64, k - 16};
  if (depths == Depths::kAll)
    deep.insert(deep.end(), {80, k, 2 * k, 2 * k + 48, scale_stage + 16, 3 * k, (info.stages - 1) * k,
                             info.stages * k, (info.stages + 1) * k, info.scale_stages * scale_stage + k});
  for (int32_t depth : deep) check({m / 2 + 9, 0, 3}, 3 * step, depth, 0);
  // There are more tiles than CTAs, more CTAs than tiles, and empty groups in every place.
  check({0, m + 1, 0, 0, 2 * m, 5, 0}, 2 * n + step, k + 16, info.cta_group);
  check({3, 0, m, 2, 0}, n + step, 2 * k + 80, info.cta_group);
  check({0, 0, 9, 0}, 3 * step, 2 * k, 148);
  CHECK(judged.findings_and_certificate() == "");
}

template <class Check>
void check_each(const std::vector<NamedInstance>& instances, const Check& check) {
  for (const NamedInstance& instance : instances) DYNAMIC_SECTION(instance.name) {
      check(instance);
    }
}

// Checks the edges of grouped launches in both modes.
template <Depths kDepths>
void check_both_modes(const NamedInstance& instance) {
  for (dualgemm_group_mode_t mode : kGroupModes) {
    INFO(text(mode));
    check_grouped_edges(instance, mode, kDepths);
  }
}

}  // namespace

TEST_CASE("nothing is found in a dense launch around the edges of tiles and rings", "[edge]") {
  check_each(in_turn(dense_instances()), check_edges<Depths::kAll>);
}
TEST_CASE("nothing is found in a dense general launch around the edges of tiles and rings",
          "[edge][general]") {
  check_each(general_instances_in_turn(false), check_edges<Depths::kSome>);
}
TEST_CASE("nothing is found in a dense launch of any instance around the edges", "[.cube][edge][general]") {
  check_each(dense_instances(), check_edges<Depths::kAll>);
  check_each(general_instances(false), check_edges<Depths::kAll>);
}

TEST_CASE("nothing is found around the edges of tiles and rings where A has 16 bits", "[.h100][edge][a16]") {
  std::vector<NamedInstance> dense = sixteen_bit_instances(), grouped = dense;
  std::erase_if(dense, [](const NamedInstance& x) { return x.info.grouped != 0; });
  std::erase_if(grouped, [](const NamedInstance& x) { return x.info.grouped == 0; });
  check_each(all_or_in_turn(dense), check_edges<Depths::kAll>);
  check_each(all_or_in_turn(grouped), check_both_modes<Depths::kAll>);
}

TEST_CASE("nothing is found around the edges of tiles and rings where A is FP8", "[.h100][edge][fp8]") {
  for (const int32_t products : {2, 1})
    for (const bool grouped : {false, true}) {
      std::vector<NamedInstance> all = fp8_instances(products);
      std::erase_if(all, [=](const NamedInstance& x) { return (x.info.grouped != 0) != grouped; });
      if (grouped) check_each(all_or_in_turn(all), check_both_modes<Depths::kAll>);
      else check_each(all_or_in_turn(all), check_edges<Depths::kAll>);
    }
}

TEST_CASE("nothing is found in a batch", "[edge][batch]") {
  check_each(in_turn(dense_instances()), check_batch);
}
TEST_CASE("nothing is found in a general batch", "[edge][batch][general]") {
  check_each(general_instances_in_turn(false), check_batch);
}

TEST_CASE("nothing is found in a grouped launch around the edges of tiles and rings", "[edge][grouped]") {
  check_each(in_turn(grouped_instances()), check_both_modes<Depths::kAll>);
}
TEST_CASE("nothing is found in a general grouped launch around the edges of tiles and rings",
          "[edge][grouped][general]") {
  check_each(general_instances_in_turn(true), check_both_modes<Depths::kSome>);
}
TEST_CASE("nothing is found in a grouped launch of any instance around the edges",
          "[.cube][edge][grouped][general]") {
  check_each(grouped_instances(), check_both_modes<Depths::kAll>);
  check_each(general_instances(true), check_both_modes<Depths::kAll>);
}
