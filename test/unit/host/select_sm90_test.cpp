// select_sm90_test.cpp -- the choice of a kernel instance for compute capability 9.0, and what its instances
// keep to.

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/sensitivity.h"
#include "host/model/select_instance.h"
#include "shapes.h"
#include "support/catch.hpp"

namespace select_sm90_test {

using dualgemm_test::kH100;
using namespace dualgemm;

constexpr InstanceKind kPlain{Arch::kSm90, CType::kFp16};
constexpr InstanceKind kSixteenBits{Arch::kSm90, CType::kBf16, false, CType::kBf16};
constexpr InstanceKind kEightBits{Arch::kSm90, CType::kFp16, false, CType::kFp8};

// Calls look_at(shape) for shapes of models in use, with the few rows of decoding in small steps.
template <class LookAt>
static void for_each_shape(const LookAt& look_at) {
  bench::for_each_shape(look_at);
  for (const int32_t k : {2048, 4096, 7168})
    for (const int32_t n : {192, 1024, 2048, 4096, 7168, 14336})
      for (const int32_t m : {4, 8, 12, 24, 32, 48}) look_at(Shape{m, n, k});
  // Experts with some rows each, and those of a prefill with many.
  for (const int32_t n : {2048, 4096})
    for (const int32_t m : {16, 512, 1024, 4096}) {
      Shape shape{m, n, 7168};
      shape.problems = 8;
      shape.grouped = true;
      look_at(shape);
    }
}

// Room for A alone, and for sums of parts, too.
constexpr Allowed kRoom{.prepared_a = true}, kRoomForParts{.prepared_a = true, .stream_k = true};

static const Instance& chosen(const Shape& shape, InstanceKind kind = kPlain, Allowed allowed = {}) {
  const int32_t index = select_instance(kind, shape, kH100, allowed);
  REQUIRE(index >= 0);
  CHECK(is_kind(instance(index), kind));
  return instance(index);
}

TEST_CASE("on 9.0 every instance is chosen for something", "[host][select_instance]") {
  const InstanceKind kind = GENERATE(kPlain, kSixteenBits, kEightBits);
  std::set<std::string> seen;
  for_each_shape([&](const Shape& shape) {
    seen.insert(chosen(shape, kind).name);
    seen.insert(chosen(shape, kind, kRoom).name);
    seen.insert(chosen(shape, kind, kRoomForParts).name);
  });
  for (const Instance& instance : instances(Arch::kSm90)) {
    if (!is_kind(instance, kind)) continue;
    INFO(instance.name);
    CHECK(seen.count(instance.name) == 1);
  }
}

TEST_CASE("on 9.0 the tile follows the rows", "[host][select_instance]") {
  for (const int32_t k : {2048, 4096, 7168})
    for (const int32_t n : {1024, 2048, 4096, 7168, 14336}) {
      int32_t before = 0;
      for (const int32_t m : {1, 8, 16, 32, 64, 128, 4096}) {
        const Instance& instance = chosen({m, n, k});
        INFO(m << " x " << n << " x " << k << ": " << instance.name);
        // More rows get no smaller tile. Where there are columns for all SMs, up to 64 of them lie in one
        // tile or two. None is larger than four times what they need.
        CHECK(instance.plan.tile.m >= before);
        if (m <= 64 && n >= 4096) CHECK(2 * instance.plan.tile.m >= m);
        CHECK((instance.plan.tile.m <= 16 || instance.plan.tile.m <= 4 * m));
        before = instance.plan.tile.m;
      }
    }
}

TEST_CASE("on 9.0 A is prepared by a pass where there is room for it and there are many rows",
          "[host][select_instance]") {
  const InstanceKind kind = GENERATE(kPlain, kSixteenBits);
  for (const int32_t k : {2048, 4096, 7168})
    for (const int32_t n : {1024, 2048, 4096, 7168, 14336}) {
      INFO("N = " << n << ", K = " << k);
      // Few columns of tiles put an A of 16 bits in order sooner than a pass does.
      if (n > 1024 || kind == kPlain) CHECK(chosen({4096, n, k}, kind, kRoom).plan.prepared_a());
      for (const int32_t m : {1, 16, 64, 512, 4096}) CHECK(!chosen({m, n, k}, kind).plan.prepared_a());
      for (const int32_t m : {1, 16}) CHECK(!chosen({m, n, k}, kind, kRoom).plan.prepared_a());
    }
}

// One product on an H100, in us: of two instances the choice is the one that was faster. The times of an A in
// NVFP4 are those of bench/results/h100_linear_every_instance.json, and with stream-K of h100_linear.json,
// whose times are 2 % longer, less that. Reports of the others are not kept; the one in bf16 is of an H200.
TEST_CASE("on 9.0 the choice is the instance that was measured to be faster", "[host][select_instance]") {
  // The columns are the type of A; groups, or 0; M, N, K; and two instances, each with its time.
  std::istringstream lines(R"(
nvfp4   0  64  5120 25600  m64n128k256s2x   49.5  m64n64k256s4x    58.9
nvfp4   0  64  8192  4096  m64n128k256s2x   15.4  m32n128k256      16.2
nvfp4   0 128  5120  3072  m128n128k256s2x  15.1  m64n128k256x     15.3
nvfp4   0 128  5120  4096  m128n128k256s2x  17.0  m128n128k256skx  19.1
nvfp4   0 256  5120  3072  m128n128k256x    19.8  m128n128k256skx  20.9
fp16    0  32 25600  5120  m32n128k256      36.9  m64n128k256x     46.6
bf16  128 256  4096  1536  m128n128k256xg  832    m64n128k256xg  1055
)");
  int32_t rows = 0;
  std::string a_type, first, second;
  double first_us, second_us;
  int32_t groups, m, n, k;
  while (lines >> a_type >> groups >> m >> n >> k >> first >> first_us >> second >> second_us) {
    InstanceKind kind{Arch::kSm90, CType::kFp16, false, CType::kNvfp4, 1};
    if (a_type == "fp16") kind.a_type = CType::kFp16;
    if (a_type == "bf16") kind.a_type = kind.c_type = CType::kBf16;
    Shape shape{m, n, k, std::max(groups, 1), groups > 0};
    shape.activation = ActivationKind::kReglu;  // without a special function, as a product is
    const std::string end = kind.a_type == CType::kNvfp4 ? "_one_fp16" : "_one_a" + a_type + "_" + a_type;
    const auto is_there = [&](const std::string& name) {
      const auto all = instances_of(kind, shape.grouped);
      return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.instance->name == name; });
    };
    INFO(m << " x " << n << " x " << k << ", A in " << a_type);
    CHECK(is_there("sm90" + first + end));
    CHECK(is_there("sm90" + second + end));
    CHECK(chosen(shape, kind, kRoomForParts).name == "sm90" + (first_us < second_us ? first : second) + end);
    ++rows;
  }
  CHECK(rows == 7);
}

