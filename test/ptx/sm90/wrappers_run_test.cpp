// wrappers_run_test.cpp -- launches the kernels of wrappers_test.cu and compares what they leave behind with
// values derived here from the text of PTX ISA 9.0. No expected value comes from ptx/ or from the simulator.
#include "test/ptx/sm90/wrappers.h"

#include <vector>

#include "sim/machine.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "test/ptx/launch.h"

using namespace wrappers;

namespace {

// The tests of this file run on a simulated H100, the others of the program on a B200.
struct OnH100 {
  OnH100() { sim::shim::set_machine(sim::kH100); }
  ~OnH100() { sim::shim::set_machine(sim::kB200); }
};

// The integers 0 to 7 in a type; and the sign of what its wgmma adds.
struct Type {
  int bits, sign;
  uint16_t integers[8];
  int k() const { return 256 / bits; }  // of a wgmma: 32 bytes
};
constexpr Type kFp16 = {16, 1, {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}};
constexpr Type kBf16 = {16, 1, {0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0}};
constexpr Type kE4m3 = {8, -1, {0x00, 0x38, 0x40, 0x44, 0x48, 0x4A, 0x4C, 0x4E}};

// The numbers of a matrix are 0 to 7, so that each sum is an integer below 2^12, exact in any order.
struct Matrix {
  int rows, columns;
  std::vector<uint32_t> numbers;

  Matrix(int rows_, int columns_, uint32_t seed) : rows(rows_), columns(columns_) {
    for (uint32_t word : distinct_words(static_cast<size_t>(rows * columns)))
      numbers.push_back((word ^ seed) % 8);
  }
  uint32_t at(int row, int column) const { return numbers.at(static_cast<size_t>(row * columns + column)); }
  std::vector<uint32_t> words(const Type& type) const {
    const auto in_word = static_cast<size_t>(32 / type.bits);
    std::vector<uint32_t> out(numbers.size() / in_word);
    for (size_t i = 0; i < numbers.size(); ++i)
      out[i / in_word] |= uint32_t{type.integers[numbers[i]]} << i % in_word * static_cast<size_t>(type.bits);
    return out;
  }
};

void check_multiply(int n, void (*kernel)(const uint32_t*, const uint32_t*, float*),
                    const Type& type = kFp16) {
  INFO("n " << n);
  const Matrix a(64, type.k(), 3), b(n, 4 * type.k(), 5);
  DeviceArray<uint32_t> a_device(a.words(type)), b_device(b.words(type));
  DeviceArray<float> d(static_cast<size_t>(64 * n));
  launch(kernel, 128, a_device.data(), b_device.data(), d.data());
  const std::vector<float> got = d.host();
  int wrong = 0;
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < n; ++column) {
      int sum = 0;
      for (int k = 0; k < type.k(); ++k)
        sum += 2 * type.sign * static_cast<int>(a.at(row, k) * b.at(column, type.k() + k));
      wrong += got[static_cast<size_t>(row * n + column)] != static_cast<float>(sum);
    }
  CHECK(wrong == 0);
}

struct HalfProduct {
  uint16_t x, y, product;
};

// Every pair of cases: one is in the low half, the other in the high half.
void check_products(auto kernel, const std::vector<HalfProduct>& cases) {
  std::vector<uint32_t> in, expected;
  for (const auto& low : cases)
    for (const auto& high : cases) {
      in.insert(in.end(), {uint32_t{high.x} << 16 | low.x, uint32_t{high.y} << 16 | low.y});
      expected.push_back(uint32_t{high.product} << 16 | low.product);
    }
  DeviceArray<uint32_t> in_device(in), out(expected.size());
  launch(kernel, static_cast<unsigned>(expected.size()), in_device.data(), out.data());
  CHECK(out.host() == expected);
}

}  // namespace

TEST_CASE_METHOD(OnH100, "wgmma: two products of one group, of every width", "[ptx][sm90]") {
  check_multiply(8, wgmma_n8);
  check_multiply(16, wgmma_n16);
  check_multiply(32, wgmma_n32);
  check_multiply(64, wgmma_n64);
  check_multiply(128, wgmma_n128);
  check_multiply(160, wgmma_n160);
  check_multiply(192, wgmma_n192);
  check_multiply(256, wgmma_n256);
}

TEST_CASE_METHOD(OnH100, "wgmma: the same of bf16", "[ptx][sm90]") {
  check_multiply(16, wgmma_bf16_n16, kBf16);
  check_multiply(32, wgmma_bf16_n32, kBf16);
  check_multiply(64, wgmma_bf16_n64, kBf16);
  check_multiply(128, wgmma_bf16_n128, kBf16);
  check_multiply(160, wgmma_bf16_n160, kBf16);
  check_multiply(192, wgmma_bf16_n192, kBf16);
  check_multiply(256, wgmma_bf16_n256, kBf16);
}

TEST_CASE_METHOD(OnH100, "wgmma: the same of e4m3, with the sign of A inverted", "[ptx][sm90]") {
  check_multiply(8, wgmma_e4m3_n8, kE4m3);
  check_multiply(16, wgmma_e4m3_n16, kE4m3);
  check_multiply(32, wgmma_e4m3_n32, kE4m3);
  check_multiply(64, wgmma_e4m3_n64, kE4m3);
  check_multiply(128, wgmma_e4m3_n128, kE4m3);
  check_multiply(256, wgmma_e4m3_n256, kE4m3);
}

