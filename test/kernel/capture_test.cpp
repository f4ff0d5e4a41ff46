// capture_test.cpp -- a launch with everything that the general epilogue can be asked for, captured once
// and replayed with other data, sixteen times or a hundred: operands, alphas, encode scales, biases, row
// factors and the rows of groups are what the replay finds on the device. Each replay has the bits of an
// ordinary launch on the same data, and those are within the bound of the reference.
#include <algorithm>
#include <vector>

#include "kernel/extras.h"
#include "support/device_set.h"
#include "support/stream.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// A replay repeats what the graph holds, whatever came before it: on a simulated GPU sixteen meet each set of
// data after two others.
constexpr int kReplays = 100, kFewReplays = 16, kDataSets = 8;
constexpr int32_t kM = 24, kN = 32, kK = 64;

// This is everything that a launch writes.
struct Written {
  std::vector<Output> c, d1, d2;
  float amax;

  explicit Written(const DeviceSet& device)
      : c(device.download()), d1(device.download_d(0)), d2(device.download_d(1)), amax(device.amax()) {}
  bool operator==(const Written&) const = default;
};

ProblemSet counted_groups(Rng& rng, uint64_t seed) {
  std::vector<int32_t> rows;
  for (int group = 0; group < 2; ++group) rows.push_back(rng.between(0, kM));
  ProblemSet set = make_masked(Data::kFullRange, rows, kN, kK, seed, kM);
  set.m = kM;
  return set;
}

// Rows in front of the first group, and behind the last, belong to nobody. Some groups have none, so that the
// factors of those behind them move by a block.
ProblemSet divided_groups(Rng& rng, uint64_t seed) {
  const int32_t first = rng.between(0, 3);
  int32_t left = kM - first;
  std::vector<int32_t> rows;
  for (int group = 0; group < 4; ++group) {
    rows.push_back(rng.below(4) == 0 ? 0 : rng.between(0, left));
    left -= rows.back();
  }
  return make_offsets(Data::kFullRange, rows, kN, kK, seed, left, first);
}

// Returns the data of a replay: other numbers, and for groups other rows, in tensors of the same size.
ProblemSet data(dualgemm_group_mode_t mode, dualgemm_dtype_t dtype, int number) {
  const uint64_t seed = 5000 + static_cast<uint64_t>(number);
  Rng rng(seed);
  ProblemSet set;
  if (mode == DUALGEMM_GROUP_MASKED) {
    set = counted_groups(rng, seed);
  } else if (mode == DUALGEMM_GROUP_OFFSETS) {
    set = divided_groups(rng, seed);
  } else {
    set = set_of(make_problem(Data::kFullRange, kM, kN, kK, seed));
    set.problems[0].alpha1 *= uniform(rng, 0.5f, 2);
    set.problems[0].alpha2 *= uniform(rng, 0.5f, 2);
  }
  for (Problem& p : set.problems) give_everything(p, rng);
  if (dtype == DUALGEMM_DTYPE_NVFP4 || dtype == DUALGEMM_DTYPE_FP8_E4M3) {
    give_encode(set, dtype);
    for (Problem& p : set.problems) p.encode *= uniform(rng, 0.75f, 1.5f);
  }
  return set;
}

SetOptions everything(dualgemm_dtype_t dtype) {
  SetOptions options;
  options.dtype = dtype;
  options.alphas_on_device = options.encode_on_device = true;
  options.d = options.amax = true;
  options.amax_before = 0.25f;
  options.any_division = true;
  return options;
}

void check_replays(dualgemm_group_mode_t mode, dualgemm_dtype_t dtype) {
  const SetOptions options = everything(dtype);
  std::vector<ProblemSet> sets;
  std::vector<Written> expected;
  for (int i = 0; i < kDataSets; ++i) sets.push_back(data(mode, dtype, i));
  const auto differs = [&sets](auto of) {
    return std::any_of(sets.begin(), sets.end(),
                       [&](const ProblemSet& set) { return of(set) != of(sets[0]); });
  };
  if (mode != DUALGEMM_GROUP_NONE) REQUIRE(differs([](const ProblemSet& set) { return set.group_rows(); }));
  if (mode == DUALGEMM_GROUP_OFFSETS)
    REQUIRE(differs([](const ProblemSet& set) { return set.row_blocks(); }));
  DeviceSet device(sets[0], options);
  for (const ProblemSet& set : sets) {
    device.upload(set);
    device.poison();
    device.launch(nullptr);
    expected.emplace_back(device);
    if (expected.size() > 1) CHECK_FALSE(expected.back() == expected.front());
  }
  check_launch(sets[0], options);
  check_launch(sets[1], options);

  const Captured captured([&](cudaStream_t stream) { device.launch(stream); });
  for (int i = 0; i < (thorough() ? kReplays : kFewReplays); ++i) {
    const auto of = static_cast<size_t>(i / kDataSets * 2 + 3) * static_cast<size_t>(i) % kDataSets;
    INFO("replay " << i << ", data " << of);
    device.upload(sets[of]);
    device.poison();
    captured.replay();
    REQUIRE(Written(device) == expected[of]);
  }
}

}  // namespace

TEST_CASE("a captured launch with all extras has the bits of an ordinary one at every replay", "[capture]") {
  for (const dualgemm_dtype_t dtype : kOutputs)
    DYNAMIC_SECTION("type " << dtype) check_replays(DUALGEMM_GROUP_NONE, dtype);
}

TEST_CASE("a captured launch of groups by counts has the bits of an ordinary one at every replay",
          "[capture][grouped]") {
  // One type with factors of its own, one with an encode scale alone, one with neither.
  for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_FP8_E4M3, DUALGEMM_DTYPE_FP32})
    DYNAMIC_SECTION("type " << dtype) check_replays(DUALGEMM_GROUP_MASKED, dtype);
}

TEST_CASE("a captured launch of groups by offsets has the bits of an ordinary one at every replay",
          "[capture][grouped]") {
  // Beside the factors of NVFP4, which move with the groups, an output differs from one by counts in nothing.
  for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_BF16})
    DYNAMIC_SECTION("type " << dtype) check_replays(DUALGEMM_GROUP_OFFSETS, dtype);
}
