// dual_gemm_test.cpp -- the whole library, from the public interface down to the bits in C, on the GPU or in
// the simulator. Each test states one property; results are compared with the double-precision reference
// within the bound derived in ref/dual_gemm.cpp, and every launch is surrounded by guard bytes and starts
// from a poisoned C.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel/instance.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/expected.h"
#include "support/stream.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

std::string shape_text(const Problem& p) {
  return "m " + std::to_string(p.m) + ", n " + std::to_string(p.n) + ", k " + std::to_string(p.k) + ", lda " +
         std::to_string(p.lda);
}

Comparison compared(const Output& out, const Problem& p) {
  return compare(out, expected(p, {}, out.split_k)->c);
}

void check_against_reference(const Problem& p, const LaunchOptions& options) {
  INFO(shape_text(p));
  const Comparison result = compared(run(p, options), p);
  INFO(result.first);
  CHECK(result.mismatches == 0);
}

// Returns the instances for one problem that write this type.
std::vector<NamedInstance> instances_of(dualgemm_dtype_t dtype) {
  std::vector<NamedInstance> out;
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.dtype == dtype) out.push_back(instance);
  }
  return out;
}

}  // namespace

TEST_CASE("the library offers every tile for every output type, plain and general", "[kernel]") {
  using Types = std::set<int32_t>;
  std::map<std::string, Types> plain, general;  // by the tile
  for (const NamedInstance& instance : all_instances())
    CHECK((instance.info.general ? general : plain)[tile_of(instance)].insert(instance.dtype).second);
  CHECK(plain.size() >= 4);
  std::set<std::string> general_tiles;
  for (const auto& [tile, types] : plain) {
    INFO(tile);
    CHECK(types == Types{DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16});
    const auto name = general_tile(tile);
    if (!name) continue;
    CHECK(general[*name] == Types{DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32,
                                  DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_FP8_E4M3});
    general_tiles.insert(*name);
  }
  CHECK(general_tiles.size() == general.size());
}

TEST_CASE("ragged m and n give the reference's result with every instance", "[kernel]") {
  size_t turn = 0;  // every tile meets every m, each with one n, and another tile's with another
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    ++turn;
    DYNAMIC_SECTION(instance.name) {
      for (int32_t m : {1, 7, 127, 128, 129, 200, 257})
        for (int32_t n : all_or_every<int32_t>(3, turn + static_cast<size_t>(m), {8, 72, 136}))
          check_against_reference(make_problem(Data::kFullRange, m, n, 320, 100 + m * 7 + n), use(instance));
    }
  }
}

TEST_CASE("every k gives the reference's result with every instance", "[kernel]") {
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    DYNAMIC_SECTION(instance.name) {
      // Odd multiples of 16 need a padded pitch; 272 spills 16 elements into a second tile of K.
      for (int32_t k : {16, 32, 48, 64, 80, 240, 256, 272, 512, 1024}) {
        check_against_reference(make_problem(Data::kFullRange, 130, 136, k, 200 + k), use(instance));
      }
      check_against_reference(make_problem(Data::kFullRange, 130, 136, 272, 201, 96), use(instance));
    }
  }
}

TEST_CASE("the ring of stages may be partly used, filled exactly and reused many times", "[kernel]") {
  for (const NamedInstance& instance : instances_of(DUALGEMM_DTYPE_FP16)) {
    const int32_t stages = instance.info.stages, tile_k = instance.info.tile_k;
    DYNAMIC_SECTION(instance.name) {
      for (int32_t k_tiles : all_or<int32_t>({1, stages - 1, stages, stages + 1, 3 * stages + 1},
                                             {stages - 1, stages, 2 * stages + 1})) {
        check_against_reference(make_problem(Data::kFullRange, 64, 136, k_tiles * tile_k, 300 + k_tiles),
                                use(instance));
      }
    }
  }
}

