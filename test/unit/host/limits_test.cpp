// limits_test.cpp -- what a caller may demand of the choice and of the size of a launch: no more CTAs at once
// than max_sms, and under BATCH_INVARIANT an instance that does not depend on how many rows there are.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "host/common/names.h"
#include "host/model/tiling.h"
#include "kernel/instance.h"
#include "rules.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace limits_test {

using namespace dualgemm_test;
using namespace dualgemm;

static const Instance& selected(const dualgemm_args_t& args, const dualgemm_device_t& device = b200()) {
  const int32_t id = selected_id(args, device);
  REQUIRE(id > 0);
  return instance(id - 1);
}

static int64_t grid_of(const dualgemm_args_t& args, const Instance& instance,
                       const dualgemm_device_t& device = b200()) {
  return grid_size(checked(args), instance.plan, machine_of(args, device));
}

static std::vector<dualgemm_args_t> all_kinds() {
  return {valid_args(), batch_args(), offsets_args(), masked_args()};
}

// Calls check for sizes from less than a tile to many waves; C is moved out of the way of everything else.
template <class Check>
static void for_sizes(const dualgemm_args_t& kind, const Check& check) {
  for (const int32_t m : {1, 40, 128, 300, 1000, 8192})
    for (const int32_t n : {8, 1000, 4096})
      for (const int32_t k : {256, 7168}) {
        dualgemm_args_t args = kind;
        args.m = m;
        args.n = n;
        args.k = k;
        args.c = address(uintptr_t{1} << 50);
        INFO("M=" << m << ", N=" << n << ", K=" << k << ", batch " << args.batch << ", mode "
                  << args.group_mode);
        check(args);
      }
}

TEST_CASE("an automatic choice keeps max_sms", "[host][limits]") {
  const dualgemm_device_t device = GENERATE(b200(), h100());
  for (const dualgemm_args_t& kind : all_kinds())
    for_sizes(kind, [&](dualgemm_args_t args) {
      for (const int32_t max_sms : {1, 2, 3, 5, 16, 64, 131}) {
        args.max_sms = max_sms;
        for (const uint32_t flags : {0u, uint32_t{DUALGEMM_FLAG_BATCH_INVARIANT}}) {
          args.flags = flags;
          const Instance& instance = selected(args, device);
          INFO("max_sms=" << max_sms << ": " << instance.name);
          CHECK(grid_of(args, instance, device) <= max_sms);
          CHECK(grid_of(args, instance, device) > 0);
        }
      }
    });
}

TEST_CASE("an instance that is asked for keeps max_sms or is refused", "[host][limits]") {
  int refused = 0, accepted = 0;
  for (const int32_t id : dualgemm_test::launched_ids()) {
    const Instance& instance = dualgemm::instance(id - 1);
    const dualgemm_device_t device = device_for(instance);
    const int32_t cluster = instance.plan.mma.cta_group * instance.plan.tile.split_k;
    for_sizes(instance.plan.tile.grouped ? offsets_args() : valid_args(), [&](dualgemm_args_t args) {
      args = forced(id, args);
      CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
      for (const int32_t max_sms : {1, 2, 3, 5, 16, 64, 131}) {
        args.max_sms = max_sms;
        const int64_t all_tiles = tile_bound(checked(args), instance.plan.tile) * cluster;
        const int32_t of_four = instance.plan.arch == Arch::kSm90 ? 30 * max_sms / 132 : 32 * max_sms / 148;
        const bool can = max_sms >= cluster && (instance.plan.tile.split_k == 1 || all_tiles <= of_four * 4 ||
                                                (cluster == 2 && all_tiles <= max_sms));
        INFO("max_sms=" << max_sms << ": " << instance.name);
        int32_t chosen = -1;
        const dualgemm_status_t status = dualgemm_can_implement_on(&args, &device);
        CHECK(dualgemm_select_instance(&args, &device, &chosen) == status);
        if (status == DUALGEMM_STATUS_SUCCESS) {
          CHECK(grid_of(args, instance, device) <= max_sms);
          CHECK(chosen == id);
          ++accepted;
        } else {
          CHECK(status == DUALGEMM_STATUS_NOT_SUPPORTED);
          CHECK(std::string(dualgemm_last_error()).find("instance_id=" + std::to_string(id) + ": ") == 0);
          CHECK(std::string(dualgemm_last_error()).find("max_sms=" + std::to_string(max_sms) + " ") !=
                std::string::npos);
          CHECK((cluster > 1 || instance.plan.tile.split_k > 1));
          ++refused;
        }
        if (can) CHECK(status == DUALGEMM_STATUS_SUCCESS);
      }
      // As many as there are, or more, limit nothing.
      for (const int32_t max_sms : {device.sm_count, 1000}) {
        args.max_sms = max_sms;
        CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
      }
    });
  }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

TEST_CASE("a grid has fewer than 2^31 CTAs, however they are demanded", "[host][limits]") {
  int limited = 0;
  for (const int32_t id : dualgemm_test::launched_ids()) {
    const dualgemm_device_t device = device_for(instance(id - 1));
    const TilePlan& tile = instance(id - 1).plan.tile;
    const int32_t cluster = instance(id - 1).plan.cluster_size();
    if (tile.grouped) continue;
    dualgemm_args_t args = forced(id, valid_args());
    args.k = 32;
    args.m = 1;
    args.n = 32;  // one tile of each problem
    args.c = address(uintptr_t{1} << 56);
    args.sfc = args.sfc ? address(uintptr_t{1} << 57) : nullptr;
    const int32_t most = std::numeric_limits<int32_t>::max() / (tile.split_k > 1 ? cluster : 1);
    args.batch = most;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
    CHECK(grid_of(args, instance(id - 1), device) <= std::numeric_limits<int32_t>::max());
    if (tile.split_k == 1) continue;
    args.batch = most + 1;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_NOT_SUPPORTED);
    const std::string expected = "m=1, n=32, batch=" + std::to_string(most + 1) + ": are " +
                                 std::to_string(most + 1) + " tiles of " + std::to_string(tile.m) + " x " +
                                 std::to_string(tile.n) + ", each computed by " + std::to_string(cluster) +
                                 " CTAs at once, must be at most 2^31-1 CTAs";
    CHECK(std::string(dualgemm_last_error()) == expected);
    // The library's own choice takes no split-K for so many.
    args.instance_id = 0;
    CHECK(selected(args, device).plan.tile.split_k == 1);
    ++limited;
  }
  CHECK(limited > 0);
}

