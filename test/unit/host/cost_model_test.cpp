// cost_model_test.cpp -- the cost model of compute capability 10.x: what it counts, how it orders, and how
// far it is from the published times. That of 9.0 is tested in cost_sm90_test.cpp.

#include "host/model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "bench/published.h"
#include "costs.h"
#include "kernel/sm100/plan.h"
#include "support/catch.hpp"

namespace cost_model_test {

using namespace dualgemm_test;
using namespace dualgemm;

// Counts the tiles of shapes whose problems have m rows each.
static int64_t count_tiles(const Instance& instance, const Shape& shape) {
  int64_t tiles = 0;
  for (int32_t m = 0; m < shape.m; m += instance.plan.tile.m)
    for (int32_t n = 0; n < shape.n; n += instance.plan.tile.n) ++tiles;
  return tiles * shape.problems;
}

// host/MODEL.md quotes these bounds. A copy of scale factors that delays the mma as far as its range allows
// brings the times of the wide tiles in line; the held-out constants were not fitted to any of these times.
TEST_CASE("the model agrees with published times of other kernels", "[host][cost_model]") {
  struct Bounds {
    CostConstants constants;
    int inside;
    double outside_us, large;
  };
  CostConstants slow_copies = kB200Costs;
  slow_copies.scale_copy = 12.4;
  for (const Bounds& bounds : {Bounds{kB200Costs, 5, 1.1, 0.16}, Bounds{slow_copies, 7, 0.1, 0.11},
                               Bounds{bench::held_out(), 4, 1, 0.12}}) {
    const auto modelled_us = [&](const Instance& instance, const Shape& shape) {
      Cost cost;
      REQUIRE(cost_of(instance, shape, kB200, &cost, bounds.constants));
      return cost.total_us;
    };
    int inside = 0;
    for (const bench::Published& p : bench::kPublished) {
      const double outside = bench::outside_us(p, modelled_us(p.instance, p.shape));
      INFO(text_of(p.instance, p.shape) << ": outside by " << outside << " us");
      CHECK(std::fabs(outside) < bounds.outside_us);
      inside += outside == 0;
    }
    CHECK(inside == bounds.inside);
    const bench::PublishedLarge& large = bench::kPublishedLarge;
    const double us = modelled_us(large.instance, large.shape) - bench::kLaunchGap;
    INFO(us << " us");
    CHECK(std::fabs(us / large.kernel_us - 1) < bounds.large);
  }
}

TEST_CASE("clusters run where the machine has room for them", "[host][cost_model]") {
  CHECK(clusters_at_once({148}, Arch::kSm100, 1) == 148);
  CHECK(clusters_at_once({148}, Arch::kSm100, 2) == 74);
  CHECK(clusters_at_once({148}, Arch::kSm100, 4) == 32);
  CHECK(clusters_at_once({148, 70, 33}, Arch::kSm100, 2) == 70);
  CHECK(clusters_at_once({148, 70, 33}, Arch::kSm100, 4) == 33);
  CHECK(clusters_at_once({64, 70, 33}, Arch::kSm100, 2) == 32);  // fewer SMs than the device has
  CHECK(clusters_at_once({64, 70, 33}, Arch::kSm100, 4) == 16);
  for (int32_t sms = 1; sms <= 300; ++sms)
    for (const int32_t size : {1, 2, 4}) {
      INFO(sms << " SMs, clusters of " << size);
      const int32_t at_once = clusters_at_once({sms}, Arch::kSm100, size);
      CHECK(at_once * size <= sms);
      CHECK((at_once > 0) == (sms >= size));
      CHECK(clusters_at_once({sms + 1}, Arch::kSm100, size) >= at_once);
    }
}

TEST_CASE("an instance has no cost where it cannot run", "[host][cost_model]") {
  Cost cost;
  for_all(Arch::kSm100, [&](const Instance& instance, Shape shape) {
    const int32_t cluster = instance.plan.mma.cta_group * instance.plan.tile.split_k;
    CHECK_FALSE(cost_of(instance, shape, {cluster - 1}, &cost));
    // One wave is enough for anything without a split; with one it is needed.
    const int64_t tiles = count_tiles(instance, shape);
    CHECK(cost_of(instance, shape, {cluster}, &cost) == (instance.plan.tile.split_k == 1 || tiles == 1));
    for (const int32_t sms : {16, 60, 148, 148 * 20})
      if (cost_of(instance, shape, {sms}, &cost) && instance.plan.tile.split_k > 1)
        CHECK(tiles <= clusters_at_once({sms}, Arch::kSm100, cluster));
    shape.grouped = !shape.grouped;
    CHECK_FALSE(cost_of(instance, shape, kB200, &cost));
  });
}

TEST_CASE("more SMs are never predicted to take longer, and more work never less", "[host][cost_model]") {
  for_all(Arch::kSm100, [](const Instance& instance, const Shape& shape) {
    check_more_costs_more(instance, shape, 4, 160);
    Shape more = shape;
    more.k += 4096;
    Cost cost;
    if (cost_of(instance, shape, kB200, &cost)) CHECK(cost.total_us < us(instance, more));
  });
}

TEST_CASE("a cost counts the tiles, and the waves in which they run", "[host][cost_model]") {
  for_all(Arch::kSm100, [](const Instance& instance, Shape shape) {
    for (const int32_t sms : {4, 5, 33, 148}) {
      Cost cost;
      if (!cost_of(instance, shape, {sms}, &cost)) continue;
      const auto rows_in_tiles = [&](int64_t rows) {
        int64_t tiles = 0;
        for (int64_t m = 0; m < rows; m += instance.plan.tile.m) ++tiles;
        return tiles;
      };
      int64_t n_tiles = 0;
      for (int32_t n = 0; n < shape.n; n += instance.plan.tile.n) ++n_tiles;
      if (shape.grouped) {
        // The rows of a group are spread evenly around m: the mean over them, rounded up.
        int64_t sum = 0;
        const int64_t most = 2 * int64_t{shape.m} - 1;
        for (int64_t rows = 1; rows <= most; ++rows) sum += rows_in_tiles(rows);
        CHECK((cost.tiles - 1) * most < sum * n_tiles * shape.problems);
        CHECK(cost.tiles * most >= sum * n_tiles * shape.problems);
      } else {
        CHECK(cost.tiles == count_tiles(instance, shape));
      }
      const int64_t at_once =
          clusters_at_once({sms}, Arch::kSm100, instance.plan.mma.cta_group * instance.plan.tile.split_k);
      CHECK(cost.waves * at_once >= cost.tiles);
      CHECK((cost.waves - 1) * at_once < cost.tiles);
    }
  });
}

TEST_CASE("what lets the next tile start earlier is predicted to be faster", "[host][cost_model]") {
  // There are ten tiles for each pair of CTAs, so that what happens between two tiles counts.
  const Shape shape{2560, 128 * 74, 2048};
  for (const Instance& instance : instances(Arch::kSm100)) {
    if (instance.plan.tile.m != 256 || instance.plan.tile.n != 128 || instance.plan.tile.split_k > 1 ||
        instance.plan.tile.grouped || instance.plan.mma.accumulators != 2)
      continue;
    const auto with = [&](int32_t stages, int32_t scale_stages, int32_t acc_stages) {
      Instance other = instance;
      other.plan = sm100::plan_of({.tile_m = 256,
                                   .tile_n = 128,
                                   .stages = stages,
                                   .scale_stages = scale_stages,
                                   .acc_stages = acc_stages});
      return other;
    };
    const Plan& plan = instance.plan;
    const Instance single = with(plan.operands.stages, plan.scales.stages, 1);
    const Instance overlapped = with(plan.operands.stages, plan.scales.stages, 2);
    const Instance shallow = with(2, 2, plan.tmem.acc_stages);
    CHECK(us(overlapped, shape) < us(single, shape));
    CHECK(us(instance, shape) < us(shallow, shape));
  }
}

TEST_CASE("an epilogue is priced by its special functions and by what it writes", "[host][cost_model]") {
  const auto cost = [](const Instance& instance, const Shape& shape) {
    Cost out;
    REQUIRE(cost_of(instance, shape, kB200, &out));
    return out;
  };
  for_all(Arch::kSm100, [&](const Instance& instance, const Shape& shape) {
    if (Cost unused; !cost_of(instance, shape, kB200, &unused)) return;
    const auto with = [&](ActivationKind activation, int32_t d_bits) {
      Shape other = shape;
      other.activation = activation;
      other.d_bits = d_bits;
      return cost(instance, other);
    };
    const Cost none = with(ActivationKind::kReglu, 0), usual = with(ActivationKind::kSwiglu, 0),
               most = with(ActivationKind::kSitu, 0), stored = with(ActivationKind::kSwiglu, 64);
    CHECK(none.epilogue_us < usual.epilogue_us);
    CHECK(usual.epilogue_us < most.epilogue_us);
    CHECK(stored.epilogue_us > usual.epilogue_us);
    const double bytes =
        (stored.dram_us - usual.dram_us) * kB200Costs.dram * static_cast<double>(usual.waves * usual.k_tiles);
    const double elements = static_cast<double>(shape.problems) * shape.m * shape.n;
    CHECK(std::fabs(bytes / (8 * elements) - 1) < 1e-6);
  });
}

// Calls check(instance, shape, results) for every general instance and every shape that it can take: how many
// results a CTA has in a tile. SITU, whose arithmetic takes longer than any store, is the activation.
template <class Check>
static void for_general(const Check& check) {
  for_all(Arch::kSm100, [&](const Instance& instance, Shape shape) {
    Cost unused;
    if (!instance.epilogue.general || !cost_of(instance, shape, kB200, &unused)) return;
    shape.activation = ActivationKind::kSitu;
    const TilePlan& tile = instance.plan.tile;
    check(instance, shape,
          static_cast<double>(std::min(tile.m, shape.m)) * tile.n /
              (instance.plan.mma.cta_group * tile.split_k));
  });
}

static bool close(double x, double y) { return std::fabs(x - y) <= 1e-9 * std::fabs(y); }

static double epilogue_cycles(const Instance& instance, const Shape& shape,
                              const CostConstants& constants = kB200Costs) {
  Cost cost;
  REQUIRE(cost_of(instance, shape, kB200, &cost, constants));
  return cost.epilogue_us * constants.clock;
}

// The instructions are those that the machine code of general instances has for 16 results of a lane.
TEST_CASE("each step of a general epilogue adds what its instructions and loads take", "[host][cost_model]") {
  struct Step {
    const char* name;
    void (*ask)(Shape&);
    double instructions, loads, vectors;
  };
  const Step steps[] = {{"a bias", [](Shape& s) { s.biases = 1; }, 197, 1, 1},
                        {"both biases", [](Shape& s) { s.biases = 2; }, 394, 2, 2},
                        {"a_row_scale", [](Shape& s) { s.a_row_scale = true; }, 59, 0, 1},
                        {"c_row_scale", [](Shape& s) { s.c_row_scale = true; }, 52, 0, 1},
                        {"amax_out", [](Shape& s) { s.amax = true; }, 90, 0, 0}};
  for_general([&](const Instance& instance, const Shape& shape, double results) {
    for (const Step& step : steps) {
      INFO(step.name);
      Shape with = shape;
      step.ask(with);
      const double added = epilogue_cycles(instance, with) - epilogue_cycles(instance, shape);
      // 80 instructions per cycle; eight warps wait for a load of 39 cycles, and all for the 882 of the
      // first.
      const double expected =
          results * (step.instructions / 16 / 80 + step.loads * 39 / (8 * 32)) + step.vectors * 882;
      CHECK(close(added, expected));
      Cost without, all;
      REQUIRE((cost_of(instance, shape, kB200, &without) && cost_of(instance, with, kB200, &all)));
      CHECK(all.total_us > without.total_us);
    }
  });
}

// split_k_test.cpp counts the same bytes in the simulator.
TEST_CASE("an exchange of split-K is priced by the bytes of the CTA that receives most",
          "[host][cost_model]") {
  const struct {
    const char* instance;
    int32_t m, n;
    double bytes;
  } table[] = {{"m128n64k256s4_fp16", 1, 64, 384},     {"m128n64k256s4_fp16", 16, 64, 6144},
               {"m128n64k256s4_fp16", 128, 64, 49152}, {"m128n64k256s4_fp16", 128, 8, 24576},
               {"m128n64k256s2_fp16", 16, 64, 4096},   {"m128n64k256s2_fp16", 100, 64, 25600},
               {"m256n128k256s2_fp16", 1, 128, 512},   {"m256n128k256s2_fp16", 200, 128, 65536},
               {"m64n128k256s4_fp16", 1, 128, 12288},  {"m64n128k256s4_fp16", 16, 128, 49152},
               {"m64n128k256s4_fp16", 64, 128, 49152}, {"m64n128k256s4_fp16", 64, 48, 18432}};
  for (const auto& row : table) {
    INFO(row.instance << ", m " << row.m << ", n " << row.n);
    for (const Instance& instance : instances(Arch::kSm100)) {
      if (std::string(row.instance) != instance.name) continue;
      Cost cost;
      REQUIRE(cost_of(instance, {row.m, row.n, 7168}, kB200, &cost));
      const CostConstants& t = kB200Costs;
      const double cycles = t.cluster_barrier + t.exchange + t.exchange_per_kb * row.bytes / 1024;
      CHECK(cost.exchange_us == Approx(cycles / t.clock));
    }
  }
}

TEST_CASE("a conversion costs its instructions, and the more the narrower the type", "[host][cost_model]") {
  CostConstants free_stores = kB200Costs, slow_parts = kB200Costs;
  free_stores.store = free_stores.store_part = 0;
  slow_parts.store_part = 1000;
  for_general([&](const Instance& instance, const Shape& shape, double results) {
    const auto with = [&](CType c_type, const CostConstants& constants) {
      Shape other = shape;
      other.c_type = c_type;
      return epilogue_cycles(instance, other, constants);
    };
    const auto of_chunk = [&](double instructions) { return results * instructions / 16 / 80; };
    const double fp16 = with(CType::kFp16, free_stores);
    CHECK(with(CType::kBf16, free_stores) == fp16);
    CHECK(close(with(CType::kFp32, free_stores), fp16 - of_chunk(1)));
    CHECK(close(with(CType::kFp8, free_stores), fp16 + of_chunk(17)));
    CHECK(close(with(CType::kNvfp4, free_stores), fp16 + of_chunk(instance.plan.mma.swap_ab ? 206 : 51)));
    // A factor of 16 results is a store of its own.
    CHECK(with(CType::kNvfp4, slow_parts) - with(CType::kFp8, slow_parts) > 1000 * results / 16 * 0.9);
  });
}

TEST_CASE("EXACT_ACT costs its loop, and the fewer units of fp64 there are the more", "[host][cost_model]") {
  CostConstants little = kB200Costs;
  little.fp64 = 2;
  for_general([&](const Instance& instance, const Shape& shape, double results) {
    const auto exact = [&](ActivationKind activation, const CostConstants& constants) {
      Shape other = shape;
      other.exact = true;
      other.activation = activation;
      return epilogue_cycles(instance, other, constants);
    };
    // SITU has 287 instructions for a result, 99 of fp64, and SwiGLU 137 and 36.
    const double swiglu = exact(ActivationKind::kSwiglu, kB200Costs);
    CHECK(close(exact(ActivationKind::kSitu, kB200Costs) - swiglu,
                results * ((287 - 137) / 80.0 + (99 - 36) / 64.0)));
    CHECK(close(exact(ActivationKind::kSwiglu, little) - swiglu, results * 36 * (1 / 2.0 - 1 / 64.0)));
    for (const ActivationKind activation :
         {ActivationKind::kSwiglu, ActivationKind::kGegluTanh, ActivationKind::kGegluErf,
          ActivationKind::kReglu, ActivationKind::kGlu, ActivationKind::kSwigluStep, ActivationKind::kSitu}) {
      INFO("activation " << static_cast<int32_t>(activation));
      Shape approximate = shape;
      approximate.activation = activation;
      CHECK(exact(activation, kB200Costs) > epilogue_cycles(instance, approximate));
    }
  });
}

TEST_CASE("a general epilogue costs more than the plain one of the same tile", "[host][cost_model]") {
  for_general([](const Instance& general, Shape shape, double) {
    shape.activation = ActivationKind::kSwiglu;
    Instance plain = general;
    plain.epilogue.general = false;
    CHECK(epilogue_cycles(general, shape) > epilogue_cycles(plain, shape));
  });
}

TEST_CASE("weights that do not fit in L2 are read again for every band of rows", "[host][cost_model]") {
  // 16 tiles of 256 rows are a band: one row more needs the weights once more, if they are large.
  for (const Instance& instance : instances(Arch::kSm100)) {
    if (instance.plan.tile.grouped || instance.plan.tile.split_k > 1) continue;
    const auto dram_us = [&](int32_t bands, int32_t n) {
      Cost cost;
      REQUIRE(cost_of(instance, {bands * 16 * instance.plan.tile.m, n, 8192}, kB200, &cost));
      return cost.dram_us * static_cast<double>(cost.waves * cost.k_tiles);
    };
    INFO(instance.name);
    CHECK(dram_us(4, 28672) > 3 * dram_us(1, 28672));
    CHECK(dram_us(4, 256) < 4 * dram_us(1, 256));
  }
}

}  // namespace cost_model_test
