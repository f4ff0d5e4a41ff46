// footprint_test.cpp -- what tensor core instructions say they will touch, against offsets worked out by hand
// from the layouts, and against what they do touch: they run if all other memory is unwritten, and fault if
// any one piece of the footprint is unwritten, too.
#include "sim/engine/footprint.h"

#include <algorithm>

#include "sim/unit/recorder.hpp"
#include "sim/unit/tensor_fixture.hpp"
#include "support/catch.hpp"

namespace footprint_test {

using namespace sim_test;
using Issue = sim::AsyncIssue::Kind;
using Sync = sim::SyncEvent::Kind;

// The shared memory of multiply() begins at offset 1024.
constexpr uint64_t kA = 1024, kB = kA + 16384, kSfa = kB + 1024, kSfb = kSfa + 512, kBarrier = kSfb + 512;

static Recorder watch(const Shape& shape) {
  Recorder recorder;
  Machine machine;
  const uint32_t ctas = shape.group[0] == '2' ? 2 : 1;
  float* out = machine.make<float>(size_t(128) * ctas * size_t(shape.columns));
  sim::LaunchOptions options;
  options.observer = &recorder;
  machine.run(multiply(shape, kWaitForMma, kFree), sim_test::shape(ctas, 128, ctas, 18432 + 64), {&out},
              options);
  return recorder;
}

// The rows are K-major, of 128 bytes, in the 128-byte swizzle, and hold the first 32 bytes of K: chunks 0 and
// 1 of row r lie at chunks (0 ^ r % 8) and (1 ^ r % 8), which are neighbours.
static std::vector<Bytes> swizzled_rows(uint64_t cta, uint64_t begin, uint32_t rows) {
  std::vector<Bytes> out;
  for (uint64_t r = 0; r < rows; ++r) out.emplace_back(cta, begin + 128 * r + r % 8 / 2 * 32, 32);
  return out;
}

static std::vector<Bytes> operator+(std::vector<Bytes> a, const std::vector<Bytes>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The ranges are cut into pieces of 16 bytes: the ranges may be merged in any way, but must not overlap.
static std::vector<Bytes> pieces(const std::vector<Bytes>& ranges) {
  std::vector<Bytes> out;
  for (const auto& [cta, address, bytes] : ranges)
    for (uint32_t i = 0; i < bytes; i += 16) out.emplace_back(cta, address + i, 16);
  std::sort(out.begin(), out.end());
  return out;
}

TEST_CASE("footprint: one CTA's copy, multiplication, commit, load", "[footprint]") {
  const Recorder seen = watch(kSingle);
  const auto copies = seen.of(Issue::kTmemCopy);
  REQUIRE(copies.size() == 2);
  CHECK(shared_of(copies[0].reads) == std::vector<Bytes>{{0, kSfa, 512}});
  CHECK(cells_of(copies[0].writes) == std::vector<Cells>{{0, 0, 128, 16, 4}});
  CHECK(shared_of(copies[1].reads) == std::vector<Bytes>{{0, kSfb, 512}});
  CHECK(copies[0].b_desc == (0x0000400800000000 | kSfa >> 4));

  const auto mmas = seen.of(Issue::kMma);
  REQUIRE(mmas.size() == 2);
  for (const sim::AsyncIssue& mma : mmas) {
    CHECK(mma.thread.lane == 0);
    CHECK(mma.mask == 1);
    CHECK(mma.cta_group == 1);
    CHECK(mma.a_desc == (0x4000404000000000 | kA >> 4));
    CHECK(mma.b_desc == (0x4000404000000000 | kB >> 4));
    CHECK(mma.idesc == 0x08020480);
    CHECK(mma.scaled);
    CHECK(pieces(shared_of(mma.reads)) == pieces(swizzled_rows(0, kA, 128) + swizzled_rows(0, kB, 8)));
    CHECK(cells_of(mma.writes) == std::vector<Cells>{{0, 0, 128, 0, 8}});
  }
  const std::vector<Cells> scales = {{0, 0, 128, 16, 4}, {0, 0, 128, 20, 2}};
  CHECK_FALSE(mmas[0].accumulate);
  CHECK(cells_of(mmas[0].reads) == scales);
  CHECK(mmas[1].accumulate);
  CHECK(cells_of(mmas[1].reads) == std::vector<Cells>{scales[0], scales[1], {0, 0, 128, 0, 8}});

  const auto commits = seen.of(Issue::kCommit);
  REQUIRE(commits.size() == 1);
  REQUIRE(commits[0].barriers.size() == 1);
  CHECK(commits[0].barriers[0].barrier == sim::MbarrierRef{0, uint32_t(kBarrier)});
  const auto arrivals = seen.of(Sync::kMbarrierArrive);
  REQUIRE(arrivals.size() == 1);
  CHECK(arrivals[0].async_id == commits[0].id);
  CHECK(arrivals[0].amount == 1);

  const auto loads = seen.of(Issue::kTmemLoad);
  REQUIRE(loads.size() == 4);
  for (const sim::AsyncIssue& load : loads) {
    CHECK(load.mask == 0xFFFFFFFF);
    CHECK(load.thread.lane == 0);
    CHECK(cells_of(load.reads) == std::vector<Cells>{{0, int(32 * load.thread.warp), 32, 0, 8}});
  }
  CHECK(seen.of(Sync::kTmemWaitLd).size() == 4);
  CHECK(seen.of(Sync::kTmemUse).empty());
  const auto allocated = seen.of(Sync::kTmemAlloc), freed = seen.of(Sync::kTmemDealloc);
  REQUIRE(allocated.size() == 1);
  REQUIRE(freed.size() == 1);
  CHECK(allocated[0].object == 0);
  CHECK(allocated[0].amount == 32);
  CHECK(freed[0].amount == 32);
  CHECK(seen.of(Sync::kTmemRelinquish).size() == 1);
}

TEST_CASE("footprint: every CTA of a pair gives its half of A, B and D, and all scale factors of B",
          "[footprint]") {
  const Recorder seen = watch(kPair);
  const auto mmas = seen.of(Issue::kMma);
  REQUIRE(mmas.size() == 2);
  CHECK(mmas[1].cta_group == 2);
  std::vector<Bytes> bytes;
  for (uint64_t cta = 0; cta < 2; ++cta)
    bytes = bytes + swizzled_rows(cta, kA, 128) + swizzled_rows(cta, kB, 8);
  CHECK(pieces(shared_of(mmas[1].reads)) == pieces(bytes));
  std::vector<Cells> read = cells_of(mmas[1].reads);
  std::sort(read.begin(), read.end());
  CHECK(read == std::vector<Cells>{{0, 0, 128, 0, 16},
                                   {0, 0, 128, 16, 4},
                                   {0, 0, 128, 20, 2},
                                   {1, 0, 128, 0, 16},
                                   {1, 0, 128, 16, 4},
                                   {1, 0, 128, 20, 2}});
  CHECK(cells_of(mmas[1].writes) == std::vector<Cells>{{0, 0, 128, 0, 16}, {1, 0, 128, 0, 16}});
  const auto copies = seen.of(Issue::kTmemCopy);
  REQUIRE(copies.size() == 2);
  CHECK(shared_of(copies[0].reads) == std::vector<Bytes>{{0, kSfa, 512}, {1, kSfa, 512}});
  const auto commits = seen.of(Issue::kCommit);
  REQUIRE(commits.size() == 1);
  CHECK(commits[0].barriers.size() == 2);
  CHECK(seen.of(Sync::kMbarrierArrive).size() == 2);
  CHECK(seen.of(Sync::kTmemAlloc).size() == 2);
  CHECK(seen.of(Sync::kTmemDealloc).size() == 2);
}

struct Cta {
  sim::Bytes smem{232448, "shared memory"};
  sim::Tmem tmem;
  Cta() { tmem.alloc(512); }
};

// Writes the footprint of `op` except its piece number `missing`, and returns the number of pieces.
static size_t fill(const sim::MmaOp& op, Cta* ctas, size_t missing) {
  size_t piece = 0;
  const uint8_t zeros[16] = {};
  for (int c = 0; c < op.cta_group; ++c) {
    for (bool operand_b : {false, true})
      for (const sim::ByteRange& range : sim::operand_ranges(op, operand_b))
        for (uint32_t i = 0; i < range.bytes; i += 16)
          if (piece++ != missing) ctas[c].smem.write(range.offset + i, zeros, 16);
    std::vector<sim::CellRange> cells = sim::operand_cells(op);
    if (op.accumulate)
      for (const sim::CellRange& range : sim::accumulator_cells(op, c)) cells.push_back(range);
    for (const sim::CellRange& range : cells)
      for (int lane = range.lane; lane < range.lane + range.lanes; ++lane)
        for (int column = range.column; column < range.column + range.columns; ++column)
          if (piece++ != missing) ctas[c].tmem.write(lane, column, 0);
  }
  return piece;
}

// Checks that D's cells are written, and no others that hold neither operands nor scale factors.
static void check_written(const sim::MmaOp& op, const Cta* ctas) {
  const auto covers = [](const std::vector<sim::CellRange>& ranges, int lane, int column) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const sim::CellRange& r) {
      return lane >= r.lane && lane < r.lane + r.lanes && column >= r.column && column < r.column + r.columns;
    });
  };
  const auto operands = sim::operand_cells(op);
  int wrong = 0;
  for (int c = 0; c < op.cta_group; ++c) {
    const auto d = sim::accumulator_cells(op, c);
    for (int lane = 0; lane < 128; ++lane)
      for (int column = 0; column < 96; ++column) {
        if (covers(operands, lane, column)) continue;
        bool written = true;
        try {
          ctas[c].tmem.read(lane, column);
        } catch (const sim::Fault&) {
          written = false;
        }
        wrong += written != covers(d, lane, column);
      }
  }
  CHECK(wrong == 0);
}

