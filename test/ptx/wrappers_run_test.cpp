// wrappers_run_test.cpp -- launches the kernels of wrappers_test.cu and compares what they leave behind with
// values derived here from the text of PTX ISA 9.0: formulas for layouts, literals for bit patterns, sums of
// exact numbers for the multiply. No expected value comes from ptx/ or from the simulator.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/programmatic.h"
#include "test/ptx/launch.h"
#include "test/ptx/product.h"
#include "test/ptx/wrappers.h"

using namespace wrappers;

namespace {

// Returns the distance of two neighbouring floats where `x` lies, for normal x.
double ulp(double x) { return std::ldexp(1.0, std::ilogb(x) - 23); }

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float power_of_two(int exponent) { return std::ldexp(1.0f, exponent); }

std::vector<float> run_map(void (*kernel)(const float*, float*), const std::vector<float>& inputs) {
  DeviceArray<float> in(inputs), out(inputs.size());
  launch(kernel, static_cast<unsigned>(inputs.size()), in.data(), out.data());
  return out.host();
}

struct Conversion {
  float from;
  uint32_t to;
};

// Tries every input next to every other as the low and as the high half.
void check_conversion(void (*kernel)(const float*, uint32_t*), const std::vector<Conversion>& cases,
                      int bits = 16) {
  std::vector<float> inputs;
  std::vector<uint32_t> expected;
  for (const Conversion& low : cases)
    for (const Conversion& high : cases) {
      inputs.insert(inputs.end(), {low.from, high.from});
      expected.push_back(high.to << bits | low.to);
    }
  DeviceArray<float> in(inputs);
  DeviceArray<uint32_t> out(expected.size());
  launch(kernel, static_cast<unsigned>(expected.size()), in.data(), out.data());
  const auto packed = out.host();
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("low " << inputs[2 * i] << ", high " << inputs[2 * i + 1]);
    CHECK(packed[i] == expected[i]);
  }
}

// Checks that stores of `width` words by every thread of a warp reach exactly their own words.
void check_wide_store(void (*kernel)(uint32_t*), uint32_t width) {
  const uint32_t stored = 32 * width;
  DeviceArray<uint32_t> out(stored + 8);
  launch(kernel, 32, out.data());
  const auto words = out.host();
  for (uint32_t i = 0; i < words.size(); ++i) {
    INFO("word " << i);
    CHECK(words[i] == (i < stored ? i : kUntouched));
  }
}

}  // namespace

TEST_CASE("elect_sync is true in exactly one lane, the same one every time", "[ptx]") {
  DeviceArray<uint32_t> first(32), second(32);
  launch(elect_sync, 32, first.data());
  launch(elect_sync, 32, second.data());
  const auto lanes = first.host();
  uint32_t elected = 0;
  for (uint32_t lane : lanes) {
    CHECK(lane <= 1);
    elected += lane;
  }
  CHECK(elected == 1);
  CHECK(second.host() == lanes);
}

TEST_CASE("barrier_sync meets as many threads as it names, at its own barrier", "[ptx]") {
  const uint32_t threads = GENERATE(32u, 64u, 96u);
  DeviceArray<uint32_t> out(128);
  const Outcome outcome = run(barrier_sync, 128, threads, out.data());
  if (threads == 96) {  // the two warps at the other barrier do not count
    check_waits_forever(outcome, "barrier 1");
    return;
  }
  if (threads == 32) {  // a warp does not wait for the other
    CHECK(outcome.error == cudaSuccess);
    CHECK_THAT(outcome.findings, dualgemm_test::contains("race-data"));
    return;
  }
  require_end(outcome);
  const auto words = out.host();
  for (uint32_t t = 0; t < 128; ++t) {
    INFO("thread " << t);
    CHECK(words[t] == 1000 + (t ^ 32));
  }
}

