// import_mxfp4_test.cpp -- MXFP4 becomes NVFP4 without loss: each element is worth what it was, by the
// reference's own decoders, wherever UE4M3 can say it; all else is refused and writes nothing.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace import_mxfp4_test {

constexpr uint8_t kGuard = 0xAA;
constexpr float kNoScale = -7;

static std::string text() { return dualgemm_last_error(); }

// A matrix with rows at a distance, and what the import made of it.
struct Case {
  int32_t rows, k;
  int64_t ldq, pitch;
  std::vector<uint8_t> q, scales, sf;
  float scale = kNoScale;

  Case(int32_t rows, int32_t k, int64_t ldq = 0, int64_t pitch = 0)
      : rows(rows),
        k(k),
        ldq(ldq ? ldq : k),
        pitch(pitch ? pitch : k / 32),
        q(static_cast<size_t>(rows * this->ldq / 2), 0x21),
        scales(static_cast<size_t>(rows * this->pitch), 127),
        sf(ref::sf_bytes(rows, k) + 16, kGuard) {}

  uint8_t& power(int32_t row, int32_t block) { return scales[static_cast<size_t>(row * pitch + block)]; }
  void fill(int32_t row, int32_t block, uint8_t codes) {
    std::fill_n(q.begin() + row * ldq / 2 + block * 16, 16, codes);
  }
  dualgemm_status_t import() {
    return dualgemm_import_mxfp4_host(q.data(), ldq, scales.data(), pitch, rows, k, sf.data(), &scale);
  }
  double code(int32_t row, int32_t i) const {
    return ref::e2m1_decode(ref::nibble(&q[static_cast<size_t>(row * ldq / 2)], i));
  }
  uint8_t factor(int32_t row, int32_t i) const { return sf[ref::sf_offset(k, row, i / 16)]; }
  // What the element was worth, and what it is.
  double before(int32_t row, int32_t i) const {
    return std::ldexp(code(row, i), scales[static_cast<size_t>(row * pitch + i / 32)] - 127);
  }
  double after(int32_t row, int32_t i) const {
    return code(row, i) * double{ref::ue4m3_decode(factor(row, i))} * double{scale};
  }
  bool lossless() const {
    for (int32_t row = 0; row < rows; ++row)
      for (int32_t i = 0; i < k; ++i)
        if (before(row, i) != after(row, i)) return false;
    return true;
  }
  bool untouched() const {
    return scale == kNoScale && std::all_of(sf.begin(), sf.end(), [](uint8_t b) { return b == kGuard; });
  }
};

TEST_CASE("MXFP4: every element is worth what it was, wherever 18 powers of two lie", "[host][import]") {
  dualgemm_test::Rng random(32);
  for (const int32_t least : {0, 1, 5, 60, 110, 119, 127, 200, 237})
    for (const int32_t rows : {1, 130})
      for (const int32_t k : {32, 96, 160}) {
        INFO("least " << least << ", rows " << rows << ", k " << k);
        Case c(rows, k, k + 32, k / 32 + 3);
        for (uint8_t& two : c.q) two = static_cast<uint8_t>(random.below(256));
        for (uint8_t& power : c.scales) power = static_cast<uint8_t>(least + random.below(18));
        c.power(0, 0) = static_cast<uint8_t>(least);
        c.power(rows - 1, k / 32 - 1) = static_cast<uint8_t>(least + (rows == 1 && k == 32 ? 0 : 17));
        REQUIRE(c.import() == DUALGEMM_STATUS_SUCCESS);
        CHECK(c.lossless());
        CHECK(std::isnormal(c.scale));
        // Padding is zero, and nothing is written behind it.
        std::vector<bool> used(c.sf.size());
        for (int32_t row = 0; row < rows; ++row)
          for (int32_t i = 0; i < k; i += 16) used[ref::sf_offset(k, row, i / 16)] = true;
        for (size_t i = 0; i < c.sf.size(); ++i)
          if (!used[i]) REQUIRE(c.sf[i] == (i < c.sf.size() - 16 ? 0 : kGuard));
      }
}

