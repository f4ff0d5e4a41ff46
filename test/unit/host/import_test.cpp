// import_test.cpp -- weights as checkpoints hold them: factors of gate and up that were moved to atoms as one
// buffer, and blocks of GGUF; what is refused leaves everything as it was.
#include <cstdint>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace import_test {

constexpr uint8_t kGuard = 0xAA;

static std::string text() { return dualgemm_last_error(); }

TEST_CASE("factors of gate and up in one buffer are split, whatever their order and rows", "[host][import]") {
  for (const auto order : {DUALGEMM_ROWS_STACKED, DUALGEMM_ROWS_INTERLEAVED})
    for (const int32_t n : {1, 8, 100, 128, 136, 300})
      for (const int32_t k : {16, 64, 208}) {
        INFO("order " << order << ", n " << n << ", k " << k);
        // The factor of a row and block tells which it is, as far as seven bits do.
        const auto factor = [](int64_t side, int64_t row, int64_t block) {
          return static_cast<uint8_t>((side * 61 + row * 7 + block * 3) % 127);
        };
        std::vector<uint8_t> both(ref::sf_bytes(2 * n, k), kGuard);
        for (int64_t side = 0; side < 2; ++side)
          for (int64_t row = 0; row < n; ++row)
            for (int64_t block = 0; block < k / 16; ++block)
              both[ref::sf_offset(k, order == DUALGEMM_ROWS_STACKED ? side * n + row : 2 * row + side,
                                  block)] = factor(side, row, block);
        std::vector<uint8_t> out[2];
        for (std::vector<uint8_t>& one : out) one.assign(ref::sf_bytes(n, k) + 16, kGuard);
        REQUIRE(dualgemm_sf_split_host(both.data(), n, k, order, out[0].data(), out[1].data()) ==
                DUALGEMM_STATUS_SUCCESS);
        for (int64_t side = 0; side < 2; ++side) {
          std::vector<uint8_t> expected(ref::sf_bytes(n, k), 0);
          for (int64_t row = 0; row < n; ++row)
            for (int64_t block = 0; block < k / 16; ++block)
              expected[ref::sf_offset(k, row, block)] = factor(side, row, block);
          expected.resize(expected.size() + 16, kGuard);
          CHECK(out[side] == expected);
        }
      }
}

TEST_CASE("stacked factors need no split where gate ends a block of 128 rows", "[host][import]") {
  const int32_t n = 256, k = 80;
  std::vector<uint8_t> both(ref::sf_bytes(2 * n, k)), first(ref::sf_bytes(n, k)), second(first);
  dualgemm_test::Rng random(1);
  for (int64_t row = 0; row < 2 * n; ++row)
    for (int64_t block = 0; block < k / 16; ++block)
      both[ref::sf_offset(k, row, block)] = static_cast<uint8_t>(random.below(127));
  REQUIRE(dualgemm_sf_split_host(both.data(), n, k, DUALGEMM_ROWS_STACKED, first.data(), second.data()) ==
          DUALGEMM_STATUS_SUCCESS);
  first.insert(first.end(), second.begin(), second.end());
  CHECK(both == first);
}

TEST_CASE("a block of GGUF: where each factor and code goes", "[host][import]") {
  // Sub-block s has the factor 1 + s. Its byte j: the code j for element j, 15 - j for element j + 8.
  std::vector<uint8_t> block = {1, 2, 3, 4};
  for (int s = 0; s < 4; ++s)
    for (int j = 0; j < 8; ++j) block.push_back(static_cast<uint8_t>(j | (15 - j) << 4));
  std::vector<uint8_t> q(32 + 16, kGuard), sf(512, kGuard);
  REQUIRE(dualgemm_import_gguf_host(block.data(), 0, 1, 64, q.data(), 96, sf.data()) ==
          DUALGEMM_STATUS_SUCCESS);
  for (int s = 0; s < 4; ++s) {
    CHECK(sf[static_cast<size_t>(s)] == s + 1);
    const std::vector<uint8_t> codes(q.begin() + s * 8, q.begin() + s * 8 + 8);
    CHECK(codes == std::vector<uint8_t>{0x10, 0x32, 0x54, 0x76, 0xEF, 0xCD, 0xAB, 0x89});
  }
  for (size_t i = 32; i < q.size(); ++i) CHECK(q[i] == 0);
  for (size_t i = 4; i < sf.size(); ++i) CHECK(sf[i] == 0);
}

