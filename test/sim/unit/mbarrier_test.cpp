// mbarrier_test.cpp -- phases of one mbarrier under arrivals and transaction bytes.
#include "sim/engine/mbarrier.h"

#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace mbarrier_test {

using sim::Mbarrier;

using sim_test::fault_of;

TEST_CASE("mbarrier: a fresh barrier lets a producer through and holds a consumer", "[mbarrier]") {
  const Mbarrier bar(1);
  CHECK(bar.test_parity(1));
  CHECK_FALSE(bar.test_parity(0));
  CHECK_FALSE(bar.test_phase(0));
}

TEST_CASE("mbarrier: the phase ends with the last arrival and starts over", "[mbarrier]") {
  Mbarrier bar(3);
  for (uint64_t phase = 0; phase < 4; ++phase) {
    CHECK_FALSE(bar.arrive());
    CHECK(bar.pending() == 2);
    CHECK_FALSE(bar.test_phase(phase));
    CHECK(bar.arrive(2));
    CHECK(bar.phase() == phase + 1);
    CHECK(bar.test_phase(phase));
    CHECK(bar.test_parity(static_cast<uint32_t>(phase)));
    CHECK_FALSE(bar.test_parity(static_cast<uint32_t>(phase + 1)));
    CHECK(bar.pending() == 3);
  }
}

TEST_CASE("mbarrier: expected bytes hold the phase open, in either order of expect and arrival of bytes",
          "[mbarrier]") {
  Mbarrier bar(1);
  SECTION("expected first") {
    CHECK_FALSE(bar.expect_tx(6144));
    CHECK_FALSE(bar.arrive());
    CHECK_FALSE(bar.complete_tx(4096));
    CHECK(bar.complete_tx(2048));
  }
  SECTION("bytes of the peer land first") {
    CHECK_FALSE(bar.complete_tx(2048));
    CHECK(bar.tx() == -2048);
    CHECK_FALSE(bar.expect_tx(6144));
    CHECK_FALSE(bar.complete_tx(4096));
    CHECK(bar.arrive());
  }
  SECTION("bytes land between the arrival and the expectation") {
    CHECK_FALSE(bar.complete_tx(2048));
    CHECK_FALSE(bar.arrive());
    CHECK(bar.expect_tx(2048));
  }
  CHECK(bar.phase() == 1);
  CHECK(bar.tx() == 0);
}

TEST_CASE("mbarrier: one missing or surplus byte keeps the phase open", "[mbarrier]") {
  const int64_t delivered = GENERATE(4095, 4097);
  Mbarrier bar(1);
  bar.expect_tx(4096);
  bar.arrive();
  CHECK_FALSE(bar.complete_tx(delivered));
  CHECK(bar.phase() == 0);
}

TEST_CASE("mbarrier: arrive_drop lowers the count of later phases", "[mbarrier]") {
  Mbarrier bar(3);
  CHECK_FALSE(bar.arrive_drop());
  CHECK(bar.arrive(2));
  CHECK(bar.pending() == 2);
  CHECK_FALSE(bar.arrive());
  CHECK(bar.arrive());
  CHECK(bar.phase() == 2);
}

TEST_CASE("mbarrier: limits", "[mbarrier]") {
  CHECK(fault_of([] { Mbarrier bar(0); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([] { Mbarrier bar(1 << 20); }).kind() == sim::FaultKind::kProtocol);
  CHECK(Mbarrier((1 << 20) - 1).pending() == (1 << 20) - 1);
  Mbarrier bar(2);
  CHECK(fault_of([&] { bar.arrive(3); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([&] { bar.arrive(0); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([&] { bar.expect_tx(1 << 20); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([&] { bar.complete_tx(1 << 20); }).kind() == sim::FaultKind::kProtocol);
  bar.expect_tx((1 << 20) - 1);
  CHECK(fault_of([&] { bar.expect_tx(1); }).kind() == sim::FaultKind::kProtocol);
  bar.arrive(2);  // the phase waits for bytes: nobody may arrive any more
  CHECK(fault_of([&] { bar.arrive(); }).kind() == sim::FaultKind::kProtocol);
  CHECK(fault_of([&] { bar.arrive_drop(); }).kind() == sim::FaultKind::kProtocol);
  CHECK(bar.expected() == 2);
}

}  // namespace mbarrier_test
