// tensor_core_test.cpp -- descriptors and whole MMAs, with the copies that feed them. Operands are placed in
// memory here by formulas written out again, element by element, so that a wrong address in the machine shows
// as a wrong product.
#include "sim/engine/tensor_core.h"

#include <bit>
#include <functional>
#include <set>
#include <utility>

#include "sim/engine/descriptor.h"
#include "sim/engine/footprint.h"
#include "sim/engine/numerics.h"
#include "sim/unit/fault_of.hpp"
#include "sim/unit/tensor_core_fixture.hpp"
#include "support/catch.hpp"
#include "support/rng.h"

namespace tensor_core_test {

using namespace tensor_core_test;
using sim_test::fault_of;

namespace {

using namespace sim;

constexpr uint64_t kScaleDesc = 0x0000400800000000;
// This is a block-scaled problem of one K = 256 slice: four MMAs. It has the rows of A and B as codes, and
// the scales as codes (one per 16).
struct Problem {
  int m, n;
  std::vector<uint8_t> a, b, sfa, sfb;
  Problem(int rows, int cols, uint32_t seed) : m(rows), n(cols) {
    dualgemm_test::Rng random(seed);
    for (auto [v, size] : {std::pair{&a, m * 256}, {&b, n * 256}, {&sfa, m * 16}, {&sfb, n * 16}})
      for (int i = 0; i < size; ++i) v->push_back(static_cast<uint8_t>(random.word()));
    for (auto* v : {&a, &b})
      for (auto& x : *v) x &= 15;
    for (auto* v : {&sfa, &sfb})
      for (auto& x : *v) x = static_cast<uint8_t>(0x30 + x % 24);
  }
  // Returns D after the first `steps` instructions.
  float expect(int row, int col, int steps) const {
    float d = 0;
    for (int k = 0; k < steps; ++k) {
      float x[4], y[4];
      for (int g = 0; g < 4; ++g) {
        x[g] = sim::ue4m3_to_f32(sfa[static_cast<size_t>(row * 16 + 4 * k + g)]);
        y[g] = sim::ue4m3_to_f32(sfb[static_cast<size_t>(col * 16 + 4 * k + g)]);
      }
      d = sim::mma_block_scaled_reference(&a[static_cast<size_t>(row * 256 + 64 * k)],
                                          &b[static_cast<size_t>(col * 256 + 64 * k)], x, y, 4, d);
    }
    return d;
  }
};

constexpr uint32_t kA = 0x8000, kB = 0x10000, kSfa = 0x4000, kSfb = 0x5000;
constexpr uint32_t kD = 0, kSfaColumn = 256, kSfbColumn = 272;

void store_tile(Cta& cta, uint32_t base, const std::vector<uint8_t>& codes, int first_row, int rows) {
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < 256; k += 2) {
      const size_t i = static_cast<size_t>((first_row + r) * 256 + k);
      cta.byte(sw128(base, r, k / 2), static_cast<uint8_t>(codes[i] | codes[i + 1] << 4));
    }
}

// Stores scale tiles of 128 rows x 4 scales, 512 bytes each: row r at line r%32, bytes 4*(r/32).. of its
// line. Rows beyond the problem get zero scales.
void store_scales(Cta& cta, uint32_t base, const std::vector<uint8_t>& sf, int first_row, int rows) {
  for (int r = 0; r < (rows + 127) / 128 * 128; ++r)
    for (int c = 0; c < 16; ++c) {
      const uint32_t tile = static_cast<uint32_t>(r / 128 * 4 + c / 4);
      const uint32_t inside = static_cast<uint32_t>(r % 32 * 16 + r % 128 / 32 * 4 + c % 4);
      cta.byte(base + tile * 512 + inside, r < rows ? sf[static_cast<size_t>((first_row + r) * 16 + c)] : 0);
    }
}

MmaOp block16(int m, int n, int cta_group) {
  MmaOp op{};
  op.kind = MmaKind::kMxf4nvf4;
  op.scale_block = ScaleBlock::kBlock16;
  op.cta_group = cta_group;
  op.d_tmem = kD;
  op.a_desc = at(kSw128, kA);
  op.b_desc = at(kSw128, kB);
  op.idesc = 0x480u | static_cast<uint32_t>(n / 8) << 17 | static_cast<uint32_t>(m / 128) << 27;
  op.sfa_tmem = kSfaColumn;
  op.sfb_tmem = kSfbColumn;
  return op;
}

// Loads the problem into one or two CTAs and issues `steps` instructions with their scale copies.
void run(const Problem& p, int cta_group, int steps, Cta* ctas) {
  sim::CtaMemory memory[2] = {ctas[0].memory(), ctas[cta_group - 1].memory()};
  const int rows = p.m / cta_group, b_rows = p.n / cta_group;
  for (int c = 0; c < cta_group; ++c) {
    REQUIRE(ctas[c].tmem.alloc(512) == 0);
    store_tile(ctas[c], kA, p.a, c * rows, rows);
    store_tile(ctas[c], kB, p.b, c * b_rows, b_rows);
    store_scales(ctas[c], kSfa, p.sfa, c * rows, rows);
    store_scales(ctas[c], kSfb, p.sfb, 0, p.n);
  }
  for (int k = 0; k < steps; ++k) {
    const uint32_t step = static_cast<uint32_t>(k);
    for (int c = 0; c < cta_group; ++c) {
      sim::execute_cp(sim::CpShape::k32x128b_warpx4, kSfaColumn, at(kScaleDesc, kSfa) + 32 * step, memory[c]);
      for (uint32_t block = 0; block < static_cast<uint32_t>(p.n + 127) / 128; ++block)
        sim::execute_cp(sim::CpShape::k32x128b_warpx4, kSfbColumn + 4 * block,
                        at(kScaleDesc, kSfb + 2048 * block) + 32 * step, memory[c]);
    }
    MmaOp op = block16(p.m, p.n, cta_group);
    op.a_desc += 2 * step;
    op.b_desc += 2 * step;
    op.accumulate = k > 0;
    sim::execute_mma(op, memory);
  }
}

int mismatches(const Problem& p, int cta_group, int steps, const Cta* ctas) {
  int wrong = 0;
  for (int m = 0; m < p.m; ++m)
    for (int n = 0; n < p.n; ++n) {
      const int rows = p.m / cta_group;
      wrong += ctas[m / rows].tmem.read(m % rows, static_cast<int>(kD) + n) !=
               std::bit_cast<uint32_t>(p.expect(m, n, steps));
    }
  return wrong;
}

}  // namespace