TEST_CASE("a factor that is zero in GGUF and NaN in UE4M3 becomes zero", "[host][import]") {
  std::vector<uint8_t> block(36, 0x77);
  block[2] = 0x7F;
  std::vector<uint8_t> q(32), sf(512);
  REQUIRE(dualgemm_import_gguf_host(block.data(), 0, 1, 64, q.data(), 0, sf.data()) ==
          DUALGEMM_STATUS_SUCCESS);
  CHECK(sf[1] == 0x77);
  CHECK(sf[2] == 0);
}

TEST_CASE("GGUF: rows at a distance, and what lies between them", "[host][import]") {
  const int32_t rows = 130, k = 128;
  dualgemm_test::Rng random(2);
  std::vector<uint8_t> compact(rows * 72), apart(rows * 80, 0xFF);
  for (size_t i = 0; i < compact.size(); ++i) {
    compact[i] = static_cast<uint8_t>(random.below(i % 36 < 4 ? 127 : 256));
    apart[i / 72 * 80 + i % 72] = compact[i];
  }
  std::vector<uint8_t> q[2], sf[2];
  for (int i : {0, 1}) {
    q[i].resize(rows * k / 2);
    sf[i].resize(ref::sf_bytes(rows, k));
    REQUIRE(dualgemm_import_gguf_host(i ? apart.data() : compact.data(), i ? 80 : 0, rows, k, q[i].data(), 0,
                                      sf[i].data()) == DUALGEMM_STATUS_SUCCESS);
  }
  CHECK(q[0] == q[1]);
  CHECK(sf[0] == sf[1]);
}

TEST_CASE("splitting and importing refuse bad arguments and leave the output untouched", "[host][import]") {
  std::vector<uint8_t> in(1024, 0x30), q(64, kGuard), sf(512, kGuard);
  const auto split = [&](int32_t n, int32_t k, int order, const void* from) {
    return dualgemm_sf_split_host(from, n, k, static_cast<dualgemm_row_order_t>(order), q.data(), sf.data());
  };
  CHECK(split(8, 16, 2, in.data()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(text() == "order=2: must be in [0, 1]");
  CHECK(split(-1, 16, 0, in.data()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(text() == "n=-1: must not be negative");
  CHECK(split(0x40000000, 16, 0, in.data()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(split(8, 24, 0, in.data()) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(text() == "k=24: must be a multiple of 16");
  CHECK(split(8, 16, 0, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(text() == "sf=NULL: must point to host memory");
  CHECK(dualgemm_sf_split_host(in.data(), 8, 16, DUALGEMM_ROWS_STACKED, nullptr, sf.data()) ==
        DUALGEMM_STATUS_NULL_POINTER);
  CHECK(split(0, 16, 0, nullptr) == DUALGEMM_STATUS_SUCCESS);

  const auto import = [&](int32_t rows, int32_t k, int64_t row_bytes, int64_t ldq, const void* from) {
    return dualgemm_import_gguf_host(from, row_bytes, rows, k, q.data(), ldq, sf.data());
  };
  CHECK(import(-1, 64, 0, 0, in.data()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(import(1, 80, 0, 0, in.data()) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(text() == "k=80: must be a multiple of 64");
  CHECK(import(1, 64, 35, 0, in.data()) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(text() == "row_bytes=35: must be at least k/64*36=36");
  CHECK(import(1, 64, 0, 62, in.data()) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(import(1, 64, 0, 65, in.data()) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(text() == "ldq=65: must be a multiple of 2");
  CHECK(import(1, 64, 0, 0, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  in[36 + 3] = 0x80;
  CHECK(import(2, 64, 0, 0, in.data()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(text() == "blocks: factor 3 of row 1 is 0x80: must be at most 0x7F");
  for (const uint8_t byte : q) CHECK(byte == kGuard);
  for (const uint8_t byte : sf) CHECK(byte == kGuard);
  CHECK(import(0, 64, 0, 0, nullptr) == DUALGEMM_STATUS_SUCCESS);
}

}  // namespace import_test
