// tensor_core_dense_test.cpp -- whole MMAs of the kinds without scale factors. The 16-bit kinds get small
// integers, so that every sum is exact whatever its order.
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "sim/engine/numerics.h"
#include "sim/engine/tensor_core.h"
#include "sim/unit/fault_of.hpp"
#include "sim/unit/tensor_core_fixture.hpp"
#include "support/catch.hpp"

namespace tensor_core_dense_test {

using namespace tensor_core_test;

using sim::MmaKind;
using sim::MmaOp;

constexpr uint32_t kA = 0x8000, kB = 0x10000;
struct Layout16 {
  const char* name;
  uint64_t desc;  // without address
  bool mn_major;
  std::function<uint32_t(int row, int k)> address;  // of the element, from a 1024-aligned base
};

static uint32_t xored(uint32_t linear, uint32_t mask) { return linear ^ ((linear >> 7 & mask) << 4); }

static const std::vector<Layout16>& layouts16() {
  constexpr uint64_t kVersion = uint64_t{1} << 46;
  const auto desc = [](uint64_t leading, uint64_t stride, uint64_t mode) {
    return kVersion | leading / 16 << 16 | stride / 16 << 32 | mode << 61;
  };
  static const std::vector<Layout16> layouts{
      {"K-major, 128-byte swizzle", desc(0, 1024, 2), false,
       [](int r, int k) { return xored(static_cast<uint32_t>(r * 128 + k * 2), 7); }},
      {"K-major, 64-byte swizzle", desc(0, 512, 4), false,
       [](int r, int k) { return xored(static_cast<uint32_t>(r * 64 + k * 2), 3); }},
      {"K-major, 32-byte swizzle", desc(0, 256, 6), false,
       [](int r, int k) { return xored(static_cast<uint32_t>(r * 32 + k * 2), 1); }},
      {"K-major, no swizzle", desc(128, 256, 0), false,
       [](int r, int k) {
         return static_cast<uint32_t>(r / 8 * 256 + k / 8 * 128 + r % 8 * 16 + k % 8 * 2);
       }},
      {"MN-major, 128-byte swizzle", desc(2048, 1024, 2), true,
       [](int r, int k) { return xored(static_cast<uint32_t>(r / 64 * 2048 + k * 128 + r % 64 * 2), 7); }},
      {"MN-major, no swizzle", desc(4096, 128, 0), true,
       [](int r, int k) {
         return static_cast<uint32_t>(k / 8 * 4096 + r / 8 * 128 + k % 8 * 16 + r % 8 * 2);
       }},
  };
  return layouts;
}

static int value16(int row, int k, int salt) { return (row * 7 + k * 5 + row * k + salt) % 9 - 4; }

static void store16(Cta& cta, uint32_t base, const Layout16& layout, int first_row, int rows, int salt) {
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < 16; ++k)
      cta.half(
          base + layout.address(r, k),
          sim::f32_to_f16(static_cast<float>(value16(first_row + r, k, salt)), sim::Round::kNearestEven));
}

static int product16(int row, int col) {
  int sum = 0;
  for (int k = 0; k < 16; ++k) sum += value16(row, k, 1) * value16(col, k, 2);
  return sum;
}

static MmaOp f16_op(int m, int n, int cta_group, const Layout16& a, const Layout16& b) {
  MmaOp op{};
  op.kind = MmaKind::kF16;
  op.cta_group = cta_group;
  op.a_desc = at(a.desc, kA);
  op.b_desc = at(b.desc, kB);
  op.idesc = 1u << 4 | static_cast<uint32_t>(n / 8) << 17 | static_cast<uint32_t>(m / 16) << 24 |
             static_cast<uint32_t>(a.mn_major) << 15 | static_cast<uint32_t>(b.mn_major) << 16;
  return op;
}