TEST_CASE("barrier_arrive counts threads that go on", "[ptx]") {
  const uint32_t threads = GENERATE(64u, 96u);
  DeviceArray<uint32_t> out(32);
  const Outcome outcome = run(barrier_arrive, 96, threads, out.data());
  if (threads == 96) {  // 32 threads more than come
    check_waits_forever(outcome, "barrier 1");
    return;
  }
  require_end(outcome);
  const auto words = out.host();
  for (uint32_t t = 0; t < 32; ++t) {
    INFO("thread " << t);
    CHECK(words[t] == 1000 + t);
  }
}

TEST_CASE("barrier_red_or tells all threads whether one of them said so", "[ptx]") {
  const int32_t chosen = GENERATE(-1, 0, 37, 63, 64);
  DeviceArray<uint32_t> out(64);
  require_end(run(barrier_red_or, 96, 64, chosen, out.data()));
  CHECK(out.host() == std::vector<uint32_t>(64, 0 <= chosen && chosen < 64 ? 1 : 0));
  check_waits_forever(run(barrier_red_or, 96, 96, chosen, out.data()), "barrier 1");
}

// The simulator runs one grid after the other: that nothing else orders them is what the judge sees.
TEST_CASE("griddepcontrol_wait makes the writes of a kernel that it overlaps visible", "[ptx]") {
  const int32_t waits = GENERATE(0, 1);
  DeviceArray<uint32_t> in(distinct_words(32)), between(32), out(32);
  const Outcome outcome = judged([&] {
    const dualgemm_test::ProgrammaticLaunch launch(1, 32);
    const cudaLaunchConfig_t& config = launch.config();
    cudaError_t error = enqueue(config, griddepcontrol, in.data(), 1, between.data());
    if (error == cudaSuccess) error = enqueue(config, griddepcontrol, between.data(), waits, out.data());
    return error;
  });
  if (waits) {
    require_end(outcome);
    const auto before = in.host(), after = out.host();
    for (size_t i = 0; i < before.size(); ++i) CHECK(after[i] == before[i] + 2);
  } else {
    CHECK_THAT(outcome.findings, dualgemm_test::contains("race"));
  }
}

TEST_CASE("an mbarrier phase completes with its last arrival and not before", "[ptx]") {
  const int arrivals = GENERATE(0, 1, 2);
  DeviceArray<uint32_t> out(1);
  const Outcome outcome = run(mbarrier_arrive, 32, arrivals, out.data());
  if (arrivals == 2) {
    require_end(outcome);
  } else {
    check_waits_forever(outcome, "pending arrivals " + std::to_string(2 - arrivals) + " of 2");
  }
  CHECK(out.host()[0] == (arrivals == 2 ? 1 : kUntouched));
}

TEST_CASE("a new mbarrier counts as just past a phase of parity 1", "[ptx]") {
  const uint32_t parity = GENERATE(0u, 1u);
  DeviceArray<uint32_t> out(1);
  const Outcome outcome = run(mbarrier_try_wait_parity, 32, parity, out.data());
  if (parity == 1) {
    require_end(outcome);
  } else {
    check_waits_forever(outcome, "parity 0");
  }
  CHECK(out.host()[0] == (parity == 1 ? 1 : kUntouched));
}

TEST_CASE("an mbarrier phase completes only when as many bytes have arrived as were announced", "[ptx]") {
  const uint32_t announced = GENERATE(64u, 80u);
  DeviceArray<uint32_t> source(distinct_words(16)), out(1);
  const Outcome outcome =
      run(mbarrier_arrive_expect_tx, 32, map_rows(source.data(), 4, 4, 4), announced, out.data());
  if (announced == 64) {
    require_end(outcome);
  } else {
    check_waits_forever(outcome, "pending bytes 16");
  }
  CHECK(out.host()[0] == (announced == 64 ? 1 : kUntouched));
}

namespace {

// There are gaps along every dimension but the innermost, which no box may show.
const std::vector<Axis> kTensor3 = {{10, 1, 4}, {7, 12, 4}, {3, 96, 2}};
const std::vector<Axis> kTensor4 = {{10, 1, 4}, {7, 12, 2}, {3, 96, 2}, {2, 384, 2}};

}  // namespace

