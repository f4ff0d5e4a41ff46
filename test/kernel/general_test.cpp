// general_test.cpp -- what only the instances with the general epilogue compute, around the activation:
// factors of rows of A and of C, biases, parameters, gate and up themselves, the largest magnitude, the exact
// activation; against the reference, on every such instance and in every kind of launch.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "kernel/instance.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// Asks for gate and up, in each of their types in turn, and for the largest magnitude.
SetOptions asking_for_all(const NamedInstance& instance) {
  SetOptions options = use(instance);
  options.d = options.amax = true;
  options.d_dtype = kBeforeActivation[(instance.id + instance.dtype) % std::size(kBeforeActivation)];
  return options;
}

// Returns every extra for the types of 16 bits. The other types differ behind all of them: for these one in
// turn, and everything at once.
std::vector<Extra> extras_for(const NamedInstance& instance) {
  if (bits_of(instance.dtype) == 16) return extras();
  return {extras()[static_cast<size_t>(instance.id + instance.dtype) % (extras().size() - 1)],
          extras().back()};
}

}  // namespace

TEST_CASE("the general epilogue computes what a launch asks for, with every tile", "[general]") {
  for (const NamedInstance& instance : general_instances_in_turn(false)) {
    DYNAMIC_SECTION(instance.name) {
      const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
      for (const Extra& extra : extras_for(instance)) {
        INFO(extra.name);
        SetOptions options = asking_for_all(instance);
        options.d = options.amax = extra.name == std::string("everything");
        options.ldc_padding = 8;
        ProblemSet set = make_batch(Data::kFullRange, 1, m + 3, n + 16, instance.info.split_k * k + 16, 1);
        give_all(set, extra, 1001);
        give_encode(set, options.dtype);
        check_launch(set, options);
      }
    }
  }
}

TEST_CASE("fp32 has columns in steps of 4 and fp8 in steps of 8, with every tile", "[general]") {
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances(grouped)) {
      const bool fp32 = instance.dtype == DUALGEMM_DTYPE_FP32;
      if (!fp32 && instance.dtype != DUALGEMM_DTYPE_FP8_E4M3) continue;
      INFO(instance.name);
      const int32_t least = fp32 ? 4 : 8;
      for (const int32_t n : {least, instance.info.tile_n + 3 * least}) {
        ProblemSet set = grouped ? make_masked(Data::kFullRange, {7, 0, 33}, n, 80, 43)
                                 : make_batch(Data::kFullRange, 2, 33, n, 80, 43, Alphas::kOwn);
        SetOptions options = asking_for_all(instance);
        if (fp32) options.d_dtype = DUALGEMM_DTYPE_FP32;  // gate and up in 16 bits have columns in steps of 8
        give_all(set, extras().back(), 44);
        give_encode(set, options.dtype);
        check_launch(set, options);
      }
    }
}

TEST_CASE("the general epilogue with its defaults gives the bits of the plain one", "[general]") {
  for (const bool grouped : {false, true})
    for (const NamedInstance& plain : all_or_in_turn(grouped ? grouped_instances() : dense_instances())) {
      INFO(plain.name);
      const auto tile = general_tile(tile_of(plain));
      if (!tile) continue;
      const NamedInstance general = general_instance(*tile, plain.dtype);
      const int32_t m = plain.info.tile_m + 1, n = plain.info.tile_n + 8, k = 2 * plain.info.tile_k;
      const ProblemSet set = grouped ? make_masked(Data::kFullRange, {m, 0, 7}, n, k, 3)
                                     : make_batch(Data::kFullRange, 2, m, n, k, 3, Alphas::kOwn);
      CHECK((run(set, SetOptions(use(general))) == run(set, SetOptions(use(plain)))));
    }
}

