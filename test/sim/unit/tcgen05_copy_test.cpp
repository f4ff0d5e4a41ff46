// tcgen05_copy_test.cpp -- the tensor core's data movers: the lanes that tcgen05.cp writes, and the cell of
// every register of tcgen05.ld and st.
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "sim/engine/tensor_core.h"
#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace tcgen05_copy_test {

using sim_test::fault_of;

using sim::FaultKind;
using sim::LdShape;

constexpr uint64_t kSw128 = 0x4000404000000000;      // SBO 1024, bit 46, 128-byte swizzle
constexpr uint64_t kScaleDesc = 0x0000400800000000;  // SBO 128, bit 46, no swizzle
constexpr uint32_t kSource = 0x4000;
static uint64_t at(uint64_t desc, uint32_t address) { return desc | address >> 4; }

struct Cta {
  sim::Bytes smem{232448, "shared memory"};
  sim::Tmem tmem;
  sim::CtaMemory memory() { return {&smem, &tmem}; }
};

TEST_CASE("tcgen05 copies: cp puts every row on its lanes", "[tcgen05]") {
  struct Case {
    sim::CpShape shape;
    int rows, columns;
    std::function<int(int lane)> row;  // the source row of a lane
  };
  const std::vector<Case> cases{
      {sim::CpShape::k32x128b_warpx4, 32, 4, [](int lane) { return lane % 32; }},
      {sim::CpShape::k64x128b_02_13, 64, 4, [](int lane) { return lane % 64; }},
      {sim::CpShape::k64x128b_01_23, 64, 4, [](int lane) { return lane % 32 + lane / 64 * 32; }},
      {sim::CpShape::k128x128b, 128, 4, [](int lane) { return lane; }},
      {sim::CpShape::k128x256b, 128, 8, [](int lane) { return lane; }},
  };
  for (const Case& c : cases) {
    Cta cta;
    cta.tmem.alloc(32);
    const auto word = [](int row, int column) { return static_cast<uint32_t>(row * 100 + column); };
    for (int row = 0; row < c.rows; ++row)
      for (int column = 0; column < c.columns; ++column) {
        const uint32_t value = word(row, column);  // 8-row groups 256 bytes apart, 16-byte columns 128 apart
        const int address = row / 8 * 256 + row % 8 * 16 + column / 4 * 128 + column % 4 * 4;
        cta.smem.write(kSource + static_cast<uint32_t>(address), &value, 4);
      }
    const uint64_t desc =
        at(uint64_t{1} << 46 | uint64_t{256 / 16} << 32 | uint64_t{128 / 16} << 16, kSource);
    sim::execute_cp(c.shape, 8, desc, cta.memory());
    int wrong = 0;
    for (int lane = 0; lane < 128; ++lane)
      for (int column = 0; column < c.columns; ++column)
        wrong += cta.tmem.read(lane, 8 + column) != word(c.row(lane), column);
    CHECK(wrong == 0);
    CHECK(fault_of([&] { cta.tmem.read(0, 8 + c.columns); }).kind() == FaultKind::kPoison);
    CHECK(fault_of([&] { cta.tmem.read(0, 7); }).kind() == FaultKind::kPoison);
  }
}

TEST_CASE("tcgen05 copies: cp destinations and sources that break a rule", "[tcgen05]") {
  Cta cta;
  cta.tmem.alloc(32);
  const uint8_t tile[512] = {};
  cta.smem.write(kSource, tile, sizeof tile);
  const auto kind = [&](sim::CpShape shape, uint32_t taddr, uint64_t desc) {
    return fault_of([&] { sim::execute_cp(shape, taddr, desc, cta.memory()); }).kind();
  };
  const auto x4 = sim::CpShape::k32x128b_warpx4;
  const uint64_t good = at(kScaleDesc, kSource);
  sim::execute_cp(x4, 28, good, cta.memory());
  CHECK(kind(x4, 2, good) == FaultKind::kProtocol);
  CHECK(kind(x4, 32 << 16, good) == FaultKind::kProtocol);
  CHECK(kind(x4, 32, good) == FaultKind::kBounds);  // not allocated
  CHECK(kind(x4, 512, good) == FaultKind::kBounds);
  CHECK(kind(x4, 0, good + 32) == FaultKind::kPoison);
  CHECK(kind(x4, 0, at(kSw128, kSource)) == FaultKind::kUnsupported);
  CHECK(kind(sim::CpShape::k4x256b, 0, good) == FaultKind::kUnsupported);
}