TEST_CASE("MXFP4: the largest factor is 2^8, so that few are subnormal, where the scale stays normal",
          "[host][import]") {
  for (int power = 0; power <= 254; ++power) {
    INFO("power " << power);
    Case c(1, 32);
    c.power(0, 0) = static_cast<uint8_t>(power);
    REQUIRE(c.import() == DUALGEMM_STATUS_SUCCESS);
    CHECK(c.lossless());
    const int scale = std::max(power - 127 - 8, -126);
    CHECK(c.scale == std::ldexp(1.0f, scale));
    CHECK(ref::ue4m3_decode(c.factor(0, 16)) == std::ldexp(1.0f, power - 127 - scale));
  }
}

TEST_CASE("MXFP4: the factor of zeros counts for nothing", "[host][import]") {
  const int power = GENERATE(0, 100, 254);
  Case c(2, 64);
  c.fill(1, 0, 0x80);  // +0 and -0
  c.power(1, 0) = static_cast<uint8_t>(power);
  REQUIRE(c.import() == DUALGEMM_STATUS_SUCCESS);
  CHECK(c.scale == 0x1p-8f);
  CHECK(c.factor(1, 0) == 0);
  CHECK(c.factor(1, 31) == 0);
  CHECK(c.factor(1, 32) == 0x78);  // 2^8
  CHECK(c.lossless());

  Case zero(3, 32);
  for (int32_t row = 0; row < 3; ++row)
    zero.fill(row, 0, 0x08), zero.power(row, 0) = uint8_t(power / (row + 1));
  REQUIRE(zero.import() == DUALGEMM_STATUS_SUCCESS);
  CHECK(zero.scale == 1);
  for (int32_t row = 0; row < 3; ++row) CHECK(zero.factor(row, 0) == 0);
}

TEST_CASE("MXFP4: one element other than zero makes its factor count", "[host][import]") {
  const size_t byte = GENERATE(range(size_t{0}, size_t{16}));
  const uint8_t codes = GENERATE(uint8_t{0x01}, uint8_t{0x10}, uint8_t{0xF0});
  Case c(1, 32);
  c.fill(0, 0, 0);
  c.q[byte] = codes;
  REQUIRE(c.import() == DUALGEMM_STATUS_SUCCESS);
  CHECK(c.scale == 0x1p-8f);
  CHECK(c.lossless());
}

TEST_CASE("MXFP4: powers 2^17 apart are taken, those 2^18 apart refused with their places and the span",
          "[host][import]") {
  const bool first_larger = GENERATE(false, true);
  Case c(3, 64);
  c.power(1, 1) = first_larger ? 120 + 17 : 120;
  for (int32_t row = 0; row < 3; ++row)
    for (int32_t block = 0; block < 2; ++block)
      if (row != 1 || block != 1) c.power(row, block) = first_larger ? 120 : 120 + 17;
  REQUIRE(c.import() == DUALGEMM_STATUS_SUCCESS);
  CHECK(c.lossless());

  Case wide = c;
  std::fill(wide.sf.begin(), wide.sf.end(), kGuard), wide.scale = kNoScale;
  if (first_larger) wide.power(1, 1) = 120 + 18;
  else wide.power(2, 0) = 120 + 18;
  CHECK(wide.import() == DUALGEMM_STATUS_NOT_SUPPORTED);
  CHECK(text() == std::string("scales: factors reach from 2^-7 ") +
                      (first_larger ? "(factor 0 of row 0) to 2^11 (factor 1 of row 1)"
                                    : "(factor 1 of row 1) to 2^11 (factor 0 of row 2)") +
                      ", a span of 2^18: UE4M3 holds powers of two that are at most 2^17 apart");
  CHECK(wide.untouched());
}