TEST_CASE("cp_async_bulk_tensor_3d copies a box and writes zero for what lies outside", "[ptx]") {
  const auto tensor = distinct_words(3 * 96);
  const std::vector<int32_t> at =
      GENERATE(std::vector<int32_t>{0, 0, 0}, std::vector<int32_t>{4, 2, 1}, std::vector<int32_t>{-4, 0, 1},
               std::vector<int32_t>{4, -1, 1}, std::vector<int32_t>{0, 3, -1}, std::vector<int32_t>{8, 5, 2},
               std::vector<int32_t>{12, 0, 0}, std::vector<int32_t>{0, 7, 0}, std::vector<int32_t>{4, 2, 3});
  const int32_t last = GENERATE(0, 1);  // the policy changes nothing
  DeviceArray<uint32_t> source(tensor), out(32);
  launch(cp_async_bulk_tensor_3d, 32, map_words(source.data(), kTensor3), at[0], at[1], at[2], last,
         out.data());
  CAPTURE(at, last);
  CHECK(out.host() == box_at(tensor, kTensor3, at));
}

TEST_CASE("cp_async_bulk_tensor_4d copies a box and writes zero for what lies outside", "[ptx]") {
  const auto tensor = distinct_words(2 * 384);
  const std::vector<int32_t> at = GENERATE(
      std::vector<int32_t>{0, 0, 0, 0}, std::vector<int32_t>{4, 3, 1, 0}, std::vector<int32_t>{-4, 0, 1, 0},
      std::vector<int32_t>{0, -1, 1, 0}, std::vector<int32_t>{4, 1, -1, 0}, std::vector<int32_t>{4, 1, 0, -1},
      std::vector<int32_t>{8, 6, 2, 1}, std::vector<int32_t>{4, 1, 3, 0}, std::vector<int32_t>{4, 1, 0, 2});
  DeviceArray<uint32_t> source(tensor), out(32);
  launch(cp_async_bulk_tensor_4d, 32, map_words(source.data(), kTensor4), at[0], at[1], at[2], at[3],
         out.data());
  CAPTURE(at);
  CHECK(out.host() == box_at(tensor, kTensor4, at));
}

// 128-byte swizzle: of the eight 16-byte pieces of a 128-byte row, piece p of row r lies where p xor r mod 8
// would lie without it. Rows count on from one plane of the box to the next.
TEST_CASE("cp_async_bulk_tensor_3d places a 128-byte-swizzled box piece by piece", "[ptx]") {
  const auto tensor = distinct_words(8 * 32);
  DeviceArray<uint32_t> source(tensor), out(8 * 32);
  launch(cp_async_bulk_tensor_3d_swizzled, 32,
         map_words(source.data(), {{32, 1, 32}, {4, 32, 4}, {2, 128, 2}}, CU_TENSOR_MAP_SWIZZLE_128B),
         out.data());
  const auto smem = out.host();
  for (int row = 0; row < 8; ++row)
    for (int word = 0; word < 32; ++word) {
      INFO("row " << row << ", word " << word);
      CHECK(smem[32 * row + 4 * ((word / 4) ^ row) + word % 4] == tensor[32 * row + word]);
    }
}

TEST_CASE("cp_async_bulk_prefetch_tensor_3d executes inside, across and outside the tensor", "[ptx]") {
  DeviceArray<uint32_t> source(distinct_words(3 * 96)), out(1);
  const std::vector<int32_t> at = GENERATE(std::vector<int32_t>{4, 2, 1}, std::vector<int32_t>{-4, -1, -1},
                                           std::vector<int32_t>{8, 5, 2}, std::vector<int32_t>{0, 7, 3});
  launch(cp_async_bulk_prefetch_tensor_3d, 32, map_words(source.data(), kTensor3), at[0], at[1], at[2],
         out.data());
  CHECK(out.host()[0] == 1);
}