TEST_CASE("tensor core: a swizzled descriptor finds row 13, element 100 of a tile at 0x8400", "[tensor]") {
  CHECK(sim::k_major_address(sim::decode_smem_descriptor(0x4000404000000840), 13, 3) + 2 == 0x8AE2);
  // The second K step starts 32 bytes later and sees the same byte 18 bytes into its row.
  CHECK(sim::k_major_address(sim::decode_smem_descriptor(0x4000404000000842), 13, 1) + 2 == 0x8AE2);
}

TEST_CASE("tensor core: matrix descriptors with reserved bits or unknown modes are refused", "[tensor]") {
  const uint64_t good = at(kSw128, 0x8400);
  CHECK(sim::decode_smem_descriptor(good).stride == 1024);
  CHECK(sim::decode_smem_descriptor(good).span == 128);
  for (int bit : {14, 15, 30, 31, 47, 48, 53, 60}) {
    INFO("bit " << bit);
    CHECK(fault_of([&] { sim::decode_smem_descriptor(good | uint64_t{1} << bit); }).kind() ==
          FaultKind::kProtocol);
  }
  CHECK(fault_of([&] { sim::decode_smem_descriptor(good & ~(uint64_t{1} << 46)); }).kind() ==
        FaultKind::kProtocol);
  for (int bit : {49, 51, 52})
    CHECK(fault_of([&] { sim::decode_smem_descriptor(good | uint64_t{1} << bit); }).kind() ==
          FaultKind::kUnsupported);
  const uint64_t plain = at(kScaleDesc, 0x8400);
  for (uint64_t mode : {3, 5, 7})
    CHECK(fault_of([&] { sim::decode_smem_descriptor(plain | mode << 61); }).kind() == FaultKind::kProtocol);
  CHECK(fault_of([&] { sim::decode_smem_descriptor(plain | uint64_t{1} << 61); }).kind() ==
        FaultKind::kUnsupported);
  // A base that is not aligned to the pattern needs a base offset.
  CHECK(fault_of([&] { sim::decode_smem_descriptor(at(kSw128, 0x8480)); }).kind() == FaultKind::kProtocol);
  CHECK(fault_of([&] { sim::decode_smem_descriptor(at(kSw128, 0x8600)); }).kind() == FaultKind::kProtocol);
}