TEST_CASE("footprint: a multiplication reads and writes all of what it says, and nothing else",
          "[footprint]") {
  sim::MmaOp op{};
  SECTION("block-scaled, one CTA") {
    op.kind = sim::MmaKind::kMxf4nvf4;
    op.scale_block = sim::ScaleBlock::kBlock16;
    op.idesc = 0x08020480;
    op.a_desc = 0x4000404000000000 | 0x8000 >> 4;
    op.b_desc = 0x4000404000000000 | 0x10020 >> 4;
    op.sfa_tmem = 64;
    op.sfb_tmem = 70;
  }
  SECTION("block-scaled, pair") {
    op.kind = sim::MmaKind::kMxf4nvf4;
    op.scale_block = sim::ScaleBlock::kBlock16;
    op.cta_group = 2;
    op.idesc = 0x10040480;
    op.a_desc = 0x4000404000000000 | 0x8000 >> 4;
    op.b_desc = 0x4000404000000000 | 0x10000 >> 4;
    op.sfa_tmem = 64;
    op.sfb_tmem = 70;
  }
  SECTION("f16, 64 rows, one CTA") {
    op.kind = sim::MmaKind::kF16;
    op.idesc = 4u << 24 | 2u << 17 | 1u << 4;
    op.a_desc = 0x0000400800000000 | uint64_t{8} << 16 | 0x8000 >> 4;
    op.b_desc = 0x4000404000000000 | 0x10000 >> 4;
    op.d_tmem = 16u << 16;
  }
  SECTION("f16, 64 rows in each CTA of a pair") {
    op.kind = sim::MmaKind::kF16;
    op.cta_group = 2;
    op.idesc = 8u << 24 | 4u << 17 | 1u << 4;
    op.a_desc = 0x4000404000000000 | 0x8000 >> 4;
    op.b_desc = 0x4000404000000000 | 0x10000 >> 4;
    if (GENERATE(false, true)) op.kept_lanes = {5, 0, ~0u, 0, 0x80000000, 0xFFFF0000, 0, ~0u};
  }
  const auto execute = [&](size_t missing) {
    std::vector<Cta> ctas(2);
    const size_t pieces = fill(op, ctas.data(), missing);
    const sim::CtaMemory memory[2] = {{&ctas[0].smem, &ctas[0].tmem}, {&ctas[1].smem, &ctas[1].tmem}};
    sim::execute_mma(op, memory);
    if (missing > pieces) check_written(op, ctas.data());
    return pieces;
  };
  for (bool accumulate : {false, true}) {
    op.accumulate = accumulate;
    const size_t pieces = execute(~size_t(0));
    for (size_t missing = 0; missing < pieces; missing += 1 + pieces / 61) {
      CAPTURE(missing);
      CHECK(fault_of([&] { execute(missing); }).kind() == sim::FaultKind::kPoison);
    }
  }
}

