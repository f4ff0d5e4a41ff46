// activation_test.cpp -- every activation that the library computes, against its reference: on every instance
// that has it, with ragged tiles, parts of K, batches and groups; and chosen by the library, for gates of
// every size. The other tests of this folder compute the default activation alone.
#include <string>

#include "kernel/grouped.h"
#include "ref/formats.h"

using namespace dualgemm_test;

namespace {

void check(const Output& out, const ref::DualGemm& expected) {
  const Comparison result = compare(out, expected);
  INFO(result.first);
  CHECK(result.mismatches == 0);
}

// Calls check(instance) for every instance for groups, or for every other.
template <class Check>
void for_all_instances(bool grouped, const Check& check) {
  for (const NamedInstance& instance : all_instances()) {
    if ((instance.info.grouped != 0) != grouped) continue;
    DYNAMIC_SECTION(instance.info.name) { check(instance); }
  }
}

// Calls check(options) for every activation with every output type, the instance left to the library.
template <class Check>
void for_all_epilogues(const Check& check) {
  for (const dualgemm_activation_t activation : all_activations())
    for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
      LaunchOptions options;
      options.activation = activation;
      options.dtype = dtype;
      INFO("activation " << activation << ", type " << dtype);
      check(options);
    }
}

}  // namespace

TEST_CASE("every activation: ragged tiles and parts of K", "[activation]") {
  for_all_instances(false, [](const NamedInstance& instance) {
    const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
    const int32_t slices = instance.info.split_k;
    struct Shape {
      int32_t m, n, k;
    };
    const Shape shapes[] = {{1, 8, 16},  // all slices but one are empty
                            {m + 3, n + 8, (slices + 1) * k - 48}};
    for (const Shape& shape : shapes) {
      INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k);
      LaunchOptions options = use(instance);
      options.ldc_padding = shape.m == 1 ? 0 : 24;
      const Problem p = make_problem(Data::kFullRange, shape.m, shape.n, shape.k, 1 + shape.m);
      check(run(p, options), p.reference(instance.activation));
    }
  });
}

TEST_CASE("every activation: a batch with alphas on the device", "[activation][batch]") {
  for_all_instances(false, [](const NamedInstance& instance) {
    SetOptions options = use(instance);
    options.alphas_on_device = true;
    if (instance.info.split_k == 1) options.max_sms = instance.info.cta_group;  // its tiles in turn
    const ProblemSet set = make_batch(Data::kFullRange, 3, instance.info.tile_m / 2 + 1, 72,
                                      instance.info.split_k * instance.info.tile_k + 16, 2, Alphas::kOwn);
    check_values(set, run(set, options), instance.activation);
  });
}

TEST_CASE("every activation: groups", "[activation][grouped]") {
  for_all_instances(true, [](const NamedInstance& instance) {
    for (const dualgemm_group_mode_t mode : kGroupModes) {
      INFO(text(mode));
      const int32_t m = instance.info.tile_m;
      const ProblemSet set = make_groups(mode, Data::kFullRange, {m / 2 + 1, 0, m + 1, 1},
                                         instance.info.tile_n + 8, instance.info.tile_k + 16, 3, 2);
      check_values(set, run(set, SetOptions(use(instance))), instance.activation);
    }
  });
}

TEST_CASE("every activation: gates from a part of one to thousands, on either side of zero", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    for (const float factor : {1.0f / 16, 1.0f, 8.0f, 300.0f}) {  // the last: exp overflows
      INFO("gates times " << factor);
      Problem p = make_problem(Data::kFullRange, 128, 72, 256, 4);
      p.alpha1 *= factor;
      check(run(p, options), p.reference(options.activation));
    }
  });
}

TEST_CASE("every activation: NaN of gate and of up", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    Problem p = make_problem(Data::kFullRange, 70, 136, 272, 5);
    p.sfb1[ref::sf_offset(p.k, 5, 0)] = 0x7F;
    p.sfb2[ref::sf_offset(p.k, 130, 9)] = 0x7F;
    check(run(p, options), p.reference(options.activation));
  });
}

TEST_CASE("every activation: k = 0 gives zeros", "[activation]") {
  for_all_epilogues([](const LaunchOptions& options) {
    const Output out = run(make_problem(Data::kFullRange, 5, 24, 0, 6), options);
    CHECK((out.bits == std::vector<uint16_t>(5 * 24, 0)));
  });
}

TEST_CASE("every activation: the library chooses an instance for a problem, a batch and groups",
          "[activation][batch][grouped]") {
  const ProblemSet sets[] = {make_batch(Data::kFullRange, 1, 130, 136, 272, 7),
                             make_batch(Data::kFullRange, 1, 16, 264, 2048, 8),  // with split-K
                             make_batch(Data::kFullRange, 3, 65, 136, 272, 9, Alphas::kOwn),
                             make_offsets(Data::kFullRange, {40, 0, 200}, 136, 272, 10),
                             make_masked(Data::kFullRange, {9, 130, 0}, 136, 272, 11)};
  for_all_epilogues([&](const LaunchOptions& options) {
    for (const ProblemSet& set : sets) check_values(set, run(set, options), options.activation);
  });
}