TEST_CASE("tensor core: instruction descriptors of NVFP4", "[tensor]") {
  MmaOp op = block16(128, 128, 1);
  CHECK(op.idesc == 0x08200480);
  CHECK(block16(256, 256, 2).idesc == 0x10400480);
  CHECK(sim::decode_shape(block16(256, 256, 2)).m == 256);
  CHECK(sim::decode_shape(block16(256, 256, 2)).n == 256);
  for (int bit : {0, 1, 3, 6, 8, 9, 11, 12, 15, 16, 23 + 1, 25, 26, 4, 5, 29, 30}) {
    INFO("bit " << bit);
    MmaOp bad = op;
    bad.idesc |= 1u << bit;
    CHECK(fault_of([&] { sim::check_mma(bad); }).kind() == FaultKind::kProtocol);
  }
  for (int bit : {2, 31}) {
    MmaOp bad = op;
    bad.idesc |= 1u << bit;
    CHECK(fault_of([&] { sim::check_mma(bad); }).kind() == FaultKind::kUnsupported);
  }
  op.idesc |= 1u << 23;  // UE8M0 scales exist in block16 and block32 ...
  sim::check_mma(op);
  op.scale_block = ScaleBlock::kBlock32;
  sim::check_mma(op);
  op.kind = MmaKind::kMxf4;
  sim::check_mma(op);
  op.idesc &= ~(1u << 23);  // ... UE4M3 only in block16 of mxf4nvf4
  CHECK(fault_of([&] { sim::check_mma(op); }).kind() == FaultKind::kProtocol);
}

TEST_CASE("tensor core: legal M and N are exactly those of the kind's table", "[tensor]") {
  for (int cta_group : {1, 2}) {
    for (int m : {0, 128, 256, 384}) {
      for (int n = 0; n <= 504; n += 8) {
        const bool legal = cta_group == 1 ? m == 128 && n >= 8 && n <= 256
                                          : (m == 128 || m == 256) && n >= 16 && n <= 256 && n % 16 == 0;
        MmaOp op = block16(m, n, cta_group);
        INFO("m " << m << " n " << n << " cta_group " << cta_group);
        if (legal && cta_group == 2 && m == 128)
          CHECK(fault_of([&] { sim::check_mma(op); }).kind() == FaultKind::kUnsupported);
        else if (legal) sim::check_mma(op);
        else CHECK(fault_of([&] { sim::check_mma(op); }).kind() == FaultKind::kProtocol);
      }
    }
  }
  for (int cta_group : {1, 2}) {
    for (int m = 0; m < 512; m += 16) {
      for (int n = 0; n <= 264; n += 8) {
        bool legal = cta_group == 1 ? m == 64 || m == 128 : m == 128 || m == 256;
        const int step = cta_group == 2 ? 32 : m == 64 ? 8 : 16;
        legal = legal && n >= step && n <= 256 && n % step == 0;
        MmaOp op{};
        op.kind = MmaKind::kF16;
        op.cta_group = cta_group;
        op.a_desc = op.b_desc = at(kSw128, kA);
        op.idesc = 1u << 4 | static_cast<uint32_t>(n / 8) << 17 | static_cast<uint32_t>(m / 16) << 24;
        INFO("f16 m " << m << " n " << n << " cta_group " << cta_group);
        bool accepted = true;
        try {
          sim::check_mma(op);
        } catch (const sim::Fault&) {
          accepted = false;
        }
        CHECK(accepted == legal);
      }
    }
  }
}