TEST_CASE("cp_async_bulk_shared_to_global copies its bytes, and its groups say when", "[ptx]") {
  const uint32_t bytes = GENERATE(16u, 208u, 256u);
  DeviceArray<uint32_t> out(129);
  const auto copy = [&](int32_t wait_read, int32_t wait_written) {
    return run(cp_async_bulk_shared_to_global, 32, bytes, wait_read, wait_written, out.data());
  };
  require_end(copy(1, 1));
  const auto words = out.host();
  for (uint32_t i = 0; i < 128; ++i) {
    INFO("word " << i << " of " << bytes << " bytes");
    CHECK(words[i] == (4 * (i % 64) < bytes ? 1000 * (i / 64 + 1) + i % 64 : kUntouched));
  }
  CHECK(words[128] == 1000);
  // Without one of the waits the judge misses what it orders.
  CHECK_THAT(copy(0, 1).findings, dualgemm_test::contains("may still read it"));
  CHECK_THAT(copy(1, 0).findings, dualgemm_test::contains("may still write it"));
}

TEST_CASE("prefetch_tensormap executes on a map in the parameters", "[ptx]") {
  DeviceArray<uint32_t> source(distinct_words(16)), out(1);
  launch(prefetch_tensormap, 32, map_rows(source.data(), 4, 4, 4), out.data());
  CHECK(out.host()[0] == 1);
}

TEST_CASE("tcgen05_alloc hands out columns that lie in tensor memory and do not overlap", "[ptx]") {
  DeviceArray<uint32_t> out(2);
  launch(tcgen05_alloc, 32, out.data());
  const auto address = out.host();
  for (uint32_t first : address) CHECK(first <= 512 - 32);  // also: lane 0, in bits 16-31
  CHECK(std::max(address[0], address[1]) - std::min(address[0], address[1]) >= 32);
}

TEST_CASE("tcgen05_dealloc makes all of tensor memory available again", "[ptx]") {
  DeviceArray<uint32_t> out(2);
  launch(tcgen05_dealloc, 32, out.data());
  CHECK(out.host() == std::vector<uint32_t>{0, 0});  // all 512 columns can only start at column 0
}

TEST_CASE("tcgen05_cp_32x128b_warpx4 copies 32 rows to four columns of every lane quarter", "[ptx]") {
  const auto rows = distinct_words(8 * 32 * 4);  // eight times 32 rows of four words
  const int32_t width = GENERATE(8, 16, 32);     // columns that one tcgen05_ld_32x32b loads
  DeviceArray<uint32_t> source(rows), out(128 * 32);
  launch(tcgen05_cp_32x128b_warpx4, 128, map_rows(source.data(), 128, 8, 8), width, out.data());
  const auto tmem = out.host();
  for (int lane = 0; lane < 128; ++lane)
    for (int column = 0; column < 32; ++column) {
      INFO("lane " << lane << ", column " << column << ", by " << width);
      CHECK(tmem[32 * lane + column] == rows[128 * (column / 4) + 4 * (lane % 32) + column % 4]);
    }
}

TEST_CASE("tcgen05_mma_mxf4nvf4_block16 multiplies scaled e2m1 and accumulates", "[ptx]") {
  const Product product(128);
  DeviceArray<uint32_t> a(product.a()), b(product.b()), atoms(product.atoms());
  const int32_t times = GENERATE(1, 3);
  const auto multiply = [&](int32_t collector, Outcome& outcome) {
    DeviceArray<uint32_t> out(128 * Product::kN);
    outcome =
        run(tcgen05_mma_mxf4nvf4_block16, 128, map_rows(a.data(), 32, 128, 128, CU_TENSOR_MAP_SWIZZLE_128B),
            map_rows(b.data(), 32, Product::kN, Product::kN, CU_TENSOR_MAP_SWIZZLE_128B),
            map_rows(atoms.data(), 128, 3, 3), times, collector, out.data());
    return out.host();
  };
  Outcome plain, shared, swapped;
  const auto bits = multiply(0, plain);
  require_end(plain);
  product.check(bits, times);
  CHECK(multiply(1, shared) == bits);  // A from the collector is the same A
  require_end(shared);
  multiply(2, swapped);  // ::lastuse before ::fill
  CHECK_THAT(swapped.findings, dualgemm_test::contains("may take matrix A from the collector"));
}

