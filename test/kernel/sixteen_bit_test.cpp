// sixteen_bit_test.cpp -- launches whose A has 16 bits, on the simulated H100, whose instances take one, and
// what other machines say to it. edge_test.cpp has their edges under every checker.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

constexpr dualgemm_dtype_t kTypes[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16};

// Returns the instances of these epilogues, for groups or without, for an A of 16 bits.
std::vector<NamedInstance> instances(bool general, bool grouped) {
  std::vector<NamedInstance> out = sixteen_bit_instances();
  std::erase_if(out, [=](const NamedInstance& x) {
    return (x.info.general != 0) != general || (x.info.grouped != 0) != grouped;
  });
  REQUIRE(!out.empty());
  return out;
}

// Gives each problem numbers that only 16 bits have.
ProblemSet with_own_a(ProblemSet set, const SetOptions& options) {
  uint64_t seed = 1;
  for (Problem& p : set.problems) p = with_sixteen_bits(p, options.a_dtype, ++seed);
  return set;
}

Problem with_own_a(const Problem& p, const LaunchOptions& options) {
  return with_sixteen_bits(p, options.a_dtype, 7);
}

void check_against_reference(const Problem& p, const LaunchOptions& options) {
  INFO("m " << p.m << ", n " << p.n << ", k " << p.k);
  check(run(p, options), p, options);
}

}  // namespace

TEST_CASE("an A of 16 bits is refused where tensor cores do not multiply it", "[a16]") {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  REQUIRE(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS);
  for (const dualgemm_dtype_t a_dtype : kTypes) {
    LaunchOptions options;
    options.a_dtype = a_dtype;
    const Problem p = with_sixteen_bits(make_problem(Data::kFullRange, 9, 24, 272, 1), a_dtype, 2);
    const DeviceProblem on(p, options);
    if (device.cc_major == 9) {
      on.launch(nullptr);
      check(on.download(), p, options);
    } else {
      CHECK(dualgemm_launch_ex(&on.args(), nullptr) == DUALGEMM_STATUS_NOT_SUPPORTED);
      CHECK(std::string(dualgemm_last_error()).starts_with("a_dtype="));
    }
  }
}

TEST_CASE("an A of 16 bits gives the reference's result for ragged m and n", "[.h100][a16]") {
  for (const NamedInstance& instance : instances(false, false)) {
    DYNAMIC_SECTION(instance.name) {
      for (int32_t m : {1, 15, 65, 257})
        for (int32_t n : {8, 72})
          check_against_reference(
              with_own_a(make_problem(Data::kFullRange, m, n, 320, 100 + m * 7 + n), use(instance)),
              use(instance));
    }
  }
}

TEST_CASE("an A of 16 bits gives the reference's result for every k", "[.h100][a16]") {
  for (const NamedInstance& instance : instances(false, false)) {
    DYNAMIC_SECTION(instance.name) {
      for (int32_t k : {16, 48, 64, 80, 240, 256, 272, 1040})
        check_against_reference(with_own_a(make_problem(Data::kFullRange, 35, 72, k, 200 + k), use(instance)),
                                use(instance));
      check_against_reference(with_own_a(make_problem(Data::kFullRange, 35, 72, 272, 201, 96), use(instance)),
                              use(instance));
    }
  }
}

// Both types have the numbers of NVFP4, and their products with weights are the same up to a power of two: so
// where K is added up in the same order, no bit differs. A few tiles are for an A of 16 bits alone.
TEST_CASE("the numbers of an A in NVFP4 give its bits in 16, too", "[.h100][a16]") {
  size_t compared = 0;
  for (const NamedInstance& instance : in_turn(sixteen_bit_instances())) {
    const std::string name = instance.name;
    INFO(name);
    // "sm90m64n64k256g_abf16_general_fp16" is compared with "sm90m64n64k256g_general_fp16".
    const size_t type = name.find("_a");
    const std::string packed = name.substr(0, type) + name.substr(name.find('_', type + 1));
    const std::vector<NamedInstance> all = all_instances();
    const auto other =
        std::find_if(all.begin(), all.end(), [&](const NamedInstance& x) { return x.name == packed; });
    if (other == all.end()) continue;
    ++compared;
    const int32_t m = instance.info.tile_m / 2 + 5, n = instance.info.tile_n + 16;
    ProblemSet set = instance.info.grouped != 0 ? make_masked(Data::kFullRange, {m, 0, 7}, n, 784, 3)
                                                : make_batch(Data::kFullRange, 2, m, n, 784, 3, Alphas::kOwn);
    set.problems[0].sfa[ref::sf_offset(784, 3, 9)] = 0x7F;  // NaN is NaN in either form
    give_encode(set, use(instance).dtype);
    CHECK((run(set, use(instance)) == run(set, use(*other))));
  }
  CHECK(compared > 0);
}

