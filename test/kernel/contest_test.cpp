// contest_test.cpp -- the shapes of the public NVFP4 dual-GEMM contest at full size: its nine correctness
// problems and its four timed ones, with its data distribution, its tolerance, and our derived bound beside
// it. One test case per shape, so that a test driver can run them in parallel.
#include <string>

#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"

using namespace dualgemm_test;

namespace {

void check_contest(int32_t m, int32_t n, int32_t k, uint64_t seed) {
  const Problem p = make_problem(Data::kContest, m, n, k, seed);
  const ref::DualGemm expected = p.reference();
  const Output out = run(p);  // fp16, instance chosen by the library
  const Comparison contest = compare_contest(out, expected);
  INFO("contest tolerance: " << contest.first);
  CHECK(contest.mismatches == 0);
  const Comparison derived = compare(out, expected);
  INFO("derived bound: " << derived.first);
  CHECK(derived.mismatches == 0);
}

}  // namespace

TEST_CASE("contest 1536 x 512 x 7168", "[contest]") { check_contest(1536, 512, 7168, 1111); }
TEST_CASE("contest 1536 x 512 x 7168, second seed", "[contest]") { check_contest(1536, 512, 7168, 2222); }
TEST_CASE("contest 256 x 512 x 256", "[contest]") { check_contest(256, 512, 256, 3333); }
TEST_CASE("contest 3072 x 1024 x 1536", "[contest]") { check_contest(3072, 1024, 1536, 4444); }
TEST_CASE("contest 7168 x 1024 x 256", "[contest]") { check_contest(7168, 1024, 256, 5555); }
TEST_CASE("contest 7168 x 2304 x 2048", "[.full]") { check_contest(7168, 2304, 2048, 6666); }
TEST_CASE("contest 4608 x 384 x 7168", "[contest]") { check_contest(4608, 384, 7168, 7777); }
TEST_CASE("contest 7168 x 384 x 2304", "[contest]") { check_contest(7168, 384, 2304, 8888); }
TEST_CASE("contest 512 x 768 x 7168", "[contest]") { check_contest(512, 768, 7168, 9999); }
TEST_CASE("contest 4096 x 768 x 512", "[contest]") { check_contest(4096, 768, 512, 10101); }

TEST_CASE("contest timed 256 x 4096 x 7168", "[contest]") { check_contest(256, 4096, 7168, 11111); }
TEST_CASE("contest timed 512 x 4096 x 7168", "[contest]") { check_contest(512, 4096, 7168, 12121); }
TEST_CASE("contest timed 256 x 3072 x 4096", "[contest]") { check_contest(256, 3072, 4096, 13131); }
TEST_CASE("contest timed 512 x 3072 x 7168", "[contest]") { check_contest(512, 3072, 7168, 14141); }