TEST_CASE("ex2_approx_ftz is within 2 ulp and flushes subnormals", "[ptx]") {
  std::vector<float> inputs;
  for (int i = 0; i < 256; ++i) inputs.push_back(-125.9f + static_cast<float>(i) * 0.9871f);  // up to 125.8
  const auto powers = run_map(ex2_approx_ftz, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double exact = std::exp2(double{inputs[i]});
    INFO("2 to the " << inputs[i] << " is " << exact << ", not " << powers[i]);
    CHECK(std::abs(powers[i] - exact) <= 2 * ulp(exact));
  }

  const float subnormal = power_of_two(-130);
  const auto special = run_map(
      ex2_approx_ftz, {0.0f, -0.0f, subnormal, -subnormal, kInf, -kInf, 128.0f, -127.0f, -1000.0f, kNaN});
  const std::vector<float> expected = {1, 1, 1, 1, kInf, 0, kInf, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("special input " << i);
    CHECK(std::bit_cast<uint32_t>(special[i]) == std::bit_cast<uint32_t>(expected[i]));
  }
  CHECK(std::isnan(special.back()));
}

TEST_CASE("rcp_approx_ftz is within 1 ulp and flushes subnormals", "[ptx]") {
  std::vector<float> inputs;
  for (int i = 0; i < 256; ++i)  // mantissas over all of [1, 2), exponents from -126 to 125, both signs
    inputs.push_back((i % 3 ? 1.0f : -1.0f) * (1.0f + static_cast<float>(i) / 256.3f) *
                     power_of_two(i % 252 - 126));
  const auto reciprocals = run_map(rcp_approx_ftz, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double exact = 1.0 / inputs[i];
    INFO("1 / " << inputs[i] << " is " << exact << ", not " << reciprocals[i]);
    CHECK(std::abs(reciprocals[i] - exact) <= ulp(exact));
  }

  const float subnormal = power_of_two(-130), huge = power_of_two(127);  // 1 / huge is subnormal
  const auto special =
      run_map(rcp_approx_ftz, {kInf, -kInf, 0.0f, -0.0f, subnormal, -subnormal, huge, -huge, kNaN});
  const std::vector<float> expected = {0.0f, -0.0f, kInf, -kInf, kInf, -kInf, 0.0f, -0.0f};
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("special input " << i);
    CHECK(std::bit_cast<uint32_t>(special[i]) == std::bit_cast<uint32_t>(expected[i]));
  }
  CHECK(std::isnan(special.back()));
}

// fp16 has 10 bits of mantissa and bias 15, so units of 2 at 2048 and of 2^-24 at the bottom.
TEST_CASE("cvt_rn_f16x2_f32 rounds to nearest even and puts its first source in the upper half", "[ptx]") {
  check_conversion(cvt_rn_f16x2_f32, {{1.0f, 0x3C00},
                                      {-2.5f, 0xC100},
                                      {-0.0f, 0x8000},
                                      {2049.0f, 0x6800},    // tie: 2048 and 2050
                                      {2051.0f, 0x6802},    // tie: 2050 and 2052
                                      {2049.001f, 0x6801},  // just above the tie
                                      {65519.0f, 0x7BFF},   // below the tie of 65504 and 2^16
                                      {65520.0f, 0x7C00},   // that tie: infinity
                                      {-kInf, 0xFC00},
                                      {power_of_two(-24), 0x0001},
                                      {power_of_two(-25), 0x0000},       // tie: 0 and 2^-24
                                      {-3 * power_of_two(-25), 0x8002},  // tie: 1 and 2 units
                                      {kNaN, 0x7FFF}});
}

