// prepare_mxfp4_test.cpp -- what prepares MXFP4 weights for a launch: its structure, its defaults and every
// rule, which the function of the device and its twin on the host share; and what the twin makes of factors,
// against the rule of the manual and by what the weights are worth before and after.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/convert/mxfp4.h"
#include "host/include/dualgemm.h"
#include "overlap.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace prepare_mxfp4_test {

using namespace dualgemm_test;

using Args = dualgemm_prepare_mxfp4_args_t;

namespace {

// Each tensor has a gigabyte of its own.
Args valid_prepare() {
  Args args;
  dualgemm_prepare_mxfp4_args_init(&args);
  args.rows = 300, args.k = 512;
  args.q = address(0x1'0000'0000);
  args.scales = address(0x1'4000'0000);
  args.sf = address(0x1'8000'0000);
  args.row_exponent = address<int16_t>(0x1'c000'0000);
  args.counts = address<uint32_t>(0x2'0000'0000);
  return args;
}

dualgemm_status_t on_device(const Args* args) noexcept { return dualgemm_prepare_mxfp4(args, nullptr); }

struct Rule {
  dualgemm_status_t status;
  const char* text;
  std::function<void(Args&)> break_it;
};

dualgemm_status_t ask_prepare(const Args& args) {
  dualgemm::Mxfp4Preparation preparation;
  return dualgemm::validate(&args, &preparation);
}

}  // namespace

TEST_CASE("preparing MXFP4: defaults, and structures of other sizes", "[host][mxfp4][abi]") {
  struct {
    Args known;
    unsigned char unknown[8];
  } newer;
  std::memset(&newer, 0xFF, sizeof newer);
  dualgemm_prepare_mxfp4_args_init_sized(&newer.known, sizeof newer);
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.known.q == nullptr);
  CHECK(newer.known.batch == 0);
  CHECK(newer.unknown[7] == 0);
  CHECK(dualgemm_prepare_mxfp4_host(&newer.known) == kGood);  // no rows
  newer.unknown[7] = 1;
  CHECK(dualgemm_prepare_mxfp4_host(&newer.known) == kVersion);
  newer.known.struct_size = 111;
  CHECK(dualgemm_prepare_mxfp4_host(&newer.known) == kVersion);
  CHECK(dualgemm_prepare_mxfp4(nullptr, nullptr) == kNull);
  CHECK(std::string(dualgemm_last_error()) == "args=NULL: must point to a dualgemm_prepare_mxfp4_args_t");
  dualgemm_prepare_mxfp4_args_init(nullptr);
  for (const bool no_rows : {true, false}) {
    Args args;
    dualgemm_prepare_mxfp4_args_init(&args);
    (no_rows ? args.k : args.rows) = 48;
    CHECK(on_device(&args) == kGood);
    CHECK(dualgemm_prepare_mxfp4_host(&args) == kGood);
    CHECK(std::string(dualgemm_last_error()).empty());
  }
}

