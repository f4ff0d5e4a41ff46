// plan_test.cpp -- the plans that the kernels were compiled to: their byte and column counts against budgets
// worked out by hand, and the columns of tensor memory, without overlap but the one that is meant.
#include "kernel/sm100/plan.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/boxes.h"
#include "kernel/instance.h"
#include "kernel/instance_name.h"
#include "kernel/sm100/tmem_map.cuh"
#include "kernel/sm90/plan.h"
#include "support/catch.hpp"

namespace plan_test {

using namespace dualgemm;
using dualgemm::sm100::Options;
using dualgemm::sm100::plan_of;
using dualgemm::sm100::TmemMap;

constexpr int kMaxSmemBytes = 227 * 1024;  // of a CTA of compute capability 9.0 and 10.x
constexpr int kTmemColumns = 512;

// Returns the plan of a tile's instances, by the name that they have without their epilogue.
static const Plan& plan_named(const std::string& tile) {
  for (const Instance& instance : dualgemm::instances())
    if (std::string(instance.name).starts_with(tile + "_")) return instance.plan;
  FAIL("the library has no instance " << tile);
  return dualgemm::instance(0).plan;
}

static std::vector<Instance> instances_of(Arch arch) {
  std::vector<Instance> out;
  for (const Instance& instance : dualgemm::instances())
    if (instance.plan.arch == arch) out.push_back(instance);
  return out;
}

// Returns the options that a plan was derived from.
static Options options_of(const Plan& plan) {
  return {.tile_m = plan.tile.m,
          .tile_n = plan.tile.n,
          .split_k = plan.tile.split_k,
          .stages = plan.operands.stages,
          .scale_stages = plan.scales.stages,
          .scale_k_tiles = plan.scales.k_tiles,
          .acc_stages = plan.tmem.acc_stages,
          .grouped = plan.tile.grouped,
          .keep_a = plan.mma.keep_a,
          .products = plan.mma.accumulators};
}

static dualgemm::sm90::Options sm90_options_of(const Plan& plan) {
  return {.tile_m = plan.tile.m,
          .tile_n = plan.tile.n,
          .split_k = plan.tile.split_k,
          .k_groups = plan.consumers.k_groups,
          .stages = plan.operands.stages,
          .panel_stages = plan.a16.stages,
          .prepare_warps = plan.a16.warps,
          .ctas_per_sm = plan.ctas_per_sm,
          .grouped = plan.tile.grouped,
          .stream_k = plan.tile.stream_k,
          .a_type = plan.a_type,
          .products = plan.mma.accumulators,
          .exchanged_rows = plan.consumers.exchanged_rows};
}

// This plan exists when this test is compiled, as TmemMap needs it, and has what tensor memory depends on.
template <int32_t kTileM, int32_t kTileN, int32_t kAccStages, int32_t kScaleStages, int32_t kScaleKTiles = 1,
          int32_t kProducts = 2>
struct Mapped {
  static constexpr Options kOptions{.tile_m = kTileM,
                                    .tile_n = kTileN,
                                    .stages = 2,
                                    .scale_stages = kScaleStages,
                                    .scale_k_tiles = kScaleKTiles,
                                    .acc_stages = kAccStages,
                                    .products = kProducts};
  static constexpr Plan kPlan = plan_of(kOptions);
  static_assert(dualgemm::sm100::possible<kOptions, kPlan>());
};
using OneMma = Mapped<128, 128, 1, 5>;
using OneMmaGrouped = Mapped<128, 128, 1, 4>;
using Overlapped = Mapped<256, 128, 2, 5>;
template <int32_t kTileM, int32_t kTileN, int32_t kAccStages, int32_t kScaleStages, int32_t kKTiles = 1>
using MappedOne = Mapped<kTileM, kTileN, kAccStages, kScaleStages, kKTiles, 1>;
// These are all the maps that instances have; the second test below sees to that.
using Maps = std::tuple<Mapped<64, 128, 2, 4>, Mapped<64, 128, 1, 4>, Mapped<64, 128, 2, 5>,
                        Mapped<128, 64, 2, 5>, Mapped<128, 64, 1, 5>, OneMma, OneMmaGrouped,
                        Mapped<256, 64, 1, 4, 2>, Overlapped, Mapped<256, 192, 1, 4>,
                        MappedOne<64, 128, 2, 8>, MappedOne<64, 128, 1, 8>, MappedOne<128, 128, 2, 7>,
                        MappedOne<128, 128, 1, 7>, MappedOne<128, 256, 2, 5>, MappedOne<128, 256, 2, 4>,
                        MappedOne<256, 128, 2, 4, 2>, MappedOne<256, 192, 2, 4>, MappedOne<256, 256, 1, 5>>;

static bool same_map(const Plan& left, const Plan& right) {
  return left.tmem == right.tmem && left.mma.columns == right.mma.columns &&
         left.mma.products == right.mma.products && left.scales.sfb_blocks == right.scales.sfb_blocks;
}

TEST_CASE("every instance has the plan that follows from its options, and its name", "[plan]") {
  for (const Instance& instance : dualgemm::instances()) {
    INFO(instance.name);
    if (instance.plan.arch == Arch::kSm100) CHECK((instance.plan == plan_of(options_of(instance.plan))));
    else CHECK((instance.plan == dualgemm::sm90::plan_of(sm90_options_of(instance.plan))));
    CHECK(std::string(instance.name)
              .starts_with(std::string(dualgemm::name_of_plan(instance.plan).text) + "_"));
  }
}

TEST_CASE("a general instance leaves lanes without sums only where shared memory has no room for more rows",
          "[plan]") {
  using namespace dualgemm::sm90;
  for (const Instance& instance : instances_of(Arch::kSm90)) {
    const Plan& plan = instance.plan;
    const int32_t exchanged = plan.consumers.exchanged_rows;
    const int32_t most =
        std::min(kWarpgroup * kExchangedColumns / plan.consumers.columns, plan.consumers.share_rows);
    if (!instance.epilogue.general || exchanged >= most) continue;
    INFO(instance.name);
    const int32_t row = plan.mma.accumulators * (plan.tile.n + kExchangePadding) * int32_t{sizeof(float)};
    CHECK(instance.smem_bytes + (most - exchanged) * row > smem_limit(plan));
  }
}

TEST_CASE("every instance has a map of tensor memory that is tested here, and every such map an instance",
          "[plan]") {
  const auto match = [](const Plan& plan, auto map) { return same_map(plan, decltype(map)::kPlan); };
  for (const Instance& instance : instances_of(Arch::kSm100)) {
    INFO(instance.name);
    CHECK(std::apply([&](auto... map) { return (match(instance.plan, map) || ...); }, Maps{}));
  }
  const auto has_instance = [&](auto map) {
    int32_t count = 0;
    for (const Instance& instance : instances_of(Arch::kSm100)) count += match(instance.plan, map);
    return count > 0;
  };
  CHECK(std::apply([&](auto... map) { return (has_instance(map) && ...); }, Maps{}));
}

TEST_CASE("few rows of A: the weights take the lanes, a cluster of four splits K", "[plan]") {
  const Plan &plan = plan_named("m64n128k256"), &split = plan_named("m64n128k256s4");
  CHECK(split.mma.swap_ab);
  CHECK(split.cluster_size() == 4);
  CHECK(split.mma.m == 128);
  CHECK(split.mma.n == 64);
  CHECK(split.operands.stage_bytes == 8192 + 2 * 16384);
  CHECK(split.scales.stage_bytes == 3 * 2048);
  CHECK(split.tmem.used == 128 + 4 * 48);
  CHECK(plan.tmem.used == 2 * 128 + 4 * 48);
}

TEST_CASE("tile n = 64: two mma, two accumulator pairs", "[plan]") {
  const Plan& plan = plan_named("m128n64k256");
  CHECK(plan.mma.n == 64);
  CHECK(plan.operands.stage_bytes == 16384 + 2 * 8192);
  CHECK(plan.scales.stage_bytes == 3 * 2048);
  CHECK(plan.tmem.used == 2 * 128 + 5 * 48);
  CHECK(plan.mma.keep_a);
}

TEST_CASE("tile n = 128: one mma of n = 256, one accumulator pair", "[plan]") {
  const Plan& plan = plan_named("m128n128k256");
  CHECK(plan.mma.n == 256);
  CHECK(plan.operands.stage_bytes == 16384 + 2 * 16384);
  CHECK(plan.scales.stage_bytes == 3 * 2048);
  CHECK(plan.tmem.used == 256 + 5 * 48);
}

TEST_CASE("a pair with tile n = 64: each CTA brings half of B1 and of B2, scale stages of two k-tiles",
          "[plan]") {
  const Plan& plan = plan_named("m256n64k256");
  CHECK(plan.mma.cta_group == 2);
  CHECK(plan.mma.n == 64);
  CHECK(plan.operands.b_boxes == 2);
  CHECK(plan.operands.b_box_rows == 32);
  CHECK(plan.operands.stage_bytes == 16384 + 2 * 4096);
  CHECK(plan.scales.stage_bytes == 2 * 3 * 2048);
  CHECK(plan.tmem.used == 128 + 4 * 2 * 48);
  CHECK(plan.mma.keep_a);
}

TEST_CASE("a pair with tile n = 128: one mma of n = 256, each CTA brings one of B1 and B2", "[plan]") {
  const Plan& plan = plan_named("m256n128k256");
  CHECK(plan.mma.n == 256);
  CHECK(plan.operands.b_boxes == 1);
  CHECK(plan.operands.b_box_rows == 128);
  CHECK(plan.operands.stage_bytes == 16384 + 16384);
  CHECK(plan.tmem.used == 256 + 5 * 48);
}

TEST_CASE("overlapping accumulators leave room for two windows of half a k-tile", "[plan]") {
  for (const char* tile : {"m256n128k256o", "m256n128k256og"}) {
    INFO(tile);
    const Plan& plan = plan_named(tile);
    CHECK(plan.tmem.overlapped());
    CHECK(!plan.tmem.resident_scales);
    CHECK(plan.tmem.acc_barriers == 1);
    CHECK(plan.tmem.windows == 2);
    CHECK(plan.tmem.window_steps == 2);
    CHECK(plan.tmem.used == 448 + 2 * 24);
    CHECK(plan.scales.stages == 5);
  }
  const TmemMap<Overlapped> tmem{0};
  CHECK(tmem.acc1(1) == tmem.acc2(0) + 64);  // the upper half of acc2[0] is the lower half of acc1[1]
  const Plan& apart = plan_named("m64n128k256");
  CHECK(!apart.tmem.overlapped());
  CHECK(apart.tmem.acc_barriers == 2);
}

TEST_CASE("a pair with tile n = 192: two mma, scale factors of B in two blocks of 128 rows", "[plan]") {
  const Plan& plan = plan_named("m256n192k256");
  CHECK(plan.mma.n == 192);
  CHECK(plan.cluster_size() == 2);
  CHECK(plan.operands.b_box_rows == 96);
  CHECK(plan.operands.stage_bytes == 16384 + 2 * 12288);
  CHECK(plan.scales.stage_bytes == 5 * 2048);
  CHECK(plan.tmem.windows == 3);
  CHECK(plan.tmem.used == 384 + 3 * 40);
  CHECK(plan.scales.stages == 4);
}

TEST_CASE("shared memory: all of it fits, and one more stage would not", "[plan]") {
  for (const Instance& instance : instances_of(Arch::kSm100)) {
    INFO(instance.name);
    const Plan& plan = instance.plan;
    const int rings =
        plan.operands.stages * plan.operands.stage_bytes + plan.scales.stages * plan.scales.stage_bytes;
    const int groups = plan.tile.grouped ? 513 * 20 : 0;  // entries of the table of groups
    CHECK(instance.smem_bytes >= rings + groups);
    CHECK(instance.smem_bytes <= kMaxSmemBytes);
    CHECK(instance.smem_bytes + plan.operands.stage_bytes > kMaxSmemBytes);
  }
}

// Returns the bytes that a copy of a box brings.
int32_t bytes_of(const dualgemm::Box& box, uint32_t element) {
  return static_cast<int32_t>(element * box.extent[0] * box.extent[1] * box.extent[2] * box.extent[3]);
}

// Load roles announce the bytes of the plan, host/ encodes the boxes.
TEST_CASE("boxes: copies bring the bytes that the plan has room for", "[plan]") {
  for (const Instance& instance : dualgemm::instances()) {
    INFO(instance.name);
    const Plan& plan = instance.plan;
    const dualgemm::Boxes boxes = dualgemm::boxes_of(plan);
    CHECK(bytes_of(boxes.b, 1) == plan.operands.b_box_bytes);
    CHECK(bytes_of(boxes.sfb, 8) == plan.scales.sfb_bytes);
    if (plan.prepared_a()) {
      CHECK(bytes_of(boxes.prepared_a, 2) == plan.a16.bytes + plan.a16.stage_bytes);
    } else if (plan.a_type == CType::kFp8) {
      CHECK(bytes_of(boxes.a, 1) == (plan.a16.stages > 0 ? plan.a16.stage_bytes : plan.a16.bytes / 2));
    } else if (plan.orders_a()) {
      CHECK(4 * bytes_of(boxes.a, 2) == plan.a16.bytes);
    } else {
      CHECK(bytes_of(boxes.a, 1) == plan.operands.a_bytes);
      CHECK(bytes_of(boxes.sfa, 8) == plan.scales.sfa_bytes);
    }
  }
}

// A warpgroup of 9.0 has the registers that it asks for: 65,536 of an SM, in eights per thread, 1 KiB of the
// 228 KiB of shared memory for each CTA.
TEST_CASE("9.0: the CTAs of an SM fit into its registers and shared memory", "[plan]") {
  std::vector<std::string> names;
  for (const Instance& instance : instances_of(Arch::kSm90)) {
    INFO(instance.name);
    const Plan& plan = instance.plan;
    const int consumers = 128 * plan.consumers.column_groups * plan.consumers.k_groups;
    CHECK(plan.ctas_per_sm * plan.threads * plan.registers.launch <= 65536);
    CHECK(plan.registers.feed * (plan.threads - consumers) + plan.registers.consume * consumers <=
          plan.threads * plan.registers.launch);
    for (int registers : {plan.registers.launch, plan.registers.feed, plan.registers.consume}) {
      CHECK(registers % 8 == 0);
      CHECK(registers >= 24);
      CHECK(registers <= 240);
    }
    // Accumulators of both products of its 32 columns, or of one of 64, and two sets of four fragments.
    CHECK(plan.registers.consume >= 2 * 32 * plan.tile.m / 128 + 2 * 4 * 4);
    CHECK(instance.smem_bytes <= kMaxSmemBytes);
    CHECK(plan.ctas_per_sm * (instance.smem_bytes + 1024) <= 228 * 1024);
    CHECK(instance.smem_bytes >= plan.ring_bytes());
    // Factors lie in the stages of the operands, and so does A in 16 bits or FP8, unless a ring has panels of
    // 128 bytes of its rows.
    const int32_t row_bytes = plan.tile.k * (plan.a_type == CType::kFp8 ? 1 : 2);
    const int32_t a_of_k_tile = plan.tile.m * row_bytes;
    CHECK(plan.scales.stages == plan.operands.stages);
    CHECK(plan.a16.bytes == (plan.a16.stages == 0 ? a_of_k_tile : 0));
    CHECK(plan.a16.stage_bytes == (plan.a16.stages == 0 ? 0 : a_of_k_tile / (row_bytes / 128)));
    names.emplace_back(instance.name);
  }
  CHECK(!names.empty());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("9.0: few rows of A, two warpgroups share 32 columns and each k-tile", "[plan]") {
  const Plan& plan = plan_named("sm90m8n32k256s2");
  CHECK(plan.mma.m == 64);
  CHECK(plan.mma.n == 8);
  CHECK(plan.cluster_size() == 2);
  CHECK(plan.operands.stage_bytes == 1024 + 2 * 4096);
  CHECK(plan.scales.stage_bytes == 3 * 2048);
  CHECK(plan.a16.bytes == 8 * 256 * 2);
  CHECK(plan.consumers.warpgroups() == 2);
  CHECK(plan.threads == 2 * 128 + 128);
}

TEST_CASE("9.0: 128 rows of A, a warpgroup for each 32 columns", "[plan]") {
  const Plan& plan = plan_named("sm90m128n64k256");
  CHECK(plan.mma.n == 128);
  CHECK(plan.operands.stage_bytes == 16384 + 2 * 8192);
  CHECK(plan.a16.bytes == 128 * 256 * 2);
  CHECK(plan.consumers.column_groups == 2);
  CHECK(plan.consumers.k_groups == 1);
  CHECK(plan.threads == 2 * 128 + 3 * 128);  // eight expanders, two load roles, two more
}

TEST_CASE(
    "9.0: an A in FP8 takes a byte per element and nobody prepares it, and MXFP4 has half of the factors",
    "[plan]") {
  const Plan& plan = plan_named("sm90m64n64k256s2_mxfp4_afp8");
  CHECK(plan.mma.n == 64);
  CHECK(plan.mma.steps == 2);  // of 128 elements, as an atom of factors has
  CHECK(plan.operands.stage_bytes == 2 * 64 * 128);
  CHECK(plan.scales.stage_bytes == 2 * 2 * 512);
  CHECK(plan.a16.bytes == 64 * 256);
  CHECK(plan.a16.warps == 0);
  CHECK(!plan.prepared_a());
  CHECK(plan.threads == 2 * 128 + 128);
  const Plan& many = plan_named("sm90m256n64k256_mxfp4_afp8");
  CHECK(many.a16.bytes == 0);
  CHECK(many.a16.stage_bytes == 256 * 128);
  const Plan& one = plan_named("sm90m16n128k256_one_mxfp4_afp8");
  CHECK(one.operands.stage_bytes == 128 * 128);
  CHECK(one.scales.stage_bytes == 2 * 512);
}

TEMPLATE_LIST_TEST_CASE("tensor memory: every column has one meaning, or the two that are meant", "[plan]",
                        Maps) {
  using Traits = TestType;
  // The base is not zero: no address may forget it.
  constexpr uint32_t kBase = 32;
  const TmemMap<Traits> tmem{kBase};
  constexpr int kProducts = Traits::kPlan.mma.products;
  std::vector<int> meanings(Traits::kPlan.tmem.used, 0);
  const auto use = [&](uint32_t first, uint32_t count) {
    REQUIRE(first >= kBase);
    REQUIRE(first + count <= kBase + Traits::kPlan.tmem.used);
    for (uint32_t column = first; column < first + count; ++column) ++meanings[column - kBase];
  };
  for (int acc = 0; acc < Traits::kPlan.tmem.acc_stages; ++acc) {
    use(tmem.acc1(acc), Traits::kPlan.mma.columns);
    if (kProducts == 2) use(tmem.acc2(acc), Traits::kPlan.mma.columns);
  }
  const uint32_t sfb_columns = 4 * ((Traits::kPlan.tile.n + 127) / 128);
  for (int window = 0; window < Traits::kPlan.tmem.windows; ++window)
    for (int step = 0; step < Traits::kPlan.tmem.window_steps; ++step) {
      use(tmem.sfa(window, step), 4);
      for (int product = 0; product < kProducts; ++product) use(tmem.sfb(window, step, product), sfb_columns);
      // tcgen05.cp to any other column is not known to work.
      CHECK(tmem.sfa(window, step) % 4 == 0);
      CHECK(tmem.sfb(window, step, 0) % 4 == 0);
      if (kProducts == 2) CHECK(tmem.sfb(window, step, 1) % 4 == 0);
    }
  for (uint32_t column = 0; column < meanings.size(); ++column) {
    INFO("column " << column);
    CHECK(meanings[column] == (Traits::kPlan.tmem.overlapped() && column >= 192 && column < 256 ? 2 : 1));
  }
  CHECK(Traits::kPlan.tmem.used <= Traits::kPlan.tmem.allocated);
  CHECK(Traits::kPlan.tmem.allocated <= kTmemColumns);
  CHECK((Traits::kPlan.tmem.allocated & (Traits::kPlan.tmem.allocated - 1)) == 0);
}

TEMPLATE_TEST_CASE("one mma of n = 256 finds both products side by side", "[plan]", OneMma, OneMmaGrouped,
                   Overlapped) {
  REQUIRE(TestType::kPlan.mma.n == 256);
  const TmemMap<TestType> tmem{0};
  for (int acc = 0; acc < TestType::kPlan.tmem.acc_stages; ++acc)
    CHECK(tmem.acc2(acc) == tmem.acc1(acc) + 128);
  for (int window = 0; window < TestType::kPlan.tmem.windows; ++window)
    for (int step = 0; step < TestType::kPlan.tmem.window_steps; ++step)
      CHECK(tmem.sfb(window, step, 1) == tmem.sfb(window, step, 0) + 4);
}

}  // namespace plan_test