TEST_CASE("a CTA that computes several tiles gives the bits of one that computes a single tile", "[kernel]") {
  for (const NamedInstance& instance : instances_of(DUALGEMM_DTYPE_FP16)) {
    if (instance.info.split_k > 1) continue;  // computes one tile
    DYNAMIC_SECTION(instance.name) {
      // There are 2 or 3 row tiles, and at least 2 column tiles.
      const Problem p = make_problem(Data::kFullRange, 300, 328, 576, 400);
      const Output one_each = run(p, use(instance));
      for (int32_t clusters : {1, 2, 4}) {
        LaunchOptions options = use(instance);
        options.max_sms = clusters * instance.info.cta_group;
        INFO(options.max_sms << " CTAs");
        CHECK((run(p, options).bits == one_each.bits));
      }
      const Comparison result = compared(one_each, p);
      INFO(result.first);
      CHECK(result.mismatches == 0);
    }
  }
}

TEST_CASE("sums of integers are exact up to the activation, wherever an element stands", "[kernel]") {
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    DYNAMIC_SECTION(instance.name) {
      check_against_reference(make_problem(Data::kIntegers, 257, 136, 1040, 500), use(instance));
    }
  }
}

TEST_CASE("gate and up are told apart", "[kernel]") {
  const Problem p = make_problem(Data::kFullRange, 130, 72, 256, 600);
  Problem swapped = p;
  std::swap(swapped.b1, swapped.b2);
  std::swap(swapped.sfb1, swapped.sfb2);
  std::swap(swapped.alpha1, swapped.alpha2);
  const Output straight = run(p), crossed = run(swapped);
  CHECK(straight.bits != crossed.bits);
  CHECK(compared(straight, p).mismatches == 0);
  CHECK(compared(crossed, swapped).mismatches == 0);
  CHECK(compared(straight, swapped).mismatches > straight.m * straight.n / 2);
}

TEST_CASE("each of the six inputs matters where it should and nowhere else", "[kernel]") {
  const int32_t m = 136, n = 72, k = 320, row = 131, column = 69;
  const Problem p = make_problem(Data::kIntegers, m, n, k, 700);
  const Output before = run(p);
  const auto changed = [&](const Problem& q, int64_t r, int64_t c) {
    const Output after = run(q);
    const Comparison result = compared(after, q);
    INFO(result.first);
    CHECK(result.mismatches == 0);
    int64_t inside = 0, outside = 0;
    for (int64_t i = 0; i < m * n; ++i) {
      const bool hit = (r < 0 || i / n == r) && (c < 0 || i % n == c);
      (hit ? inside : outside) += after.bits[i] != before.bits[i];
    }
    CHECK(inside > 0);
    CHECK(outside == 0);
  };
  const auto flip_sign = [](uint8_t& pair) { pair ^= 0x88; };
  Problem q = p;
  SECTION("a") {
    for (int64_t i = 0; i < k / 2; i += 3) flip_sign(q.a[row * q.lda / 2 + i]);
    changed(q, row, -1);
  }
  SECTION("b1") {
    for (int64_t i = 0; i < k / 2; i += 3) flip_sign(q.b1[column * q.ldb1 / 2 + i]);
    changed(q, -1, column);
  }
  SECTION("b2") {
    for (int64_t i = 0; i < k / 2; i += 3) flip_sign(q.b2[column * q.ldb2 / 2 + i]);
    changed(q, -1, column);
  }
  SECTION("sfa") {
    q.sfa[ref::sf_offset(k, row, 17)] = 0x48;  // 4 instead of 1
    changed(q, row, -1);
  }
  SECTION("sfb1") {
    q.sfb1[ref::sf_offset(k, column, 6)] = 0x48;
    changed(q, -1, column);
  }
  SECTION("sfb2") {
    q.sfb2[ref::sf_offset(k, column, 19)] = 0x48;
    changed(q, -1, column);
  }
}

TEST_CASE("columns between n and ldc, and everything around C, stay untouched", "[kernel]") {
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    DYNAMIC_SECTION(instance.name) {
      for (int64_t padding : {8, 64, 120}) {
        LaunchOptions options = use(instance);
        options.ldc_padding = padding;  // DeviceProblem::download checks the bytes
        check_against_reference(make_problem(Data::kFullRange, 129, 72, 256, 800), options);
      }
    }
  }
}

