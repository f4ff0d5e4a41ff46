// ref_output_test.cpp -- the comparison with the reference: for every type of output it accepts what the
// bound and the conversion allow, and refuses everything else.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ref/dual_gemm.h"
#include "ref/formats.h"
#include "ref/nvfp4.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/problem.h"
#include "support/rng.h"

namespace ref_output_test {

using namespace dualgemm_test;

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("a number becomes its neighbours in every output type, and no others", "[ref]") {
  using ref::Format;
  struct Case {
    Format type;
    double below, above;  // neighbours
  };
  const Case cases[] = {{Format::kFp16, 1, 1 + 0x1p-10}, {Format::kBf16, 1, 1 + 0x1p-7},
                        {Format::kFp32, 1, 1 + 0x1p-23}, {Format::kE4m3, 1, 1.125},
                        {Format::kE4m3, 0, 0x1p-9},      {Format::kE4m3, 416, 448}};
  for (const auto& [type, below, above] : cases) {
    const double step = above - below, near_above = below + 0.75 * step;
    INFO(static_cast<int>(type) << ": " << near_above);
    CHECK(ref::may_become(type, near_above, 0, above));
    CHECK(ref::may_become(type, -near_above, 0, -above));
    CHECK_FALSE(ref::may_become(type, near_above, 0, below));
    CHECK(ref::may_become(type, near_above, 0.3 * step, below));
    CHECK_FALSE(ref::may_become(type, near_above, kNan, above));
    CHECK_FALSE(ref::may_become(type, near_above, 0, kNan));
    CHECK_FALSE(ref::may_become(type, kNan, 0, above));
    CHECK(ref::may_become(type, kNan, 0, kNan));
    CHECK(std::fabs(near_above - above) <= ref::conversion_error(type, near_above));
  }
  CHECK(ref::may_become(Format::kE4m3, 1e9, 0, 448));  // saturates
  CHECK_FALSE(ref::may_become(Format::kE4m3, 1e9, 0, -448));
  CHECK_FALSE(ref::may_become(Format::kE4m3, 1e9, 0, 416));
  CHECK(ref::may_become(Format::kFp32, 0x1.FFFFFFp127, 0, kInf));
  CHECK_FALSE(ref::may_become(Format::kFp32, 0x1.FFFFFEp127, 0, kInf));
}

TEST_CASE("a result is held to the bound of its own slices", "[ref]") {
  Output out{1, 1, DUALGEMM_DTYPE_FP16, {0x3C01}, 1};
  const ref::DualGemm expected{1, 1, {1}, {{0}, {0x1p-10f}, {0}}, {1}};
  CHECK(compare(out, expected).mismatches == 1);
  out.split_k = 2;
  CHECK(compare(out, expected).mismatches == 0);
}

TEST_CASE("the comparison refuses what it must refuse", "[ref]") {
  Output out{1, 4, DUALGEMM_DTYPE_FP16, {0x3C00, 0x3C00, 0x3C00, 0x3C00}, 1};
  ref::DualGemm expected{1, 4, {1, 1, 1, 1}, {{0, 0, 0, 0}}, {1, 1, 1, 1}};
  CHECK(compare(out, expected).mismatches == 0);
  SECTION("one ulp off") { out.bits[2] = 0x3C01; }
  SECTION("NaN for a number") { out.bits[2] = 0xFFFF; }
  SECTION("a number for NaN") { expected.c[2] = std::numeric_limits<double>::quiet_NaN(); }
  SECTION("infinity for a number") { out.bits[2] = 0x7C00; }
  SECTION("the wrong sign") { out.bits[2] = 0xBC00; }
  SECTION("a number for one beyond the range") { expected.c[2] = 65600; }
  SECTION("a NaN bound") { expected.error[0][2] = std::numeric_limits<float>::quiet_NaN(); }
  const Comparison result = compare(out, expected);
  CHECK(result.mismatches == 1);
  CHECK_THAT(result.first, contains("C[0][2]"));
}

TEST_CASE("the comparison accepts infinity exactly from the overflow threshold on", "[ref]") {
  Output out{1, 1, DUALGEMM_DTYPE_FP16, {0x7C00}, 1};
  ref::DualGemm expected{1, 1, {65520}, {{0}}, {65520}};
  CHECK(compare(out, expected).mismatches == 0);
  expected.c[0] = 65400;
  CHECK(compare(out, expected).mismatches == 1);
  expected.c[0] = -65520;
  CHECK(compare(out, expected).mismatches == 1);
}

// A block of 16 values with the largest, 6, in front; the errors are the same for all.
struct Block {
  std::vector<double> y = {6, -3, 1, 0.5, -0.5, 0, 2, 4, 1.5, -6, -1, -2, -4, 3, -1.5, 0.25};
  float error = 0;
  double encode = 1;
  uint8_t factor = 0x38;  // 1
  std::vector<uint8_t> codes = {7, 13, 2, 1, 9, 0, 4, 6, 3, 15, 10, 12, 14, 5, 11, 0};

