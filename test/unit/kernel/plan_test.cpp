// plan_test.cpp -- the byte and column counts of the plans, against budgets worked out by hand and against
// what the kernels were compiled to, and the columns of tensor memory: without overlap but the one that is
// meant.
#include "kernel/sm100/plan.h"

#include <string>
#include <vector>

#include "kernel/instance.h"
#include "kernel/instance_name.h"
#include "kernel/sm100/tmem_map.cuh"
#include "support/catch.hpp"

using dualgemm::Instance;
using dualgemm::Plan;
using dualgemm::sm100::Options;
using dualgemm::sm100::plan_of;
using dualgemm::sm100::TmemMap;

namespace {

constexpr int kMaxSmemBytes = 227 * 1024;  // of a CTA of compute capability 10.x
constexpr int kTmemColumns = 512;

template <Options kOptions>
struct Planned {
  static constexpr Plan kPlan = plan_of(kOptions);
  static_assert(dualgemm::sm100::possible<kOptions, kPlan>());
};

// Instances with the depths that they have in kernel/sm100/instances.
struct Decode
    : Planned<Options{.tile_m = 64, .tile_n = 128, .stages = 5, .scale_stages = 4, .acc_stages = 2}> {
  static constexpr const char* kName = "m64n128k256_fp16";
};
struct DecodeSplit
    : Planned<Options{.tile_m = 64, .tile_n = 128, .split_k = 4, .stages = 5, .scale_stages = 4}> {
  static constexpr const char* kName = "m64n128k256s4_fp16";
};
struct N64
    : Planned<Options{
          .tile_m = 128, .tile_n = 64, .stages = 6, .scale_stages = 5, .acc_stages = 2, .keep_a = true}> {
  static constexpr const char* kName = "m128n64k256_fp16";
};
struct N128 : Planned<Options{.tile_m = 128, .tile_n = 128, .stages = 4, .scale_stages = 5}> {
  static constexpr const char* kName = "m128n128k256_fp16";
};
struct Pair64
    : Planned<Options{
          .tile_m = 256, .tile_n = 64, .stages = 7, .scale_stages = 4, .scale_k_tiles = 2, .keep_a = true}> {
  static constexpr const char* kName = "m256n64k256_fp16";
};
struct Pair128 : Planned<Options{.tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5}> {
  static constexpr const char* kName = "m256n128k256_fp16";
};
struct Overlapped
    : Planned<Options{.tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5, .acc_stages = 2}> {
  static constexpr const char* kName = "m256n128k256o_fp16";
};
struct Wide : Planned<Options{.tile_m = 256, .tile_n = 192, .stages = 4, .scale_stages = 4}> {
  static constexpr const char* kName = "m256n192k256_fp16";
};
struct GroupedDecode
    : Planned<Options{
          .tile_m = 64, .tile_n = 128, .stages = 4, .scale_stages = 5, .acc_stages = 2, .grouped = true}> {
  static constexpr const char* kName = "m64n128k256g_fp16";
};
struct GroupedPair
    : Planned<Options{
          .tile_m = 256, .tile_n = 128, .stages = 5, .scale_stages = 5, .acc_stages = 2, .grouped = true}> {
  static constexpr const char* kName = "m256n128k256og_fp16";
};

const Instance& instance_named(const std::string& name) {
  for (const Instance& instance : dualgemm::instances())
    if (instance.name == name) return instance;
  FAIL("the library has no instance " << name);
  return dualgemm::instance(0);
}

}  // namespace

TEST_CASE("few rows of A: the weights take the lanes, a cluster of four splits K") {
  CHECK(DecodeSplit::kPlan.mma.swap_ab);
  CHECK(DecodeSplit::kPlan.cluster_size() == 4);
  CHECK(DecodeSplit::kPlan.mma.m == 128);
  CHECK(DecodeSplit::kPlan.mma.n == 64);
  CHECK(DecodeSplit::kPlan.operands.stage_bytes == 8192 + 2 * 16384);
  CHECK(DecodeSplit::kPlan.scales.stage_bytes == 3 * 2048);
  CHECK(DecodeSplit::kPlan.tmem.used == 128 + 4 * 48);
  CHECK(Decode::kPlan.tmem.used == 2 * 128 + 4 * 48);
}