TEST_CASE("footprint: a copy reads what it says and writes what it says", "[footprint]") {
  const sim::CpShape shape =
      GENERATE(sim::CpShape::k128x256b, sim::CpShape::k128x128b, sim::CpShape::k64x128b_02_13,
               sim::CpShape::k64x128b_01_23, sim::CpShape::k32x128b_warpx4);
  const uint64_t desc = 0x0000400800000000 | uint64_t{0x800 >> 4} << 16 | 0x4000 >> 4;
  const auto source = sim::cp_source(shape, desc);
  const auto copy = [&](const sim::ByteRange* hole) {
    auto cta = std::make_unique<Cta>();
    const std::vector<uint8_t> zeros(4096);
    for (const sim::ByteRange& range : source)
      cta->smem.write(range.offset, zeros.data(), &range == hole ? range.bytes - 16 : range.bytes);
    sim::execute_cp(shape, 8, desc, {&cta->smem, &cta->tmem});
    return cta;
  };
  const auto cta = copy(nullptr);
  const sim::CellRange to = sim::cp_destination(shape, 8);
  const auto written = [&](int lane, int column) {
    try {
      cta->tmem.read(lane, column);
      return true;
    } catch (const sim::Fault&) {
      return false;
    }
  };
  int wrong = 0;
  for (int lane = 0; lane < 128; ++lane)
    for (int column = 0; column < 32; ++column) {
      const bool inside = lane >= to.lane && lane < to.lane + to.lanes && column >= to.column &&
                          column < to.column + to.columns;
      wrong += written(lane, column) != inside;
    }
  CHECK(wrong == 0);
  for (const sim::ByteRange& range : source)
    CHECK(fault_of([&] { copy(&range); }).kind() == sim::FaultKind::kPoison);
}