TEST_CASE("all output types hold the same numbers", "[general]") {
  // What a tile gives in fp32 is what it rounds to the others.
  for (const NamedInstance& wide : general_instances(false)) {
    if (wide.dtype != DUALGEMM_DTYPE_FP32) continue;
    DYNAMIC_SECTION(tile_of(wide)) {
      Problem p = make_problem(Data::kFullRange, wide.info.tile_m / 2 + 5, 80, 272, 30);
      Rng rng(31);
      give_everything(p, rng);
      p.encode = 3;
      const Output exact = run(p, use(wide));
      for (const dualgemm_dtype_t dtype : kOutputs) {
        if (dtype == DUALGEMM_DTYPE_NVFP4) continue;  // nvfp4_test.cpp
        INFO("type " << dtype);
        const Output out = run(p, use(general_instance(tile_of(wide), dtype)));
        int64_t wrong = 0;
        for (int64_t row = 0; row < p.m; ++row)
          for (int64_t column = 0; column < p.n; ++column) {
            const double y = exact.value(row, column), got = out.value(row, column);
            switch (dtype) {
              case DUALGEMM_DTYPE_FP16: wrong += !ref::may_become(ref::Format::kFp16, y, 0, got); break;
              case DUALGEMM_DTYPE_BF16: wrong += !ref::may_become(ref::Format::kBf16, y, 0, got); break;
              case DUALGEMM_DTYPE_FP8_E4M3:
                wrong += !ref::may_become(ref::Format::kE4m3, static_cast<float>(y) * p.encode, 0, got);
                break;
              default: wrong += got != y;
            }
          }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("what the general epilogue takes and gives is that of each problem of a batch",
          "[general][batch]") {
  for (const NamedInstance& instance : general_instances_in_turn(false)) {
    DYNAMIC_SECTION(instance.name) {
      for (const int32_t gap : all_or<int32_t>({0, 2}, {2})) {
        SetOptions options = asking_for_all(instance);
        options.gap = gap;
        ProblemSet set = make_batch(Data::kFullRange, 3, 33, 80, 272, 4, Alphas::kOwn);
        give_all(set, extras().back(), 5);
        give_encode(set, options.dtype);
        check_launch(set, options);
      }
    }
  }
}

TEST_CASE("what the general epilogue takes and gives is that of each group", "[general][grouped]") {
  for (const NamedInstance& instance : general_instances(true)) {
    for (const dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const int32_t m = instance.info.tile_m;
        SetOptions options = asking_for_all(instance);
        options.gap = mode == DUALGEMM_GROUP_MASKED ? 2 : 0;
        ProblemSet set = make_groups(mode, Data::kFullRange, {0, m + 1, 0, 5, m}, 80, 272, 6, 3);
        give_all(set, extras().back(), 7);
        give_encode(set, options.dtype);
        check_launch(set, options);
      }
    }
  }
}

TEST_CASE("of 1,024 groups an eighth has rows and everything of its own", "[general][grouped]") {
  size_t turn = 0;  // instances have the modes in turn
  for (const NamedInstance& instance : all_or_every(2, 0, general_instances_in_turn(true))) {
    const dualgemm_group_mode_t mode = kGroupModes[turn++ % std::size(kGroupModes)];
    DYNAMIC_SECTION(instance.name << " " << text(mode)) {
      std::vector<int32_t> rows(DUALGEMM_MAX_GROUPS, 0);
      for (size_t g = 7; g < rows.size(); g += 8) rows[g] = 1 + g % 3;
      ProblemSet set = make_groups(mode, Data::kFullRange, rows, 16, 96, 45, 2);
      give_all(set, extras().back(), 46);
      SetOptions options = asking_for_all(instance);
      give_encode(set, options.dtype);
      check_launch(set, options);
    }
  }
}

TEST_CASE("of 1,024 groups 896 have rows, or an eighth, and everything of their own", "[.full][grouped]") {
  for (const NamedInstance& instance : general_instances(true)) {
    // One type for each mode: what differs between types is no matter of the number of groups. A tile for
    // each of 896 groups is only simulated where tiles are small.
    const bool nvfp4 = instance.dtype == DUALGEMM_DTYPE_NVFP4, small = instance.info.tile_m == 64;
    if (!nvfp4 && instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    const dualgemm_group_mode_t mode = nvfp4 ? DUALGEMM_GROUP_OFFSETS : DUALGEMM_GROUP_MASKED;
    DYNAMIC_SECTION(instance.name << " " << text(mode)) {
      std::vector<int32_t> rows;
      for (int32_t g = 0; g < DUALGEMM_MAX_GROUPS; ++g) {
        const bool any = small ? g % 8 != 5 : g % 8 == 7;
        rows.push_back(any ? 1 + (g % 40 == 7) : 0);
      }
      REQUIRE(std::count(rows.begin(), rows.end(), 0) == (small ? 128 : 896));
      ProblemSet set = make_groups(mode, Data::kFullRange, rows, 16, 96, 41, 2);
      give_all(set, extras().back(), 42);
      SetOptions options = asking_for_all(instance);
      give_encode(set, options.dtype);
      check_launch(set, options);
    }
  }
}

TEST_CASE("nothing is found where the general epilogue follows a kernel that writes the same outputs",
          "[general][pdl]") {
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances_in_turn(grouped)) {
      DYNAMIC_SECTION(instance.name) {
        SetOptions options = asking_for_all(instance);
        options.flags = DUALGEMM_FLAG_PDL;
        const int32_t m = instance.info.tile_m + 1;
        ProblemSet set = grouped ? make_offsets(Data::kFullRange, {m, 0, 7}, 80, 272, 8)
                                 : make_batch(Data::kFullRange, 2, m, 80, 272, 8, Alphas::kOwn);
        give_all(set, extras().back(), 9);
        give_encode(set, options.dtype);
        Judged judged;
        const DeviceSet device(set, options);
        device.launch(nullptr);
        device.launch(nullptr);
        check_values(set, device.download());
        CHECK(judged.findings() == "");
      }
    }
}

TEST_CASE("a general launch gives the same bits and the same largest magnitude under every schedule",
          "[general][schedule]") {
  size_t turn = 0;  // tiles have two of the schedules in turn
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : general_instances_in_turn(grouped)) {
      ++turn;
      DYNAMIC_SECTION(instance.name) {
        const SetOptions options = asking_for_all(instance);
        ProblemSet set = grouped ? make_masked(Data::kFullRange, {70, 0, 7}, 144, 272, 50)
                                 : make_batch(Data::kFullRange, 2, 70, 144, 272, 50, Alphas::kOwn);
        give_all(set, extras().back(), 51);
        give_encode(set, options.dtype);
        DeviceSet device(set, options);
        device.launch(nullptr);
        const std::vector<Output> expected = device.download();
        const float amax = device.amax();
        for (const char* mode :
             all_or_every<const char*>(2, turn, {"late", "reverse", "random", "strict-tensor"})) {
          INFO(mode);
          const Scheduled scheduled(mode, 52);
          device.poison();
          device.launch(nullptr);
          CHECK((device.download() == expected));
          CHECK(device.amax() == amax);
        }
      }
    }
}

TEST_CASE("every parameter changes the result", "[general]") {
  const Problem plain = make_problem(Data::kFullRange, 70, 72, 272, 10);
  struct Change {
    dualgemm_activation_t activation;
    Extra extra;
  };
  const dualgemm_activation_t swiglu = DUALGEMM_ACTIVATION_SWIGLU, step = DUALGEMM_ACTIVATION_SWIGLU_STEP,
                              situ = DUALGEMM_ACTIVATION_SITU;
  std::vector<Change> changes = {
      {swiglu, {"a_row_scale", give_row_scale}},
      {swiglu, {"c_row_scale", give_c_row_scale}},
      {swiglu, {"bias1", [](Problem& p, Rng& rng) { p.bias1 = bias(p, rng); }}},
      {swiglu, {"bias2", [](Problem& p, Rng& rng) { p.bias2 = bias(p, rng); }}},
      {situ, {"situ_gate", [](Problem& p, Rng&) { p.parameters.situ_gate = 3.5; }}},
      {situ, {"situ_up", [](Problem& p, Rng&) { p.parameters.situ_up = 24; }}}};
  for (const dualgemm_activation_t activation : {swiglu, step}) {
    changes.push_back({activation, {"alpha", [](Problem& p, Rng&) { p.parameters.alpha = 1.0625; }}});
    changes.push_back({activation, {"beta", [](Problem& p, Rng&) { p.parameters.beta = 0.125; }}});
    changes.push_back({activation, {"limit", [](Problem& p, Rng&) { p.parameters.limit = 3; }}});
  }
  for (const Change& change : changes) {
    INFO(change.extra.name);
    LaunchOptions options;
    options.activation = change.activation;
    Problem p = plain;
    Rng rng(11);
    change.extra.give(p, rng);
    const Output out = run(p, options);
    check(out, p, options);
    CHECK(out.bits != run(plain, options).bits);
  }
}

TEST_CASE("NaN passes through the clamps, in its row alone", "[general]") {
  for (const bool of_c : {false, true}) {
    Problem p = make_problem(Data::kFullRange, 20, 72, 272, 12);
    Rng rng(13);
    give_everything(p, rng);
    (of_c ? p.c_row_scale : p.row_scale)[7] = std::numeric_limits<float>::quiet_NaN();
    const Output out = run(p, LaunchOptions{});
    check(out, p, LaunchOptions{});
    for (int64_t column = 0; column < out.n; ++column) {
      CHECK(std::isnan(out.value(7, column)));
      CHECK_FALSE(std::isnan(out.value(6, column)));
    }
  }
}

TEST_CASE("the largest magnitude is raised, never lowered, and NaN where any result is", "[general]") {
  Problem p = make_problem(Data::kFullRange, 70, 144, 272, 15);
  LaunchOptions options;
  options.amax = true;
  for (const dualgemm_dtype_t dtype : kOutputs) {
    INFO("type " << dtype);
    options.dtype = dtype;
    const auto raised_from = [&](float before) {
      options.amax_before = before;
      DeviceProblem device(p, options);
      device.launch(nullptr);
      const int32_t split_k = device.download().split_k;
      const auto all = expected(p, options, split_k);
      CHECK(may_be_amax(device.amax(), {&all->c}, split_k, before));
      return device.amax();
    };
    const float amax = raised_from(0);
    CHECK(amax > 1);
    CHECK(raised_from(amax / 2) == amax);
    CHECK(raised_from(2 * amax) == 2 * amax);
    p.c_row_scale.assign(70, -1);
    CHECK(raised_from(0) == amax);  // the sign does not count
    p.c_row_scale.clear();
  }
  p.sfa[ref::sf_offset(p.k, 69, 3)] = 0x7F;  // the last row is NaN
  options.amax_before = 0;
  DeviceProblem device(p, options);
  device.launch(nullptr);
  CHECK(std::isnan(device.amax()));
}

TEST_CASE("the largest magnitude is that of rows in use", "[general][grouped]") {
  for (const dualgemm_group_mode_t mode : kGroupModes) {
    INFO(text(mode));
    SetOptions options;
    options.amax = true;
    // A group without rows has weights that would be far larger.
    ProblemSet set = make_groups(mode, Data::kFullRange, {9, 0, 130}, 72, 272, 16, 3);
    set.problems[1].alpha1 *= 1000;
    check_launch(set, options);
  }
}

TEST_CASE("gate and up are given in each type, with and without a wider pitch of C", "[general]") {
  for (const dualgemm_dtype_t d_dtype : kBeforeActivation)
    for (const dualgemm_dtype_t dtype : kOutputs) {
      INFO("D of type " << d_dtype);
      SetOptions options;
      options.dtype = dtype;
      options.d = true;
      options.d_dtype = d_dtype;
      options.ldc_padding = d_dtype == DUALGEMM_DTYPE_FP32 ? 64 : 0;
      Problem p = make_problem(Data::kFullRange, 131, 80, 272, 17);
      Rng rng(18);
      give_everything(p, rng);
      check_launch(set_of(p), options);
    }
}

namespace {

// Returns how far y is from the activation of the gate and up that the kernel itself had, in units of what is
// allowed: its rounding, and what is flushed.
double worst_activation(const Output& y, const Output (&d)[2], const ref::Activation& activation) {
  double worst = 0;
  for (int64_t row = 0; row < y.m; ++row)
    for (int64_t column = 0; column < y.n; ++column) {
      const double g = d[0].value(row, column), u = d[1].value(row, column);
      const double exact = activation.f(g) * activation.h(u);
      const double allowed = activation.rounding(g) * std::fabs(exact) * (1 + 1.0 / 64) +
                             0x1p-126 * (1 + std::fabs(g * activation.h(u)));
      const double off = std::fabs(y.value(row, column) - exact) / allowed;
      if (!(off <= worst)) worst = off;  // NaN stays
    }
  return worst;
}

}  // namespace

TEST_CASE("the activation is as near as stated to that of the kernel's own gate and up", "[general]") {
  for (const dualgemm_activation_t activation : kActivations)
    for (const bool exact : {false, true})
      for (const float factor : {1.0f / 64, 1.0f, 6.0f, 100.0f}) {
        INFO("activation " << activation << (exact ? ", exact" : "") << ", gates times " << factor);
        LaunchOptions options;
        options.activation = activation;
        options.dtype = options.d_dtype = DUALGEMM_DTYPE_FP32;
        options.d = true;
        options.flags = exact ? DUALGEMM_FLAG_EXACT_ACT : 0;
        Problem p = make_problem(Data::kFullRange, 96, 72, 80, 19);
        p.alpha1 *= factor;
        p.parameters = {1.702f, factor > 10 ? 1.0 : 0.0, 7, 4, 25};
        DeviceProblem device(p, options);
        device.launch(nullptr);
        const Output y = device.download();
        const Output d[2] = {device.download_d(0), device.download_d(1)};
        const auto arithmetic = exact ? ref::Arithmetic::kExact : ref::Arithmetic::kFloat;
        CHECK(worst_activation(y, d, ref::activation(activation, p.parameters, arithmetic)) <= 1);
        check(y, p, options);
      }
}

TEST_CASE("the exact activation is that of every type, batch and group, and other bits than the usual one",
          "[general]") {
  const auto exact_and_usual = [](const ProblemSet& set, SetOptions options) {
    const std::vector<Output> usual = check_launch(set, options);
    options.flags = DUALGEMM_FLAG_EXACT_ACT;
    return check_launch(set, options) != usual;
  };
  for (const dualgemm_activation_t activation : kActivations) {
    INFO("activation " << activation);
    SetOptions options;
    options.activation = activation;
    options.dtype = kOutputs[static_cast<size_t>(activation) % std::size(kOutputs)];
    ProblemSet batch = make_batch(Data::kFullRange, 2, 40, 80, 272, 20, Alphas::kOwn);
    ProblemSet groups = make_offsets(Data::kFullRange, {9, 0, 70}, 80, 272, 21);
    for (ProblemSet* set : {&batch, &groups}) {
      give_all(*set, extras().back(), 22);
      give_encode(*set, options.dtype);
      exact_and_usual(*set, options);
    }
    options.dtype = DUALGEMM_DTYPE_FP32;
    if (activation != DUALGEMM_ACTIVATION_REGLU) CHECK(exact_and_usual(batch, options));
  }
}