TEST_CASE("tile n = 64: two mma, two accumulator pairs") {
  CHECK(N64::kPlan.mma.n == 64);
  CHECK(N64::kPlan.operands.stage_bytes == 16384 + 2 * 8192);
  CHECK(N64::kPlan.scales.stage_bytes == 3 * 2048);
  CHECK(N64::kPlan.tmem.used == 2 * 128 + 5 * 48);
}

TEST_CASE("tile n = 128: one mma of n = 256, one accumulator pair") {
  CHECK(N128::kPlan.mma.n == 256);
  CHECK(N128::kPlan.operands.stage_bytes == 16384 + 2 * 16384);
  CHECK(N128::kPlan.scales.stage_bytes == 3 * 2048);
  CHECK(N128::kPlan.tmem.used == 256 + 5 * 48);
}

TEST_CASE("a pair with tile n = 64: each CTA brings half the rows of B1 and of B2, slots of two k-tiles") {
  CHECK(Pair64::kPlan.mma.cta_group == 2);
  CHECK(Pair64::kPlan.mma.n == 64);
  CHECK(Pair64::kPlan.operands.b_boxes == 2);
  CHECK(Pair64::kPlan.operands.b_box_rows == 32);
  CHECK(Pair64::kPlan.operands.stage_bytes == 16384 + 2 * 4096);
  CHECK(Pair64::kPlan.scales.stage_bytes == 2 * 3 * 2048);
  CHECK(Pair64::kPlan.tmem.used == 128 + 4 * 2 * 48);
}

TEST_CASE("a pair with tile n = 128: one mma of n = 256, each CTA brings one of B1 and B2") {
  CHECK(Pair128::kPlan.mma.n == 256);
  CHECK(Pair128::kPlan.operands.b_boxes == 1);
  CHECK(Pair128::kPlan.operands.b_box_rows == 128);
  CHECK(Pair128::kPlan.operands.stage_bytes == 16384 + 16384);
  CHECK(Pair128::kPlan.tmem.used == 256 + 5 * 48);
}

TEST_CASE("overlapping accumulators leave room for two windows of half a k-tile") {
  CHECK(Overlapped::kPlan.tmem.overlapped());
  CHECK(!Overlapped::kPlan.tmem.resident_scales);
  CHECK(Overlapped::kPlan.tmem.acc_barriers == 1);
  CHECK(Overlapped::kPlan.tmem.windows == 2);
  CHECK(Overlapped::kPlan.tmem.window_steps == 2);
  const TmemMap<Overlapped> tmem{0};
  CHECK(tmem.acc1(1) == tmem.acc2(0) + 64);  // the upper half of acc2[0] is the lower half of acc1[1]
  CHECK(Overlapped::kPlan.tmem.used == 448 + 2 * 24);
  CHECK(!Decode::kPlan.tmem.overlapped());
  CHECK(Decode::kPlan.tmem.acc_barriers == 2);
}

TEST_CASE("a pair with tile n = 192: two mma, scale factors of B in two blocks of 128 rows") {
  CHECK(Wide::kPlan.mma.n == 192);
  CHECK(Wide::kPlan.cluster_size() == 2);
  CHECK(Wide::kPlan.operands.b_box_rows == 96);
  CHECK(Wide::kPlan.operands.stage_bytes == 16384 + 2 * 12288);
  CHECK(Wide::kPlan.scales.stage_bytes == 5 * 2048);
  CHECK(Wide::kPlan.tmem.windows == 3);
  CHECK(Wide::kPlan.tmem.used == 384 + 3 * 40);
}