TEST_CASE("tensor core: placement rules of TMEM operands", "[tensor]") {
  const MmaOp good = block16(128, 128, 1);
  const auto kind = [&](const std::function<void(MmaOp&)>& change) {
    MmaOp op = good;
    change(op);
    return fault_of([&] { sim::check_mma(op); }).kind();
  };
  CHECK(kind([](MmaOp& op) { op.sfb_tmem += 1; }) == FaultKind::kProtocol);
  CHECK(kind([](MmaOp& op) { op.sfa_tmem += 1; }) == FaultKind::kProtocol);
  CHECK(kind([](MmaOp& op) { op.sfa_tmem |= 32 << 16; }) == FaultKind::kProtocol);
  CHECK(kind([](MmaOp& op) { op.d_tmem = 2; }) == FaultKind::kProtocol);
  CHECK(kind([](MmaOp& op) { op.d_tmem = 16 << 16; }) == FaultKind::kProtocol);
  CHECK(kind([](MmaOp& op) { op.d_tmem = 388; }) == FaultKind::kBounds);
  CHECK(kind([](MmaOp& op) { op.sfb_tmem = 510; }) == FaultKind::kBounds);
  CHECK(kind([](MmaOp& op) { op.sfa_tmem = 124; }) == FaultKind::kProtocol);  // inside the accumulator
  // The K step leaves the row.
  CHECK(kind([](MmaOp& op) { op.a_desc = at(kSw128, kA + 112); }) == FaultKind::kProtocol);
  MmaOp shifted = good;
  shifted.sfb_tmem += 2;
  sim::check_mma(shifted);
}

TEST_CASE("tensor core: four K steps of one CTA equal the model for every size of N", "[tensor]") {
  const int n = GENERATE(8, 24, 64, 128, 192, 256);
  const Problem p(128, n, static_cast<uint32_t>(n));
  Cta cta;
  run(p, 1, 4, &cta);
  CHECK(mismatches(p, 1, 4, &cta) == 0);
}

TEST_CASE("tensor core: a pair of CTAs splits A and B by rows and keeps its own rows of D", "[tensor]") {
  const int n = GENERATE(16, 128, 256);
  const Problem p(256, n, static_cast<uint32_t>(n));
  Cta ctas[2];
  run(p, 2, 4, ctas);
  CHECK(mismatches(p, 2, 4, ctas) == 0);
}

TEST_CASE("tensor core: all sixes under the largest scales give 462422016", "[tensor]") {
  Problem p(128, 8, 1);
  for (auto* v : {&p.a, &p.b})
    for (auto& x : *v) x = 7;
  for (auto* v : {&p.sfa, &p.sfb})
    for (auto& x : *v) x = 0x7E;
  Cta cta;
  run(p, 1, 1, &cta);
  CHECK(std::bit_cast<float>(cta.tmem.read(77, 5)) == 462422016.0f);
}

