// one_product_test.cpp -- launches of one product through the public interface, with every instance that the
// library has for them: right results, and nothing found by the checkers of the simulator.
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

using Linear = dualgemm_linear_activation_t;

std::vector<NamedInstance> instances(bool general, bool grouped) {
  std::vector<NamedInstance> out = one_product_instances();
  std::erase_if(out, [&](const NamedInstance& x) {
    return (x.info.general != 0) != general || (x.info.grouped != 0) != grouped;
  });
  return out;
}

// Returns the activation of this turn: a plain instance has none.
Linear activation_of(const NamedInstance& instance, int32_t turn) {
  return instance.info.general == 0 ? DUALGEMM_LINEAR_ACTIVATION_NONE
                                    : static_cast<Linear>(turn % (DUALGEMM_LINEAR_ACTIVATION_RELU2 + 1));
}

// Gives a set all that the instance may compute beside the product, with the activation of this turn.
SetOptions use_all_of_one(const NamedInstance& instance, ProblemSet& set, int32_t turn) {
  SetOptions options = use_all_of(instance, set);
  leave_one_product(set, activation_of(instance, turn));
  options.add_in_place = turn % 2 != 0;
  return options;
}

// Returns the columns by which C may be smaller or larger.
int32_t column_step(const NamedInstance& instance) { return instance.dtype == DUALGEMM_DTYPE_NVFP4 ? 16 : 8; }

void check_edges(const NamedInstance& instance) {
  const dualgemm_instance_info_t& info = instance.info;
  const int32_t m = info.tile_m, n = info.tile_n, k = info.tile_k, step = column_step(instance);
  const int32_t one_cluster = info.split_k > 1 ? 0 : info.cta_group;
  const struct {
    int32_t m, n, k, max_sms;
  } shapes[] = {{1, step, 16, 0},
                {m - 1, n + step, k + 16, 0},
                {m, n, info.split_k * k, 0},
                {m + 1, n - step, k + 80, 0},
                {m / 2 + 9, 3 * step, (info.stages + 1) * k + 64, 0},
                {m / 2 + 9, 3 * step, info.scale_stages * info.scale_k_tiles * k + k - 16, 0},
                {2 * m + 1, 2 * n + step, k + 16, one_cluster}};
  Judged judged;
  int32_t turn = instance.id;
  for (const auto& shape : shapes) {
    // Depths of the rings are those of the plain instance of the tile.
    if (!thorough() && info.general != 0 && shape.m == m / 2 + 9) continue;
    INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k);
    ProblemSet set = make_batch(Data::kFullRange, 1, shape.m, shape.n, shape.k, shape.m + shape.k);
    SetOptions options = use_all_of_one(instance, set, turn++);
    options.max_sms = shape.max_sms;
    check_launch(set, options);
  }
  CHECK(judged.findings_and_certificate() == "");
}

void check_batch(const NamedInstance& instance) {
  const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
  Judged judged;
  ProblemSet set = make_batch(Data::kFullRange, 3, m + 1, n + column_step(instance), k + 16, 5, Alphas::kOwn);
  SetOptions options = use_all_of_one(instance, set, instance.id);
  options.max_sms = instance.info.split_k > 1 ? 0 : instance.info.cta_group;
  options.gap = 1;
  check_launch(set, options);
  CHECK(judged.findings_and_certificate() == "");
}

void check_groups(const NamedInstance& instance) {
  const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
  Judged judged;
  int32_t turn = instance.id;
  for (const dualgemm_group_mode_t mode : kGroupModes) {
    INFO(text(mode));
    ProblemSet set =
        make_groups(mode, Data::kFullRange, {0, m + 1, 0, 5, m}, n + column_step(instance), k + 80, 6, 3);
    SetOptions options = use_all_of_one(instance, set, turn++);
    options.gap = mode == DUALGEMM_GROUP_MASKED ? 2 : 0;
    options.max_sms = 2 * instance.info.cta_group;
    check_launch(set, options);
  }
  CHECK(judged.findings_and_certificate() == "");
}

template <class Check>
void check_each(const std::vector<NamedInstance>& all, const Check& check) {
  REQUIRE_FALSE(all.empty());
  for (const NamedInstance& instance : all) DYNAMIC_SECTION(instance.name) {
      check(instance);
    }
}

}  // namespace