TEST_CASE("a NaN in an A of 16 bits poisons its row and nothing else", "[.h100][a16]") {
  for (const NamedInstance& instance : instances(false, false)) {
    DYNAMIC_SECTION(instance.name) {
      const LaunchOptions options = use(instance);
      Problem p = with_own_a(make_problem(Data::kFullRange, 70, 72, 528, 11), options);
      const Output before = run(p, options);
      for (const int64_t element : {0, 37, 255, 527}) {
        Problem q = p;
        q.a16[static_cast<size_t>(67 * p.lda + element)] = 0xFFFF;
        const Output after = run(q, options);
        int64_t wrong = 0;
        for (int64_t row = 0; row < p.m; ++row)
          for (int64_t column = 0; column < p.n; ++column)
            wrong += row == 67 ? !std::isnan(after.value(row, column))
                               : after.bits[row * p.n + column] != before.bits[row * p.n + column];
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("an A of 16 bits is that of each problem of a batch", "[.h100][a16][batch]") {
  for (const bool general : {false, true})
    for (const NamedInstance& instance : in_turn(instances(general, false))) {
      DYNAMIC_SECTION(instance.name) {
        ProblemSet set = make_batch(Data::kFullRange, 3, 33, 80, 272, 4, Alphas::kOwn);
        SetOptions options = use_all_of(instance, set);
        options.gap = 2;
        options.max_sms = instance.info.split_k > 1 ? 0 : 1;
        check_launch(with_own_a(set, options), options);
      }
    }
}

TEST_CASE("an A of 16 bits is that of each group", "[.h100][a16][grouped]") {
  size_t turn = 0;  // tiles have the modes in turn
  for (const bool general : {false, true})
    for (const NamedInstance& instance : in_turn(instances(general, true)))
      for (const dualgemm_group_mode_t mode :
           all_or_every<dualgemm_group_mode_t>(2, turn++, {DUALGEMM_GROUP_OFFSETS, DUALGEMM_GROUP_MASKED})) {
        DYNAMIC_SECTION(instance.name << " " << text(mode)) {
          const int32_t m = instance.info.tile_m;
          ProblemSet set = make_groups(mode, Data::kFullRange, {0, m + 1, 0, 5, m, 130}, 80, 272, 6, 3);
          SetOptions options = use_all_of(instance, set);
          options.gap = mode == DUALGEMM_GROUP_MASKED ? 2 : 0;
          check_launch(with_own_a(set, options), options);
        }
      }
}

TEST_CASE("every output and epilogue takes an A of 16 bits, with the instance that the library chooses",
          "[.h100][a16]") {
  for (const dualgemm_dtype_t a_dtype : kTypes)
    for (const dualgemm_dtype_t dtype : kOutputs)
      for (const bool all : {false, true})
        for (const int32_t m :
             all_or_every<int32_t>(2, static_cast<size_t>(a_dtype + dtype + all), {3, 70})) {
          INFO("a_dtype " << a_dtype << ", c_dtype " << dtype << ", m " << m);
          ProblemSet set = make_batch(Data::kFullRange, 1, m, 144, 272, 8);
          if (all) give_all(set, extras().back(), 9);
          SetOptions options;
          options.a_dtype = a_dtype;
          options.dtype = dtype;
          options.d = options.amax = all;
          give_encode(set, dtype);
          check_launch(with_own_a(set, options), options);
        }
}

TEST_CASE("an A of 16 bits gives the same bits under every schedule", "[.h100][a16][schedule]") {
  for (const NamedInstance& instance : in_turn(sixteen_bit_instances())) {
    DYNAMIC_SECTION(instance.name) {
      const dualgemm_instance_info_t& info = instance.info;
      SetOptions options = use(instance);
      options.max_sms = info.split_k > 1 ? 0 : 1;
      const int32_t m = info.tile_m / 2 + 5, n = info.tile_n + 16, k = (2 * info.split_k + 1) * info.tile_k;
      ProblemSet set = info.grouped != 0 ? make_masked(Data::kFullRange, {m, 0, 3}, n, k - 48, 20)
                                         : make_batch(Data::kFullRange, 2, m, n, k - 48, 20, Alphas::kOwn);
      give_encode(set, options.dtype);
      DeviceSet device(with_own_a(set, options), options);
      device.launch(nullptr);
      const std::vector<Output> expected = device.download();
      for (const char* mode : {"early", "late", "starve-warp", "reverse", "tear", "diverge", "random"}) {
        INFO(mode);
        const Scheduled scheduled(mode, 21);
        device.poison();
        device.launch(nullptr);
        CHECK((device.download() == expected));
      }
    }
  }
}