TEST_CASE("scale factors of rows that do not exist, and bytes beyond k, have no effect", "[kernel]") {
  for (const NamedInstance& instance : all_or_every(2, 0, instances_of(DUALGEMM_DTYPE_FP16))) {
    DYNAMIC_SECTION(instance.name) {
      // The row padding is 0x7F, the pitch bytes are random.
      const Problem p = make_problem(Data::kFullRange, 130, 72, 80, 900, 32);
      Problem clean = p;
      const auto clear_rows = [&](std::vector<uint8_t>& sf, int64_t rows) {
        for (int64_t row = rows; row < (rows + 127) / 128 * 128; ++row) {
          for (int64_t block = 0; block < 8; ++block) sf[ref::sf_offset(p.k, row, block)] = 0;
        }
      };
      const auto clear_pitch = [&](std::vector<uint8_t>& codes, int64_t rows, int64_t ld) {
        for (int64_t row = 0; row < rows; ++row) {
          std::fill_n(&codes[row * ld / 2 + p.k / 2], (ld - p.k) / 2, 0);
        }
      };
      clear_rows(clean.sfa, p.m);
      clear_rows(clean.sfb1, p.n);
      clear_rows(clean.sfb2, p.n);
      clear_pitch(clean.a, p.m, p.lda);
      clear_pitch(clean.b1, p.n, p.ldb1);
      clear_pitch(clean.b2, p.n, p.ldb2);
      REQUIRE(clean.sfa != p.sfa);
      REQUIRE(clean.a != p.a);
      CHECK(run(p, use(instance)).bits == run(clean, use(instance)).bits);
    }
  }
}

TEST_CASE("a NaN scale factor poisons its row or its column and nothing else", "[kernel]") {
  Problem p = make_problem(Data::kFullRange, 140, 136, 272, 1000);
  p.sfa[ref::sf_offset(p.k, 133, 16)] = 0x7F;
  p.sfb1[ref::sf_offset(p.k, 5, 0)] = 0x7F;
  p.sfb2[ref::sf_offset(p.k, 130, 9)] = 0xFF;  // the sign bit does not count
  for (const NamedInstance& instance : all_or_in_turn(dense_instances())) {
    DYNAMIC_SECTION(instance.name) { check_against_reference(p, use(instance)); }
  }
}

TEST_CASE("results beyond the largest fp16 number become infinity", "[kernel]") {
  Problem p = make_problem(Data::kFullRange, 128, 72, 256, 1100);
  p.alpha2 *= 20000;
  const Output out = run(p);
  const Comparison result = compared(out, p);
  INFO(result.first);
  CHECK(result.mismatches == 0);
  const auto infinite = [](uint16_t bits) { return (bits & 0x7FFF) == 0x7C00; };
  CHECK(std::count_if(out.bits.begin(), out.bits.end(), infinite) > 0);
}

TEST_CASE("alphas on the device give the bits of alphas on the host", "[kernel]") {
  for (const NamedInstance& instance : all_or_every(2, 1, instances_of(DUALGEMM_DTYPE_BF16))) {
    DYNAMIC_SECTION(instance.name) {
      const Problem p = make_problem(Data::kFullRange, 70, 136, 256, 1300);
      LaunchOptions device = use(instance);
      device.alphas_on_device = true;
      const Output from_device = run(p, device);
      CHECK(from_device.bits == run(p, use(instance)).bits);
      CHECK(compared(from_device, p).mismatches == 0);
    }
  }
}