// Element j of row r of matrix i goes to the row of lane 8 i + j, place r (PTX ISA 9.0, 9.7.14.5.16, .trans).
TEST_CASE_METHOD(OnH100, "stmatrix: each matrix is stored transposed, where its lanes say", "[ptx][sm90]") {
  for (int matrices : {1, 2, 4}) {
    INFO(matrices << " matrices");
    DeviceArray<uint32_t> out(32 * 8);
    launch(stmatrix, 32, matrices, out.data());
    const std::vector<uint32_t> words = out.host();
    for (int lane = 0; lane < 32; ++lane)
      for (int place = 0; place < 16; ++place) {
        const bool written = lane < 8 * matrices && place < 8;
        const uint32_t expected =
            written ? static_cast<uint32_t>(64 * (lane / 8) + 8 * place + lane % 8) : 0xFFFF;
        const uint32_t word = words[static_cast<size_t>(lane * 8 + place / 2)];
        CHECK((word >> place % 2 * 16 & 0xFFFF) == expected);
      }
  }
}

TEST_CASE_METHOD(OnH100, "setmaxnreg: what one warpgroup gives back others get", "[ptx][sm90]") {
  DeviceArray<uint32_t> out(384);
  launch(setmaxnreg, 384, out.data());
  CHECK(out.host() == std::vector<uint32_t>(384, 1));
}

TEST_CASE_METHOD(OnH100, "mbarrier_arrive_if: lanes without the predicate do not arrive", "[ptx][sm90]") {
  DeviceArray<uint32_t> out(32);
  launch(mbarrier_arrive_if, 32, 5, out.data());
  CHECK(out.host() == std::vector<uint32_t>(32, 1));
  check_waits_forever(run(mbarrier_arrive_if, 32, 4, out.data()), "phase");
}

// 1.5 * 2.5 = 3.75, the smallest subnormal times 1 and times 2^119, as weights are, the largest times itself,
// 2^-126 times 2^-7, a tie that goes to the even number, and a sign.
TEST_CASE_METHOD(OnH100, "mul_rn_bf16x2: products of each half, subnormal ones too", "[ptx][sm90]") {
  check_products(mul_rn_bf16x2, {{0x3FC0, 0x4020, 0x4070},
                                 {0x0001, 0x3F80, 0x0001},
                                 {0x0001, 0x7B00, 0x3880},
                                 {0x0040, 0x7F60, 0x3FE0},
                                 {0x7F7F, 0x7F7F, 0x7F80},
                                 {0x0080, 0x3C00, 0x0001},
                                 {0x0003, 0x3F00, 0x0002},
                                 {0xBF80, 0x0001, 0x8001}});
}

// 1.5 * 2.5 = 3.75, the smallest subnormal times 1, the largest times itself, 2^-14 * 2^-10 = 2^-24, ties
// that go to the even number.
TEST_CASE_METHOD(OnH100, "mul_rn_f16x2: products of each half, subnormal ones too", "[ptx][sm90]") {
  check_products(mul_rn_f16x2, {{0x3E00, 0x4100, 0x4380},
                                {0x0001, 0x3C00, 0x0001},
                                {0x7BFF, 0x7BFF, 0x7C00},
                                {0x0400, 0x1400, 0x0001},
                                {0x0001, 0x3800, 0x0000},
                                {0x0003, 0x3800, 0x0002},
                                {0xBC00, 0x0001, 0x8001}});
}

TEST_CASE_METHOD(OnH100, "lop3_select: bits of x where the mask has ones, else of y", "[ptx][sm90]") {
  const std::vector<uint32_t> in = {0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0xFFFFFFFF, 0x12345678,
                                    0,          0,          0xFFFFFFFF, 0x87654321};
  DeviceArray<uint32_t> in_device(in), out(3);
  launch(lop3_select, 3, in_device.data(), out.data());
  CHECK(out.host() == std::vector<uint32_t>{0xCACACACA, 0x12345678, 0x87654321});
}

// The bytes 0 to 3 are those of the first operand, 4 to 7 those of the second; 8 more asks for copies of the
// byte's sign. The upper half of a selector does not count.
TEST_CASE_METHOD(OnH100, "prmt: each nibble of the selector chooses a byte, or its sign", "[ptx][sm90]") {
  const std::vector<uint32_t> in = {0x44332211, 0x887766F5, 0x00007654, 0x44332211, 0x887766F5, 0xABCD0123,
                                    0x44332211, 0x887766F5, 0x0000FC8D, 0x44332211, 0x887766F5, 0x00004444};
  DeviceArray<uint32_t> in_device(in), out(4);
  launch(prmt, 4, in_device.data(), out.data());
  CHECK(out.host() == std::vector<uint32_t>{0x887766F5, 0x11223344, 0xFFFF0000, 0xF5F5F5F5});
}

TEST_CASE_METHOD(OnH100, "half_twice: the lower or the upper half, in both", "[ptx][sm90]") {
  DeviceArray<uint32_t> out(2);
  launch(half_twice, 1, 0x1234ABCD, out.data());
  CHECK(out.host() == std::vector<uint32_t>{0xABCDABCD, 0x12341234});
}
