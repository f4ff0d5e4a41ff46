// contest_test.cpp -- the shapes of the public NVFP4 dual-GEMM contest: its nine correctness problems and
// its four timed ones, with its data distribution, its tolerance, and our derived bound beside it. The
// smallest, the one with the most tiles, the one with the longest K and the smallest timed one are tested
// at full size, and of each shape the instance that the library chooses, at the whole K, on the rows and
// columns of few tiles. The others at full size are tagged [.full], which `make cube` runs.
#include <algorithm>

#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"

using namespace dualgemm_test;

namespace {

void check_contest(int32_t m, int32_t n, int32_t k, uint64_t seed, int32_t instance_id = 0) {
  const Problem p = make_problem(Data::kContest, m, n, k, seed);
  LaunchOptions options;  // fp16
  options.instance_id = instance_id;
  const Output out = run(p, options);
  const int splits[] = {out.split_k};
  const ref::DualGemm expected = p.reference(kDefaultActivation, ref::Arithmetic::kFloat, {splits});
  const Comparison contest = compare_contest(out, expected);
  INFO("contest tolerance: " << contest.first);
  CHECK(contest.mismatches == 0);
  const Comparison derived = compare(out, expected);
  INFO("derived bound: " << derived.first);
  CHECK(derived.mismatches == 0);
}

struct Shape {
  int32_t m, n, k;
};

// Returns the instance that the library chooses for a shape. It reads no operand: addresses are made up.
int32_t instance_of(const Shape& shape) {
  const auto at = [](uintptr_t place) { return reinterpret_cast<void*>(place << 40); };
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = shape.m;
  args.n = shape.n;
  args.k = shape.k;
  args.a = at(1);
  args.b1 = at(2);
  args.b2 = at(3);
  args.sfa = at(4);
  args.sfb1 = at(5);
  args.sfb2 = at(6);
  args.c = at(7);
  args.c_dtype = DUALGEMM_DTYPE_FP16;
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  int32_t id = 0;
  check_status(dualgemm_select_instance(&args, &device, &id));
  return id;
}

constexpr int32_t kMostRows = 264, kMostColumns = 264;

}  // namespace

TEST_CASE("contest: the instance of each shape at its K, on few tiles", "[contest]") {
  constexpr Shape kShapes[] = {{1536, 512, 7168}, {3072, 1024, 1536}, {7168, 2304, 2048},
                               {4608, 384, 7168}, {7168, 384, 2304},  {4096, 768, 512},
                               {256, 4096, 7168}, {512, 4096, 7168},  {512, 3072, 7168}};
  for (const Shape& shape : kShapes) {
    INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k);
    check_contest(std::min(shape.m, kMostRows), std::min(shape.n, kMostColumns), shape.k, 1234,
                  instance_of(shape));
  }
}

TEST_CASE("contest 256 x 512 x 256", "[contest]") { check_contest(256, 512, 256, 3333); }
TEST_CASE("contest 7168 x 1024 x 256", "[contest]") { check_contest(7168, 1024, 256, 5555); }
TEST_CASE("contest 512 x 768 x 7168", "[contest]") { check_contest(512, 768, 7168, 9999); }
TEST_CASE("contest timed 256 x 3072 x 4096", "[contest]") { check_contest(256, 3072, 4096, 13131); }

TEST_CASE("contest 1536 x 512 x 7168", "[.full]") { check_contest(1536, 512, 7168, 1111); }
TEST_CASE("contest 1536 x 512 x 7168, second seed", "[.full]") { check_contest(1536, 512, 7168, 2222); }
TEST_CASE("contest 3072 x 1024 x 1536", "[.full]") { check_contest(3072, 1024, 1536, 4444); }
TEST_CASE("contest 7168 x 2304 x 2048", "[.full]") { check_contest(7168, 2304, 2048, 6666); }
TEST_CASE("contest 4608 x 384 x 7168", "[.full]") { check_contest(4608, 384, 7168, 7777); }
TEST_CASE("contest 7168 x 384 x 2304", "[.full]") { check_contest(7168, 384, 2304, 8888); }
TEST_CASE("contest 4096 x 768 x 512", "[.full]") { check_contest(4096, 768, 512, 10101); }

TEST_CASE("contest timed 256 x 4096 x 7168", "[.full]") { check_contest(256, 4096, 7168, 11111); }
TEST_CASE("contest timed 512 x 4096 x 7168", "[.full]") { check_contest(512, 4096, 7168, 12121); }
TEST_CASE("contest timed 512 x 3072 x 7168", "[.full]") { check_contest(512, 3072, 7168, 14141); }
