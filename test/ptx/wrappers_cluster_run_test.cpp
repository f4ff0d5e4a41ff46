// wrappers_cluster_run_test.cpp -- launches the kernels of wrappers_cluster_test.cu, one cluster of two CTAs
// each, and compares what they leave behind with values derived here from the text of PTX ISA 9.0. No
// expected value comes from ptx/ or from the simulator.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "test/ptx/launch.h"
#include "test/ptx/product.h"
#include "test/ptx/wrappers.h"

using namespace wrappers;

TEST_CASE("cluster_ctarank numbers the CTAs of a cluster", "[ptx]") {
  DeviceArray<uint32_t> out(4);
  require_end(run_blocks(cluster_ctarank, 4, 32, out.data()));
  CHECK(out.host() == std::vector<uint32_t>{0, 1, 0, 1});
}

TEST_CASE(
    "st_async_v4_b32 sends 16 bytes a lane to the CTA that mapa names, they count on its barrier, and "
    "ld_shared_v4_b32 finds them",
    "[ptx]") {
  const uint32_t bytes = GENERATE(512u, 528u);
  DeviceArray<uint32_t> out(2 * 128);
  const Outcome outcome = run_blocks(st_async_v4_b32, 2, 32, bytes, out.data());
  if (bytes == 528) {
    check_waits_forever(outcome, "pending bytes 16");
    return;
  }
  require_end(outcome);
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

namespace {

struct At {
  int32_t c0, c1, c2, c3;
};

// Both CTAs copy, at `at` and one further along the outermost dimension. The even one's barrier waits for
// `bytes`, of the 128 of both boxes.
void check_pair_copy(const Outcome& outcome, uint32_t bytes, const std::vector<uint32_t>& out,
                     std::vector<uint32_t> even, const std::vector<uint32_t>& odd) {
  if (bytes == 128) {
    require_end(outcome);
    even.insert(even.end(), odd.begin(), odd.end());
    CHECK(out == even);
  } else {
    check_waits_forever(outcome, "pending bytes 16");
  }
}

// These are the 10 x 7 x 3 x 2 words of a tensor with gaps along every dimension but the innermost.
const std::vector<Axis> kTensor4 = {{10, 1, 4}, {7, 12, 2}, {3, 96, 2}, {2, 384, 1}};

}  // namespace

TEST_CASE("cp_async_bulk_tensor_3d_pair writes its own CTA and counts on the even one's barrier", "[ptx]") {
  const std::vector<Axis> axes = {{10, 1, 4}, {7, 12, 4}, {3, 96, 1}};
  const auto tensor = distinct_words(3 * 96);
  const uint32_t bytes = GENERATE(128u, 144u);
  const auto [c0, c1, c2, unused] =
      GENERATE(At{0, 0, 0, 0}, At{4, 2, 1, 0}, At{-4, -2, -1, 0}, At{8, 5, 2, 0});
  DeviceArray<uint32_t> source(tensor), out(2 * 16);
  const Outcome outcome = run_blocks(cp_async_bulk_tensor_3d_pair, 2, 32, map_words(source.data(), axes), c0,
                                     c1, c2, bytes, out.data());
  INFO("{" << c0 << ", " << c1 << ", " << c2 << "}");
  check_pair_copy(outcome, bytes, out.host(), box_at(tensor, axes, {c0, c1, c2}),
                  box_at(tensor, axes, {c0, c1, c2 + 1}));
}

TEST_CASE("cp_async_bulk_tensor_4d_pair writes its own CTA and counts on the even one's barrier", "[ptx]") {
  const auto tensor = distinct_words(2 * 384);
  const uint32_t bytes = GENERATE(128u, 144u);
  const auto [c0, c1, c2, c3] = GENERATE(At{0, 0, 0, 0}, At{4, 2, 1, 0}, At{-4, -1, -1, -1}, At{8, 6, 2, 1});
  DeviceArray<uint32_t> source(tensor), out(2 * 16);
  const Outcome outcome = run_blocks(cp_async_bulk_tensor_4d_pair, 2, 32, map_words(source.data(), kTensor4),
                                     c0, c1, c2, c3, bytes, out.data());
  INFO("{" << c0 << ", " << c1 << ", " << c2 << ", " << c3 << "}");
  check_pair_copy(outcome, bytes, out.host(), box_at(tensor, kTensor4, {c0, c1, c2, c3}),
                  box_at(tensor, kTensor4, {c0, c1, c2, c3 + 1}));
}

TEST_CASE("cp_async_bulk_tensor_4d_pair_multicast writes the CTAs of its mask", "[ptx]") {
  const auto tensor = distinct_words(2 * 384);
  const uint32_t issuer = GENERATE(0u, 1u), ranks = GENERATE(1u, 2u, 3u);
  const auto [c0, c1, c2, c3] = GENERATE(At{4, 2, 1, 1}, At{8, -1, 2, 0});
  DeviceArray<uint32_t> source(tensor), out(2 * 16);
  require_end(run_blocks(cp_async_bulk_tensor_4d_pair_multicast, 2, 32, map_words(source.data(), kTensor4),
                         c0, c1, c2, c3, issuer, ranks, out.data()));
  const auto words = out.host(), box = box_at(tensor, kTensor4, {c0, c1, c2, c3});
  for (uint32_t i = 0; i < words.size(); ++i) {
    INFO("issuer " << issuer << ", ranks " << ranks << ", word " << i);
    CHECK(words[i] == (ranks >> i / 16 & 1 ? box[i % 16] : 7));
  }
}

TEST_CASE("tcgen05_commit_multicast reports copies of a pair to the CTAs of its mask", "[ptx]") {
  const auto rows = distinct_words(2 * 128);
  const uint32_t ranks = GENERATE(1u, 2u, 3u);
  DeviceArray<uint32_t> source(rows), out(2 * 1024);
  const Outcome outcome =
      run_blocks(tcgen05_commit_multicast, 2, 128, map_rows(source.data(), 128, 2, 1), ranks, out.data());
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

TEST_CASE("tcgen05_mma_mxf4nvf4_block16 of a pair multiplies what both CTAs hold", "[ptx]") {
  const int32_t collector = GENERATE(0, 1);
  const Product product(256);
  DeviceArray<uint32_t> a(product.a()), b(product.b()), atoms(product.atoms()), out(256 * Product::kN);
  require_end(run_blocks(tcgen05_mma_mxf4nvf4_block16_pair, 2, 128,
                         map_rows(a.data(), 32, 256, 128, CU_TENSOR_MAP_SWIZZLE_128B),
                         map_rows(b.data(), 32, Product::kN, 16, CU_TENSOR_MAP_SWIZZLE_128B),
                         map_rows(atoms.data(), 128, 4, 1), collector, out.data()));
  product.check(out.host(), 1);
}