TEST_CASE("a row's bits depend neither on the other rows nor on the tile", "[kernel]") {
  const int32_t n = 136, k = 528;
  const Problem whole = make_problem(Data::kFullRange, 257, n, k, 1500);
  std::map<std::pair<int32_t, int32_t>, std::vector<uint16_t>> by_parts;  // in which K is added up
  for (const NamedInstance& instance : instances_of(DUALGEMM_DTYPE_FP16)) {
    if (instance.info.stream_k != 0) continue;  // there it depends on both
    INFO(instance.name);
    const Output all = run(whole, use(instance));
    const int32_t k_groups = dualgemm::instance(instance.id - 1).plan.consumers.k_groups;
    std::vector<uint16_t>& expected = by_parts[{instance.info.split_k, k_groups}];
    if (expected.empty()) expected = all.bits;
    CHECK(all.bits == expected);
    for (int32_t m : {1, 2, 17, 128}) {
      Problem part = whole;
      part.m = m;
      part.a.resize(m * part.lda / 2);
      part.sfa.resize(ref::sf_bytes(m, k));
      INFO("m " << m);
      const Output some = run(part, use(instance));
      CHECK(std::equal(some.bits.begin(), some.bits.end(), expected.begin()));
    }
  }
}

TEST_CASE("k = 0 gives zeros and leaves the columns beyond n alone", "[kernel]") {
  for (dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_BF16}) {
    LaunchOptions options;
    options.dtype = dtype;
    options.ldc_padding = 16;
    const Output out = run(make_problem(Data::kFullRange, 5, 24, 0, 1600), options);
    CHECK(out.bits == std::vector<uint16_t>(5 * 24, 0));
  }
}

TEST_CASE("an empty C succeeds and touches nothing", "[kernel]") {
  CHECK(run(make_problem(Data::kFullRange, 0, 72, 256, 1700)).bits.empty());
  CHECK(run(make_problem(Data::kFullRange, 65, 0, 256, 1701)).bits.empty());
}

TEST_CASE("the short entry point gives the bits of the long one", "[kernel]") {
  const Problem p = make_problem(Data::kFullRange, 65, 72, 256, 1800);
  DeviceProblem device(p, {});
  device.launch(nullptr);
  const Output expected = device.download();
  device.poison();
  const dualgemm_args_t& x = device.args();
  REQUIRE(dualgemm_launch(x.a, x.b1, x.b2, x.sfa, x.sfb1, x.sfb2, x.c, x.m, x.n, x.k, x.alpha1, x.alpha2,
                          DUALGEMM_DTYPE_FP16, nullptr) == DUALGEMM_STATUS_SUCCESS);
  CHECK(device.download().bits == expected.bits);
}

TEST_CASE("a launch is captured into a graph and replays with the data it then finds", "[kernel]") {
  const Problem first = make_problem(Data::kFullRange, 65, 136, 256, 1900);
  const Problem second = make_problem(Data::kFullRange, 65, 136, 256, 1901);
  REQUIRE(dualgemm_init() == DUALGEMM_STATUS_SUCCESS);
  LaunchOptions options;
  options.alphas_on_device = true;
  DeviceProblem device(first, options);
  const Captured graph([&](cudaStream_t stream) { device.launch(stream); });

  // The launch was captured, not run: C is still all poison.
  const Output before = device.download();
  CHECK(std::all_of(before.bits.begin(), before.bits.end(), [](uint16_t bits) { return bits == 0xFFFF; }));
  for (const Problem* p : {&first, &second}) {
    device.upload(*p);
    device.poison();
    graph.replay();
    const Comparison result = compared(device.download(), *p);
    INFO(result.first);
    CHECK(result.mismatches == 0);
  }
}

TEST_CASE("launches on one stream run in order, and launches on two in none", "[kernel][simulated]") {
  const Problem early = make_problem(Data::kFullRange, 40, 72, 256, 2000);
  const Problem late = make_problem(Data::kFullRange, 40, 72, 256, 2001);
  const DeviceProblem one(early, {}), other(late, {});
  dualgemm_args_t args = one.args();
  args.c = other.args().c;  // both write the same C
  const auto findings_with = [&](cudaStream_t first, cudaStream_t second) {
    const Judged judged;  // the simulator runs grids in the order of their launches, whatever their streams
    REQUIRE(dualgemm_launch_ex(&args, first) == DUALGEMM_STATUS_SUCCESS);
    other.launch(second);
    CHECK(compared(other.download(), late).mismatches == 0);
    return judged.findings();
  };
  const Stream stream, another;
  CHECK(findings_with(stream.get(), stream.get()) == "");
  CHECK_THAT(findings_with(stream.get(), another.get()), contains("race-grids"));
}
