// grouped_test.cpp -- groups of rows with weights of their own, their sizes known to the device alone: every
// group gets the bits of a dense launch of its own, whatever the sizes, and no row is written that no group
// owns (DeviceSet::download looks at every one).
#include "kernel/grouped.h"

#include <climits>
#include <numeric>

#include "support/rng.h"
#include "support/stream.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

void check_set(const ProblemSet& set, const SetOptions& options) {
  const std::vector<Output> out = run(set, options);
  check_values(set, out);
  check_bits(set, out);
}

// Returns every plain instance for groups, and a general one with each of their tiles.
std::vector<NamedInstance> of_both_epilogues() {
  std::vector<NamedInstance> all = grouped_instances();
  for (const NamedInstance& general : general_instances_in_turn(true)) all.push_back(general);
  return all;
}

// Returns sizes around those of a tile, and none.
std::vector<int32_t> sizes_around(int32_t tile_m) {
  return {tile_m - 1, 0, tile_m + 1, 1, 0, 0, tile_m, 2 * tile_m + 3, 17};
}

}  // namespace

TEST_CASE("groups of any size give the bits of a dense launch of each", "[grouped]") {
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const SetOptions options = use(instance);
        const std::vector<int32_t> around = sizes_around(instance.info.tile_m);
        for (int32_t spare : all_or<int32_t>({0, 9}, {mode == DUALGEMM_GROUP_MASKED ? 9 : 0}))
          check_set(make_groups(mode, Data::kFullRange, around, instance.info.tile_n + 8, 336, 10, spare),
                    options);
        std::vector<int32_t> more_groups_than_rows(150, 0);
        more_groups_than_rows[70] = more_groups_than_rows[149] = 1;
        const std::vector<std::vector<int32_t>> others = {{1},
                                                          {130},
                                                          {0, 0, 0, 0, 57},
                                                          {57, 0, 0, 0, 0},
                                                          {0, 0, 200, 0, 0},
                                                          std::vector<int32_t>(20, 1),
                                                          more_groups_than_rows};
        for (const std::vector<int32_t>& rows : others) {
          INFO(text(rows));
          check_set(make_groups(mode, Data::kFullRange, rows, 72, 256, 11, 3), options);
        }
      }
    }
  }
}

TEST_CASE("every k gives the reference's result in groups", "[grouped]") {
  size_t turn =
      0;  // K does not know how groups are found: each k has one mode, and with other tiles the other
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    ++turn;
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const int32_t stages = instance.info.stages, tile_k = instance.info.tile_k;
        for (int32_t k : all_or_every<int32_t>(
                 2, turn + mode, {16, 48, 64, 80, 240, 272, 2 * tile_k, 3 * tile_k, (stages + 1) * tile_k})) {
          INFO("k " << k);
          const ProblemSet set = make_groups(mode, Data::kFullRange, {40, 0, 3, 129}, 136, k, 20 + k);
          check_values(set, run(set, SetOptions(use(instance))));
        }
      }
    }
  }
}

TEST_CASE("groups without any row write nothing", "[grouped]") {
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    DYNAMIC_SECTION(instance.name) {
      for (int32_t groups : {1, 3, 200}) {
        const std::vector<int32_t> none(groups, 0);
        for (const Output& out :
             run(make_offsets(Data::kFullRange, none, 72, 256, 30, 40), SetOptions(use(instance))))
          CHECK(out.bits.empty());
        for (const Output& out :
             run(make_masked(Data::kFullRange, none, 72, 256, 31, 40), SetOptions(use(instance))))
          CHECK(out.bits.empty());
      }
    }
  }
}

TEST_CASE("rows in front of the first group and behind the last belong to nobody", "[grouped]") {
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      options.ldc_padding = 16;
      check_set(make_offsets(Data::kFullRange, {5, 0, 61}, 72, 272, 40, 150, 33), options);
    }
  }
}

TEST_CASE("weights and scale factors of groups stand where their strides say", "[grouped]") {
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        SetOptions options = use(instance);
        for (int32_t gap : {1, 7}) {
          options.gap = gap;
          check_set(make_groups(mode, Data::kFullRange, {70, 3, 0, 21}, 136, 272, 50 + gap, 5), options);
        }
      }
    }
  }
}