// bf16 has 7 bits of mantissa and the exponents of fp32.
TEST_CASE("cvt_rn_bf16x2_f32 rounds to nearest even and puts its first source in the upper half", "[ptx]") {
  const float max = std::numeric_limits<float>::max();
  check_conversion(cvt_rn_bf16x2_f32, {{1.0f, 0x3F80},
                                       {-2.5f, 0xC020},
                                       {-0.0f, 0x8000},
                                       {257.0f, 0x4380},    // tie: 256 and 258
                                       {259.0f, 0x4382},    // tie: 258 and 260
                                       {257.001f, 0x4381},  // just above the tie
                                       {max, 0x7F80},       // nearer to 2^128 than to the last
                                       {-kInf, 0xFF80},
                                       {power_of_two(-133), 0x0001},
                                       {power_of_two(-134), 0x0000},       // tie: 0 and 2^-133
                                       {-3 * power_of_two(-134), 0x8002},  // tie: 1 and 2 units
                                       {kNaN, 0x7FFF}});
}

TEST_CASE("st_global_v8_b32 stores eight words per lane, first word lowest", "[ptx]") {
  check_wide_store(st_global_v8_b32, 8);
}

TEST_CASE("st_global_v4_b32 stores four words per lane, first word lowest", "[ptx]") {
  check_wide_store(st_global_v4_b32, 4);
}

TEST_CASE("st_global_v2_b32 stores two words per lane, first word lowest", "[ptx]") {
  check_wide_store(st_global_v2_b32, 2);
}

TEST_CASE("min_nan and max_nan: the smaller and the larger, NaN if either is", "[ptx]") {
  const std::vector<float> pairs = {1, 2,     2,    1,    -1, 1, kInf, 3,    -kInf,
                                    3, -0.0f, 0.0f, kNaN, 1,  1, kNaN, kNaN, kNaN};
  const std::vector<float> smaller = {1, 1, -1, 3, -kInf, -0.0f}, larger = {2, 2, 1, kInf, 3, 0.0f};
  const size_t count = pairs.size() / 2;
  for (const bool minimum : {true, false}) {
    DeviceArray<float> in(pairs), out(count);
    launch(minimum ? min_nan : max_nan, static_cast<unsigned>(count), in.data(), out.data());
    const auto results = out.host();
    const auto& expected = minimum ? smaller : larger;
    for (size_t i = 0; i < count; ++i) {
      INFO((minimum ? "min of " : "max of ") << pairs[2 * i] << " and " << pairs[2 * i + 1]);
      if (i < expected.size())
        CHECK(std::bit_cast<uint32_t>(results[i]) == std::bit_cast<uint32_t>(expected[i]));
      else CHECK(std::isnan(results[i]));
    }
  }
}

// e4m3 has 3 bits of mantissa and bias 7: units of 32 below 448, of 2^-9 at the bottom.
TEST_CASE("cvt_rn_satfinite_e4m3x2_f32 rounds to nearest even, saturates, and puts its first source above",
          "[ptx]") {
  check_conversion(cvt_rn_satfinite_e4m3x2_f32,
                   {{1.0f, 0x38},
                    {-2.5f, 0xC2},
                    {-0.0f, 0x80},
                    {17.0f, 0x58},    // tie: 16 and 18
                    {19.0f, 0x5A},    // tie: 18 and 20
                    {17.001f, 0x59},  // just above the tie
                    {448.0f, 0x7E},
                    {1e6f, 0x7E},
                    {-kInf, 0xFE},
                    {power_of_two(-9), 0x01},
                    {power_of_two(-10), 0x00},  // tie: 0 and 2^-9
                    {3 * power_of_two(-10), 0x02},
                    {kNaN, 0x7F}},
                   8);
}

