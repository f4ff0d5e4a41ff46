// bench_test.cpp -- the benchmark's verification: satisfied by what the library computes of single problems,
// batches and groups, and by nothing else.
#include <string>
#include <utility>
#include <vector>

#include "bench/budget.h"
#include "bench/inputs.h"
#include "bench/measure.h"
#include "bench/shapes.h"
#include "support/catch.hpp"

namespace {

using bench::Workload;
using dualgemm_test::contains;

// Returns what the benchmark says of a launch whose arguments `change` has changed.
template <class Change>
std::string verdict(const std::string& shape, const Change& change) {
  Workload workload(bench::parse_shape(shape), DUALGEMM_DTYPE_FP16, 1, 7);
  workload.use([&change](dualgemm_args_t args, cudaStream_t stream) {
    change(args);
    bench::check(dualgemm_launch_ex(&args, stream), "dualgemm_launch_ex");
  });
  return workload.verify(16);
}
void nothing(dualgemm_args_t&) {}

const std::vector<std::string> kShapes = {"130x72x320", "3*40x72x320", "offsets:40,0,130,7x72x320",
                                          "masked:40,0,130,7x72x320"};

}  // namespace

TEST_CASE("bench: what the library computes is verified", "[bench]") {
  for (const std::string& shape : kShapes)
    for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
      INFO(shape);
      CHECK(Workload(bench::parse_shape(shape), dtype, 2, 1).verify(50).empty());
    }
}

TEST_CASE("bench: operands and alphas that are not the problem's own are noticed", "[bench]") {
  for (const std::string& shape : kShapes) {
    INFO(shape);
    CHECK(verdict(shape, nothing).empty());
    CHECK_THAT(verdict(shape,
                       [](dualgemm_args_t& args) {
                         std::swap(args.b1, args.b2);
                         std::swap(args.sfb1, args.sfb2);
                       }),
               contains("expected"));
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { args.alpha2 = 0.75f; }), contains("expected"));
    if (shape == kShapes[0]) continue;
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { args.alpha_stride = 0; }), contains("problem "));
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { std::swap(args.alpha1_dev, args.alpha2_dev); }),
               contains("problem 0"));
    CHECK_THAT(verdict(shape,
                       [](dualgemm_args_t& args) {  // those of the next problem
                         const int64_t one = int64_t{args.n} * args.k;
                         args.b1 = static_cast<const uint8_t*>(args.b1) + one / 2;
                         (args.batch > 1 ? args.batch : args.groups) -= 1;
                       }),
               contains("problem "));
  }
}

TEST_CASE("bench: a problem that is left out is noticed", "[bench]") {
  CHECK_THAT(verdict(kShapes[1], [](dualgemm_args_t& args) { args.batch = 2; }), contains("problem 2"));
  for (const std::string& shape : {kShapes[2], kShapes[3]})
    CHECK_THAT(verdict(shape, [](dualgemm_args_t& args) { args.groups = 3; }), contains("problem 3"));
}

TEST_CASE("bench: rows that no group owns are not to be written", "[bench][grouped]") {
  const dualgemm_test::DeviceArray<int32_t> rows(std::vector<int32_t>{40, 0, 131, 7});
  const auto more = [&rows](dualgemm_args_t& args) { args.group_rows = rows.data(); };
  CHECK_THAT(verdict(kShapes[3], more), contains("problem 2: C[130][0] belongs to no group"));
}

TEST_CASE("bench: groups are captured into a graph and timed", "[bench][grouped]") {
  for (const std::string& shape : kShapes) {
    Workload workload(bench::parse_shape(shape), DUALGEMM_DTYPE_FP16, 2, 1);
    CHECK(workload.time_graph(1).median_us >= 0);
    CHECK(workload.verify(16).empty());
  }
}

TEST_CASE("bench: input sets are many, and no more than memory holds", "[bench]") {
  const auto sets = [](const char* shape, int wanted) {
    return bench::input_sets_of(bench::parse_shape(shape), wanted);
  };
  for (const char* shape : {"512x4096x7168", "4096x14336x4096"}) CHECK(sets(shape, 50) == 50);
  // Each of 256 experts has 2 * 2048 * 7168 elements: 4.2 GB with their scale factors.
  CHECK(sets("offsets:256~8x2048x7168", 50) == 3);
  CHECK(sets("offsets:256~8x2048x7168", 2) == 2);
  CHECK(sets("512*64x4096x7168", 50) == 2);  // too large even so
  CHECK(sets("512*64x4096x7168", 1) == 1);
}