TEST_CASE("groups share the alphas or have their own", "[grouped]") {
  const std::vector<int32_t> rows = {9, 70, 0, 33};
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    DYNAMIC_SECTION(instance.name) {
      for (bool on_device : {false, true}) {
        SetOptions options = use(instance);
        options.alphas_on_device = on_device;
        check_set(make_offsets(Data::kFullRange, rows, 72, 256, 60, 0, 0, Alphas::kShared), options);
        check_set(make_masked(Data::kFullRange, rows, 72, 256, 61, 0, Alphas::kShared), options);
      }
      check_set(make_offsets(Data::kFullRange, rows, 72, 256, 62, 0, 0, Alphas::kOwn), use(instance));
      check_set(make_masked(Data::kFullRange, rows, 72, 256, 63, 0, Alphas::kOwn), use(instance));
    }
  }
}

TEST_CASE("a CTA that computes tiles of several groups gives the bits of one that computes one",
          "[grouped]") {
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const int32_t tile_m = instance.info.tile_m;
        const ProblemSet set =
            make_groups(mode, Data::kFullRange, {tile_m + 1, 0, 1, 2 * tile_m, 0, 3}, 264, 320, 70);
        const std::vector<Output> spread = run(set, SetOptions(use(instance)));
        check_values(set, spread);
        for (int32_t clusters : {1, 3}) {
          SetOptions options = use(instance);
          options.max_sms = clusters * instance.info.cta_group;
          const std::vector<Output> in_turn = run(set, options);
          for (size_t g = 0; g < spread.size(); ++g) CHECK((in_turn[g].bits == spread[g].bits));
        }
      }
    }
  }
}

TEST_CASE("hundreds of experts with a few rows each", "[grouped]") {
  size_t turn = 0;  // an instance has one mode with few experts and the other with as many as there may be
  for (const NamedInstance& instance : grouped_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    ++turn;
    for (const int32_t experts : {64, DUALGEMM_MAX_GROUPS}) {
      const dualgemm_group_mode_t mode = kGroupModes[turn++ % std::size(kGroupModes)];
      DYNAMIC_SECTION(instance.name << " " << text(mode) << " " << experts) {
        Rng rng(80 + experts);
        std::vector<int32_t> rows;
        // Most experts get nothing, as when few tokens meet many experts.
        for (int32_t g = 0; g < experts; ++g) rows.push_back(rng.below(6) == 0 ? 1 + rng.below(6) : 0);
        const ProblemSet set = make_groups(mode, Data::kFullRange, rows, 24, 96, 81, 2);
        check_values(set, run(set, SetOptions(use(instance))));
      }
    }
  }
}

TEST_CASE("all rows in one of many groups", "[grouped]") {
  for (const NamedInstance& instance : all_or_in_turn(grouped_instances())) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        for (size_t full : {0, 31, 63}) {
          std::vector<int32_t> rows(64, 0);
          rows[full] = 300;
          const ProblemSet set = make_groups(mode, Data::kFullRange, rows, 40, 96, 85);
          check_values(set, run(set, SetOptions(use(instance))));
        }
      }
    }
  }
}

TEST_CASE("offsets outside the rows or out of order are clamped", "[grouped]") {
  // These are the contents of group_rows, and the groups that this comes to: every offset is kept inside [0,
  // M] and no lower than the one before.
  struct Clamped {
    std::vector<int32_t> said;
    int32_t first_row;
    std::vector<int32_t> rows;
    int32_t spare;
  };
  const Clamped cases[] = {
      {{-7, 30, 20, 130, 500, 90, INT_MAX}, 0, {30, 0, 100, 70, 0, 0}, 0},
      {{25, 25, 60, 40, 61, INT_MIN, 190}, 25, {0, 35, 0, 1, 0, 129}, 10},
      {{300, 10, 20, 100, 150, 180, 200}, 200, {0, 0, 0, 0, 0, 0}, 0},
      {{INT_MIN, INT_MIN, -1, 0, 0, 7, 7}, 0, {0, 0, 0, 0, 7, 0}, 193},
      {{0, INT_MAX, INT_MIN, INT_MAX, INT_MIN, 0, 100}, 0, {200, 0, 0, 0, 0, 0}, 0},
  };
  for (const NamedInstance& instance : of_both_epilogues()) {
    DYNAMIC_SECTION(instance.name) {
      for (const Clamped& c : cases) {
        INFO(text(c.said));
        const ProblemSet set = make_offsets(Data::kFullRange, c.rows, 80, 320, 90, c.spare, c.first_row);
        REQUIRE(set.m == 200);
        DeviceSet device(set, use(instance));
        device.upload_group_rows(c.said);
        device.launch(nullptr);
        check_values(set, device.download());
      }
    }
  }
}