  ref::BlockVerdict judged() const {
    const std::vector<float> errors(16, error);
    return ref::judge_block(y.data(), errors.data(), encode, factor, codes.data());
  }
  bool right() const { return judged().factor && judged().wrong == 0; }
};

TEST_CASE("an NVFP4 block is what its values give, and nothing else", "[ref]") {
  Block block;
  CHECK(block.right());
  CHECK(block.judged().exceptions == 0);
  SECTION("another factor") {
    block.factor = 0x39;
    CHECK_FALSE(block.judged().factor);
    block.error = 0.4f;  // 6.4 / 6 is nearer to 1.125 than to 1
    CHECK(block.judged().factor);
    CHECK(block.judged().exceptions >= 1);
  }
  SECTION("another code") {
    block.codes[8] = 4;  // 2 for 1.5
    CHECK(block.judged().wrong == 1u << 8);
    CHECK(block.judged().factor);
    block.error = 0.3f;
    CHECK(block.judged().wrong == 0);
    CHECK(block.judged().exceptions == 1);
  }
  SECTION("the sign of a number that rounds to zero") {
    block.y[15] = -0.1;
    CHECK(block.judged().wrong == 1u << 15);
    block.codes[15] = 8;
    CHECK(block.right());
  }
  SECTION("codes are those of the factor that was written") {
    for (double& y : block.y) y *= 1.0625;  // 6.375 / 6 is as near to 1 as to 1.125
    block.error = 1e-4f;
    CHECK(block.judged().wrong == 1u << 15);  // 0.265625 is nearer to 0.5
    block.factor = 0x39;
    CHECK(block.right());  // and divided by 1.125 nearer to 0
    CHECK(block.judged().exceptions == 1);
  }
  SECTION("an encode scale") {
    block.encode = 16;
    CHECK_FALSE(block.judged().factor);
    block.factor = 0x58;  // 16
    CHECK(block.right());
    block.encode = 448 * 4;  // 448 is the largest factor, and 4 times 6 the largest code
    block.factor = 0x7E;
    CHECK(block.judged().factor);
    CHECK(block.judged().wrong != 0);
  }
  SECTION("a factor of zero") {
    block.encode = 0x1p-11;  // 6 / 6 * 2^-11 is below half of 2^-9
    block.factor = 0;
    CHECK(block.judged().factor);
    CHECK(block.judged().wrong != 0);
    block.codes.assign(16, 0);
    CHECK(block.right());
    block.codes[3] = 8;
    CHECK(block.judged().wrong == 1u << 3);
  }
  SECTION("NaN") {
    block.y[4] = kNan;
    CHECK_FALSE(block.judged().factor);
    block.factor = 0x7F;
    CHECK(block.right());
    block.y[4] = 0;
    CHECK_FALSE(block.judged().factor);
  }
  SECTION("a factor with its sign bit set") {
    block.factor |= 0x80;
    CHECK_FALSE(block.judged().factor);
  }
  SECTION("a NaN bound") {
    block.error = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(block.right());
  }
}

TEST_CASE("a block quantised from exact values is the one that its judge expects", "[ref]") {
  Block block;
  std::vector<uint8_t> codes(16);
  CHECK(ref::quantise_block(block.y.data(), block.encode, codes.data()) == block.factor);
  CHECK(codes == block.codes);
  dualgemm_test::Rng rng(5);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    for (double& y : block.y) y = (rng.unit() - 0.5) * std::exp2(rng.between(-14, 12));
    block.encode = std::exp2(rng.between(-3, 3)) * (1 + rng.unit());
    block.factor = ref::quantise_block(block.y.data(), block.encode, block.codes.data());
    CHECK(block.right());
    CHECK(block.judged().exceptions == 0);
  }
}

