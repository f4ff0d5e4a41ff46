// choice_test.cpp -- what a caller may ask of the choice of an instance, seen in what is launched: as few
// CTAs as he allows, and bits of a row that do not depend on the number of rows.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "kernel/extras.h"
#include "ref/formats.h"
#include "sim/exec/observer.h"
#include "sim/shim/shim.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// Notes how many CTAs the largest grid had since it began to observe.
class CtaCount : public sim::Observer {
 public:
  CtaCount() { sim::shim::set_launch_options({nullptr, this}); }
  ~CtaCount() override { sim::shim::set_launch_options({}); }
  void start(const sim::GridStart& grid) override {
    const sim::Dim3& size = grid.config->grid;
    most = std::max(most, static_cast<int32_t>(size.x * size.y * size.z));
  }
  int32_t most = 0;
};

struct Weights {
  int32_t n, k;
};

// With some of these, few rows and many get K split in different ways, unless that is forbidden.
constexpr Weights kInvariant[] = {{136, 528}, {128, 2048}, {1024, 1024}, {256, 7168}};
constexpr int32_t kMostRows = 257, kFewerRows[] = {1, 2, 17, 128};

// Returns the part of p that begins at row `first`.
Problem rows_from(const Problem& p, int32_t first, int32_t m) {
  Problem part = p;
  part.m = m;
  part.a.assign(p.a.begin() + first * p.lda / 2, p.a.begin() + (first + m) * p.lda / 2);
  part.sfa.assign(ref::sf_bytes(m, p.k), 0x7F);
  for (int32_t row = 0; row < m; ++row)
    for (int32_t block = 0; block < (p.k + 63) / 64 * 4; ++block)
      part.sfa[ref::sf_offset(p.k, row, block)] = p.sfa[ref::sf_offset(p.k, first + row, block)];
  for (std::vector<float> Problem::*factors : {&Problem::row_scale, &Problem::c_row_scale})
    if (!(p.*factors).empty())
      (part.*factors).assign((p.*factors).begin() + first, (p.*factors).begin() + first + m);
  return part;
}

// Checks that the last rows of a problem get the same bits, whether they are launched with those in front of
// them or alone: their places in a tile change, too. Returns the whole.
Output check_invariant(const Problem& whole, const LaunchOptions& options) {
  const Output all = run(whole, options);
  check(all, whole, options);
  for (const int32_t m : kFewerRows) {
    INFO("m " << m);
    const Output some = run(rows_from(whole, kMostRows - m, m), options);
    CHECK(std::equal(some.bits.begin(), some.bits.end(), all.bits.end() - some.bits.size()));
    CHECK(std::equal(some.factors.begin(), some.factors.end(), all.factors.end() - some.factors.size()));
  }
  return all;
}

// Returns the instances that split K, one of each tile and number of parts, plain ones and general ones, with
// the outputs in turn.
std::vector<NamedInstance> with_split_k() {
  std::vector<NamedInstance> out = in_turn(dense_instances());
  const std::vector<NamedInstance> general = general_instances_in_turn(false);
  out.insert(out.end(), general.begin(), general.end());
  std::erase_if(out, [](const NamedInstance& instance) { return instance.info.split_k == 1; });
  if (out.empty()) throw std::logic_error("no instance splits K");
  return out;
}

}  // namespace

TEST_CASE("max_sms bounds the CTAs of every launch", "[choice]") {
  for (int32_t max_sms : all_or<int32_t>({1, 2, 3, 7, 40, 148}, {1, 2, 3, 40})) {
    DYNAMIC_SECTION("max_sms " << max_sms) {
      SetOptions options;
      options.dtype = DUALGEMM_DTYPE_BF16;
      options.max_sms = max_sms;
      const ProblemSet sets[] = {make_batch(Data::kFullRange, 1, 16, 264, 2048, 1),
                                 make_batch(Data::kFullRange, 1, 300, 264, 272, 2),
                                 make_batch(Data::kFullRange, 3, 140, 136, 272, 3),
                                 make_offsets(Data::kFullRange, {40, 0, 200}, 264, 272, 4),
                                 make_masked(Data::kFullRange, {9, 130, 0}, 264, 272, 5)};
      for (const ProblemSet& set : sets) {
        const CtaCount ctas;
        check_values(set, run(set, options));
        CHECK(ctas.most > 0);
        CHECK(ctas.most <= max_sms);
      }
    }
  }
}

TEST_CASE("with BATCH_INVARIANT the bits of a row do not depend on the number of rows", "[choice]") {
  size_t turn = 0;  // weights have the types in turn
  for (const Weights& weights : kInvariant) {
    for (dualgemm_dtype_t dtype :
         all_or_every<dualgemm_dtype_t>(2, turn++, {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16})) {
      DYNAMIC_SECTION("n " << weights.n << ", k " << weights.k << ", type " << dtype) {
        LaunchOptions options;
        options.dtype = dtype;
        options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        check_invariant(make_problem(Data::kFullRange, kMostRows, weights.n, weights.k, 30), options);
      }
    }
  }
}

TEST_CASE("with BATCH_INVARIANT the same holds of every output of the general epilogue", "[choice]") {
  for (const dualgemm_dtype_t dtype : kOutputs) {
    DYNAMIC_SECTION("type " << dtype) {
      LaunchOptions options;
      options.dtype = dtype;
      options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
      Problem whole = make_problem(Data::kFullRange, kMostRows, kInvariant[1].n, kInvariant[1].k, 32);
      Rng rng(33);
      give_everything(whole, rng);
      whole.encode = 7;
      check_invariant(whole, options);
    }
  }
}