TEMPLATE_TEST_CASE("shared memory: all of it fits, and one more stage would not", "", Decode, DecodeSplit,
                   N64, N128, Pair64, Pair128, Overlapped, Wide, GroupedDecode, GroupedPair) {
  constexpr Plan kPlan = TestType::kPlan;
  const Instance& instance = instance_named(TestType::kName);
  CHECK((instance.plan == kPlan));
  CHECK(std::string(TestType::kName) == std::string(dualgemm::name_of_plan(kPlan).text) + "_fp16");
  const int rings =
      kPlan.operands.stages * kPlan.operands.stage_bytes + kPlan.scales.stages * kPlan.scales.stage_bytes;
  const int groups = kPlan.tile.grouped ? 513 * 20 : 0;  // entries of the table of groups
  CHECK(instance.smem_bytes >= rings + groups);
  CHECK(instance.smem_bytes <= kMaxSmemBytes);
  CHECK(instance.smem_bytes + kPlan.operands.stage_bytes > kMaxSmemBytes);
}

TEMPLATE_TEST_CASE("tensor memory: every column has one meaning, or the two that are meant", "", Decode,
                   DecodeSplit, N64, N128, Pair64, Pair128, Overlapped, Wide, GroupedDecode, GroupedPair) {
  using Traits = TestType;
  // A base that is not zero: no address may forget it.
  constexpr uint32_t kBase = 32;
  const TmemMap<Traits> tmem{kBase};
  std::vector<int> meanings(Traits::kPlan.tmem.used, 0);
  const auto use = [&](uint32_t first, uint32_t count) {
    REQUIRE(first >= kBase);
    REQUIRE(first + count <= kBase + Traits::kPlan.tmem.used);
    for (uint32_t column = first; column < first + count; ++column) ++meanings[column - kBase];
  };
  for (int acc = 0; acc < Traits::kPlan.tmem.acc_stages; ++acc) {
    use(tmem.acc1(acc), Traits::kPlan.mma.columns);
    use(tmem.acc2(acc), Traits::kPlan.mma.columns);
  }
  const uint32_t sfb_columns = 4 * ((Traits::kPlan.tile.n + 127) / 128);
  for (int window = 0; window < Traits::kPlan.tmem.windows; ++window)
    for (int step = 0; step < Traits::kPlan.tmem.window_steps; ++step) {
      use(tmem.sfa(window, step), 4);
      for (int product = 0; product < 2; ++product) use(tmem.sfb(window, step, product), sfb_columns);
      // tcgen05.cp to any other column is not known to work.
      CHECK(tmem.sfa(window, step) % 4 == 0);
      CHECK(tmem.sfb(window, step, 0) % 4 == 0);
      CHECK(tmem.sfb(window, step, 1) % 4 == 0);
    }
  for (uint32_t column = 0; column < meanings.size(); ++column) {
    INFO("column " << column);
    CHECK(meanings[column] == (Traits::kPlan.tmem.overlapped() && column >= 192 && column < 256 ? 2 : 1));
  }
  CHECK(Traits::kPlan.tmem.used <= Traits::kPlan.tmem.allocated);
  CHECK(Traits::kPlan.tmem.allocated <= kTmemColumns);
  CHECK((Traits::kPlan.tmem.allocated & (Traits::kPlan.tmem.allocated - 1)) == 0);
}

TEMPLATE_TEST_CASE("one mma of n = 256 finds both products side by side", "", N128, Pair128, Overlapped,
                   GroupedPair) {
  const TmemMap<TestType> tmem{0};
  for (int acc = 0; acc < TestType::kPlan.tmem.acc_stages; ++acc)
    CHECK(tmem.acc2(acc) == tmem.acc1(acc) + 128);
  for (int window = 0; window < TestType::kPlan.tmem.windows; ++window)
    for (int step = 0; step < TestType::kPlan.tmem.window_steps; ++step)
      CHECK(tmem.sfb(window, step, 1) == tmem.sfb(window, step, 0) + 4);
}
