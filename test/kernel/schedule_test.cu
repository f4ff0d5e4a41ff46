// schedule_test.cu -- bits that depend on nothing but the problem, and not on the order in which warps, CTAs
// and asynchronous work move: the same launch gives the same bits. A kernel that adds up in the order of
// arrival shows that these schedules can tell.
#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "kernel/grouped.h"
#include "kernel/judged.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

struct Schedule {
  const char* mode;
  uint64_t seed;
};

// These are every family of schedules but the default one, to which they are compared, and the one that
// several grids take.
const std::vector<Schedule> kSchedules = {{"early", 0},       {"late", 3},       {"one-late", 4},
                                          {"starve-warp", 5}, {"starve-cta", 6}, {"reverse", 7},
                                          {"tear", 8},        {"diverge", 9},    {"strict-tensor", 10},
                                          {"random", 11},     {"random", 12}};

// Returns those of the schedules under which bits() is not what it is under the default one.
template <class Bits>
std::string differing(const std::vector<Schedule>& schedules, Bits bits) {
  const auto expected = bits();
  std::string out;
  for (const Schedule& schedule : schedules) {
    const Scheduled scheduled(schedule.mode, schedule.seed);
    if (bits() != expected) out += std::string(schedule.mode) + " " + std::to_string(schedule.seed) + "\n";
  }
  return out;
}

// Launches into a C of poison, so that what an earlier launch left there is no result.
std::vector<std::vector<uint16_t>> bits_of(DeviceSet& device) {
  device.poison();
  device.launch(nullptr);
  std::vector<std::vector<uint16_t>> bits;
  for (Output& out : device.download()) bits.push_back(std::move(out.bits));
  return bits;
}

// One thread of every warp adds its number to the sum when it comes by. Large numbers of both signs swallow
// what was added to them, so the sum says who came first.
__global__ void sum_by_arrival(float* sum) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0) atomicAdd(sum, warp % 3 == 0 ? 0x1p24f : warp % 3 == 1 ? -0x1p24f : 1.0f + warp);
}

}  // namespace

TEST_CASE("the schedules tell a sum in the order of arrival from one in an order of its own", "[schedule]") {
  const std::string found = differing(kSchedules, [] {
    const DeviceArray<float> sum(1, 0);
    sum_by_arrival<<<1, 12 * 32>>>(sum.data());
    return sum.host();
  });
  for (const char* mode : {"reverse", "random"}) CHECK_THAT(found, contains(mode));
}

TEST_CASE("a dense launch gives the same bits under every schedule", "[schedule]") {
  size_t turn = 0;  // what adds up parts of K has all schedules, any other tile every third
  for (const NamedInstance& instance : in_turn(dense_instances())) {
    const std::vector<Schedule> schedules =
        instance.info.split_k > 1 ? kSchedules : all_or_every(3, turn++, kSchedules);
    DYNAMIC_SECTION(instance.name) {
      const dualgemm_instance_info_t& info = instance.info;
      SetOptions options = use(instance);
      options.max_sms = info.split_k > 1 ? 0 : info.cta_group;
      // There are several tiles of an odd number of k-tiles in one CTA, of a batch of two.
      const ProblemSet set = make_batch(Data::kFullRange, 2, info.tile_m / 2 + 5, info.tile_n + 8,
                                        (2 * info.split_k + 1) * info.tile_k - 48, 20, Alphas::kOwn);
      DeviceSet device(set, options);
      CHECK(differing(schedules, [&] { return bits_of(device); }) == "");
    }
  }
}

TEST_CASE("a grouped launch gives the same bits under every schedule", "[schedule][grouped]") {
  size_t turn = 0;  // tiles and modes have every third schedule
  for (const NamedInstance& instance : in_turn(grouped_instances())) {
    for (dualgemm_group_mode_t mode : kGroupModes) {
      const std::vector<Schedule> schedules = all_or_every(3, turn++, kSchedules);
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const dualgemm_instance_info_t& info = instance.info;
        SetOptions options = use(instance);
        options.max_sms = 2 * info.cta_group;
        const ProblemSet set = make_groups(mode, Data::kFullRange, {info.tile_m / 2, 0, info.tile_m + 1, 3},
                                           info.tile_n + 8, 3 * info.tile_k - 48, 21, 2);
        DeviceSet device(set, options);
        CHECK(differing(schedules, [&] { return bits_of(device); }) == "");
      }
    }
  }
}