TEST_CASE("with BATCH_INVARIANT the bits of a row depend neither on the batch nor on other groups",
          "[choice][batch][grouped]") {
  const auto [n, k] = kInvariant[1];
  for (const dualgemm_dtype_t dtype : kOutputs) {
    ProblemSet sets[] = {make_batch(Data::kFullRange, 3, 40, n, k, 34, Alphas::kOwn),
                         make_offsets(Data::kFullRange, {9, 0, 130}, n, k, 35),
                         make_masked(Data::kFullRange, {9, 130, 0}, n, k, 36)};
    // Each type meets two of the kinds of launches.
    for (ProblemSet& set : sets) {
      const auto kind = static_cast<size_t>(&set - sets);
      if (!thorough() && (kind + dtype) % 3 == 0) continue;
      DYNAMIC_SECTION("type " << dtype << " " << text(set.mode)) {
        SetOptions options;
        options.dtype = dtype;
        options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        give_all(set, extras().back(), 37);
        give_encode(set, dtype);
        const std::vector<Output> together = check_launch(set, options);
        for (size_t i = 0; i < set.problems.size(); ++i) {
          ProblemSet alone = set;
          alone.problems = {set.problems[i]};
          if (set.mode == DUALGEMM_GROUP_OFFSETS) alone.m = set.problems[i].m;
          if (alone.m > 0) CHECK(run(alone, options).at(0) == together[i]);
        }
      }
    }
  }
}

TEST_CASE("an instance with split-K that is asked for gives a row the same bits however many rows there are",
          "[choice]") {
  for (const NamedInstance& instance : with_split_k()) {
    // The k-tiles of the first are fewer than four parts, those of the second are shared out evenly.
    // A plain instance has both, a general one, whose main loop is the same, one of them.
    for (const Weights& weights :
         all_or<Weights>({kInvariant[0], kInvariant[1]},
                         instance.info.general == 0 ? std::vector<Weights>{kInvariant[0], kInvariant[1]}
                                                    : std::vector<Weights>{kInvariant[instance.id % 2]})) {
      const int32_t step = instance.dtype == DUALGEMM_DTYPE_NVFP4 ? 16 : 8;
      const int32_t n = (weights.n + step - 1) / step * step;
      DYNAMIC_SECTION(instance.name << ", n " << n << ", k " << weights.k) {
        ProblemSet set = set_of(make_problem(Data::kFullRange, kMostRows, n, weights.k, 38));
        LaunchOptions options = use_all_of(instance, set);
        options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        const Output with_flag = check_invariant(set.problems[0], options);
        // It is the instance that decides, not the flag.
        options.flags = 0;
        CHECK(run(set.problems[0], options) == with_flag);
      }
    }
  }
}

TEST_CASE("an instance with split-K that is asked for gives a row the same bits in a batch and alone",
          "[choice][batch]") {
  const auto [n, k] = kInvariant[1];
  for (const NamedInstance& instance : with_split_k()) {
    DYNAMIC_SECTION(instance.name) {
      ProblemSet set = make_batch(Data::kFullRange, thorough() ? 3 : 2, 40, n, k, 39, Alphas::kOwn);
      SetOptions options = use_all_of(instance, set);
      options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
      const std::vector<Output> together = check_launch(set, options);
      for (size_t i = 0; i < set.problems.size(); ++i) {
        ProblemSet alone = set;
        alone.problems = {set.problems[i]};
        CHECK(run(alone, options).at(0) == together[i]);
      }
    }
  }
}

TEST_CASE("how K is split decides the bits of a row", "[choice]") {
  // So the tests above can fail.
  const Problem p = make_problem(Data::kFullRange, 9, kInvariant[1].n, kInvariant[1].k, 40);
  std::map<int32_t, std::set<std::vector<uint16_t>>> bits;  // by the parts of K
  for (const NamedInstance& instance : general_instances(false))
    if (instance.dtype == DUALGEMM_DTYPE_FP32) bits[instance.info.split_k].insert(run(p, use(instance)).bits);
  REQUIRE(bits.size() == 3);
  std::set<std::vector<uint16_t>> all;
  for (const auto& [split_k, of_one] : bits) {
    INFO(split_k << " parts");
    CHECK(of_one.size() == 1);
    all.insert(of_one.begin(), of_one.end());
  }
  CHECK(all.size() == bits.size());
}

TEST_CASE("without BATCH_INVARIANT the number of rows decides how K is split", "[choice]") {
  // Without the flag some bits differ, so the test above can fail.
  bool differ = false;
  for (const Weights& weights : kInvariant) {
    std::set<int32_t> splits;
    for (int32_t m : {1, 2, 17, 128, kMostRows}) {
      const DeviceProblem problem(make_problem(Data::kFullRange, m, weights.n, weights.k, 31), {});
      dualgemm_device_t device;
      dualgemm_device_init(&device);
      int32_t id = 0;
      dualgemm_instance_info_t info;
      dualgemm_instance_info_init(&info);
      check_status(dualgemm_current_device(&device));
      check_status(dualgemm_select_instance(&problem.args(), &device, &id));
      check_status(dualgemm_instance_info(id, &info));
      splits.insert(info.split_k);
    }
    differ |= splits.size() > 1;
  }
  CHECK(differ);
}