TEST_CASE("an automatic choice is refused for the tiles of the instance that it would take, and no other",
          "[host][limits]") {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto ask = [](int32_t m, int32_t n, int32_t batch, const dualgemm_device_t& device, int32_t* id) {
    dualgemm_args_t args = valid_args();
    args.m = m, args.n = n, args.k = 16, args.batch = batch;
    args.lda = args.ldb1 = args.ldb2 = 32;
    args.c = address(uintptr_t{1} << 56);
    return dualgemm_select_instance(&args, &device, id);
  };
  int32_t id = 0;
  // Tiles of 64 rows, the lowest of 10.x, are a twentieth of 2^31 here.
  CHECK(ask(2147483647, 400, 0, b200(), &id) == DUALGEMM_STATUS_SUCCESS);
  int accepted = 0, refused = 0;
  for (const dualgemm_device_t& device : {b200(), h100()})
    for (const int32_t m : {1, 257, 2147483647})
      for (const int32_t n : {8, 400, 8192, 65536, 1 << 20})
        for (const int32_t batch : {0, 3, 2147483647}) {
          if (double(m) * std::max(batch, 1) * n > 0x1p46) continue;  // bytes have a limit, too
          id = 0;
          const dualgemm_status_t status = ask(m, n, batch, device, &id);
          const std::string text = dualgemm_last_error();
          INFO("cc " << device.cc_major << ", M=" << m << ", N=" << n << ", batch " << batch << ": " << text);
          const auto tiles = [&](const TilePlan& tile) {
            return ((m - int64_t{1}) / tile.m + 1) * ((n - 1) / tile.n + 1) * std::max(batch, 1);
          };
          if (status == DUALGEMM_STATUS_SUCCESS) {
            REQUIRE(id > 0);
            CHECK(tiles(instance(id - 1).plan.tile) <= kMost);
            ++accepted;
            continue;
          }
          CHECK(status == DUALGEMM_STATUS_NOT_SUPPORTED);
          CHECK(text.find("must be at most 2^31-1 tiles") != std::string::npos);
          // The tile that the text names is one of this device, and too small.
          bool named = false;
          for (const Instance& one : instances()) {
            const TilePlan& tile = one.plan.tile;
            named = named ||
                    ((one.plan.arch == Arch::kSm90) == (device.cc_major == 9) && tiles(tile) > kMost &&
                     text.find("are " + std::to_string(tiles(tile)) + " tiles of " + std::to_string(tile.m) +
                               " x " + std::to_string(tile.n) + ",") != std::string::npos);
          }
          CHECK(named);
          ++refused;
        }
  CHECK(accepted > 10);
  CHECK(refused > 0);
}