TEST_CASE("on 9.0 K is split where there are fewer tiles than SMs", "[host][select_instance]") {
  CHECK(chosen({1, 2048, 7168}).plan.tile.split_k > 1);
  CHECK(chosen({16, 512, 7168}).plan.tile.split_k > 1);
  CHECK(chosen({64, 2048, 7168}).plan.tile.split_k > 1);
  CHECK(chosen({1, 14336, 4096}).plan.tile.split_k == 1);
  CHECK(chosen({4096, 4096, 4096}).plan.tile.split_k == 1);
}

TEST_CASE("on 9.0 every output, epilogue and grouping has an instance for any number of rows",
          "[host][select_instance]") {
  const CType a_type = GENERATE(CType::kNvfp4, CType::kBf16, CType::kFp16, CType::kFp8);
  const bool sixteen_bits = a_type == CType::kBf16 || a_type == CType::kFp16;
  for (const CType c_type : {CType::kBf16, CType::kFp16, CType::kFp32, CType::kNvfp4, CType::kFp8})
    for (const bool general : {false, true}) {
      // Of those for an A of 16 bits a plain one writes the type of A.
      const bool plain = sixteen_bits ? c_type == a_type : c_type == CType::kBf16 || c_type == CType::kFp16;
      if (!general && !plain) continue;
      for (const bool grouped : {false, true})
        for (const int32_t m : {1, 100, 5000}) {
          const InstanceKind kind{Arch::kSm90, c_type, general, a_type};
          CHECK(chosen({m, 4096, 4096, 8, grouped}, kind).plan.tile.grouped == grouped);
        }
    }
}

