// wgmma_test.cpp -- what wgmma.mma_async computes, in every shape, layout and form of its operands, under
// every schedule. The matrices hold small integers, so every sum is exact and the oracle is integer
// arithmetic.
#include "sim/unit/recorder.hpp"
#include "sim/unit/wgmma_fixture.hpp"
#include "support/catch.hpp"

namespace wgmma_test {

using namespace wgmma_test;
using sim::FaultKind;
using sim_test::fault_of;
using sim_test::says;

TEST_CASE("wgmma: every N, both types of 16 bits, A from registers and from shared memory", "[wgmma]") {
  for (uint32_t n = 8; n <= 256; n += 8) {
    Program program;
    program.n = n;
    program.a_format = program.b_format = n % 16 == 0 ? kBf16 : kF16;
    const bool shared = n % 24 == 0;
    program.body = program.mma(shared, shared ? "%p1, 1, 1, 0, 0" : "%p1, 1, 1, 0") + kWait;
    const Problem problem(program);
    CAPTURE(n, program.types(), shared);
    CHECK(run(problem) == expected(problem));
  }
}

TEST_CASE("wgmma: every N, every pair of types of 8 bits, A from registers and from shared memory",
          "[wgmma]") {
  // An exponent is at most 6, so sums below 2^14 are exact in steps of 2^-7.
  for (uint32_t n = 8; n <= 256; n += 8) {
    Program program;
    program.n = n;
    program.a_format = n / 8 % 2 == 0 ? kE4m3 : kE5m2;
    program.b_format = n / 16 % 2 == 0 ? kE4m3 : kE5m2;
    const bool shared = n % 24 == 0;
    program.body = program.mma(shared, "%p1, 1, 1") + kWait;
    const Problem problem(program);
    CAPTURE(n, program.types(), shared);
    CHECK(run(problem) == expected(problem));
  }
}

TEST_CASE("wgmma: K-major layouts and signs of 8-bit operands", "[wgmma]") {
  const uint32_t n = 96;
  const size_t i = GENERATE(0u, 1u, 2u, 3u);
  const Layout a = layouts(64)[i], b = layouts(n)[3 - i];
  const auto [end, factor, accumulate] =
      GENERATE(Catch::Generators::table<std::string, int, bool>({{"%p1, 1, 1", 1, true},
                                                                 {"%p1, -1, 1", -1, true},
                                                                 {"%p1, 1, -1", -1, true},
                                                                 {"%p2, -1, -1", 1, false}}));
  Program program;
  program.n = n;
  program.a_format = kE4m3;
  program.b_format = kE5m2;
  const bool shared = GENERATE(false, true);
  program.body = program.mma(shared, end) + kWait;
  Problem problem(program);
  problem.a_layout = a;
  problem.b_layout = b;
  CAPTURE(a.name, b.name, end, shared);
  CHECK(run(problem) == expected(problem, factor, accumulate));
}

TEST_CASE("wgmma: every layout of A and of B", "[wgmma]") {
  const uint32_t n = 96;
  for (size_t i = 0; i < layouts(n).size(); ++i) {
    const Layout a = layouts(64)[i], b = layouts(n)[layouts(n).size() - 1 - i];
    Program program;
    program.n = n;
    program.body = program.mma(true, std::string("%p1, 1, 1, ") + (a.mn_major ? "1" : "0") + ", " +
                                         (b.mn_major ? "1" : "0")) +
                   kWait;
    Problem problem(program);
    problem.a_layout = a;
    problem.b_layout = b;
    CAPTURE(a.name, b.name);
    CHECK(run(problem) == expected(problem));
  }
}

TEST_CASE("wgmma: steps of 32 bytes along K inside a swizzled row", "[wgmma]") {
  // The matrices lie 32 bytes into rows of 128 bytes, and so does the start of their descriptors.
  Program program;
  program.body = program.mma(true, "%p1, 1, 1, 0, 0") + kWait;
  Problem problem(program);
  const uint32_t step = GENERATE(1u, 2u, 3u);
  for (Layout* layout : {&problem.a_layout, &problem.b_layout})
    layout->place = [step](uint32_t r, uint32_t c) { return r * 128 + ((c + 2 * step) ^ r % 8) * 16; };
  program.body = "add.u64 %rd10, %rd10, " + std::to_string(2 * step) + "; add.u64 %rd11, %rd11, " +
                 std::to_string(2 * step) + ";" + program.body;
  problem.program = program;
  CHECK(run(problem) == expected(problem));
}

TEST_CASE("wgmma: a start inside a pattern of 128-byte rows is swizzled by the bits of the address",
          "[wgmma]") {
  // The matrices lie `rows` rows behind the start of a pattern. Written by the bits of the address they give
  // the product, and written as if a pattern began where they begin they do not. Both are remarked on.
  const uint32_t rows = GENERATE(0u, 1u, 3u, 7u, 8u), step = GENERATE(0u, 1u);
  const bool by_address = GENERATE(true, false);
  const std::string behind = std::to_string(8 * rows + 2 * step);
  Program program;
  program.body = "add.u64 %rd10, %rd10, " + behind + "; add.u64 %rd11, %rd11, " + behind + ";" +
                 program.mma(true, "%p1, 1, 1, 0, 0") + kWait;
  Problem problem(program);
  for (Layout* layout : {&problem.a_layout, &problem.b_layout})
    layout->place = [=](uint32_t r, uint32_t c) {
      return (r + rows) * 128 + ((c + 2 * step) ^ (by_address ? r + rows : r) % 8) * 16;
    };
  sim_test::Recorder seen;
  const bool right = run(problem, "default", 0, &seen) == expected(problem);
  const bool inside = rows % 8 != 0;
  CHECK(right == (by_address || !inside));
  CHECK(seen.remarks == std::vector<std::string>(inside ? 1 : 0, "descriptor-row"));
}

TEST_CASE("wgmma: signs, and accumulators that are not read", "[wgmma]") {
  const auto [end, factor, accumulate] =
      GENERATE(Catch::Generators::table<std::string, int, bool>({{"%p1, -1, 1, 0", -1, true},
                                                                 {"%p1, 1, -1, 0", -1, true},
                                                                 {"%p1, -1, -1, 0", 1, true},
                                                                 {"%p2, 1, 1, 0", 1, false},
                                                                 {"!%p1, -1, 1, 0", -1, false}}));
  Program program;
  program.body = program.mma(false, end) + kWait;
  const Problem problem(program);
  CHECK(run(problem) == expected(problem, factor, accumulate));
}

TEST_CASE("wgmma: a chain onto the same accumulators, clean and equal under every schedule", "[wgmma]") {
  Program program;
  const bool bytes = GENERATE(false, true);
  if (bytes) program.a_format = program.b_format = kE4m3;
  const auto mma = [&](bool shared, const std::string& scale_d) {
    return program.mma(shared, scale_d + (bytes ? ", 1, 1" : shared ? ", 1, 1, 0, 0" : ", 1, 1, 0"));
  };
  program.body = mma(false, "%p2") + mma(true, "%p1") + "wgmma.commit_group.sync.aligned;\n" +
                 mma(false, "%p1") + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;\n" +
                 mma(false, "%p1") + kWait;
  const Problem problem(program);
  for (const sim::Mode& mode : sim::modes())
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Verdicts verdicts;
      CAPTURE(mode.name, seed);
      CHECK(run(problem, mode.name, seed, &verdicts.both) == expected(problem, 4, false));
      CHECK(verdicts.rules == std::set<std::string>{});
    }
}