TEST_CASE("one product: nothing is found around the edges of tiles and rings", "[one][edge]") {
  check_each(in_turn(instances(false, false)), check_edges);
}
TEST_CASE("one product: nothing is found around the edges of general launches", "[one][edge][general]") {
  check_each(in_turn(instances(true, false)), check_edges);
}
TEST_CASE("one product: nothing is found in groups", "[one][edge][grouped]") {
  check_each(in_turn(instances(false, true)), check_groups);
  check_each(in_turn(instances(true, true)), check_groups);
}
TEST_CASE("one product: nothing is found with any instance", "[.cube][one]") {
  for (const bool general : {false, true}) {
    check_each(instances(general, false), check_edges);
    check_each(instances(general, true), check_groups);
  }
}

TEST_CASE("one product: nothing is found in a batch with any instance", "[.cube][one]") {
  for (const bool general : {false, true}) check_each(instances(general, false), check_batch);
}

TEST_CASE("one product: every activation and every type of C", "[one][general]") {
  for (const dualgemm_dtype_t dtype : kOutputs)
    for (int32_t activation = 0; activation <= DUALGEMM_LINEAR_ACTIVATION_RELU2; ++activation)
      for (const uint32_t flags :
           all_or_every<uint32_t>(2, static_cast<size_t>(activation + dtype), {0, DUALGEMM_FLAG_EXACT_ACT})) {
        DYNAMIC_SECTION("type " << dtype << ", activation " << activation << ", flags " << flags) {
          ProblemSet set = make_batch(Data::kFullRange, 2, 37, 80, 272, 3 + activation, Alphas::kOwn);
          leave_one_product(set, static_cast<Linear>(activation));
          give_encode(set, dtype);
          SetOptions options;
          options.dtype = dtype;
          options.flags = flags;
          check_launch(set, options);
        }
      }
}

TEST_CASE("one product: C of an addend in place is that of one elsewhere", "[one][general]") {
  for (const dualgemm_dtype_t dtype : kBeforeActivation) {
    ProblemSet set = make_batch(Data::kFullRange, 3, 70, 136, 528, 4);
    leave_one_product(set, DUALGEMM_LINEAR_ACTIVATION_NONE);
    give_c_add(set, 5);
    SetOptions options;
    options.dtype = dtype;
    options.gap = 1;
    const std::vector<Output> elsewhere = run(set, options);
    options.add_in_place = true;
    const std::vector<Output> in_place = check_launch(set, options);
    for (size_t i = 0; i < elsewhere.size(); ++i) CHECK((elsewhere[i] == in_place[i]));
  }
}

TEST_CASE("one product: the library chooses for a layer's shapes, and a row keeps its bits", "[one]") {
  for (const int32_t m : {1, 16, 100, 300}) {
    DYNAMIC_SECTION(m << " rows") {
      ProblemSet set = make_batch(Data::kFullRange, 1, m, 640, 1088, 5);
      leave_one_product(set, DUALGEMM_LINEAR_ACTIVATION_NONE);
      SetOptions options;
      options.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
      check_launch(set, options);
      options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
      const Output all = run(set, options).at(0);
      ProblemSet first = make_batch(Data::kFullRange, 1, m, 640, 1088, 5);
      leave_one_product(first, DUALGEMM_LINEAR_ACTIVATION_NONE);
      Problem& p = first.problems[0];
      first.m = p.m = 1;
      p.a.resize(static_cast<size_t>(p.lda / 2));
      p.sfa.resize(ref::sf_bytes(1, p.k));
      const Output one = run(first, options).at(0);
      CHECK(std::equal(one.bits.begin(), one.bits.end(), all.bits.begin()));
    }
  }
}

TEST_CASE("one product: the short call is the long one", "[one]") {
  ProblemSet set = make_batch(Data::kFullRange, 1, 33, 72, 160, 6);
  leave_one_product(set, DUALGEMM_LINEAR_ACTIVATION_NONE);
  const DeviceSet device(set, {});
  device.launch(nullptr);
  const dualgemm_args_t& args = device.args();
  const DeviceArray<uint16_t> c(size_t{33 * 72}, 0xFF);
  check_status(dualgemm_launch_linear(args.a, args.b1, args.sfa, args.sfb1, c.data(), 33, 72, 160,
                                      args.alpha1, DUALGEMM_DTYPE_FP16, nullptr));
  CHECK((c.host() == device.download().at(0).bits));
}
