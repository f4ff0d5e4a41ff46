// pipeline_test.cpp -- PipelineState against a model of the barrier it waits on: a phase counter, where
// waiting for a parity returns when the phase of that parity is the one that completed last.
#include "kernel/common/pipeline.cuh"

#include "support/catch.hpp"

namespace pipeline_test {

using namespace dualgemm;

namespace {

constexpr int kStages = 3;

struct Barrier {
  int completed = 0;  // phases completed so far
  bool passes(uint32_t parity) const { return (completed & 1) != static_cast<int>(parity); }
};

}  // namespace

TEST_CASE("the producer finds a new ring empty once, and not a second time", "[pipeline]") {
  Barrier empty[kStages];
  auto state = producer_start<kStages>();
  for (int i = 0; i < kStages; ++i, ++state) {
    CHECK(state.index == i);
    CHECK(empty[state.index].passes(state.phase));
  }
  CHECK(state.index == 0);
  CHECK(!empty[state.index].passes(state.phase));
}

TEST_CASE("the consumer finds a new ring without data", "[pipeline]") {
  Barrier full[kStages];
  auto state = consumer_start<kStages>();
  for (int i = 0; i < kStages; ++i, ++state) CHECK(!full[state.index].passes(state.phase));
}

TEST_CASE("each end passes a barrier exactly when the other end has completed the phase it needs",
          "[pipeline]") {
  // The consumer lags the producer by 0 to kStages stages;
  // after 4 laps every combination of wrap has occurred.
  for (int lag = 1; lag <= kStages; ++lag) {
    INFO("lag " << lag);
    Barrier full[kStages], empty[kStages];
    auto producer = producer_start<kStages>();
    auto consumer = consumer_start<kStages>();
    int produced = 0, consumed = 0;
    while (consumed < 4 * kStages) {
      while (produced < consumed + lag) {
        REQUIRE(empty[producer.index].passes(producer.phase));
        ++full[producer.index].completed;
        ++producer;
        ++produced;
      }
      if (lag == kStages) REQUIRE(!empty[producer.index].passes(producer.phase));  // the ring is full
      REQUIRE(full[consumer.index].passes(consumer.phase));
      ++empty[consumer.index].completed;
      ++consumer;
      ++consumed;
      if (produced == consumed) REQUIRE(!full[consumer.index].passes(consumer.phase));  // the ring is empty
    }
  }
}

TEST_CASE("draining: after the last fill, kStages more waits pass exactly when all that was filled was read",
          "[pipeline]") {
  for (int filled = 0; filled <= 2 * kStages + 1; ++filled) {
    INFO("filled " << filled);
    Barrier empty[kStages];
    auto state = producer_start<kStages>();
    for (int i = 0; i < filled; ++i, ++state)
      if (i < filled - 1) ++empty[state.index].completed;  // all but the last have been read
    const auto all_pass = [&] {
      auto s = state;
      bool pass = true;
      for (int i = 0; i < kStages; ++i, ++s) pass = pass && empty[s.index].passes(s.phase);
      return pass;
    };
    CHECK(all_pass() == (filled == 0));
    if (filled > 0) {
      ++empty[(filled - 1) % kStages].completed;
      CHECK(all_pass());
    }
  }
}

TEST_CASE("a ring of one stage flips its phase every time", "[pipeline]") {
  auto state = consumer_start<1>();
  for (uint32_t i = 0; i < 5; ++i, ++state) {
    CHECK(state.index == 0);
    CHECK(state.phase == i % 2);
  }
}

}  // namespace pipeline_test
