// activation_test.cpp -- every activation against its reference: with every tile, with every type of output,
// in batches and groups; and chosen by the library, for gates of every size, NaN and empty sums. The other
// tests of this folder compute the default activation, general_test.cpp what stands around one.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "ref/formats.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// Sets of parameters in turn, of which a launch gets those of its activation.
ref::Parameters parameters(size_t turn) {
  const ref::Parameters some[] = {{}, {1.702f, 1, 7}, {1, 0, 10, 2, 8}, {-0.75, -2, 1.5, 0.5, 40}};
  return some[turn % std::size(some)];
}

// Calls check(options) for every activation with every output type, the instance left to the library.
template <class Check>
void for_all_epilogues(const Check& check) {
  for (const dualgemm_activation_t activation : kActivations)
    for (const dualgemm_dtype_t dtype : kOutputs) {
      LaunchOptions options;
      options.activation = activation;
      options.dtype = dtype;
      INFO("activation " << activation << ", type " << dtype);
      check(options);
    }
}

// Calls check(options, turn, instance) twice for a general instance of every tile, with the outputs and the
// activations in turn; `make cube` has every instance with every activation.
template <class Check>
void for_all_instances(bool grouped, const Check& check) {
  std::vector<std::string> tiles;
  for (const NamedInstance& instance : general_instances_in_turn(grouped)) {
    const std::string tile = tile_of(instance);
    auto at = std::find(tiles.begin(), tiles.end(), tile);
    if (at == tiles.end()) at = tiles.insert(tiles.end(), tile);
    DYNAMIC_SECTION(instance.name) {
      for (size_t second : {0, 1}) {
        const size_t turn =
            static_cast<size_t>(at - tiles.begin()) + 3 * static_cast<size_t>(instance.dtype) + second;
        SetOptions options = use(instance);
        options.activation = kActivations[turn % std::size(kActivations)];
        INFO("activation " << options.activation);
        check(options, turn, instance);
      }
    }
  }
}

}  // namespace

TEST_CASE("every tile computes every activation", "[activation]") {
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances_in_turn(grouped))
      for (const dualgemm_activation_t activation : kActivations) {
        INFO(instance.name << ", activation " << activation);
        ProblemSet set = grouped ? make_masked(Data::kFullRange, {5, 0, 3}, 16, 48, 61)
                                 : make_batch(Data::kFullRange, 1, 5, 16, 48, 61);
        give_all(set, extras().back(), 62);
        SetOptions options = use(instance);
        options.activation = activation;
        give_encode(set, options.dtype);
        check_launch(set, options);
      }
}

TEST_CASE("activations in turn: ragged tiles and parts of K, with every tile", "[activation]") {
  for_all_instances(false, [](SetOptions options, size_t turn, const NamedInstance& instance) {
    const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
    options.ldc_padding = static_cast<int64_t>(turn % 3 * 16);
    for (ProblemSet set :
         {make_batch(Data::kFullRange, 1, 1, 16, 16, turn),  // all slices but one are empty
          make_batch(Data::kFullRange, 1, m + 3, n + 16, (instance.info.split_k + 1) * k - 48, turn)}) {
      // Another extra with each turn of an activation; those that bring parameters keep them.
      set.problems[0].parameters = parameters(turn);
      give_all(set, extras()[(3 * turn + turn / std::size(kActivations)) % extras().size()], turn);
      give_encode(set, options.dtype);
      check_launch(set, options);
    }
  });
}

TEST_CASE("every activation: one row, eight or sixteen columns, one block of K", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    const int32_t n = options.dtype == DUALGEMM_DTYPE_NVFP4  ? 16
                      : options.dtype == DUALGEMM_DTYPE_FP32 ? 4
                                                             : 8;
    const Problem p = make_problem(Data::kFullRange, 1, n, 16, 1);
    check(run(p, options), p, options);
  });
}

