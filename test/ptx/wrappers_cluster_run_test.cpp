// wrappers_cluster_run_test.cpp -- launches the kernels of wrappers_cluster_test.cu, one cluster of two CTAs
// each, and compares what they leave behind with values derived here from the text of PTX ISA 9.0. No
// expected value comes from ptx/ or from the simulator.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "test/ptx/launch.h"
#include "test/ptx/wrappers.h"

using namespace wrappers;

TEST_CASE("cluster_ctarank numbers the CTAs of a cluster", "[ptx]") {
  DeviceArray<uint32_t> out(4);
  require_end(run_blocks(cluster_ctarank, 4, 32, out.data()));
  CHECK(out.host() == std::vector<uint32_t>{0, 1, 0, 1});
}

TEST_CASE("st_shared_cluster_v4_b32 stores in the CTA that mapa names, and ld_shared_v4_b32 finds it",
          "[ptx]") {
  DeviceArray<uint32_t> out(2 * 128);
  require_end(run_blocks(st_shared_cluster_v4_b32, 2, 32, out.data()));
  const auto words = out.host();
  for (uint32_t i = 0; i < words.size(); ++i) {
    INFO("word " << i);
    CHECK(words[i] == (i < 128 ? 1000 : 0) + i % 128);
  }
}

TEST_CASE("mbarrier_arrive_relaxed_cluster arrives on the even CTA's barrier, from either CTA", "[ptx]") {
  struct Case {
    int32_t arrivals;  // of each CTA, on a barrier of four
    uint32_t waiter;
    const char* open;  // what the report says of a phase that does not end
  };
  const Case c = GENERATE(Case{2, 0, nullptr}, Case{1, 0, "pending arrivals 2 of 4"},
                          Case{2, 1, "pending arrivals 4 of 4"});
  DeviceArray<uint32_t> out(1);
  const Outcome outcome =
      run_blocks(mbarrier_arrive_relaxed_cluster, 2, 32, c.arrivals, c.waiter, out.data());
  if (c.open) check_waits_forever(outcome, c.open);
  else require_end(outcome);
  CHECK(out.host()[0] == (c.open ? kUntouched : 1));
}

TEST_CASE("cp_async_bulk_tensor_2d_pair writes its own CTA and counts on the even one's barrier", "[ptx]") {
  const auto tensor = distinct_words(4 * 8);
  const uint32_t bytes = GENERATE(128u, 144u);
  DeviceArray<uint32_t> source(tensor), out(2 * 16);
  const Outcome outcome = run_blocks(cp_async_bulk_tensor_2d_pair, 2, 32,
                                     map_words(source.data(), 4, 8, 4, 4, 4), bytes, out.data());
  if (bytes == 128) {
    require_end(outcome);
    CHECK(out.host() == tensor);
  } else {
    check_waits_forever(outcome, "pending bytes 16");
  }
}

TEST_CASE("cp_async_bulk_tensor_2d_pair_multicast writes the CTAs of its mask", "[ptx]") {
  const auto tensor = distinct_words(4 * 4);
  const uint32_t issuer = GENERATE(0u, 1u), ranks = GENERATE(1u, 2u, 3u);
  DeviceArray<uint32_t> source(tensor), out(2 * 16);
  require_end(run_blocks(cp_async_bulk_tensor_2d_pair_multicast, 2, 32,
                         map_words(source.data(), 4, 4, 4, 4, 4), issuer, ranks, out.data()));
  const auto words = out.host();
  for (uint32_t i = 0; i < words.size(); ++i) {
    INFO("issuer " << issuer << ", ranks " << ranks << ", word " << i);
    CHECK(words[i] == (ranks >> i / 16 & 1 ? tensor[i % 16] : 7));
  }
}

TEST_CASE("tcgen05_commit_multicast reports copies of a pair to the CTAs of its mask", "[ptx]") {
  const auto rows = distinct_words(2 * 128);
  const uint32_t ranks = GENERATE(1u, 2u, 3u);
  DeviceArray<uint32_t> source(rows), out(2 * 1024);
  const Outcome outcome = run_blocks(tcgen05_commit_multicast, 2, 128,
                                     map_words(source.data(), 128, 2, 128, 128, 1), ranks, out.data());
  if (ranks == 3) require_end(outcome);
  else check_waits_forever(outcome, "pending arrivals 1 of 1");
  const auto words = out.host();
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t lane = 0; lane < 128; ++lane)
      for (uint32_t column = 0; column < 8; ++column) {
        INFO("ranks " << ranks << ", rank " << rank << ", lane " << lane << ", column " << column);
        const uint32_t copied = rows[128 * rank + 4 * (lane % 32) + column % 4];
        CHECK(words[1024 * rank + 8 * lane + column] == (ranks >> rank & 1 ? copied : kUntouched));
      }
}