TEST_CASE("tcgen05 copies: every ld shape covers its rectangle of cells once", "[tcgen05]") {
  struct Shape {
    LdShape shape;
    int lanes, columns_per_repeat, largest;
  };
  for (const Shape& s : {Shape{LdShape::k32x32b, 32, 1, 128},
                         {LdShape::k16x64b, 16, 2, 128},
                         {LdShape::k16x128b, 16, 4, 64},
                         {LdShape::k16x256b, 16, 8, 32},
                         {LdShape::k16x32bx2, 16, 2, 128}}) {
    CHECK(sim::ld_registers(s.shape, 2 * s.largest) == -1);
    CHECK(sim::ld_registers(s.shape, 3) == -1);
    for (int repeat = 1; repeat <= s.largest; repeat *= 2) {
      for (bool pack : {false, true}) {
        const int columns = s.columns_per_repeat * repeat * (pack ? 2 : 1);
        const int split = repeat * (pack ? 2 : 1);
        const int warp = 6, first_lane = 64 + (s.lanes == 16 ? 16 : 0),
                  first_column = columns <= 384 ? 128 : 0;
        std::set<std::pair<int, int>> cells;
        const int registers = sim::ld_registers(s.shape, repeat);
        REQUIRE(registers > 0);
        for (int t = 0; t < 32; ++t)
          for (int j = 0; j < registers; ++j)
            for (int half = 0; half < (pack ? 2 : 1); ++half) {
              const sim::Cell c =
                  sim::ld_cell(s.shape, repeat, static_cast<uint32_t>(first_lane << 16 | first_column), warp,
                               t, j, split, pack, half);
              cells.insert({c.lane, c.column});
            }
        INFO("shape " << static_cast<int>(s.shape) << " x" << repeat << " pack " << pack);
        CHECK(cells.size() == static_cast<size_t>(32 * registers * (pack ? 2 : 1)));
        CHECK(cells.size() == static_cast<size_t>(s.lanes * columns));
        CHECK(cells.begin()->first == first_lane);
        CHECK(cells.rbegin()->first == first_lane + s.lanes - 1);
        CHECK(cells.begin()->second == first_column);
        CHECK(cells.rbegin()->second == first_column + columns - 1);
      }
    }
  }
}

TEST_CASE("tcgen05 copies: ld register positions", "[tcgen05]") {
  const auto cell = [](LdShape shape, int thread, int j) {
    const sim::Cell c = sim::ld_cell(shape, 8, 0, 0, thread, j, 8, false, 0);
    return std::pair{c.lane, c.column};
  };
  CHECK(cell(LdShape::k32x32b, 21, 5) == std::pair{21, 5});
  CHECK(cell(LdShape::k16x256b, 20, 20) == std::pair{5, 40});
  CHECK(cell(LdShape::k16x256b, 20, 21) == std::pair{5, 41});
  CHECK(cell(LdShape::k16x256b, 20, 22) == std::pair{13, 40});
  CHECK(cell(LdShape::k16x128b, 6, 3) == std::pair{9, 6});
  CHECK(cell(LdShape::k16x64b, 7, 2) == std::pair{9, 5});
  CHECK(cell(LdShape::k16x32bx2, 18, 3) == std::pair{2, 11});
}

TEST_CASE("tcgen05 copies: ld accesses the warp's own quarter, whatever the address names", "[tcgen05]") {
  const auto lane = [](LdShape shape, uint32_t field, int warp) {
    return sim::ld_cell(shape, 1, field << 16, warp, 0, 0, 0, false, 0).lane;
  };
  CHECK(lane(LdShape::k32x32b, 96, 7) == 96);
  CHECK(lane(LdShape::k16x256b, 48, 1) == 48);
  CHECK(lane(LdShape::k32x32b, 128 + 32, 5) == 32);  // the rank bit of pair kernels is ignored
  CHECK(lane(LdShape::k32x32b, 0, 1) == 32);
  CHECK(lane(LdShape::k16x256b, 64 + 16, 1) == 48);
  CHECK(lane(LdShape::k32x32b, 16 + 7, 0) == 0);
  for (const LdShape half : {LdShape::k16x64b, LdShape::k16x128b, LdShape::k16x256b, LdShape::k16x32bx2}) {
    CHECK(lane(half, 8, 0) == 0);
    CHECK(lane(half, 16 + 15, 1) == 48);
  }
  CHECK(fault_of([&] { lane(LdShape::k32x32b, 256, 0); }).kind() == FaultKind::kBounds);
  CHECK(fault_of([&] { sim::ld_cell(LdShape::k32x32b, 32, 496, 0, 0, 16, 0, false, 0); }).kind() ==
        FaultKind::kBounds);
}

}  // namespace tcgen05_copy_test