TEST_CASE("row counts outside the capacity are clamped", "[grouped]") {
  for (const NamedInstance& instance : of_both_epilogues()) {
    DYNAMIC_SECTION(instance.name) {
      const ProblemSet set = make_masked(Data::kFullRange, {0, 130, 130, 130, 0, 5}, 80, 320, 91);
      DeviceSet device(set, use(instance));
      device.upload_group_rows({-1, 131, 130, INT_MAX, INT_MIN, 5});
      device.launch(nullptr);
      check_values(set, device.download());
    }
  }
}

TEST_CASE("each input of one group matters there and nowhere else", "[grouped]") {
  const std::vector<int32_t> rows = {20, 0, 70, 41};
  size_t turn = 0;  // each input is changed in one group, and by other tiles in another
  for (const NamedInstance& instance : grouped_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_FP16) continue;
    for (dualgemm_group_mode_t mode : kGroupModes) {
      ++turn;
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const ProblemSet set = make_groups(mode, Data::kIntegers, rows, 72, 320, 95, 4);
        const SetOptions options = use(instance);
        const std::vector<Output> before = run(set, options);
        size_t input = turn;
        for (auto bytes :
             {&Problem::a, &Problem::b1, &Problem::b2, &Problem::sfa, &Problem::sfb1, &Problem::sfb2}) {
          for (const size_t changed : all_or_every<size_t>(3, input++, {0, 2, 3})) {
            ProblemSet other = set;
            const bool scales = bytes == &Problem::sfa || bytes == &Problem::sfb1 || bytes == &Problem::sfb2;
            for (uint8_t& byte : other.problems[changed].*bytes)
              byte = scales ? (byte == 0x38 ? 0x40 : byte) : byte ^ 0x08;  // 2 instead of 1; other signs
            const std::vector<Output> after = run(other, options);
            for (size_t g = 0; g < rows.size(); ++g)
              CHECK((after[g].bits == before[g].bits) == (g != changed));
          }
        }
      }
    }
  }
}

TEST_CASE("a captured launch takes the sizes that it finds on the device at every replay", "[grouped]") {
  for (const NamedInstance& instance : grouped_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const std::vector<std::vector<int32_t>> sizes = {
            {50, 60, 70, 20}, {0, 0, 0, 0}, {1, 129, 0, 70}, {70, 0, 130, 0}, {50, 60, 70, 20}};
        const auto set_of = [&](const std::vector<int32_t>& rows, uint64_t seed) {
          const int32_t used = std::accumulate(rows.begin(), rows.end(), 0);
          ProblemSet set = make_groups(mode, Data::kFullRange, rows, 72, 272, seed, 200 - used);
          set.m = 200;  // the capacity of either mode
          return set;
        };
        SetOptions options = use(instance);
        options.any_division = true;
        DeviceSet device(set_of(sizes[0], 100), options);
        device.launch(nullptr);  // the capture finds the kernel loaded
        const Captured graph([&](cudaStream_t stream) { device.launch(stream); });
        for (size_t i = 0; i < sizes.size(); ++i) {
          INFO("replay " << i << ": " << text(sizes[i]));
          const ProblemSet set = set_of(sizes[i], 100 + i);
          device.upload(set);
          device.poison();
          graph.replay();
          check_values(set, device.download());
        }
      }
    }
  }
}

TEST_CASE("the instance chosen for groups gives the reference's result", "[grouped]") {
  for (dualgemm_group_mode_t mode : kGroupModes) {
    for (int32_t expected_rows : {0, 1, 100, 1000}) {
      SetOptions options;
      options.dtype = DUALGEMM_DTYPE_BF16;
      options.expected_rows = expected_rows;
      const ProblemSet set = make_groups(mode, Data::kFullRange, {100, 3, 250}, 200, 528, 110, 1);
      const std::vector<Output> out = run(set, options);
      check_values(set, out);
      check_bits(set, out);
    }
  }
}
