// expand_test.cpp -- the expansion of NVFP4 to fp16 and bf16 for wgmma: the value of every code with every
// factor, in every place of a word, and the order of K that both operands have to agree in.
#include "kernel/sm90/expand.cuh"

#include <bit>
#include <bitset>
#include <cmath>
#include <set>
#include <stdexcept>

#include "kernel/sm90/order.cuh"
#include "ref/formats.h"
#include "support/catch.hpp"

namespace expand_test {

namespace sm90 = dualgemm::sm90;

// Returns the fp16 of a number that is one. Throws if it is none: an expansion that rounds is wrong.
static uint16_t exact_fp16(double x) {
  if (std::isnan(x)) return 0x7E00;
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), -14);
  const double mantissa = std::ldexp(std::fabs(x), 10 - exponent);  // 1024 to 2047, less if subnormal
  if (exponent > 15 || mantissa != std::floor(mantissa)) throw std::domain_error("no fp16 number");
  return static_cast<uint16_t>(sign | ((exponent + 14) * 1024 + static_cast<int>(mantissa)));
}

static uint16_t low(uint32_t pair) { return static_cast<uint16_t>(pair); }
static uint16_t high(uint32_t pair) { return static_cast<uint16_t>(pair >> 16); }
static uint32_t pair_of(uint16_t first, uint16_t second) { return uint32_t{second} << 16 | first; }

// The operations of expand.cuh from their definitions.
struct Half {
  static constexpr dualgemm::CType kType = dualgemm::CType::kFp16;
  static constexpr int kExponent = -7;  // of what an expanded number has become
  static double decode(uint16_t bits) { return ref::fp16_decode(bits); }
  static uint32_t select(uint32_t mask, uint32_t x, uint32_t y) { return (x & mask) | (y & ~mask); }
  static uint16_t multiply(uint16_t x, uint16_t y) {
    return exact_fp16(ref::fp16_decode(x) * ref::fp16_decode(y));
  }
  static uint32_t multiply(uint32_t x, uint32_t y) {
    return pair_of(multiply(low(x), low(y)), multiply(high(x), high(y)));
  }
  static uint32_t factor_twice(uint16_t x, int i) {
    const uint16_t factor = exact_fp16(std::ldexp(ref::e4m3_decode(static_cast<uint8_t>(x >> 8 * i)), 7));
    return pair_of(factor, factor);
  }
};

static uint16_t exact_bf16(double x) {
  if (std::isnan(x)) return 0x7FC0;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  if (ref::bf16_decode(static_cast<uint16_t>(bits >> 16)) != x) throw std::domain_error("no bf16 number");
  return static_cast<uint16_t>(bits >> 16);
}

struct Brain {
  static constexpr dualgemm::CType kType = dualgemm::CType::kBf16;
  static constexpr int kExponent = -7;
  static double decode(uint16_t bits) { return ref::bf16_decode(bits); }
  static uint32_t select(uint32_t mask, uint32_t x, uint32_t y) { return (x & mask) | (y & ~mask); }
  static uint32_t multiply(uint32_t x, uint32_t y) {
    return pair_of(exact_bf16(decode(low(x)) * decode(low(y))),
                   exact_bf16(decode(high(x)) * decode(high(y))));
  }
  static uint32_t factor_twice(uint16_t x, int i) {
    const uint16_t factor = exact_bf16(std::ldexp(ref::e4m3_decode(static_cast<uint8_t>(x >> 8 * i)), 119));
    return pair_of(factor, factor);
  }
};

// Where element i of a word goes: elements k and k + 4 share a register, even and odd ones differ in the
// step.
template <class Math>
static double element(const sm90::Pairs& pairs, int i) {
  const uint32_t pair = pairs.pair[i % 2][i / 2 % 2];
  return Math::decode(i < 4 ? low(pair) : high(pair));
}

TEMPLATE_TEST_CASE("expansion: every code times every factor is exact, in every place", "[expand]", Half,
                   Brain) {
  for (int factor = 0; factor < 256; ++factor)
    for (int half = 0; half < 2; ++half)
      for (int panel = 0; panel < 2; ++panel) {
        // The other three factors of the atom are another number.
        const uint32_t other = 0x01010101u * static_cast<uint32_t>(factor == 0x11 ? 0x22 : 0x11);
        const int shift = 8 * (2 * half + panel);
        const sm90::Factors factors{(other & ~(0xFFu << shift)) | static_cast<uint32_t>(factor) << shift};
        const uint32_t twice = factors.of<TestType>(half, panel);
        for (int code = 0; code < 16; ++code)
          for (int place = 0; place < 8; ++place) {
            const uint32_t word = static_cast<uint32_t>(code) << 4 * place;
            const sm90::Pairs pairs = sm90::expand_word<TestType>(word, twice);
            for (int i = 0; i < 8; ++i) {
              const uint8_t here = static_cast<uint8_t>(i == place ? code : 0);
              const double expected = double{ref::e2m1_decode(here)} *
                                      ref::ue4m3_decode(static_cast<uint8_t>(factor)) *
                                      std::ldexp(1.0, TestType::kExponent);
              const double actual = element<TestType>(pairs, i);
              if (std::isnan(expected) ? !std::isnan(actual) : actual != expected) {
                INFO("code " << code << ", factor " << factor << ", place " << place << ", element " << i);
                CHECK(actual == expected);
              }
            }
          }
      }
  // What the weights carry, and an A that is expanded as well.
  CHECK(sm90::unscale(TestType::kType) == std::ldexp(1.0f, -TestType::kExponent));
  CHECK(sm90::unscale(dualgemm::CType::kNvfp4) == std::ldexp(1.0f, -2 * TestType::kExponent));
}