// What an H200's faster memory would choose differently costs little, and so does a constant at either end of
// what its sources allow.
TEST_CASE("on 9.0 the choice hardly depends on where a constant lies", "[host][select_instance]") {
  const auto regret = [](const CostConstants& constants) {
    bench::Regret all{};
    for_each_shape([&](const Shape& shape) {
      const Instance& choice = chosen(shape);
      double fastest = std::numeric_limits<double>::infinity(), own = 0;
      for (const auto& [other, index] : instances_of(kPlain, shape.grouped)) {
        Cost cost;
        if (other->plan.prepared_a() || !cost_of(*other, shape, kH100, &cost, constants)) continue;
        fastest = std::min(fastest, cost.total_us);
        if (other == &choice) own = cost.total_us;
      }
      ++all.shapes;
      all.close += own <= fastest * (1.02 + 1e-12);
      all.worst = std::max(all.worst, own / fastest - 1);
    });
    return all;
  };
  const auto check = [&](const std::string& what, const CostConstants& constants, double close,
                         double worst) {
    const bench::Regret all = regret(constants);
    INFO(what << ": " << all.close << " of " << all.shapes << " within 2 %, the worst " << 100 * all.worst
              << " % slower");
    CHECK(all.close >= close * all.shapes);
    CHECK(all.worst < worst);
  };
  check("H100", kH100Costs, 1, 0.02 + 1e-9);
  check("H200", kH200Costs, 0.9, 0.25);  // chosen, not derived, as those below
  for (const CostRange& range : cost_table(Arch::kSm90).ranges)
    for (const double value : {range.low, range.high}) {
      CostConstants constants = kH100Costs;
      constants.*range.constant = value;
      check(range.name, constants, 0.8, 0.3);
    }
}

TEST_CASE("on 9.0 every instance keeps to its static budget", "[host][select_instance]") {
  int32_t count = 0;
  for (const Instance& instance : instances(Arch::kSm90)) {
    const Plan& plan = instance.plan;
    INFO(instance.name);
    ++count;
    // Of the 228 KiB of an SM each CTA takes 1 KiB for the system, and has at most 227.
    CHECK(instance.smem_bytes + 1024 <= 228 * 1024 / plan.ctas_per_sm);
    CHECK(instance.smem_bytes <= 232448);
    // A stage of a CTA has rows of tile.k / 2 bytes for B1 and B2, and for A if this comes packed; A is
    // there, or there once more, in 16 bits.
    const int32_t rows_of_a = plan.prepared_a() || !plan.packed_a() ? 0 : plan.tile.m;
    const int32_t stage = (rows_of_a + plan.mma.accumulators * plan.tile.n) * plan.tile.k / 2;
    CHECK(plan.operands.stage_bytes == stage);
    CHECK(instance.smem_bytes >=
          plan.operands.stages * (stage + plan.a16.bytes) + plan.a16.stages * plan.a16.stage_bytes);
    CHECK(plan.operands.stages >= 2);
    // 64 K registers of an SM.
    CHECK(plan.ctas_per_sm * plan.threads * plan.registers.launch <= 65536);
    CHECK(plan.threads % 128 == 0);
    CHECK(plan.threads * plan.ctas_per_sm <= 2048);
    CHECK(plan.tmem.allocated == 0);
    CHECK(plan.mma.cta_group == 1);
    CHECK(plan.cluster_size() <= 8);  // the largest portable cluster
  }
  CHECK(count > 0);
}

}  // namespace select_sm90_test
