// edge_test.cpp -- every instance on shapes around the edges of its tiles and rings,
// with every checker of the simulator watching: right results, nothing found, and every mbarrier certified
// to behave the same in every schedule.
#include <string>

#include "kernel/grouped.h"
#include "kernel/judged.h"

using namespace dualgemm_test;

namespace {

struct Shape {
  int32_t m, n, k, max_sms;
};

std::vector<Shape> edges(const dualgemm_instance_info_t& info) {
  const int32_t m = info.tile_m, n = info.tile_n, k = info.tile_k, scale_stage = info.scale_k_tiles * k;
  std::vector<Shape> out = {{1, 8, 16, 0}};
  // The rows are around the tile; the second k-tile has one of its four steps.
  for (int32_t rows : {m - 1, m, m + 1})
    for (int32_t columns : {n - 8, n, n + 8}) out.push_back({rows, columns, k + 16, 0});
  // K is around a step, a k-tile, a scale stage, a part of K, and the depth of the rings.
  for (int32_t deep :
       {64, 80, k - 16, k, 2 * k, 2 * k + 48, scale_stage + 16, 3 * k, info.split_k * k + 64,
        (info.stages - 1) * k, info.stages * k, (info.stages + 1) * k, info.scale_stages * scale_stage - 16,
        info.scale_stages * scale_stage + k, 2 * info.stages * k + 240})
    out.push_back({m / 2 + 9, 24, deep, 0});
  // There are more tiles than CTAs, an odd and an even number of k-tiles in each. What splits K launches all
  // its tiles.
  const int32_t one_cluster = info.split_k > 1 ? 0 : info.cta_group;
  out.push_back({2 * m + 1, 2 * n + 8, k + 16, one_cluster});
  out.push_back({m + 1, 3 * n, 2 * k + 80, one_cluster});
  return out;
}

}  // namespace

TEST_CASE("nothing is found in a dense launch around the edges of tiles and rings", "[edge]") {
  for (const NamedInstance& instance : dense_instances()) {
    DYNAMIC_SECTION(instance.info.name) {
      Judged judged;
      for (const Shape& shape : edges(instance.info)) {
        LaunchOptions options = use(instance);
        options.max_sms = shape.max_sms;
        INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k);
        const Problem p = make_problem(Data::kFullRange, shape.m, shape.n, shape.k, shape.m + shape.k);
        const Comparison result = compare(run(p, options), p.reference());
        INFO(result.first);
        CHECK(result.mismatches == 0);
      }
      CHECK(judged.findings_and_certificate() == "");
    }
  }
}

TEST_CASE("nothing is found in a batch", "[edge][batch]") {
  for (const NamedInstance& instance : dense_instances()) {
    DYNAMIC_SECTION(instance.info.name) {
      Judged judged;
      SetOptions options = use(instance);
      options.max_sms = instance.info.split_k > 1 ? 0 : instance.info.cta_group;
      options.gap = 1;
      const ProblemSet set =
          make_batch(Data::kFullRange, 3, instance.info.tile_m + 1, 72, 272, 5, Alphas::kOwn);
      check_values(set, run(set, options));
      CHECK(judged.findings_and_certificate() == "");
    }
  }
}

TEST_CASE("nothing is found in a grouped launch around the edges of tiles and rings", "[edge][grouped]") {
  for (const NamedInstance& instance : grouped_instances()) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.info.name << " " << text(mode)) {
        const dualgemm_instance_info_t& info = instance.info;
        const int32_t m = info.tile_m, n = info.tile_n, k = info.tile_k, scale_stage = info.scale_k_tiles * k;
        Judged judged;
        const auto check = [&](const std::vector<int32_t>& rows, int32_t columns, int32_t deep,
                               int32_t max_sms) {
          SetOptions options = use(instance);
          options.max_sms = max_sms;
          INFO("rows " << text(rows) << ", n " << columns << ", k " << deep);
          const ProblemSet set = make_groups(mode, Data::kFullRange, rows, columns, deep, 7 + deep, 1);
          check_values(set, run(set, options));
        };
        check({0, 0, 0}, 72, 256, 0);
        check({1}, 8, 16, 0);
        for (int32_t columns : {n - 8, n, n + 8}) check({m - 1, 0, m, m + 1, 1}, columns, k + 16, 0);
        for (int32_t deep :
             {64, 80, k - 16, k, 2 * k, 2 * k + 48, scale_stage + 16, 3 * k, (info.stages - 1) * k,
              info.stages * k, (info.stages + 1) * k, info.scale_stages * scale_stage + k})
          check({m / 2 + 9, 0, 3}, 24, deep, 0);
        // There are more tiles than CTAs, more CTAs than tiles, and empty groups in every place.
        check({0, m + 1, 0, 0, 2 * m, 5, 0}, 2 * n + 8, k + 16, info.cta_group);
        check({3, 0, m, 2, 0}, n + 8, 2 * k + 80, info.cta_group);
        check({0, 0, 9, 0}, 24, 2 * k, 148);
        CHECK(judged.findings_and_certificate() == "");
      }
    }
  }
}