TEST_CASE("footprint: the cells of tcgen05.ld shapes", "[footprint]") {
  const auto cells = [](sim::LdShape shape, int repeat, uint32_t taddr, int warp, int split, bool pack) {
    std::vector<Cells> out;
    for (const sim::CellRange& r : sim::ld_cells(shape, repeat, taddr, warp, split, pack))
      out.emplace_back(0, r.lane, r.lanes, r.column, r.columns);
    return out;
  };
  using sim::LdShape;
  CHECK(cells(LdShape::k32x32b, 8, 64u << 16 | 5, 2, 0, false) == std::vector<Cells>{{0, 64, 32, 5, 8}});
  CHECK(cells(LdShape::k32x32b, 8, 0, 4, 0, true) == std::vector<Cells>{{0, 0, 32, 0, 16}});
  CHECK(cells(LdShape::k16x64b, 4, 16u << 16, 0, 0, false) == std::vector<Cells>{{0, 16, 16, 0, 8}});
  CHECK(cells(LdShape::k16x128b, 2, 32u << 16 | 3, 1, 0, false) == std::vector<Cells>{{0, 32, 16, 3, 8}});
  CHECK(cells(LdShape::k16x256b, 1, 0, 0, 0, false) == std::vector<Cells>{{0, 0, 16, 0, 8}});
  CHECK(cells(LdShape::k16x32bx2, 2, 0, 0, 16, false) ==
        std::vector<Cells>{{0, 0, 16, 0, 2}, {0, 0, 16, 16, 2}});
}

}  // namespace footprint_test