TEST_CASE("MXFP4: gate and up in turn, each by its own call, have scales of their own", "[host][import]") {
  const int32_t n = 40, k = 96;
  Case both(2 * n, k);
  dualgemm_test::Rng random(5);
  for (uint8_t& two : both.q) two = static_cast<uint8_t>(random.below(256));
  for (int32_t row = 0; row < 2 * n; ++row)  // 2^30 lie between the two
    for (int32_t block = 0; block < k / 32; ++block)
      both.power(row, block) = static_cast<uint8_t>(100 + 30 * (row % 2) + random.below(10));
  float scales[2];
  for (int32_t side : {0, 1}) {
    std::vector<uint8_t> sf(ref::sf_bytes(n, k), kGuard);
    REQUIRE(dualgemm_import_mxfp4_host(&both.q[static_cast<size_t>(side * k / 2)], 2 * k,
                                       &both.scales[static_cast<size_t>(side * k / 32)], k / 16, n, k,
                                       sf.data(), &scales[side]) == DUALGEMM_STATUS_SUCCESS);
    bool same = true;
    for (int32_t row = 0; row < n; ++row)
      for (int32_t i = 0; i < k; ++i)
        same &= both.before(2 * row + side, i) ==
                both.code(2 * row + side, i) * double{scales[side]} *
                    double{ref::ue4m3_decode(sf[ref::sf_offset(k, row, i / 16)])};
    CHECK(same);
  }
  CHECK(scales[1] / scales[0] > 0x1p20f);
  CHECK(both.import() == DUALGEMM_STATUS_NOT_SUPPORTED);  // both together are too far apart
}

TEST_CASE("MXFP4: bad arguments are named and leave the output untouched", "[host][import]") {
  Case c(2, 64);
  const auto call = [&c](int32_t rows, int32_t k, int64_t ldq, int64_t pitch) {
    return dualgemm_import_mxfp4_host(c.q.data(), ldq, c.scales.data(), pitch, rows, k, c.sf.data(),
                                      &c.scale);
  };
  CHECK(call(-1, 64, 0, 0) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(text() == "rows=-1: must not be negative");
  CHECK(call(2, 48, 0, 0) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(text() == "k=48: must be a multiple of 32");
  CHECK(call(2, 64, 62, 0) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(text() == "ldq=62: must be at least k=64");
  CHECK(call(2, 64, 65, 0) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(text() == "ldq=65: must be a multiple of 2");
  CHECK(call(2, 64, 0, 1) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(text() == "pitch=1: must be at least k/32=2");
  const auto null = [&c](int which) {
    return dualgemm_import_mxfp4_host(which == 0 ? nullptr : c.q.data(), 0,
                                      which == 1 ? nullptr : c.scales.data(), 0, 2, 64,
                                      which == 2 ? nullptr : c.sf.data(), which == 3 ? nullptr : &c.scale);
  };
  for (const int which : {0, 1, 2, 3}) {
    CHECK(null(which) == DUALGEMM_STATUS_NULL_POINTER);
    CHECK(text() == std::vector<std::string>{"q", "scales", "sf", "scale"}[static_cast<size_t>(which)] +
                        "=NULL: must point to host memory");
  }
  c.power(1, 1) = 0xFF;
  c.fill(1, 1, 0);  // NaN times zero is no zero
  CHECK(c.import() == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(text() == "scales: factor 1 of row 1 is 0xFF, which is NaN");
  CHECK(dualgemm_import_mxfp4_host(nullptr, 0, nullptr, 0, 0, 64, nullptr, nullptr) ==
        DUALGEMM_STATUS_SUCCESS);
  CHECK(dualgemm_import_mxfp4_host(nullptr, 0, nullptr, 0, 8, 0, nullptr, nullptr) ==
        DUALGEMM_STATUS_SUCCESS);
  CHECK(c.untouched());
}

}  // namespace import_mxfp4_test