// Every number that a code and a factor may become, but for signs, zero and NaN.
template <class Math>
static std::set<double> expanded_numbers() {
  std::set<double> out;
  for (uint32_t factor = 0; factor < 0x7F; ++factor)
    for (uint32_t code = 0; code < 8; ++code) {
      const uint32_t twice = sm90::Factors{factor}.of<Math>(0, 0);
      out.insert(element<Math>(sm90::expand_word<Math>(code, twice), 0));
    }
  out.erase(0);
  return out;
}

TEST_CASE("expansion: weights are normal numbers of bf16, and of fp16 from 2^-7 on", "[expand]") {
  CHECK(*expanded_numbers<Brain>().begin() >= 0x1p-126);
  for (const double x : expanded_numbers<Half>()) CHECK((x >= 0x1p-14 || std::ldexp(x, 7) < 0x1p-7));
  CHECK(*expanded_numbers<Half>().begin() == 0x1p-17);  // three leading zeros
}

// wgmma aligns products by the sum of their operands' fields, where a subnormal one has that of 2^-14, and
// keeps 25 places below the largest. So beside any product of a subnormal number none may reach further down.
TEST_CASE("expansion: no subnormal number of an A in NVFP4 or its weights costs places", "[expand]") {
  const std::set<double> all = expanded_numbers<Half>();
  int subnormal = 0, largest_field = -14;
  double unit = 1;  // every number is a multiple of it
  for (const double x : all) {
    subnormal += x < 0x1p-14;
    largest_field = std::max(largest_field, std::ilogb(x));
    while (std::fmod(x, unit) != 0) unit /= 2;
  }
  CHECK(subnormal > 0);
  CHECK(std::ldexp(1.0, -14 + largest_field - 25) <= unit * unit);
}

TEST_CASE("order of K: each element of a k-tile has one place", "[expand]") {
  std::bitset<dualgemm::kTileK> seen;
  for (int place = 0; place < dualgemm::kTileK; ++place) {
    REQUIRE(sm90::k_of_place(place) >= 0);
    REQUIRE(sm90::k_of_place(place) < dualgemm::kTileK);
    seen.set(static_cast<size_t>(sm90::k_of_place(place)));
  }
  CHECK(seen.all());
}

// A lane of a quad loads two times 16 bytes of a row of 128, whose words are for the wgmma in their order,
// two for each. Of the 16 places of K of a wgmma, it has 2 quad and the next in its first registers, and
// those eight further on in its last (figure of the fragment of A, PTX ISA 9.0, 9.7.15.5.1.1).
TEST_CASE("order of K: a lane's words hold what the fragments ask of it", "[expand]") {
  for (int quad = 0; quad < 4; ++quad)
    for (int half = 0; half < 2; ++half)
      for (int word = 0; word < sm90::kWords; ++word)
        for (int i = 0; i < 8; ++i) {
          const int wgmma = 8 * half + 2 * word + i % 2, upper = i / 2 % 2, second = i / 4;
          const int place = 16 * wgmma + 8 * upper + 2 * quad + second;
          const int byte = (2 * quad + half) * 16 + 4 * word + i / 2;  // of the row, without swizzle
          INFO("quad " << quad << ", half " << half << ", word " << word << ", element " << i);
          CHECK(sm90::k_of_place(place) == 2 * byte + i % 2);
        }
}

// Of four chunks of eight neighbours, 64 apart, column j of the places has a pair for each quad.
TEST_CASE("order of K: elements of 16 bits go to the places of their k", "[expand]") {
  for (int first = 0; first < 64; first += 8) {
    // Element k of the k-tile is the number k.
    uint32_t chunk[4][4];
    for (int quad = 0; quad < 4; ++quad)
      for (int i = 0; i < 4; ++i) {
        const int k = 64 * quad + first + 2 * i;
        chunk[quad][i] = static_cast<uint32_t>((k + 1) << 16 | k);
      }
    for (int step = 0; step < 2; ++step)
      for (int upper = 0; upper < 2; ++upper) {
        const int half = first / 32, word = first / 8 % 4;
        const int place = 128 * half + 32 * word + 16 * step + 8 * upper;
        for (int quad = 0; quad < 4; ++quad) {
          const uint32_t pair = sm90::order_pair(chunk[quad][upper], chunk[quad][upper + 2], step);
          CHECK(low(pair) == sm90::k_of_place(place + 2 * quad));
          CHECK(high(pair) == sm90::k_of_place(place + 2 * quad + 1));
        }
      }
  }
}

TEST_CASE("operands: lanes load where the swizzle put their bytes, from all banks at once", "[expand]") {
  for (int half = 0; half < 2; ++half)
    for (int first = 0; first < 64; first += 2) {
      std::set<int> columns;
      for (int row = first; row < first + 2; ++row)
        for (int quad = 0; quad < 4; ++quad) {
          const int offset = sm90::operand_offset(row, quad, half);
          // The 128-byte swizzle exchanges bits 4-6 of an address by bits 7-9.
          const int linear = offset ^ (offset >> 7 & 7) << 4;
          CHECK(linear == row * 128 + (2 * quad + half) * 16);
          columns.insert(offset % 128 / 16);
        }
      CHECK(columns.size() == 8);
    }
}

}  // namespace expand_test