TEST_CASE("a cluster that the device cannot hold is refused", "[host][limits]") {
  for (const int32_t id : dualgemm_test::launched_ids()) {
    const Instance& instance = dualgemm::instance(id - 1);
    dualgemm_device_t small = device_for(instance);
    small.sm_count = 1;
    const dualgemm_args_t args = forced(id, instance.plan.tile.grouped ? masked_args() : valid_args());
    const bool fits = instance.plan.mma.cta_group * instance.plan.tile.split_k == 1;
    INFO(instance.name);
    CHECK(dualgemm_can_implement_on(&args, &small) ==
          (fits ? DUALGEMM_STATUS_SUCCESS : DUALGEMM_STATUS_NOT_SUPPORTED));
  }
}

TEST_CASE("a launch has as many CTAs as run at once, or as its tiles need", "[host][limits]") {
  for (const Instance& instance : instances()) {
    dualgemm_device_t device = device_for(instance);
    device.clusters_of_2 = 60;
    device.clusters_of_4 = 30;
    const int32_t cluster = instance.plan.mma.cta_group * instance.plan.tile.split_k;
    const int32_t to_an_sm = instance.plan.ctas_per_sm;
    // Two CTAs to an SM of a Hopper GPU: 62 clusters of four where 30 run with one, as measured.
    const int64_t at_once = cluster == 1    ? device.sm_count * to_an_sm
                            : cluster == 2  ? 60 * to_an_sm
                            : to_an_sm == 1 ? 30
                                            : 62;
    const auto check = [&](dualgemm_args_t args) {
      int64_t tiles = 0;  // of one problem
      for (int32_t m = 0; m < args.m; m += instance.plan.tile.m)
        for (int32_t n = 0; n < args.n; n += instance.plan.tile.n) ++tiles;
      tiles *= std::max({1, args.batch, args.groups});
      INFO(instance.name << ": " << tiles << " tiles");
      if (instance.plan.tile.stream_k) tiles *= 4;  // as many CTAs may share one
      const int64_t clusters = instance.plan.tile.split_k > 1 ? tiles : std::min(tiles, at_once);
      CHECK(grid_of(args, instance, device) == clusters * cluster);
    };
    if (instance.plan.tile.grouped) {
      for_sizes(masked_args(), check);
    } else {
      for_sizes(valid_args(), check);
      for_sizes(batch_args(), check);
    }
  }
}

TEST_CASE("groups never have more tiles than the host counts on", "[host][limits][grouped]") {
  dualgemm_test::Rng random(1);
  const auto number = [&](int32_t low, int32_t high) { return random.between(low, high); };
  for (const Instance& instance : instances()) {
    if (!instance.plan.tile.grouped) continue;
    bool reached = false;
    for (int i = 0; i < 2000; ++i) {
      dualgemm_args_t args = offsets_args();
      args.m = number(1, 800);
      args.groups = number(1, 20);
      std::vector<int32_t> ends;
      for (int32_t g = 0; g <= args.groups; ++g) ends.push_back(number(0, args.m));
      std::sort(ends.begin(), ends.end());
      int64_t tiles = 0;
      for (int32_t g = 0; g < args.groups; ++g)
        for (int32_t row = ends[g]; row < ends[g + 1]; row += instance.plan.tile.m) ++tiles;
      tiles *= (args.n + instance.plan.tile.n - 1) / instance.plan.tile.n;
      const int64_t bound = tile_bound(checked(args), instance.plan.tile);
      REQUIRE(tiles <= bound);
      reached = reached || tiles == bound;
    }
    CHECK(reached);
  }
}

