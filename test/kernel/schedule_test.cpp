// schedule_test.cpp -- bits that depend on nothing but the problem: not on the order in which warps, CTAs and
// asynchronous work move, and, where it was asked for, not on M.
#include <algorithm>
#include <string>

#include "kernel/grouped.h"
#include "kernel/judged.h"
#include "ref/formats.h"

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

TEST_CASE("with BATCH_INVARIANT the bits of a row do not depend on the number of rows", "[invariant]") {
  struct Weights {
    int32_t n, k;
  };
  // Shapes for which the choice without the flag differs between few rows and many: narrow and deep, wide and
  // shallow, deep enough to be split.
  for (const Weights& weights :
       {Weights{136, 528}, Weights{512, 7168}, Weights{2048, 1024}, Weights{64, 4096}}) {
    for (dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
      if (dtype == DUALGEMM_DTYPE_BF16 && weights.k > 4096) continue;  // the same sums, another rounding
      DYNAMIC_SECTION("n " << weights.n << ", k " << weights.k << ", type " << dtype) {
        LaunchOptions options;
        options.dtype = dtype;
        options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        const Problem whole = make_problem(Data::kFullRange, 257, weights.n, weights.k, 30);
        const Output all = run(whole, options);
        CHECK(compare(all, whole.reference()).mismatches == 0);
        for (int32_t m : {1, 2, 17, 128}) {
          INFO("m " << m);
          // The last m rows, so that a row's place in its tile changes, too.
          Problem part = make_problem(Data::kFullRange, m, weights.n, weights.k, 31);
          const int32_t first = whole.m - m;
          part.alpha1 = whole.alpha1;
          part.alpha2 = whole.alpha2;
          part.b1 = whole.b1, part.b2 = whole.b2, part.sfb1 = whole.sfb1, part.sfb2 = whole.sfb2;
          std::copy(whole.a.begin() + first * whole.lda / 2, whole.a.end(), part.a.begin());
          for (int32_t row = 0; row < m; ++row)
            for (int32_t block = 0; block < weights.k / ref::kBlock; ++block)
              part.sfa[ref::sf_offset(weights.k, row, block)] =
                  whole.sfa[ref::sf_offset(weights.k, first + row, block)];
          const Output some = run(part, options);
          CHECK(std::equal(some.bits.begin(), some.bits.end(), all.bits.begin() + first * weights.n));
        }
      }
    }
  }
}
