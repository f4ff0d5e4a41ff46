// stream_k_test.cpp -- launches of instances with stream-K: the room that they need for sums, how many CTAs
// they have, and what they are not for.
#include <algorithm>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/launch/choice.h"
#include "host/launch/prepare_a.h"
#include "host/launch/validate.h"
#include "host/model/tiling.h"
#include "support/catch.hpp"

namespace stream_k_host_test {

using namespace dualgemm;
using namespace dualgemm_test;

static std::vector<int32_t> stream_ids() {
  std::vector<int32_t> out;
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id)
    if (instance(id - 1).plan.tile.stream_k) out.push_back(id);
  return out;
}

// Rows of A of 512 bytes each for every k-tile, and 40 columns of tiles, which leave an H100 SMs without
// work.
static dualgemm_args_t args_of(int32_t products, int32_t m) {
  dualgemm_args_t args = valid_args();
  args.m = m, args.n = 5120, args.k = 8192, args.c = address(uintptr_t{1} << 50);
  args.products = products;
  if (products == 1) args.b2 = args.sfb2 = nullptr;
  args.workspace = address(uintptr_t{1} << 52);
  return args;
}
static dualgemm_args_t forced_for(int32_t id, int32_t m) {
  return forced(id, args_of(instance(id - 1).plan.mma.products, m));
}

TEST_CASE("stream-K needs room for A, for two parts of 132 CTAs, and for their numbers", "[host][stream_k]") {
  const dualgemm_device_t device = h100();
  for (const int32_t id : stream_ids()) {
    const TilePlan& tile = instance(id - 1).plan.tile;
    const auto sums = static_cast<size_t>(tile.m * tile.n * instance(id - 1).plan.mma.accumulators);
    // The numbers take a multiple of 256 bytes.
    const size_t needed = size_t{512} * 8192 * 2 + 1280 + size_t{2} * 132 * 4 * sums;
    dualgemm_args_t args = forced_for(id, 512);
    INFO(instance(id - 1).name);
    args.workspace_size = needed - 1;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_WORKSPACE_TOO_SMALL);
    CHECK(std::string(dualgemm_last_error()) ==
          "instance_id=" + std::to_string(id) + ": " + instance(id - 1).name + " needs workspace_size=" +
              std::to_string(needed) + ", not workspace_size=" + std::to_string(needed - 1));
    args.workspace_size = needed;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
  }
}

// A CTA has its places by its number, a shared tile its number of parts (stream_parts.cuh).
TEST_CASE("stream-K has room in the workspace for all parts and numbers, apart from each other and from A",
          "[host][stream_k]") {
  for (const int32_t id : stream_ids()) {
    const Plan& plan = instance(id - 1).plan;
    const auto sums = static_cast<size_t>(plan.tile.m * plan.tile.n * plan.mma.accumulators);
    for (const int32_t m : {1, 128, 129, 500, 2100})
      for (const int32_t n : {32, 128, 1056, 5120})
        for (const int32_t k : {64, 256, 8000})
          for (const int32_t sms : {1, 2, 7, 78, 114, 132, 200}) {
            dualgemm_args_t args = forced_for(id, m);
            args.n = n, args.k = k, args.workspace_size = size_t{1} << 40;
            dualgemm::Problem problem;
            REQUIRE(validate(&args, &problem) == DUALGEMM_STATUS_SUCCESS);
            INFO(instance(id - 1).name << " " << m << " x " << n << " x " << k << " on " << sms << " SMs");
            const auto ctas = static_cast<size_t>(grid_size(problem, plan, {sms}));
            const auto tiles = static_cast<size_t>(tile_bound(problem, plan.tile));
            const StreamSpace space = stream_space(problem, plan);
            CHECK(prepared_a_bytes(problem) <= space.counts_begin);
            CHECK(tiles % ctas <= static_cast<size_t>(space.counts));
            CHECK(space.counts_begin + 4 * static_cast<size_t>(space.counts) <= space.sums_begin);
            CHECK(space.sums_begin + kPartsOfCta * ctas * 4 * sums <= workspace_bytes(problem, plan));
            CHECK(space.counts_begin % 4 == 0);
            CHECK(space.sums_begin % 16 == 0);
          }
  }
}

