// tmem_test.cpp -- cells of tensor memory and the rules of its allocator.
#include "sim/mem/tmem.h"

#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace tmem_test {

using sim_test::fault_of;

TEST_CASE("tmem: every cell is its own, and rows are its columns", "[tmem]") {
  sim::Tmem tmem;
  REQUIRE(tmem.alloc(512) == 0);
  for (int lane = 0; lane < 128; ++lane)
    for (int column = 0; column < 512; ++column)
      tmem.write(lane, column, static_cast<uint32_t>(lane * 512 + column));
  int wrong = 0;
  for (int lane = 0; lane < 128; ++lane) {
    uint32_t row[512];
    tmem.read_row(lane, 0, 512, row);
    for (int column = 0; column < 512; ++column)
      wrong +=
          row[column] != static_cast<uint32_t>(lane * 512 + column) || row[column] != tmem.read(lane, column);
  }
  CHECK(wrong == 0);
}

TEST_CASE("tmem: cells outside, not allocated or never written fault", "[tmem]") {
  sim::Tmem tmem;
  const int base = tmem.alloc(32);
  uint32_t row[2] = {1, 2};
  CHECK(fault_of([&] { tmem.read(0, base); }).kind() == sim::FaultKind::kPoison);
  CHECK(fault_of([&] { tmem.read(0, base + 32); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { tmem.write(128, base, 0); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { tmem.write(-1, base, 0); }).kind() == sim::FaultKind::kBounds);
  CHECK(fault_of([&] { tmem.write_row(0, base + 31, 2, row); }).kind() == sim::FaultKind::kBounds);
  tmem.write_row(5, base, 2, row);
  tmem.poison(5, base + 1);
  CHECK(tmem.read(5, base) == 1);
  CHECK(fault_of([&] { tmem.read_row(5, base, 2, row); }).kind() == sim::FaultKind::kPoison);
}

TEST_CASE("tmem: allocations are aligned, disjoint, and wait when space is short", "[tmem]") {
  sim::Tmem tmem;
  CHECK(tmem.alloc(256) == 0);
  CHECK(tmem.alloc(128) == 256);
  CHECK(tmem.alloc(64) == 384);
  CHECK(tmem.allocated_columns() == 448);
  tmem.dealloc(256, 128);
  CHECK(tmem.alloc(64) == 256);
  CHECK(tmem.alloc(64) == 320);
  CHECK(tmem.alloc(64) == 448);
  CHECK(tmem.alloc(32) == -1);
  tmem.dealloc(0, 256);
  CHECK(tmem.alloc(32) == 0);
  CHECK(tmem.allocated_columns() == 288);
}

TEST_CASE("tmem: new columns are poison although the previous owner wrote them", "[tmem]") {
  sim::Tmem tmem;
  const int base = tmem.alloc(32);
  tmem.write(0, base, 7);
  tmem.dealloc(base, 32);
  CHECK(fault_of([&] { tmem.read(0, base); }).kind() == sim::FaultKind::kBounds);
  REQUIRE(tmem.alloc(32) == base);
  CHECK(fault_of([&] { tmem.read(0, base); }).kind() == sim::FaultKind::kPoison);
}

TEST_CASE("tmem: the allocator's protocol", "[tmem]") {
  sim::Tmem tmem;
  for (int columns : {0, 16, 31, 48, 96, 1024, -32})
    CHECK(fault_of([&] { tmem.alloc(columns); }).kind() == sim::FaultKind::kProtocol);
  const int base = tmem.alloc(64);
  CHECK(fault_of([&] { tmem.alloc(128); }).kind() == sim::FaultKind::kProtocol);          // grows
  CHECK(fault_of([&] { tmem.dealloc(base, 32); }).kind() == sim::FaultKind::kProtocol);   // only a part
  CHECK(fault_of([&] { tmem.dealloc(base, 128); }).kind() == sim::FaultKind::kProtocol);  // more than held
  CHECK(fault_of([&] { tmem.dealloc(base + 32, 32); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([&] { tmem.dealloc(512, 64); }).kind() == sim::FaultKind::kProtocol);
  tmem.relinquish();
  CHECK(tmem.relinquished());
  CHECK(fault_of([&] { tmem.alloc(32); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([&] { tmem.relinquish(); }).kind() == sim::FaultKind::kProtocol);
  tmem.dealloc(base, 64);
  CHECK(fault_of([&] { tmem.dealloc(base, 64); }).kind() == sim::FaultKind::kProtocol);  // twice
  CHECK(tmem.allocated_columns() == 0);
}

}  // namespace tmem_test