TEST_CASE("cvt_rn_f16x2_e4m3x2 and cvt_f32_f16 give every e4m3 its value", "[ptx]") {
  std::vector<uint32_t> codes;
  for (uint32_t i = 0; i < 256; i += 2) codes.push_back(i | (i + 1) << 8);
  DeviceArray<uint32_t> in(codes);
  DeviceArray<float> out(256);
  launch(cvt_rn_f16x2_e4m3x2, 128, in.data(), out.data());
  const auto values = out.host();
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    INFO("code " << code);
    if (exponent == 15 && mantissa == 7) {
      CHECK(std::isnan(values[code]));
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    CHECK(values[code] == (code & 0x80 ? -magnitude : magnitude));
  }
}

// e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
TEST_CASE("cvt_rn_satfinite_e2m1x8_f32 rounds to nearest even, saturates, first element in the lowest nibble",
          "[ptx]") {
  const std::vector<Conversion> cases = {
      {0.0f, 0}, {-0.0f, 8}, {0.25f, 0},  {0.2501f, 1}, {0.75f, 2},  {1.25f, 2}, {1.75f, 4}, {2.5f, 4},
      {3.5f, 6}, {5.0f, 6},  {5.001f, 7}, {-6.0f, 15},  {-1e9f, 15}, {kInf, 7},  {kNaN, 7},  {-1.5f, 11}};
  std::vector<float> inputs;
  std::vector<uint32_t> expected;
  for (size_t shift = 0; shift < cases.size(); ++shift) {  // every case in every nibble
    uint32_t word = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const Conversion& x = cases[(shift + i) % cases.size()];
      inputs.push_back(x.from);
      word |= x.to << 4 * i;
    }
    expected.push_back(word);
  }
  DeviceArray<float> in(inputs);
  DeviceArray<uint32_t> out(expected.size());
  launch(cvt_rn_satfinite_e2m1x8_f32, static_cast<unsigned>(expected.size()), in.data(), out.data());
  CHECK(out.host() == expected);
}

TEST_CASE("red_global_max_s32 leaves the largest of what is there and what all threads bring", "[ptx]") {
  for (const int32_t before : {std::numeric_limits<int32_t>::min(), -1, 0, 500, 0x7FFFFFF0}) {
    std::vector<int32_t> brought;
    for (int32_t i = 0; i < 64; ++i) brought.push_back(i * 37 % 64 * 10);
    DeviceArray<int32_t> in(brought), out(std::vector<int32_t>{before});
    launch(red_global_max_s32, 64, in.data(), out.data());
    CHECK(out.host()[0] == std::max(before, 630));
  }
}

TEST_CASE("atom_acq_rel_gpu_global_add_u32 counts CTAs, and the last sees what all have written", "[ptx]") {
  constexpr uint32_t kCtas = 5;
  DeviceArray<uint32_t> count(std::vector<uint32_t>{0}), words(128 * kCtas), out(128 + kCtas);
  require_end(run_blocks(atom_acq_rel_gpu_global_add_u32, kCtas, 32, count.data(), words.data(), out.data()));
  CHECK(count.host()[0] == kCtas);
  std::vector<uint32_t> host = out.host();
  for (uint32_t i = 0; i < 128; ++i) CHECK(host[i] == (i % 4 + 1) * kCtas * (kCtas + 1) / 2);
  std::sort(host.begin() + 128, host.end());
  for (uint32_t cta = 0; cta < kCtas; ++cta) CHECK(host[128 + cta] == cta);
}

TEST_CASE("ld_acquire_gpu_global_u32 sees what came before the release that it reads", "[ptx]") {
  DeviceArray<uint32_t> count(std::vector<uint32_t>{0}), words(32), out(64);
  require_end(run_blocks(ld_acquire_gpu_global_u32, 3, 32, count.data(), words.data(), out.data()));
  const auto copied = out.host();
  for (uint32_t t = 0; t < 64; ++t) CHECK(copied[t] == 1000 + t % 32);
}