TEST_CASE("stream-K is chosen where there is room for sums, and tiles leave SMs without work",
          "[host][stream_k][select_instance]") {
  const dualgemm_device_t device = h100();
  const auto chosen = [&](dualgemm_args_t args) {
    int32_t id = 0;
    REQUIRE(dualgemm_select_instance(&args, &device, &id) == DUALGEMM_STATUS_SUCCESS);
    return instance(id - 1).plan;
  };
  for (const int32_t products : {1, 2})
    for (const int32_t m : {256, 512}) {
      dualgemm_args_t args = args_of(products, m);
      args.workspace_size = size_t{1} << 40;
      INFO(products << " products, " << m << " rows");
      CHECK(chosen(args).tile.stream_k);
      args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
      CHECK_FALSE(chosen(args).tile.stream_k);
      args.flags = 0;
      args.workspace_size = static_cast<size_t>(m) * 8192 * 2;  // room for A alone
      CHECK_FALSE(chosen(args).tile.stream_k);
      CHECK(chosen(args).prepared_a());
    }
  dualgemm_args_t even = args_of(1, 512);
  even.n = 33 * 128, even.workspace_size = size_t{1} << 40;  // 132 tiles of 128 rows
  CHECK_FALSE(chosen(even).tile.stream_k);
}

TEST_CASE("stream-K: the workspace that a choice asks for brings the same choice",
          "[host][stream_k][select_instance]") {
  const dualgemm_device_t device = h100();
  int shared = 0;
  for (const int32_t products : {1, 2})
    for (const int32_t m : {96, 192, 300, 512, 1000, 3000})
      for (const int32_t n : {384, 768, 2048, 5120})
        for (const int32_t k : {768, 2560, 8192}) {
          dualgemm_args_t args = args_of(products, m);
          args.n = n, args.k = k, args.workspace_size = size_t{1} << 40;
          dualgemm::Problem problem;
          REQUIRE(validate(&args, &problem) == DUALGEMM_STATUS_SUCCESS);
          IndexedInstance any, again;
          REQUIRE(choose(problem, device, args.workspace_size, &any) == DUALGEMM_STATUS_SUCCESS);
          const size_t asked = workspace_for(problem, *any.instance);
          REQUIRE(choose(problem, device, asked, &again) == DUALGEMM_STATUS_SUCCESS);
          INFO(products << " products, " << m << " x " << n << " x " << k);
          CHECK(any.index == again.index);
          CHECK(asked >= workspace_bytes(problem, any.instance->plan));
          shared += any.instance->plan.tile.stream_k;
        }
  CHECK(shared > 0);
}

TEST_CASE("stream-K is not for BATCH_INVARIANT", "[host][stream_k]") {
  const dualgemm_device_t device = h100();
  for (const int32_t id : stream_ids()) {
    dualgemm_args_t args = forced_for(id, 512);
    args.workspace_size = size_t{1} << 40;
    args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_NOT_SUPPORTED);
    CHECK(
        std::string(dualgemm_last_error()) ==
        "instance_id=" + std::to_string(id) + ": " + instance(id - 1).name +
            " has stream-K, whose order of additions depends on M, and not for flags=0x4 (BATCH_INVARIANT)");
  }
}

TEST_CASE("stream-K has up to four CTAs for each tile, and as many as run at once", "[host][stream_k]") {
  REQUIRE_FALSE(stream_ids().empty());
  for (const int32_t id : stream_ids()) {
    const Plan& plan = instance(id - 1).plan;
    CHECK(grid_clusters(plan, 1, {132}) == 4);
    CHECK(grid_clusters(plan, 32, {132}) == 128);
    CHECK(grid_clusters(plan, 40, {132}) == 132);
    CHECK(grid_clusters(plan, 500, {132}) == 132);
    CHECK(grid_clusters(plan, 500, {200}) == 132);  // the workspace has room for the parts of as many
    CHECK(grid_clusters(plan, 500, {20, 0, 0, true}) == 20);
  }
}

}  // namespace stream_k_host_test