TEST_CASE("the comparison knows every output type, its encode scale and its factors", "[ref]") {
  ref::Matrix expected{1, 16, std::vector<double>(16, 0.75), {std::vector<float>(16, 0)}};
  expected.c[3] = -100;
  Output out{1, 16, DUALGEMM_DTYPE_FP32};
  SECTION("fp32") {
    for (int i = 0; i < 16; ++i) {
      const float x = i == 3 ? -100 : 0.75f;
      uint16_t halves[2];
      std::memcpy(halves, &x, 4);
      out.bits.insert(out.bits.end(), halves, halves + 2);
    }
    CHECK(out.value(0, 3) == -100);
    CHECK(compare(out, expected).mismatches == 0);
    out.bits[6] ^= 1;  // the last bit of -100
    CHECK(compare(out, expected).mismatches == 1);
  }
  SECTION("e4m3") {
    out.dtype = DUALGEMM_DTYPE_FP8_E4M3;
    out.encode = 16;  // 12, and -1600, which saturates
    out.bits.assign(8, 0x5454);
    out.bits[1] = 0xFE54;
    CHECK(out.value(0, 2) == 12);
    CHECK(out.value(0, 3) == -448);
    CHECK(compare(out, expected).mismatches == 0);
    out.encode = 1;
    CHECK(compare(out, expected).mismatches == 16);
  }
  SECTION("nvfp4") {
    expected.c[3] = -12;
    out.dtype = DUALGEMM_DTYPE_NVFP4;
    out.encode = 2;
    out.factors = {0x48};  // 12 * 2 / 6 = 4; 0.75 * 2 / 4 is 0.375, nearest to 0.5
    out.bits = {0xF111, 0x1111, 0x1111, 0x1111};
    CHECK(out.value(0, 3) == -24);
    CHECK(out.value(0, 4) == 2);
    CHECK(compare(out, expected).mismatches == 0);
    CHECK(compare(out, expected).exceptions == 0);
    out.factors[0] = 0x47;
    CHECK(compare(out, expected).mismatches > 0);
    CHECK_THAT(compare(out, expected).first, contains("C[0][0]"));
  }
}

TEST_CASE("the largest magnitude may be off by the error of its element", "[ref]") {
  const ref::DualGemm one{{1, 2, {1, -5}, {{0.5f, 0.25f}, {0, 0}, {0, 0}}}, {}};
  CHECK(may_be_amax(5.25f, {&one}, 1));
  CHECK(may_be_amax(4.75f, {&one}, 1));
  CHECK_FALSE(may_be_amax(4.7f, {&one}, 1));
  CHECK_FALSE(may_be_amax(5.25f, {&one}, 2));
  CHECK(may_be_amax(7, {&one}, 1, 7));  // what stood there was larger
  CHECK_FALSE(may_be_amax(5, {&one}, 1, 7));
  ref::DualGemm nan = one;
  nan.c[0] = kNan;
  CHECK_FALSE(may_be_amax(5, {&one, &nan}, 1));
  CHECK(may_be_amax(std::numeric_limits<float>::quiet_NaN(), {&one, &nan}, 1));
}

}  // namespace ref_output_test
