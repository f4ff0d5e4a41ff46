// batch_test.cpp -- several problems of one shape in one launch: each gets the bits of a launch of its own,
// wherever the strides put it, and nothing of its neighbours.

#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/expected.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// Compares every problem with the reference, and with the same instance launched with this problem alone.
void check_batch(const ProblemSet& set, const SetOptions& options) {
  const std::vector<Output> together = run(set, options);
  REQUIRE(together.size() == set.problems.size());
  for (size_t i = 0; i < together.size(); ++i) {
    INFO("problem " << i << " of " << together.size());
    const Comparison result = compare(together[i], expected(set.problems[i], {}, together[i].split_k)->c);
    INFO(result.first);
    CHECK(result.mismatches == 0);
    CHECK((together[i].bits == run(set.problems[i], options).bits));
  }
}

}  // namespace

TEST_CASE("a batch gives every problem the bits of a launch of its own", "[batch]") {
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      for (int32_t batch : all_or<int32_t>({1, 2, 3, 5}, {1, 3})) {
        options.gap = batch == 3 ? 1 : 0;
        INFO("batch " << batch);
        check_batch(make_batch(Data::kFullRange, batch, instance.info.tile_m / 2 + 1,
                               instance.info.tile_n + 8, 336, 10 + batch),
                    options);
      }
    }
  }
}

TEST_CASE("the problems of a batch stand where their strides say", "[batch]") {
  const int32_t problems = thorough() ? 4 : 3;
  size_t turn = 0;  // a tile has two of the gaps
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    ++turn;
    DYNAMIC_SECTION(instance.name) {
      // The gaps are no multiple of a row, of a box of the tensor maps, or of 128 bytes.
      const std::vector<std::vector<int32_t>> pairs = {{1, 5}, {5, 64}, {64, 1}};
      for (int32_t gap : all_or<int32_t>({1, 5, 64}, pairs[turn % 3])) {
        SetOptions options = use(instance);
        options.gap = gap;
        options.ldc_padding = gap == 5 ? 24 : 0;
        INFO("gap " << gap);
        check_batch(make_batch(Data::kFullRange, problems, 70, 136, 272, 30 + gap, Alphas::kShared,
                               gap == 5 ? 64 : 0),
                    options);
      }
    }
  }
}

TEST_CASE("the alphas on the device are one for all problems of a batch or one each", "[batch]") {
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      options.alphas_on_device = true;
      for (Alphas alphas : {Alphas::kShared, Alphas::kOwn}) {
        INFO((alphas == Alphas::kShared ? "one for all" : "one each"));
        check_batch(make_batch(Data::kFullRange, 3, 33, 72, 256, 50, alphas), options);
      }
    }
  }
}

TEST_CASE("a CTA that computes tiles of several problems gives the bits of one that computes one",
          "[batch]") {
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    if (instance.info.split_k > 1) continue;  // launches all its tiles at once
    DYNAMIC_SECTION(instance.name) {
      const ProblemSet set =
          make_batch(Data::kFullRange, 4, instance.info.tile_m + 8, 136, 320, 60, Alphas::kOwn);
      const std::vector<Output> one_each = run(set, SetOptions(use(instance)));
      SetOptions options = use(instance);
      options.max_sms = instance.info.cta_group;
      const std::vector<Output> in_turn = run(set, options);
      for (size_t i = 0; i < set.problems.size(); ++i) CHECK((in_turn[i].bits == one_each[i].bits));
    }
  }
}

TEST_CASE("each input of one problem of a batch matters there and nowhere else", "[batch]") {
  const int32_t n = 72, k = 320;
  const ProblemSet set = make_batch(Data::kIntegers, 3, 100, n, k, 70);
  size_t turn = 0;  // each input is changed in one problem, and by other tiles in another
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_FP16) continue;
    ++turn;
    DYNAMIC_SECTION(instance.name) {
      const SetOptions options = use(instance);
      const std::vector<Output> before = run(set, options);
      size_t input = turn;
      for (auto bytes :
           {&Problem::a, &Problem::b1, &Problem::b2, &Problem::sfa, &Problem::sfb1, &Problem::sfb2}) {
        for (const size_t changed : all_or_every<size_t>(3, input++, {0, 1, 2})) {
          ProblemSet other = set;
          std::vector<uint8_t>& data = other.problems[changed].*bytes;
          const bool scales = bytes == &Problem::sfa || bytes == &Problem::sfb1 || bytes == &Problem::sfb2;
          // Scale factors become twice as large, elements change sign.
          for (uint8_t& byte : data) byte = scales ? (byte == 0x38 ? 0x40 : byte) : byte ^ 0x08;
          const std::vector<Output> after = run(other, options);
          for (size_t i = 0; i < set.problems.size(); ++i)
            CHECK((after[i].bits == before[i].bits) == (i != changed));
          CHECK(compare(after[changed], expected(other.problems[changed], {}, after[changed].split_k)->c)
                    .mismatches == 0);
        }
      }
    }
  }
}

TEST_CASE("a batch without a sum gives zeros and keeps what stands between its problems", "[batch]") {
  SetOptions options;
  options.gap = 3;
  options.ldc_padding = 8;
  for (const Output& out : run(make_batch(Data::kFullRange, 3, 5, 24, 0, 80), options))
    CHECK((out.bits == std::vector<uint16_t>(5 * 24, 0)));
}

TEST_CASE("the instance chosen for a batch gives the reference's result", "[batch]") {
  for (int32_t batch : {2, 7, 40}) {
    for (int32_t m : all_or<int32_t>({1, 65, 300}, {batch == 2 ? 300 : batch == 7 ? 65 : 1})) {
      const ProblemSet set = make_batch(Data::kFullRange, batch, m, 136, 528, 90 + batch, Alphas::kOwn);
      const std::vector<Output> out = run(set, SetOptions());
      for (size_t i = 0; i < out.size(); ++i) {
        const Comparison result = compare(out[i], expected(set.problems[i], {}, out[i].split_k)->c);
        INFO("batch " << batch << ", m " << m << ", problem " << i << ": " << result.first);
        CHECK(result.mismatches == 0);
      }
    }
  }
}
