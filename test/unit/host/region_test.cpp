// region_test.cpp -- whether two strided tensors share a byte, compared with a map of every byte.

#include "host/common/region.h"

#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/rng.h"

namespace region_test {

using dualgemm::overlap;
using dualgemm::Region;

static std::set<int64_t> bytes_of(const Region& r) {
  std::set<int64_t> bytes;
  for (int64_t p = 0; p < r.problems; ++p)
    for (int64_t row = 0; row < r.rows; ++row)
      for (int64_t byte = 0; byte < r.row_bytes; ++byte)
        bytes.insert(static_cast<int64_t>(reinterpret_cast<uintptr_t>(r.base)) + p * r.stride +
                     row * r.pitch + byte);
  return bytes;
}

static bool share_a_byte(const Region& x, const Region& y) {
  const std::set<int64_t> of_x = bytes_of(x);
  for (const int64_t byte : bytes_of(y))
    if (of_x.count(byte)) return true;
  return false;
}

static std::string text_of(const Region& r) {
  std::ostringstream text;
  text << r.base << ": " << r.problems << " x " << r.stride << ", " << r.rows << " x " << r.pitch << ", "
       << r.row_bytes;
  return text.str();
}

// Makes regions of small numbers, so that every relation of two regions comes up.
class Regions {
 public:
  int32_t number(int32_t low, int32_t high) { return random_.between(low, high); }
  // The pitch and the stride are those of `like` where it is given, if the rows fit them.
  Region next(const Region* like = nullptr) {
    Region r{};
    r.name = "region";
    r.base = reinterpret_cast<const void*>(static_cast<uintptr_t>(number(1000, 1080)));
    r.problems = number(1, 3);
    r.rows = number(1, 4);
    r.row_bytes = number(1, 6);
    r.pitch = r.row_bytes + number(0, 8);
    if (like && like->pitch >= r.row_bytes) r.pitch = like->pitch;
    const int64_t problem = (r.rows - 1) * r.pitch + r.row_bytes;
    r.stride = problem + number(0, 20);
    if (like && like->stride >= problem) r.stride = like->stride;
    return r;
  }

 private:
  dualgemm_test::Rng random_{1};
};

TEST_CASE("tensors that share a byte are always found", "[host][region]") {
  Regions regions;
  int told_apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const Region x = regions.next(), y = regions.next();
    INFO(text_of(x) << " and " << text_of(y));
    const bool found = overlap(x, y);
    if (share_a_byte(x, y)) REQUIRE(found);
    REQUIRE(overlap(y, x) == found);
    told_apart += !found;
  }
  CHECK(told_apart > 1000);
}

TEST_CASE("tensors of equal strides and pitches are told apart exactly", "[host][region]") {
  Regions regions;
  int apart = 0, interleaved = 0;
  for (int i = 0; i < 20000; ++i) {
    const Region x = regions.next(), y = regions.next(&x);
    const bool same_pitch = x.rows == 1 || y.rows == 1 || x.pitch == y.pitch;
    const bool same_stride = x.problems == 1 || y.problems == 1 || x.stride == y.stride;
    if (!same_pitch || !same_stride) continue;
    INFO(text_of(x) << " and " << text_of(y));
    const bool expected = share_a_byte(x, y);
    REQUIRE(overlap(x, y) == expected);
    apart += !expected;
    const std::set<int64_t> of_x = bytes_of(x), of_y = bytes_of(y);
    interleaved += !expected && *of_x.begin() < *of_y.rbegin() && *of_y.begin() < *of_x.rbegin();
  }
  CHECK(apart > 1000);
  CHECK(interleaved > 300);
}

TEST_CASE("rows of one buffer at pitches with a common divisor are told apart", "[host][region]") {
  // Rows have 64 bytes: x uses the first 32 of every second one, y the last 32 of each.
  const Region x = {"x", reinterpret_cast<const void*>(0x1000), 3, 0x400, 4, 128, 32};
  Region y = {"y", reinterpret_cast<const void*>(0x1020), 2, 0x600, 16, 64, 32};
  CHECK(!overlap(x, y));
  y.base = reinterpret_cast<const void*>(0x101f);
  CHECK(overlap(x, y));
}

TEST_CASE("tensors at both ends of the addresses are told apart", "[host][region]") {
  const auto at = [](uintptr_t address) {
    return Region{"region", reinterpret_cast<const void*>(address), 2, 64, 1, 0, 16};  // 80 bytes
  };
  constexpr uintptr_t kLast = ~uintptr_t{0};
  for (const uintptr_t other :
       {uintptr_t{0}, uintptr_t{1} << 62, uintptr_t{1} << 63, (uintptr_t{1} << 63) + 1, kLast - 80 - 79,
        kLast - 79 - 48, kLast - 79 - 16}) {
    CHECK(!overlap(at(kLast - 79), at(other)));
    CHECK(!overlap(at(other), at(kLast - 79)));
  }
  for (const uintptr_t other : {kLast - 79, kLast - 79 - 15, kLast - 79 - 79, kLast - 79 - 64}) {
    CHECK(overlap(at(kLast - 79), at(other)));
    CHECK(overlap(at(other), at(kLast - 79)));
  }
}

TEST_CASE("large tensors of many problems are compared in no time", "[host][region]") {
  const int64_t many = int64_t{1} << 31;
  const Region x = {"x", reinterpret_cast<const void*>(uintptr_t{1} << 50), many, 1 << 16, 16, 4096, 2048};
  Region y = x;
  y.base = reinterpret_cast<const void*>((uintptr_t{1} << 50) + 2048);
  CHECK(!overlap(x, y));
  y.base = reinterpret_cast<const void*>((uintptr_t{1} << 50) + 2047);
  CHECK(overlap(x, y));
  y.stride *= 3;
  CHECK(overlap(x, y));
}

}  // namespace region_test
