// grouped_contest_test.cpp -- the grouped shapes of the public NVFP4 contest, with its data distribution and
// its tolerance, and our derived bound beside it. N is cut down to what a CPU simulates in a second or two;
// K, the groups and their rows are whole. The same cases with their whole N, minutes long, are tagged
// [.full]:
//
//     build/kernel_test "[.full]"
#include "kernel/grouped.h"

using namespace dualgemm_test;

namespace {

// Computes the bound for the slices of K alone that the launch had.
ref::DualGemm reference_of(const Problem& p, const Output& out) {
  const int splits[] = {out.split_k};
  return p.reference(kDefaultActivation, ref::Arithmetic::kFloat, {splits});
}

void check_contest(const std::vector<int32_t>& rows, int32_t n, int32_t k, uint64_t seed) {
  const ProblemSet set = make_offsets(Data::kContest, rows, n, k, seed, 0, 0, Alphas::kShared);
  const std::vector<Output> out = run(set, SetOptions());  // fp16, instance chosen by the library
  for (size_t g = 0; g < rows.size(); ++g) {
    const ref::DualGemm expected = reference_of(set.problems[g], out[g]);
    const Comparison contest = compare_contest(out[g], expected);
    INFO("contest tolerance, group " << g << ": " << contest.first);
    CHECK(contest.mismatches == 0);
    const Comparison derived = compare(out[g], expected);
    INFO("derived bound, group " << g << ": " << derived.first);
    CHECK(derived.mismatches == 0);
  }
}

const std::vector<int32_t> kEight = {80, 176, 128, 72, 64, 248, 96, 160};
const std::vector<int32_t> kEightOther = {40, 76, 168, 72, 164, 148, 196, 160};
const std::vector<int32_t> kTwo = {192, 248}, kTwoOther = {128, 40};

}  // namespace

TEST_CASE("grouped contest, 8 groups, N 4096, K 7168, cut to N 136", "[contest][grouped]") {
  check_contest(kEight, 136, 7168, 1);
}
TEST_CASE("grouped contest, 8 groups, N 7168, K 2048, cut to N 392", "[contest][grouped]") {
  check_contest(kEightOther, 392, 2048, 2);
}
TEST_CASE("grouped contest, 2 groups, N 3072, K 4096, cut to N 648", "[contest][grouped]") {
  check_contest(kTwo, 648, 4096, 3);
}
TEST_CASE("grouped contest, 2 groups, N 4096, K 1536, cut to N 1032", "[contest][grouped]") {
  check_contest(kTwoOther, 1032, 1536, 4);
}

TEST_CASE("grouped contest, 8 groups, N 4096, K 7168", "[.full]") { check_contest(kEight, 4096, 7168, 5); }
TEST_CASE("grouped contest, 8 groups, N 7168, K 2048", "[.full]") {
  check_contest(kEightOther, 7168, 2048, 6);
}
TEST_CASE("grouped contest, 2 groups, N 3072, K 4096", "[.full]") { check_contest(kTwo, 3072, 4096, 7); }
TEST_CASE("grouped contest, 2 groups, N 4096, K 1536", "[.full]") { check_contest(kTwoOther, 4096, 1536, 8); }