TEST_CASE("tensor core: negation, block32 and the second pair of scale bytes", "[tensor]") {
  Problem p(128, 32, 5);
  for (auto* v : {&p.sfa, &p.sfb})
    for (auto& x : *v) x = static_cast<uint8_t>(120 + x % 8);  // powers of two as UE8M0
  Cta cta;
  run(p, 1, 1, &cta);  // places operands and scales; its result is overwritten
  MmaOp op = block16(128, 32, 1);
  op.kind = MmaKind::kMxf4;
  op.scale_block = ScaleBlock::kBlock32;
  op.idesc |= 1u << 23 | 1u << 13;
  const int id = GENERATE(0, 2);
  op.idesc |= static_cast<uint32_t>(id) << 29 | static_cast<uint32_t>(id) << 4;
  sim::CtaMemory memory[2] = {cta.memory(), {}};
  sim::execute_mma(op, memory);
  int wrong = 0;
  for (int m = 0; m < 128; ++m)
    for (int n = 0; n < 32; ++n) {
      double want = 0;
      for (int k = 0; k < 64; ++k) {
        const size_t scale = static_cast<size_t>(id + k / 32);
        want -= double{sim::e2m1_to_f32(p.a[static_cast<size_t>(m * 256 + k)])} *
                sim::e2m1_to_f32(p.b[static_cast<size_t>(n * 256 + k)]) *
                sim::ue8m0_to_f32(p.sfa[static_cast<size_t>(m * 16) + scale]) *
                sim::ue8m0_to_f32(p.sfb[static_cast<size_t>(n * 16) + scale]);
      }
      wrong += std::bit_cast<float>(cta.tmem.read(m, n)) != static_cast<float>(want);  // few bits: exact
    }
  CHECK(wrong == 0);
}

TEST_CASE("tensor core: poison and differing copies of scale factors are found", "[tensor]") {
  const Problem p(128, 128, 3);
  Cta cta;
  run(p, 1, 1, &cta);
  sim::CtaMemory memory[2] = {cta.memory(), {}};
  MmaOp op = block16(128, 128, 1);
  op.accumulate = true;
  const auto fails = [&] { return fault_of([&] { sim::execute_mma(op, memory); }).kind(); };
  SECTION("one byte of A") {
    cta.smem.poison(sw128(kA, 100, 31), 1);
    CHECK(fails() == FaultKind::kPoison);
  }
  SECTION("one byte of B") {
    cta.smem.poison(sw128(kB, 127, 0), 1);
    CHECK(fails() == FaultKind::kPoison);
  }
  SECTION("bytes of the next K step do not matter") {
    cta.smem.poison(sw128(kA, 100, 32), 1);
    sim::execute_mma(op, memory);
  }
  SECTION("one accumulator") {
    cta.tmem.poison(90, 127);
    CHECK(fails() == FaultKind::kPoison);
    op.accumulate = false;  // then the old contents are not read
    sim::execute_mma(op, memory);
  }
  SECTION("one scale-factor cell") {
    cta.tmem.poison(64, kSfbColumn + 3);
    CHECK(fails() == FaultKind::kPoison);
  }
  SECTION("a quarter with another copy") {
    cta.tmem.write(96 + 5, kSfaColumn + 1, ~cta.tmem.read(5, kSfaColumn + 1));
    CHECK(fails() == FaultKind::kProtocol);
  }
  SECTION("operand beyond shared memory") {
    const uint8_t zeros[1024] = {};
    cta.smem.write(232448 - 1024, zeros, sizeof zeros);
    op.b_desc = at(kSw128, 232448 - 1024);
    CHECK(fails() == FaultKind::kBounds);
  }
}

TEST_CASE("tensor core: operand ranges of a swizzled tile are its rows' 32-byte steps", "[tensor]") {
  const MmaOp op = block16(128, 64, 1);
  const auto ranges = sim::operand_ranges(op, true);
  uint32_t total = 0;
  std::set<uint32_t> bytes;
  for (const auto& range : ranges) {
    total += range.bytes;
    for (uint32_t i = 0; i < range.bytes; ++i) bytes.insert(range.offset + i);
  }
  CHECK(total == 64 * 32);
  std::set<uint32_t> want;
  for (int r = 0; r < 64; ++r)
    for (int b = 0; b < 32; ++b) want.insert(sw128(kB, r, b));
  CHECK(bytes == want);
}

}  // namespace tensor_core_test
