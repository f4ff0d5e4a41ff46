// expand_test.cpp -- the expansion of NVFP4 to fp16 for wgmma: the value of every code with every factor, in
// every place of a word, and the order of K that both operands have to agree in.
#include "kernel/sm90/expand.cuh"

#include <bitset>
#include <cmath>
#include <set>
#include <stdexcept>

#include "ref/formats.h"
#include "support/catch.hpp"

namespace sm90 = dualgemm::sm90;

namespace {

// Returns the fp16 of a number that is one. Throws if it is none: an expansion that rounds is wrong.
uint16_t exact_fp16(double x) {
  if (std::isnan(x)) return 0x7E00;
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), -14);
  const double mantissa = std::ldexp(std::fabs(x), 10 - exponent);  // 1024 to 2047, less if subnormal
  if (exponent > 15 || mantissa != std::floor(mantissa)) throw std::domain_error("no fp16 number");
  return static_cast<uint16_t>(sign | ((exponent + 14) * 1024 + static_cast<int>(mantissa)));
}

uint16_t low(uint32_t pair) { return static_cast<uint16_t>(pair); }
uint16_t high(uint32_t pair) { return static_cast<uint16_t>(pair >> 16); }
uint32_t pair_of(uint16_t first, uint16_t second) { return uint32_t{second} << 16 | first; }

// The operations of expand.cuh from their definitions.
struct Half {
  static uint32_t and_or(uint32_t x, uint32_t y, uint32_t z) { return (x & y) | z; }
  static uint32_t spread(uint32_t x) { return (x & 0xFF) << 8 | (x & 0xFF0000) << 8; }
  static uint16_t multiply(uint16_t x, uint16_t y) {
    return exact_fp16(ref::fp16_decode(x) * ref::fp16_decode(y));
  }
  static uint32_t multiply(uint32_t x, uint32_t y) {
    return pair_of(multiply(low(x), low(y)), multiply(high(x), high(y)));
  }
  static uint32_t from_e4m3x2(uint16_t x) {
    return pair_of(exact_fp16(ref::e4m3_decode(static_cast<uint8_t>(x))),
                   exact_fp16(ref::e4m3_decode(static_cast<uint8_t>(x >> 8))));
  }
  static uint32_t low_twice(uint32_t x) { return pair_of(low(x), low(x)); }
  static uint32_t high_twice(uint32_t x) { return pair_of(high(x), high(x)); }
};

// Where element i of a word goes: elements k and k + 4 share a register, even and odd ones differ in the
// step.
double element(const sm90::Pairs& pairs, int i) {
  const uint32_t pair = pairs.pair[i % 2][i / 2 % 2];
  return ref::fp16_decode(i < 4 ? low(pair) : high(pair));
}

}  // namespace

TEST_CASE("expansion: every code times every factor is exact, in every place", "[expand]") {
  for (int factor = 0; factor < 256; ++factor)
    for (int half = 0; half < 2; ++half)
      for (int panel = 0; panel < 2; ++panel) {
        // The other three factors of the atom are another number.
        const uint32_t other = 0x01010101u * static_cast<uint32_t>(factor == 0x11 ? 0x22 : 0x11);
        const int shift = 8 * (2 * half + panel);
        const sm90::Factors factors{(other & ~(0xFFu << shift)) | static_cast<uint32_t>(factor) << shift};
        const uint32_t twice = factors.of<Half>(half, panel);
        for (int code = 0; code < 16; ++code)
          for (int place = 0; place < 8; ++place) {
            const uint32_t word = static_cast<uint32_t>(code) << 4 * place;
            const sm90::Pairs pairs = sm90::expand_word<Half>(word, twice);
            for (int i = 0; i < 8; ++i) {
              const uint8_t here = static_cast<uint8_t>(i == place ? code : 0);
              const double expected = double{ref::e2m1_decode(here)} *
                                      ref::ue4m3_decode(static_cast<uint8_t>(factor)) * std::ldexp(1.0, -14);
              const double actual = element(pairs, i);
              if (std::isnan(expected) ? !std::isnan(actual) : actual != expected) {
                INFO("code " << code << ", factor " << factor << ", place " << place << ", element " << i);
                CHECK(actual == expected);
              }
            }
          }
      }
  // Both operands carry 2^-14.
  CHECK(sm90::kUnscale == std::ldexp(1.0f, 28));
}

TEST_CASE("order of K: each element of a k-tile has one place", "[expand]") {
  std::bitset<sm90::kTileK> seen;
  for (int place = 0; place < sm90::kTileK; ++place) {
    REQUIRE(sm90::k_of_place(place) >= 0);
    REQUIRE(sm90::k_of_place(place) < sm90::kTileK);
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