TEST_CASE("under BATCH_INVARIANT the number of rows changes no bit", "[host][limits]") {
  // Where all tiles agree on bits, it is enough that they split K alike; elsewhere the instance is the same.
  const dualgemm_device_t device = GENERATE(b200(), h100());
  const auto alike = [&](const Instance& one, const Instance& other) {
    if (!dualgemm::limits_of(one.plan.arch).tiles_agree) return &one == &other;
    const auto parts = [](const Instance& x) {
      return std::pair(x.plan.tile.split_k, x.plan.consumers.k_groups);
    };
    return parts(one) == parts(other);
  };
  for (const dualgemm_args_t& kind : all_kinds()) {
    dualgemm_args_t args = kind;
    args.n = 2048;
    args.k = 7168;
    args.c = address(uintptr_t{1} << 50);
    args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
    const Instance* const first = &selected(args, device);
    CHECK(first->plan.tile.split_k == 1);
    bool differs_without = false;
    for (const int32_t m : {1, 17, 64, 129, 512, 8192})
      for (const int32_t problems : {1, 2, 100}) {
        args.m = m;
        (args.group_mode ? args.groups : args.batch) = problems;
        args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        args.expected_rows = 0;
        CHECK(alike(selected(args, device), *first));
        if (args.group_mode) args.expected_rows = 1 + m / 3;
        CHECK(alike(selected(args, device), *first));
        args.flags = 0;
        differs_without = differs_without || &selected(args, device) != first;
      }
    CHECK(differs_without);
  }
  // Both ways of saying where the rows of groups are choose the same.
  dualgemm_args_t offsets = offsets_args(), masked = masked_args();
  offsets.flags = masked.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
  CHECK(alike(selected(offsets, device), selected(masked, device)));
}

TEST_CASE("BATCH_INVARIANT takes every instance that is asked for but stream-K", "[host][limits]") {
  // Its split of K does not look at the number of rows: choice_test.cpp has the bits. Spans of stream-K do.
  int split = 0;
  for (const int32_t id : dualgemm_test::launched_ids()) {
    const Instance& instance = dualgemm::instance(id - 1);
    if (instance.plan.tile.stream_k) continue;  // refused (stream_k_test.cpp)
    const dualgemm_device_t device = device_for(instance);
    dualgemm_args_t args = forced(id, instance.plan.tile.grouped ? offsets_args() : valid_args());
    args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
    INFO(instance.name);
    CHECK(selected_id(args, device) == id);
    split += instance.plan.tile.split_k > 1;
  }
  CHECK(split > 0);
}

TEST_CASE("groups get an instance made for them, from what is known of their rows",
          "[host][limits][grouped]") {
  for (const dualgemm_device_t& device : {b200(), h100()})
    for (const dualgemm_args_t& kind : all_kinds())
      for_sizes(kind, [&](const dualgemm_args_t& args) {
        CHECK(selected(args, device).plan.tile.grouped == (args.group_mode != DUALGEMM_GROUP_NONE));
      });
  const auto choice = [](dualgemm_args_t args, int32_t m, int32_t groups, int32_t expected_rows) {
    args.n = 2048;
    args.k = 4096;
    args.m = m;
    args.groups = groups;
    args.expected_rows = expected_rows;
    args.c = address(uintptr_t{1} << 50);
    return &selected(args);
  };
  // 8192 rows are 1024 in each of 8 groups, but a capacity of 8192 may be used for 16 each.
  CHECK(choice(offsets_args(), 8192, 8, 0) == choice(offsets_args(), 8192, 8, 1024));
  CHECK(choice(offsets_args(), 128, 8, 0) == choice(offsets_args(), 8192, 8, 16));
  CHECK(choice(offsets_args(), 8192, 8, 16) != choice(offsets_args(), 8192, 8, 1024));
  CHECK(choice(masked_args(), 8192, 8, 0) == choice(masked_args(), 8192, 8, 8192));
  CHECK(choice(masked_args(), 8192, 8, 16) == choice(masked_args(), 16, 8, 0));
  CHECK(choice(masked_args(), 16, 8, 1000000) == choice(masked_args(), 16, 8, 0));  // no more than there are
}

TEST_CASE("an instance of the other kind is refused", "[host][limits][grouped]") {
  for (const int32_t id : dualgemm_test::launched_ids())
    for (const dualgemm_args_t& kind : all_kinds()) {
      const Instance& instance = dualgemm::instance(id - 1);
      const dualgemm_device_t device = device_for(instance);
      const dualgemm_args_t args = forced(id, kind);
      const bool same_kind = instance.plan.tile.grouped == (args.group_mode != DUALGEMM_GROUP_NONE);
      CHECK(dualgemm_can_implement_on(&args, &device) ==
            (same_kind ? DUALGEMM_STATUS_SUCCESS : DUALGEMM_STATUS_NOT_SUPPORTED));
      if (same_kind) continue;
      const std::string text = "instance_id=" + std::to_string(id) + ": " + instance.name +
                               " is for launches " + (instance.plan.tile.grouped ? "with" : "without") +
                               " a group_mode, not for group_mode=" + std::to_string(args.group_mode) + " (" +
                               group_mode_name(args.group_mode) + ")";
      CHECK(std::string(dualgemm_last_error()) == text);
    }
}

}  // namespace limits_test
