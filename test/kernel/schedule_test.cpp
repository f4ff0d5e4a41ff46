// schedule_test.cpp -- bits that depend on nothing but the problem, and not on the order in which warps, CTAs
// and asynchronous work move.
#include "kernel/grouped.h"
#include "kernel/judged.h"

using namespace dualgemm_test;

namespace {

struct Schedule {
  const char* mode;
  uint64_t seed;
};

// Every family of schedules but the default one, to which they are compared.
const Schedule kSchedules[] = {{"early", 0},          {"late", 3},    {"one-late", 4}, {"starve-warp", 5},
                               {"starve-cta", 6},     {"reverse", 7}, {"tear", 8},     {"diverge", 9},
                               {"strict-tensor", 10}, {"random", 11}, {"random", 12}};

template <class Launch>
void check_schedules(Launch bits) {
  const auto expected = bits();
  for (const Schedule& schedule : kSchedules) {
    const Scheduled scheduled(schedule.mode, schedule.seed);
    INFO(schedule.mode << " " << schedule.seed);
    CHECK((bits() == expected));
  }
}

}  // namespace

TEST_CASE("a dense launch gives the same bits under every schedule", "[schedule]") {
  for (const NamedConfig& config : dense_configs()) {
    DYNAMIC_SECTION(config.info.name) {
      const dualgemm_config_info_t& info = config.info;
      SetOptions options = use(config);
      options.max_sms = info.split_k > 1 ? 0 : info.cta_group;
      // Several tiles of an odd number of k-tiles in one CTA, of a batch of two.
      const ProblemSet set = make_batch(Data::kFullRange, 2, info.tile_m / 2 + 5, info.tile_n + 8,
                                        (2 * info.split_k + 1) * info.tile_k - 48, 20, Alphas::kOwn);
      const DeviceSet device(set, options);
      check_schedules([&] {
        device.launch(nullptr);
        std::vector<std::vector<uint16_t>> bits;
        for (Output& out : device.download()) bits.push_back(std::move(out.bits));
        return bits;
      });
    }
  }
}

TEST_CASE("a grouped launch gives the same bits under every schedule", "[schedule]") {
  for (const NamedConfig& config : grouped_configs()) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(config.info.name << " " << text(mode)) {
        const dualgemm_config_info_t& info = config.info;
        SetOptions options = use(config);
        options.max_sms = 2 * info.cta_group;
        const ProblemSet set = make_groups(mode, Data::kFullRange, {info.tile_m / 2, 0, info.tile_m + 1, 3},
                                           info.tile_n + 8, 3 * info.tile_k - 48, 21, 2);
        const DeviceSet device(set, options);
        check_schedules([&] {
          device.launch(nullptr);
          std::vector<std::vector<uint16_t>> bits;
          for (Output& out : device.download()) bits.push_back(std::move(out.bits));
          return bits;
        });
      }
    }
  }
}
