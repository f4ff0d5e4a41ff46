// bytes_test.cpp -- shared memory as a flat run of bytes with states: what was written is read back, what
// nobody wrote is a hole where the reader asks for holes, and everything else faults.
#include "sim/mem/bytes.h"

#include <cstring>

#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace bytes_test {

using sim_test::fault_of;

TEST_CASE("bytes: written bytes come back, neighbours stay poison", "[bytes]") {
  sim::Bytes bytes(64, "shared memory");
  const uint8_t in[4] = {1, 2, 3, 4};
  bytes.write(10, in, sizeof in);
  uint8_t out[4] = {};
  bytes.read(10, out, sizeof out);
  CHECK(std::memcmp(in, out, sizeof in) == 0);
  CHECK(std::memcmp(bytes.view(10, 4), in, 4) == 0);
  CHECK(fault_of([&] { bytes.read(9, out, 2); }).kind() == sim::FaultKind::kPoison);
  CHECK(fault_of([&] { bytes.read(13, out, 2); }).kind() == sim::FaultKind::kPoison);
  CHECK(fault_of([&] { bytes.view(9, 2); }).kind() == sim::FaultKind::kPoison);
}

TEST_CASE("bytes: poison takes validity back until the next write", "[bytes]") {
  sim::Bytes bytes(32, "shared memory");
  const uint8_t zeros[32] = {};
  uint8_t out[32];
  bytes.write(0, zeros, 32);
  bytes.poison(16, 1);
  CHECK(fault_of([&] { bytes.read(0, out, 32); }).kind() == sim::FaultKind::kPoison);
  CHECK_THROWS_WITH(bytes.read(0, out, 32), dualgemm_test::contains("byte 16"));
  bytes.read(0, out, 16);
  bytes.write(16, zeros, 1);
  bytes.read(0, out, 32);
}

TEST_CASE("bytes: a reader that asks for holes is told which bytes nobody wrote", "[bytes]") {
  sim::Bytes bytes(64, "shared memory");
  const uint8_t ones[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const size_t n = GENERATE(size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{16}, size_t{32});
  CAPTURE(n);
  uint8_t out[32] = {};
  for (size_t hole = 0; hole < n; ++hole) {
    bytes.write(8, ones, n);
    sim::Holes holes;
    bytes.read(8, out, n, &holes);
    CHECK(holes.bytes == 0);
    CHECK(std::memcmp(out, ones, n) == 0);
    bytes.poison(8 + hole, 1);
    bytes.read(8, out, n, &holes);
    CHECK(holes.bytes == uint64_t{1} << hole);
    CHECK(holes.cause(hole) == "byte " + std::to_string(8 + hole) + " of shared memory was never written");
    for (size_t i = 0; i < n; ++i) CHECK((i == hole || out[i] == ones[i]));
    // A byte that an asynchronous write may be writing is no hole.
    bytes.expect(8 + hole, 1);
    CHECK_THROWS_WITH(bytes.read(8, out, n, &holes),
                      dualgemm_test::contains("has an asynchronous write that has not completed"));
  }
}

TEST_CASE("bytes: no access reaches beyond the end, however large its offset", "[bytes]") {
  sim::Bytes bytes(32, "shared memory");
  uint8_t buffer[64] = {};
  const uint64_t offset = GENERATE(uint64_t{1}, uint64_t{32}, uint64_t{33}, ~uint64_t{0}, ~uint64_t{0} - 31);
  CHECK(fault_of([&] { bytes.write(offset, buffer, 32); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { bytes.read(offset, buffer, 32); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { bytes.poison(offset, 32); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { bytes.view(offset, 32); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { bytes.expect(offset, 32); }).kind() == sim::FaultKind::kBounds);
}

}  // namespace bytes_test