TEST_CASE("every activation: a batch with alphas and encode scales on the device", "[activation][batch]") {
  for_all_instances(false, [](SetOptions options, size_t turn, const NamedInstance& instance) {
    options.alphas_on_device = options.encode_on_device = true;
    if (instance.info.split_k == 1) options.max_sms = instance.info.cta_group;  // its tiles in turn
    ProblemSet set = make_batch(Data::kFullRange, 2, instance.info.tile_m / 2 + 1, 80,
                                instance.info.split_k * instance.info.tile_k + 16, turn, Alphas::kOwn);
    for (Problem& p : set.problems) p.parameters = parameters(turn + 1);
    give_encode(set, options.dtype);
    check_launch(set, options);
  });
}

TEST_CASE("every activation: groups", "[activation][grouped]") {
  for_all_instances(true, [](const SetOptions& options, size_t turn, const NamedInstance& instance) {
    const dualgemm_group_mode_t mode = kGroupModes[turn % 2];
    INFO(text(mode));
    const int32_t m = instance.info.tile_m;
    ProblemSet set = make_groups(mode, Data::kFullRange, {m / 2 + 1, 0, m + 1, 1}, instance.info.tile_n + 16,
                                 instance.info.tile_k + 16, turn, 2);
    for (Problem& p : set.problems) p.parameters = parameters(turn + 2);
    give_encode(set, options.dtype);
    check_launch(set, options);
  });
}

TEST_CASE("every activation: gates from a part of one to thousands, on either side of zero", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    size_t turn = 0;
    for (const float factor : {1.0f / 16, 1.0f, 8.0f, 300.0f}) {  // the last: exp overflows
      INFO("gates times " << factor);
      Problem p = make_problem(Data::kFullRange, 128, 80, 256, 4);
      p.alpha1 *= factor;
      p.encode = 4 / factor;
      p.parameters = parameters(turn++);
      check(run(p, options), p, options);
    }
  });
}

TEST_CASE("every activation: ups far beyond every limit", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    Problem p = make_problem(Data::kFullRange, 70, 80, 256, 5);
    p.alpha2 *= 200;
    p.encode = 0.03f;
    p.parameters = {1, 0, 7, 4, 25};
    check(run(p, options), p, options);
  });
}

TEST_CASE("every activation: NaN of gate and of up", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    Problem p = make_problem(Data::kFullRange, 70, 144, 272, 5);
    p.sfb1[ref::sf_offset(p.k, 5, 0)] = 0x7F;
    p.sfb2[ref::sf_offset(p.k, 130, 9)] = 0x7F;
    p.parameters = parameters(1);
    const Output out = run(p, options);
    check(out, p, options);
    for (int64_t row = 0; row < p.m; ++row) {
      CHECK(std::isnan(out.value(row, 5)));
      CHECK(std::isnan(out.value(row, 130)));
      CHECK_FALSE(std::isnan(out.value(row, 64)));
    }
  });
}

TEST_CASE("every activation: k = 0 gives zeros", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    const Output out = run(make_problem(Data::kFullRange, 5, 48, 0, 6), options);
    CHECK((out.bits == std::vector<uint16_t>(out.bits.size(), 0)));
    CHECK((out.factors == std::vector<uint8_t>(out.factors.size(), 0)));
  });
}

TEST_CASE("every activation: the library chooses an instance for a problem, a batch and groups",
          "[activation][batch][grouped]") {
  const ProblemSet sets[] = {make_batch(Data::kFullRange, 1, 130, 144, 272, 7),
                             make_batch(Data::kFullRange, 1, 16, 272, 2048, 8),  // with split-K
                             make_batch(Data::kFullRange, 3, 65, 144, 272, 9, Alphas::kOwn),
                             make_offsets(Data::kFullRange, {40, 0, 200}, 144, 272, 10),
                             make_masked(Data::kFullRange, {9, 130, 0}, 144, 272, 11)};
  for (const dualgemm_activation_t activation : kActivations)
    for (size_t i = 0; i < std::size(sets); ++i) {
      // Each activation meets half of the sets, each set half of the activations.
      if (!thorough() && (static_cast<size_t>(activation) + i) % 2 == 0) continue;
      SetOptions options;
      options.activation = activation;
      options.dtype = kOutputs[(static_cast<size_t>(activation) + i) % std::size(kOutputs)];
      ProblemSet set = sets[i];
      give_encode(set, options.dtype);
      check_launch(set, options);
    }
}
