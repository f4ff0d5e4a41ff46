// sf_layout_test.cpp -- the 128x4 scale-factor layout: worked values, and the drawing of dualgemm.h
// restated.

#include <cstdint>
#include <vector>

#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace sf_layout_test {

static int64_t offset(int32_t rows, int32_t k, int32_t row, int32_t block) {
  return dualgemm_sf_offset(rows, k, row, block);
}

TEST_CASE("worked offsets and sizes", "[host][sf_layout]") {
  CHECK(offset(300, 464, 133, 5) == 4689);
  CHECK(offset(256, 1024, 200, 7) == 8843);
  CHECK(offset(1, 16, 0, 0) == 0);
  CHECK(dualgemm_sf_size(1, 16) == 512);
  CHECK(dualgemm_sf_size(128, 64) == 512);
  CHECK(dualgemm_sf_size(129, 64) == 1024);
  CHECK(dualgemm_sf_size(128, 80) == 1024);
  CHECK(dualgemm_sf_size(300, 464) == 3 * 8 * 512);
  CHECK(dualgemm_sf_size(0, 64) == 0);
  CHECK(dualgemm_sf_size(128, 0) == 0);
}

TEST_CASE("inside an atom: four factors of a row, rows 32 apart, then the next row", "[host][sf_layout]") {
  for (int32_t byte = 0; byte < 512; ++byte) {
    const int32_t row = byte / 16 + 32 * (byte / 4 % 4);
    CHECK(offset(128, 64, row, byte % 4) == byte);
  }
}

TEST_CASE("atoms follow each other along K, then along the rows", "[host][sf_layout]") {
  CHECK(offset(256, 256, 0, 4) == 512);
  CHECK(offset(256, 256, 0, 15) == 3 * 512 + 3);
  CHECK(offset(256, 256, 128, 0) == 4 * 512);
}

TEST_CASE("every byte of the buffer belongs to exactly one factor, padding included", "[host][sf_layout]") {
  const int32_t rows = 300, k = 464;
  std::vector<int> owners(dualgemm_sf_size(rows, k));
  for (int32_t row = 0; row < 384; ++row)
    for (int32_t block = 0; block < 32; ++block) {
      const int64_t at = offset(rows, k, row, block);
      REQUIRE(at >= 0);
      REQUIRE(at < static_cast<int64_t>(owners.size()));
      ++owners[static_cast<size_t>(at)];
    }
  for (const int count : owners) REQUIRE(count == 1);
}

TEST_CASE("offsets are 64 bits wide", "[host][sf_layout]") {
  // There are 2^20 bands of 128 rows with 2^14 atoms each.
  const int32_t rows = 1 << 27, k = 1 << 20;
  CHECK(dualgemm_sf_size(rows, k) == size_t{1} << 43);
  CHECK(offset(rows, k, rows - 1, k / 16 - 1) == (int64_t{1} << 43) - 1);
  CHECK(dualgemm_sf_size(2147483647, 2147483632) == (size_t{1} << 24) * (size_t{1} << 25) * 512);
}

TEST_CASE("places that do not exist", "[host][sf_layout]") {
  CHECK(offset(300, 464, 384, 0) == -1);
  CHECK(offset(300, 464, 0, 32) == -1);
  CHECK(offset(300, 464, -1, 0) == -1);
  CHECK(offset(300, 464, 0, -1) == -1);
  CHECK(offset(-1, 464, 0, 0) == -1);
  CHECK(dualgemm_sf_size(-1, 464) == 0);
  CHECK(dualgemm_sf_size(1, -16) == 0);
}

}  // namespace sf_layout_test
