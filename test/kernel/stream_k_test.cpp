// stream_k_test.cpp -- instances with stream-K, whose CTAs share tiles through the workspace: right results
// on every number of CTAs, the same bits whoever comes last, and nothing found by the checkers of the
// simulator.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "kernel/stream_k.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

std::vector<NamedInstance> stream_instances() {
  std::vector<NamedInstance> out;
  for (const int32_t products : {2, 1})
    for (const NamedInstance& instance : instances_of_device(products))
      if (instance.info.stream_k != 0) out.push_back(instance);
  return out;
}

// The same tile without stream-K: its name lacks the letters. Tiles of 192 rows have stream-K alone; beside
// them stands the tile of 128 rows, since a sum has the same bits in every tile.
LaunchOptions unshared(const NamedInstance& instance) {
  std::string name = instance.name;
  name.erase(name.find("sk"), 2);
  if (const size_t rows = name.find("m192"); rows != std::string::npos) name.replace(rows, 4, "m128");
  for (const NamedInstance& other : instances_of_device(instance.info.products))
    if (other.name == name) return use(other);
  throw std::runtime_error(instance.name + " has no sibling");
}

struct Case {
  int32_t m_tiles, n_tiles, k_tiles, problems, max_sms;
  uint32_t members;  // of a team
};
// One tile for four members; two tiles for three, of which one has a part of both; a whole tile for each
// CTA, then one for three; teams of three, a CTA in none, and a batch; as many tiles as CTAs.
constexpr Case kCases[] = {
    {1, 1, 10, 1, 0, 4}, {1, 2, 15, 1, 3, 3}, {2, 2, 8, 1, 3, 3}, {1, 3, 8, 3, 7, 3}, {2, 2, 3, 1, 4, 1}};
static_assert(std::all_of(std::begin(kCases), std::end(kCases), [](const Case& x) {
  const auto tiles = static_cast<uint32_t>(x.m_tiles * x.n_tiles * x.problems);
  const uint32_t ctas = x.max_sms > 0 ? static_cast<uint32_t>(x.max_sms) : dualgemm::kMostMembers * tiles;
  return dualgemm::teams_for(tiles, static_cast<uint32_t>(x.k_tiles), ctas).members == x.members;
}));

// Some make any member the last to come.
const std::vector<std::pair<const char*, uint64_t>> kModes = {
    {"default", 0}, {"random", 1}, {"starve-cta", 1}, {"starve-cta", 2}, {"starve-cta", 3}, {"reverse", 1}};

ProblemSet problems_of(const NamedInstance& instance, const Case& x, uint64_t seed) {
  const int32_t step = instance.dtype == DUALGEMM_DTYPE_NVFP4 ? 16 : 8;
  return make_batch(Data::kFullRange, x.problems, x.m_tiles * instance.info.tile_m - 9,
                    x.n_tiles * instance.info.tile_n - step, x.k_tiles * instance.info.tile_k - 80, seed,
                    Alphas::kOwn);
}

}  // namespace

TEST_CASE("stream-K: nothing is found on any number of CTAs", "[.h100][stream_k]") {
  const std::vector<NamedInstance> all = all_or_in_turn(stream_instances());
  REQUIRE_FALSE(all.empty());
  // A section runs in a call of its own, so what comes in turn goes by the instance's number: one of two
  // instances has a case, and twelve of them meet it in all modes.
  for (size_t number = 0; number < all.size(); ++number) DYNAMIC_SECTION(all[number].name) {
      const NamedInstance& instance = all[number];
      for (const size_t i : all_or_every<size_t>(2, number, {0, 1, 2, 3, 4})) {
        INFO("case " << i);
        ProblemSet set = problems_of(instance, kCases[i], 70 + i);
        SetOptions options = use_all_of(instance, set);
        options.max_sms = kCases[i].max_sms;
        options.flags |=
            i % 2 == 0 ? 0 : DUALGEMM_FLAG_PDL;  // twice in the same workspace, each behind a pass
        for (const auto& [mode, seed] : all_or_every(kModes.size(), number / 2 + i, kModes)) {
          INFO(mode << " " << seed);
          Judged judged(mode, seed);
          check_launch(set, options);
          CHECK(judged.findings_and_certificate() == "");
        }
      }
    }
}

TEST_CASE("stream-K: the bits do not depend on who comes last", "[.h100][stream_k][schedule]") {
  for (const NamedInstance& instance : stream_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_FP32) continue;  // others round most differences away
    DYNAMIC_SECTION(instance.name) {
      for (const Case& x : {kCases[0], kCases[1]}) {
        ProblemSet set = problems_of(instance, x, 80);
        SetOptions options = use_all_of(instance, set);
        options.max_sms = x.max_sms;
        DeviceSet device(set, options);
        const auto bits = [&] {
          device.poison();
          device.launch(nullptr);
          return device.download();
        };
        const std::vector<Output> expected = bits();
        for (const char* mode : {"reverse", "starve-cta", "starve-warp", "one-late", "random", "late"})
          for (const uint64_t seed : {1, 2}) {
            INFO(mode << " " << seed);
            const Scheduled scheduled(mode, seed);
            CHECK((bits() == expected));
          }
      }
    }
  }
}

TEST_CASE("stream-K: without a tile that is shared the bits are those without stream-K",
          "[.h100][stream_k]") {
  for (const NamedInstance& instance : in_turn(stream_instances())) DYNAMIC_SECTION(instance.name) {
      ProblemSet set = problems_of(instance, kCases[4], 90);
      SetOptions options = use_all_of(instance, set);
      const int32_t id = options.instance_id;
      for (const int32_t max_sms : {1, 2, 4}) {
        options.max_sms = max_sms;
        options.instance_id = id;
        const std::vector<Output> shared = run(set, options);
        options.instance_id = unshared(instance).instance_id;
        CHECK((run(set, options) == shared));
      }
    }
}