TEST_CASE("tensor core: f16 operands in every layout, one CTA, accumulating", "[tensor]") {
  for (const Layout16& layout : layouts16()) {
    INFO(layout.name);
    Cta cta;
    cta.tmem.alloc(512);
    store16(cta, kA, layout, 0, 128, 1);
    store16(cta, kB, layout, 0, 64, 2);
    MmaOp op = f16_op(128, 64, 1, layout, layout);
    sim::CtaMemory memory[2] = {cta.memory(), {}};
    sim::execute_mma(op, memory);
    op.accumulate = true;
    sim::execute_mma(op, memory);
    int wrong = 0;
    for (int m = 0; m < 128; ++m)
      for (int n = 0; n < 64; ++n)
        wrong += std::bit_cast<float>(cta.tmem.read(m, n)) != static_cast<float>(2 * product16(m, n));
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensor core: f16 accumulator layouts of 64 rows and of pairs", "[tensor]") {
  const Layout16& layout = layouts16()[0];
  struct Case {
    int m, cta_group, lane;
    std::function<std::pair<int, int>(int m, int n)> cell;  // in the CTA of the row
  };
  constexpr int kN = 64;
  const std::vector<Case> cases{
      {64, 1, 0,
       [](int m, int n) {
         return std::pair{m % 16 + m / 16 * 32, n};
       }},
      {64, 1, 16,
       [](int m, int n) {
         return std::pair{m % 16 + m / 16 * 32 + 16, n};
       }},
      {128, 2, 0,
       [](int m, int n) {
         return std::pair{m + (n >= 32 ? 64 : 0), n % 32};
       }},
      {256, 2, 0,
       [](int m, int n) {
         return std::pair{m, n};
       }},
  };
  for (const Case& c : cases) {
    Cta ctas[2];
    const int rows = c.m / c.cta_group;
    for (int i = 0; i < c.cta_group; ++i) {
      ctas[i].tmem.alloc(512);
      store16(ctas[i], kA, layout, i * rows, rows, 1);
      store16(ctas[i], kB, layout, i * kN / c.cta_group, kN / c.cta_group, 2);
    }
    MmaOp op = f16_op(c.m, kN, c.cta_group, layout, layout);
    op.d_tmem = static_cast<uint32_t>(c.lane) << 16;
    sim::CtaMemory memory[2] = {ctas[0].memory(), ctas[1].memory()};
    sim::execute_mma(op, memory);
    int wrong = 0;
    for (int m = 0; m < c.m; ++m)
      for (int n = 0; n < kN; ++n) {
        const auto [lane, column] = c.cell(m % rows, n);
        wrong += std::bit_cast<float>(ctas[m / rows].tmem.read(lane, column)) !=
                 static_cast<float>(product16(m, n));
      }
    INFO("M " << c.m << " cta_group " << c.cta_group);
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensor core: lanes that an MMA keeps are neither read nor written", "[tensor]") {
  // Rows and cells of a pair with 64 rows a CTA: row m of a CTA lies in lanes m and m + 64. Only lanes that
  // are not kept get an accumulator, which the product is added to.
  const Layout16& layout = layouts16()[0];
  constexpr int kN = 64, kRows = 64, kBefore = 1000;
  MmaOp op = f16_op(2 * kRows, kN, 2, layout, layout);
  op.accumulate = true;
  op.kept_lanes = {1, 0x80000000, 0x0000FF00, 0, ~0u, 0, 2, ~0u};
  const auto kept = [&](int cta, int lane) {
    return (op.kept_lanes[size_t(4 * cta + lane / 32)] & 1u << lane % 32) != 0;
  };
  Cta ctas[2];
  const int unwritten = GENERATE(0, 1);  // whether a lane that is not kept has no accumulator
  for (int i = 0; i < 2; ++i) {
    ctas[i].tmem.alloc(512);
    store16(ctas[i], kA, layout, i * kRows, kRows, 1);
    store16(ctas[i], kB, layout, i * kN / 2, kN / 2, 2);
    for (int lane = 0; lane < 128; ++lane)
      for (int column = 0; column < kN / 2; ++column)
        if (!kept(i, lane) && !(unwritten != 0 && i == 1 && lane == 70))
          ctas[i].tmem.write(lane, column, std::bit_cast<uint32_t>(float{kBefore}));
  }
  sim::CtaMemory memory[2] = {ctas[0].memory(), ctas[1].memory()};
  if (unwritten != 0) {
    CHECK(sim_test::fault_of([&] { sim::execute_mma(op, memory); }).kind() == sim::FaultKind::kPoison);
    return;
  }
  sim::execute_mma(op, memory);
  int wrong = 0;
  for (int m = 0; m < 2 * kRows; ++m)
    for (int n = 0; n < kN; ++n) {
      const int cta = m / kRows, lane = m % kRows + (n >= kN / 2 ? 64 : 0), column = n % (kN / 2);
      if (kept(cta, lane))
        wrong +=
            sim_test::fault_of([&] { ctas[cta].tmem.read(lane, column); }).kind() != sim::FaultKind::kPoison;
      else
        wrong += std::bit_cast<float>(ctas[cta].tmem.read(lane, column)) !=
                 static_cast<float>(kBefore + product16(m, n));
    }
  CHECK(wrong == 0);
}

TEST_CASE("tensor core: f16 A from TMEM, f16 accumulators", "[tensor]") {
  const Layout16& layout = layouts16()[0];
  Cta cta;
  cta.tmem.alloc(512);
  store16(cta, kB, layout, 0, 32, 2);
  for (int m = 0; m < 128; ++m)
    for (int k = 0; k < 16; k += 2) {
      uint32_t cell = 0;
      for (int i : {1, 0})
        cell =
            cell << 16 | sim::f32_to_f16(static_cast<float>(value16(m, k + i, 1)), sim::Round::kNearestEven);
      cta.tmem.write(m, 64 + k / 2, cell);
    }
  MmaOp op = f16_op(128, 32, 1, layout, layout);
  op.a_in_tmem = true;
  op.a_tmem = 64;
  op.idesc &= ~(1u << 4);  // D is f16, in the low half of its cell
  sim::CtaMemory memory[2] = {cta.memory(), {}};
  sim::execute_mma(op, memory);
  int wrong = 0;
  for (int m = 0; m < 128; ++m)
    for (int n = 0; n < 32; ++n)
      wrong +=
          sim::f16_to_f32(static_cast<uint16_t>(cta.tmem.read(m, n))) != static_cast<float>(product16(m, n));
  CHECK(wrong == 0);
}

TEST_CASE("tensor core: subnormal f16 operands are aligned by their exponent field", "[tensor]") {
  // Every element is 2^-24 * 2^15 + 2^place - 2^-24 * 2^15, where 2^-24 is subnormal only in f16.
  const Layout16& layout = layouts16()[0];
  const auto left = [&](bool bf16, int place) {
    Cta cta;
    cta.tmem.alloc(512);
    const auto store = [&](uint32_t base, int rows, std::vector<float> values) {
      values.resize(16);
      for (int r = 0; r < rows; ++r)
        for (int k = 0; k < 16; ++k)
          cta.half(base + layout.address(r, k), bf16 ? sim::f32_to_bf16(values[size_t(k)], sim::Round::kZero)
                                                     : sim::f32_to_f16(values[size_t(k)], sim::Round::kZero));
    };
    store(kA, 128, {0x1p-24f, std::ldexp(1.0f, place + 12), -0x1p-24f});
    store(kB, 64, {0x1p15f, 0x1p-12f, 0x1p15f});
    MmaOp op = f16_op(128, 64, 1, layout, layout);
    if (bf16) op.idesc |= 1u << 7 | 1u << 10;
    sim::CtaMemory memory[2] = {cta.memory(), {}};
    sim::execute_mma(op, memory);
    return std::bit_cast<float>(cta.tmem.read(77, 33));
  };
  CHECK(left(false, -24) == 0x1p-24f);
  CHECK(left(false, -25) == 0);
  CHECK(left(true, -34) == 0x1p-34f);
  CHECK(left(true, -35) == 0);
}

TEST_CASE("tensor core: tf32 operands drop the low 13 bits", "[tensor]") {
  Cta cta;
  cta.tmem.alloc(512);
  const auto store = [&](uint32_t base, int rows, int salt) {
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < 8; ++k) {
        const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value16(r, k, salt))) | 0x1FFF;
        cta.smem.write(sw128(base, r, k * 4), &bits, 4);
      }
  };
  store(kA, 128, 1);
  store(kB, 16, 2);
  MmaOp op{};
  op.kind = MmaKind::kTf32;
  op.a_desc = at(kSw128, kA);
  op.b_desc = at(kSw128, kB);
  op.idesc = 1u << 4 | 2u << 7 | 2u << 10 | 2u << 17 | 8u << 24;
  sim::CtaMemory memory[2] = {cta.memory(), {}};
  sim::execute_mma(op, memory);
  int wrong = 0;
  for (int m = 0; m < 128; ++m)
    for (int n = 0; n < 16; ++n) {
      int want = 0;
      for (int k = 0; k < 8; ++k) want += value16(m, k, 1) * value16(n, k, 2);
      wrong += std::bit_cast<float>(cta.tmem.read(m, n)) != static_cast<float>(want);
    }
  CHECK(wrong == 0);
}

}  // namespace tensor_core_dense_test