TEST_CASE("preparing MXFP4: what is refused", "[host][mxfp4]") {
  const std::vector<Rule> rules = {
      {kValue, "flags=0x8: must be 0 or DUALGEMM_FLAG_PDL", [](Args& a) { a.flags = 8; }},
      {kValue, "reserved0=1: must be in [0, 0]", [](Args& a) { a.reserved0 = 1; }},
      {kValue, "rows=-1: must not be negative", [](Args& a) { a.rows = -1; }},
      {kValue, "k=-32: must not be negative", [](Args& a) { a.k = -32; }},
      {kValue, "batch=-1: must not be negative", [](Args& a) { a.batch = -1; }},
      {kShape, "k=48: must be a multiple of 32", [](Args& a) { a.k = 48; }},
      {kNull, "q=NULL", [](Args& a) { a.q = nullptr; }},
      {kNull, "scales=NULL", [](Args& a) { a.scales = nullptr; }},
      {kNull, "sf=NULL", [](Args& a) { a.sf = nullptr; }},
      {kNull, "row_exponent=NULL", [](Args& a) { a.row_exponent = nullptr; }},
      {kStride, "ldq=480: must be at least k=512", [](Args& a) { a.ldq = 480; }},
      {kStride, "ldq=528: must be a multiple of 32", [](Args& a) { a.ldq = 528; }},
      {kStride, "pitch=15: must be at least k/32=16", [](Args& a) { a.pitch = 15; }},
      {kStride, "pitch=-1: must be at least k/32=16", [](Args& a) { a.pitch = -1; }},
      {kStride, "pitch=1099511627776: 300 rows must take less than 2^48 bytes",
       [](Args& a) { a.pitch = int64_t{1} << 40; }},
      {kStride, "batch_stride_q=153568: must be at least 153600, one problem",
       [](Args& a) { a.batch = 2, a.batch_stride_q = 153568; }},
      {kStride, "batch_stride_scales=4799: must be at least 4800, one problem",
       [](Args& a) { a.batch = 2, a.batch_stride_scales = 4799; }},
      {kStride, "batch_stride_sf=6128: must be at least 6144, one problem",
       [](Args& a) { a.batch = 2, a.batch_stride_sf = 6128; }},
      {kStride, "batch_stride_sf=6145: must be a multiple of 16",
       [](Args& a) { a.batch = 2, a.batch_stride_sf = 6145; }},
      {kStride, "batch_stride_row_exponent=299: must be at least 300, one problem",
       [](Args& a) { a.batch = 2, a.batch_stride_row_exponent = 299; }},
      {kMisaligned, "q=0x100000008: must be 16-byte aligned", [](Args& a) { a.q = address(0x1'0000'0008); }},
      {kMisaligned, "sf=0x180000008: must be 16-byte aligned",
       [](Args& a) { a.sf = address(0x1'8000'0008); }},
      {kMisaligned, "row_exponent=0x1c0000001: must be 2-byte aligned",
       [](Args& a) { a.row_exponent = address<int16_t>(0x1'c000'0001); }},
      {kMisaligned, "counts=0x200000002: must be 4-byte aligned",
       [](Args& a) { a.counts = address<uint32_t>(0x2'0000'0002); }},
      {kAliasing, "sf=0x100000000: overlaps q=0x100000000", [](Args& a) { a.sf = const_cast<void*>(a.q); }},
      {kValue, "q=0xfffffffffffffff0: ", [](Args& a) { a.q = address(~uintptr_t{15}); }},
      {kUnsupported, "rows=2147483647: at most 2147482624",
       [](Args& a) {
         a.rows = 2147483647, a.k = 32;
         a.q = address(0x10'0000'0000'0000), a.scales = address(0x20'0000'0000'0000);
         a.sf = address(0x30'0000'0000'0000), a.row_exponent = address<int16_t>(0x40'0000'0000'0000);
       }},
      {kUnsupported, "k=2147483616: at most 2147482624",
       [](Args& a) {
         a.rows = 1, a.k = 2147483616;
         a.sf = address(0x30'0000'0000'0000);
       }},
  };
  for (const Rule& rule : rules)
    for (const auto function : {on_device, dualgemm_prepare_mxfp4_host}) {
      Args args = valid_prepare();
      rule.break_it(args);
      INFO("expected text: " << rule.text);
      CHECK(std::string(dualgemm_status_name(function(&args))) == dualgemm_status_name(rule.status));
      INFO("actual text: " << dualgemm_last_error());
      CHECK(std::string(dualgemm_last_error()).find(rule.text) != std::string::npos);
    }
}

TEST_CASE("preparing MXFP4: what is taken", "[host][mxfp4]") {
  const std::vector<std::function<void(Args&)>> changes = {
      [](Args&) {},
      [](Args& a) { a.flags = DUALGEMM_FLAG_PDL; },
      [](Args& a) { a.counts = nullptr; },
      [](Args& a) { a.k = 32, a.pitch = 3, a.scales = address(0x1'4000'0007); },
      [](Args& a) { a.ldq = 1024, a.pitch = 32, a.q = address(0x1'0000'0100); },  // of gate and up in turn
      [](Args& a) { a.batch = 3; },
      [](Args& a) { a.batch = 3, a.batch_stride_scales = 4801, a.batch_stride_row_exponent = 303; },
      [](Args& a) { a.batch_stride_q = -5, a.batch_stride_scales = 1; },  // there is no next matrix
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Args args = valid_prepare();
    changes[i](args);
    const dualgemm_status_t status = ask_prepare(args);
    INFO("case " << i << ": " << dualgemm_last_error());
    CHECK(status == kGood);
  }
}

TEST_CASE("preparing MXFP4: no output overlaps an input or another output", "[host][mxfp4]") {
  for (const int32_t batch : {0, 3}) {
    Args good = valid_prepare();
    good.batch = batch;
    const uintptr_t all = batch > 1 ? 3 : 1;
    const std::vector<Part<Args>> parts = {{"sf", all * 3 * 4 * 512, 16, true, put<&Args::sf>},
                                           {"row_exponent", all * 300 * 2, 2, true, put<&Args::row_exponent>},
                                           {"counts", 16, 4, true, put<&Args::counts>},
                                           {"q", all * 300 * 512 / 2, 16, false, put<&Args::q>},
                                           {"scales", all * 300 * 16, 1, false, put<&Args::scales>}};
    check_pairs(good, parts, ask_prepare);
  }
}

namespace {

constexpr uint8_t kGuard = 0xAA;
constexpr int16_t kNoExponent = -7777;

// Matrices in host memory with gaps between rows and between matrices, and what the twin made of them.
struct Case {
  int32_t rows, k, batch;
  int64_t ldq, pitch, stride_q, stride_scales, stride_sf, stride_exponent;
  std::vector<uint8_t> q, scales, sf;
  std::vector<int16_t> exponents;
  std::vector<uint32_t> counts{100, 200, 300, 400};

  Case(int32_t rows, int32_t k, int32_t batch = 1)
      : rows(rows),
        k(k),
        batch(batch),
        ldq(2 * k),
        pitch(k / 32 + 3),
        stride_q(rows * ldq + 64),
        stride_scales(rows * pitch + 5),
        stride_sf((rows + 127) / 128 * 128 * ((k + 127) / 128 * 4) + 16),
        stride_exponent(rows + 1),
        q(static_cast<size_t>(batch * stride_q / 2), 0x77),
        scales(static_cast<size_t>(batch * stride_scales), 254),
        sf(static_cast<size_t>(batch * stride_sf), kGuard),
        exponents(static_cast<size_t>(batch * stride_exponent), kNoExponent) {}

  uint8_t& byte(int32_t row, int32_t block, int32_t matrix = 0) {
    return scales[static_cast<size_t>(matrix * stride_scales + row * pitch + block)];
  }
  uint8_t* codes(int32_t row, int32_t block, int32_t matrix = 0) {
    return q.data() + (matrix * stride_q + row * ldq) / 2 + block * 16;
  }
  bool nonzero(int32_t row, int32_t block, int32_t matrix = 0) {
    const uint8_t* const from = codes(row, block, matrix);
    for (int64_t i = 0; i < 32; ++i)
      if ((ref::nibble(from, i) & 7) != 0) return true;
    return false;
  }
  size_t place(int32_t row, int32_t block, int32_t matrix = 0) const {
    const int32_t of_row = (k + 127) / 128 * 4;
    return static_cast<size_t>(matrix * stride_sf + row / 128 * 128 * of_row + block / 4 * 512 +
                               row % 32 * 16 + row % 128 / 32 * 4 + block % 4);
  }
  int16_t exponent(int32_t row, int32_t matrix = 0) const {
    return exponents[static_cast<size_t>(matrix * stride_exponent + row)];
  }
  void prepare() {
    Args args;
    dualgemm_prepare_mxfp4_args_init(&args);
    args.rows = rows, args.k = k, args.batch = batch;
    args.q = q.data(), args.scales = scales.data();
    args.sf = sf.data(), args.row_exponent = exponents.data(), args.counts = counts.data();
    args.ldq = ldq, args.pitch = pitch;
    args.batch_stride_q = stride_q, args.batch_stride_scales = stride_scales;
    args.batch_stride_sf = stride_sf, args.batch_stride_row_exponent = stride_exponent;
    const dualgemm_status_t status = dualgemm_prepare_mxfp4_host(&args);
    INFO(dualgemm_last_error());
    REQUIRE(status == kGood);
  }
};

}  // namespace

TEST_CASE(
    "preparing MXFP4: factors and exponents are those of the rule, and each weight is worth what it was",
    "[host][mxfp4]") {
  for (const int32_t k : {32, 160, 288})
    for (const int32_t rows : {1, 130}) {
      INFO("k " << k << ", rows " << rows);
      Case c(rows, k, 2);
      Rng random(static_cast<uint64_t>(k + rows));
      for (uint8_t& two : c.q) two = static_cast<uint8_t>(random.below(256));
      for (uint8_t& byte : c.scales) byte = static_cast<uint8_t>(random.below(256));
      for (int32_t matrix = 0; matrix < 2; ++matrix)
        for (int32_t row = 0; row < rows; ++row) {
          const int32_t low = random.between(0, 250), span = random.between(1, row % 3 == 0 ? 6 : 20);
          for (int32_t block = 0; block < k / 32; ++block) {
            if (row % 7 != 6)
              c.byte(row, block, matrix) =
                  static_cast<uint8_t>(std::min(254, random.between(low, low + span)));
            if (random.below(5) == 0)
              std::fill_n(c.codes(row, block, matrix), 16, uint8_t(random.below(2) * 0x88));
          }
        }
      c.prepare();
      uint32_t counts[4] = {100, 200, 300, 400};
      std::vector<bool> used(c.sf.size());
      for (int32_t matrix = 0; matrix < 2; ++matrix)
        for (int32_t row = 0; row < rows; ++row) {
          int largest = -1;
          for (int32_t block = 0; block < k / 32; ++block)
            if (c.nonzero(row, block, matrix) && c.byte(row, block, matrix) != 255)
              largest = std::max<int>(largest, c.byte(row, block, matrix));
          const int exponent = largest == -1 ? 0 : largest - 133;
          REQUIRE(c.exponent(row, matrix) == exponent);
          for (int32_t block = 0; block < k / 32; ++block) {
            const bool nonzero = c.nonzero(row, block, matrix);
            const int before = c.byte(row, block, matrix), after = c.sf[c.place(row, block, matrix)];
            used[c.place(row, block, matrix)] = true;
            counts[0] += nonzero;
            counts[2] += before == 255;
            if (before == 255) {
              REQUIRE(after == 255);
            } else if (!nonzero) {
              REQUIRE(after == 0);
            } else {
              REQUIRE(after <= 133);
              const bool kept = largest - before <= 133;
              if (kept) REQUIRE(std::ldexp(1.0, after - 127 + exponent) == std::ldexp(1.0, before - 127));
              else REQUIRE(after == 0);
              counts[1] += largest - before > 14;
              counts[3] += !kept;
              // What is not counted is exact as a number of E4M3.
              if (largest - before <= 14) REQUIRE(after >= 119);
            }
          }
        }
      for (size_t i = 0; i < 4; ++i) CHECK(c.counts[i] == counts[i]);
      for (int32_t matrix = 0; matrix < 2; ++matrix)
        for (int64_t i = 0; i < c.stride_sf; ++i) {
          const auto at = static_cast<size_t>(matrix * c.stride_sf + i);
          if (!used[at]) REQUIRE(c.sf[at] == (i < c.stride_sf - 16 ? 0 : kGuard));
        }
      for (int32_t matrix = 0; matrix < 2; ++matrix) CHECK(c.exponent(rows, matrix) == kNoExponent);
    }
}

TEST_CASE("preparing MXFP4: the ends of the bytes", "[host][mxfp4]") {
  struct Bytes {
    std::vector<int> before;  // of one row; -1: 0 with elements that are zero, -2: 255 with such elements
    std::vector<int> after;
    int exponent;
    std::vector<uint32_t> counts;
  };
  for (const Bytes& x : std::vector<Bytes>{
           {{133, 119, 118}, {133, 119, 118}, 0, {3, 1, 0, 0}},
           {{254, 240, 239, 121}, {133, 119, 118, 0}, 121, {4, 2, 0, 0}},
           {{254, 120, 0, 254}, {133, 0, 0, 133}, 121, {4, 2, 0, 2}},
           {{0, 0}, {133, 133}, -133, {2, 0, 0, 0}},
           {{-1, -1}, {0, 0}, 0, {0, 0, 0, 0}},
           {{255, 255}, {255, 255}, 0, {2, 0, 2, 0}},
           {{-2, 127, 255}, {255, 133, 255}, -6, {2, 0, 2, 0}},
           {{-1, 127}, {0, 133}, -6, {1, 0, 0, 0}},
       }) {
    const auto blocks = static_cast<int32_t>(x.before.size());
    Case c(1, 32 * blocks);
    for (int32_t block = 0; block < blocks; ++block) {
      const int before = x.before[static_cast<size_t>(block)];
      if (before < 0) std::fill_n(c.codes(0, block), 16, uint8_t{0x80});
      c.byte(0, block) = static_cast<uint8_t>(before == -1 ? 0 : before == -2 ? 255 : before);
    }
    c.prepare();
    CHECK(c.exponent(0) == x.exponent);
    for (int32_t block = 0; block < blocks; ++block) {
      INFO("block " << block << " of byte " << x.before[static_cast<size_t>(block)]);
      CHECK(int{c.sf[c.place(0, block)]} == x.after[static_cast<size_t>(block)]);
    }
    for (size_t i = 0; i < 4; ++i) CHECK(c.counts[i] == 100 * (i + 1) + x.counts[i]);
  }
}

TEST_CASE("preparing MXFP4: one element that is not zero makes its block count", "[host][mxfp4]") {
  for (int element = 0; element < 32; ++element)
    for (const int code : {1, 7, 9, 15}) {
      Case c(1, 64);
      std::fill_n(c.codes(0, 0), 32, uint8_t{0x08});
      c.codes(0, 1)[element / 2] = static_cast<uint8_t>(code << (element % 2 * 4));
      c.byte(0, 0) = 200, c.byte(0, 1) = 100;
      c.prepare();
      CHECK(c.exponent(0) == 100 - 133);
      CHECK(c.sf[c.place(0, 0)] == 0);
      CHECK(c.sf[c.place(0, 1)] == 133);
    }
}

TEST_CASE(
    "preparing MXFP4: a launch's reference gives the same with prepared weights as with its own, but for a "
    "power of two",
    "[host][mxfp4][reference]") {
  const int32_t k = 160, n = 40;
  Case c(n, k);
  Rng random(11);
  for (uint8_t& two : c.q) two = static_cast<uint8_t>(random.below(256));
  for (int32_t row = 0; row < n; ++row)
    for (int32_t block = 0; block < k / 32; ++block)
      c.byte(row, block) = static_cast<uint8_t>(100 + row % 20 + random.below(14));
  c.prepare();
  std::vector<uint8_t> a(static_cast<size_t>(2 * k));
  for (uint8_t& byte : a) byte = static_cast<uint8_t>(random.below(0x60));
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.products = 1;
  args.m = 2, args.n = n, args.k = k;
  args.a_dtype = DUALGEMM_DTYPE_FP8_E4M3, args.b_dtype = DUALGEMM_DTYPE_MXFP4;
  args.a = a.data(), args.b1 = c.q.data(), args.sfb1 = c.sf.data(), args.ldb1 = c.ldq;
  args.b1_row_exponent = c.exponents.data();
  args.c_dtype = DUALGEMM_DTYPE_FP32;
  std::vector<float> out(static_cast<size_t>(2 * n));
  std::vector<double> y(out.size());
  args.c = out.data();
  REQUIRE(dualgemm_reference_host(&args, y.data()) == kGood);
  for (int32_t row = 0; row < 2; ++row)
    for (int32_t column = 0; column < n; ++column) {
      double sum = 0;
      for (int32_t i = 0; i < k; ++i)
        sum += ref::e4m3_decode(a[static_cast<size_t>(row * k + i)]) *
               std::ldexp(double{ref::e2m1_decode(ref::nibble(c.codes(column, 0), i))},
                          c.byte(column, i / 32) - 127);
      CHECK(y[static_cast<size_t>(row * n + column)] == Approx(sum).epsilon(1e-12).margin(1e-12));
    }
}

}  // namespace prepare_mxfp4_test