TEST_CASE("wgmma: two warpgroups, and what a third does not do", "[wgmma]") {
  Program program;
  program.threads = 384;
  program.warpgroups = 2;
  program.fence = "setp.ge.u32 %p5, %r0, 256; @%p5 bra END; wgmma.fence.sync.aligned;";
  program.body = program.mma(false, "%p1, 1, 1, 0") + kWait;
  const Problem problem(program);
  CHECK(run(problem) == expected(problem));
}

TEST_CASE("watched: the parts of a wgmma, their bytes, and the instructions around it", "[observer]") {
  using Async = sim::AsyncIssue::Kind;
  using Sync = sim::SyncEvent::Kind;
  Program program;
  program.n = 24;
  const bool shared = GENERATE(false, true), bytes = GENERATE(false, true);
  if (bytes) program.a_format = program.b_format = kE5m2;
  program.body = program.mma(shared, bytes    ? "%p1, 1, 1"
                                     : shared ? "%p1, 1, 1, 0, 0"
                                              : "%p1, 1, 1, 0") +
                 "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
  sim_test::Recorder seen;
  run(Problem(program), "default", 0, &seen);
  const auto parts = seen.of(Async::kWgmma);
  REQUIRE(parts.size() == 4);
  std::set<uint32_t> warps;
  for (const sim::AsyncIssue& part : parts) {
    const uint32_t warp = part.thread.warp;
    warps.insert(warp);
    CHECK(part.mask == 0xFFFFFFFF);
    CHECK(part.writes.empty());
    // Rows of 32 bytes in a matrix of 128 bytes a row: of A the 16 rows of the warp, of B all 24.
    std::vector<sim_test::Bytes> expected;
    const auto rows = [&](uint32_t base, uint32_t first, uint32_t count) {
      std::set<uint32_t> chunks;  // whose place the swizzle changes
      for (uint32_t row = first; row < first + count; ++row)
        for (uint32_t chunk = 0; chunk < 2; ++chunk) chunks.insert(base + row * 128 + (chunk ^ row % 8) * 16);
      for (const uint32_t chunk : chunks) {
        if (!expected.empty() && std::get<1>(expected.back()) + std::get<2>(expected.back()) == chunk)
          std::get<2>(expected.back()) += 16;
        else expected.emplace_back(0, chunk, 16);
      }
    };
    if (shared) rows(1024 + kA, 16 * warp, 16);
    std::vector<sim_test::Bytes> of_a = std::move(expected);
    expected.clear();
    rows(1024 + kB, 0, 24);
    of_a.insert(of_a.end(), expected.begin(), expected.end());
    CHECK(sim_test::shared_of(part.reads) == of_a);
    size_t landings = 0;
    for (const sim::AsyncLanding& landing : seen.landings) landings += landing.id == part.id;
    CHECK(landings == 3);  // sources, piece, complete
  }
  CHECK(warps == std::set<uint32_t>{0, 1, 2, 3});
  CHECK(seen.of(Sync::kWgmmaFence).size() == 4);
  CHECK(seen.of(Sync::kWgmmaCommit).size() == 4);
  const auto waits = seen.of(Sync::kWgmmaWait);
  REQUIRE(waits.size() == 4);
  CHECK(waits[0].amount == 0);
}

}  // namespace wgmma_test
