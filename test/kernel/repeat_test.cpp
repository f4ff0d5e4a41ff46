// repeat_test.cpp -- a launch writes the same bits each time, whatever the device does beside it. On a GPU of
// its own it is repeated 100,000 times over all instances. A simulated one computes the same each time, so it
// repeats a few once: schedule_test.cu has schedules.
#include <vector>

#include "kernel/grouped.h"
#include "support/device_set.h"
#include "support/rng.h"
#include "support/stream.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

constexpr int kOnGpu = 100000;
constexpr size_t kOtherBytes = size_t{8} << 20;

// Two tiles and a bit of columns, some rows more than a tile, and more k-tiles than the ring has stages.
ProblemSet problems_of(const NamedInstance& instance) {
  const int32_t m = instance.info.tile_m + 3, n = 2 * instance.info.tile_n + 8,
                k = (instance.info.stages + 2) * instance.info.split_k * instance.info.tile_k - 48;
  if (!instance.info.grouped) return make_batch(Data::kFullRange, 1, m, n, k, 1);
  return make_groups(DUALGEMM_GROUP_OFFSETS, Data::kFullRange, {m, 0, 1, m / 2}, n, k, 1, 3);
}

std::vector<std::vector<uint16_t>> bits(const std::vector<Output>& all) {
  std::vector<std::vector<uint16_t>> out;
  for (const Output& one : all) out.push_back(one.bits);
  return out;
}

}  // namespace

TEST_CASE("a launch writes the same bits every time, whatever runs beside it", "[repeat]") {
  const std::vector<NamedInstance> all =
      simulated() ? all_or_every(4, 0, in_turn(plain_instances())) : plain_instances();
  const int launches = simulated() ? 1 : kOnGpu / static_cast<int>(all.size()) + 1;
  DeviceArray<uint8_t> other(kOtherBytes);
  const Stream beside;
  Rng random(1);
  for (const NamedInstance& instance : all) {
    INFO(instance.name);
    const ProblemSet problems = problems_of(instance);
    DeviceSet device(problems, use(instance));
    device.launch(nullptr);
    const auto expected = bits(device.download());
    int different = 0;
    for (int i = 0; i < launches; ++i) {
      device.poison();
      // Other traffic, of any length, begins before the launch or does not.
      if (const size_t bytes = random.bits() % kOtherBytes; bytes % 4 != 0)
        check_cuda(cudaMemsetAsync(other.data(), i, bytes, beside.get()), "cudaMemsetAsync");
      device.launch(nullptr);
      if (bits(device.download()) != expected) ++different;
    }
    CHECK(different == 0);
    check_cuda(cudaStreamSynchronize(beside.get()), "cudaStreamSynchronize");
  }
}
