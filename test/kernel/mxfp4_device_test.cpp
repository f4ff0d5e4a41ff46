// mxfp4_device_test.cpp -- MXFP4 weights prepared on the device and by the twin on the host, byte by byte
// against the rule that the header writes down: ragged rows and blocks, rows of gate and up in turn, matrices
// of a batch, every byte of a factor; every byte around the outputs stays. All of it is judged.
#include <algorithm>
#include <array>

#include "kernel/convert.h"
#include "kernel/judged.h"
#include "support/device_set.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

struct Case {
  int32_t rows, k, batch = 1;
  int64_t gap = 0;   // units of 16 bytes between rows of q, and bytes between rows of scales
  size_t shift = 0;  // bytes that scales are off alignment
};

// The buffers of a case, before and after.
struct Tensors {
  int64_t ldq, pitch, stride_q, stride_scales, stride_sf, stride_exponents;
  Buffer q, scales, sf, exponents, counts;
  Buffer sf_after, exponents_after, counts_after;

  explicit Tensors(const Case& c)
      : ldq(c.k + 32 * c.gap),
        pitch(c.k / 32 + c.gap),
        stride_q(c.rows * ldq + 64 * c.gap),
        stride_scales(c.rows * pitch + 3 * c.gap),
        stride_sf((c.rows + 127) / 128 * atoms_bytes(c.k) + 16 * c.gap),
        stride_exponents(c.rows + c.gap),
        q(static_cast<size_t>(c.batch * stride_q / 2)),
        scales(static_cast<size_t>(c.batch * stride_scales), c.shift),
        sf(static_cast<size_t>(c.batch * stride_sf)),
        exponents(static_cast<size_t>(c.batch * stride_exponents) * 2),
        counts(16),
        sf_after(sf),
        exponents_after(exponents),
        counts_after(counts) {
    fill(c);
    for (int64_t i = 0; i < 4; ++i) counts.put(i, static_cast<uint32_t>(1000 * i));
    expect(c);
  }
  // Returns the bytes of 128 rows.
  static int64_t atoms_bytes(int32_t k) { return (k + 127) / 128 * 512; }

 private:
  // Rows have spans of bytes from none to all, blocks of zeros, and NaN.
  void fill(const Case& c) {
    Rng random(static_cast<uint64_t>(c.rows + 7 * c.k + c.batch));
    for (size_t i = 0; i < q.size(); ++i) q.host()[i] = static_cast<uint8_t>(random.below(256));
    for (size_t i = 0; i < scales.size(); ++i) scales.host()[i] = static_cast<uint8_t>(random.below(256));
    for (int64_t matrix = 0; matrix < c.batch; ++matrix)
      for (int64_t row = 0; row < c.rows; ++row) {
        const int32_t spans[] = {0, 5, 14, 40}, span = spans[random.below(4)],
                      low = random.between(0, 254 - span);
        for (int64_t block = 0; block < c.k / 32; ++block) {
          uint8_t& byte = scales.host()[matrix * stride_scales + row * pitch + block];
          if (row % 5 != 4) byte = static_cast<uint8_t>(random.between(low, low + span));
          if (row % 3 == 0 && random.below(6) == 0) byte = 255;
          uint8_t* const codes = q.host() + (matrix * stride_q + row * ldq) / 2 + block * 16;
          if (random.below(4) == 0 || row % 11 == 10) std::fill_n(codes, 16, uint8_t(random.below(2) * 0x80));
          if (random.below(8) == 0) codes[random.below(16)] = uint8_t(random.below(2) ? 0x10 : 0x01);
        }
      }
  }
  void expect(const Case& c) {
    std::array<uint32_t, 4> found{};
    for (int64_t matrix = 0; matrix < c.batch; ++matrix) {
      uint8_t* const factors = sf_after.host() + matrix * stride_sf;
      std::fill_n(factors, (c.rows + 127) / 128 * atoms_bytes(c.k), uint8_t{0});
      for (int64_t row = 0; row < c.rows; ++row) {
        const uint8_t* const bytes = scales.host() + matrix * stride_scales + row * pitch;
        const uint8_t* const codes = q.host() + (matrix * stride_q + row * ldq) / 2;
        const auto nonzero = [&](int64_t block) {
          for (int64_t i = 32 * block; i < 32 * block + 32; ++i)
            if (ref::nibble(codes, i) % 8 != 0) return true;
          return false;
        };
        int largest = 0, blocks = 0;
        for (int64_t block = 0; block < c.k / 32; ++block)
          if (nonzero(block) && bytes[block] != 255) largest = std::max<int>(largest, bytes[block]), ++blocks;
        const int exponent = blocks > 0 ? largest - 133 : 0;
        exponents_after.put(matrix * stride_exponents + row, static_cast<int16_t>(exponent));
        for (int64_t block = 0; block < c.k / 32; ++block) {
          const int byte = bytes[block];
          const bool some = nonzero(block), nan = byte == 255;
          const int moved = nan ? 255 : some ? std::max(byte - exponent, 0) : 0;
          factors[row / 128 * atoms_bytes(c.k) + block / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 +
                  block % 4] = static_cast<uint8_t>(moved);
          found[0] += some;
          found[1] += some && !nan && byte + 14 < largest;
          found[2] += nan;
          found[3] += some && !nan && byte + 133 < largest;
        }
      }
    }
    for (size_t i = 0; i < 4; ++i)
      counts_after.put(static_cast<int64_t>(i), static_cast<uint32_t>(1000 * i) + found[i]);
  }
};

dualgemm_prepare_mxfp4_args_t args_of(const Case& c, const Tensors& t) {
  dualgemm_prepare_mxfp4_args_t args;
  dualgemm_prepare_mxfp4_args_init(&args);
  args.rows = c.rows;
  args.k = c.k;
  args.batch = c.batch;
  if (c.gap == 0) return args;
  args.ldq = t.ldq;
  args.pitch = t.pitch;
  args.batch_stride_q = t.stride_q;
  args.batch_stride_scales = t.stride_scales;
  args.batch_stride_sf = t.stride_sf;
  args.batch_stride_row_exponent = t.stride_exponents;
  return args;
}

template <class Buffers>
void point(dualgemm_prepare_mxfp4_args_t& args, Buffers& q, Buffers& scales, Buffers& sf, Buffers& exponents,
           Buffers& counts) {
  args.q = q.data();
  args.scales = scales.data();
  args.sf = sf.data();
  args.row_exponent = exponents.template data<int16_t>();
  args.counts = counts.template data<uint32_t>();
}

void check_case(const Case& c) {
  INFO(c.batch << " x " << c.rows << " rows, k " << c.k << ", gap " << c.gap << ", shift " << c.shift);
  const Tensors t(c);
  dualgemm_prepare_mxfp4_args_t args = args_of(c, t);
  {
    const DeviceBuffer q(t.q), scales(t.scales), sf(t.sf), exponents(t.exponents), counts(t.counts);
    point(args, q, scales, sf, exponents, counts);
    check_status(dualgemm_prepare_mxfp4(&args, nullptr));
    CHECK(sf.difference(t.sf_after) == "");
    CHECK(exponents.difference(t.exponents_after) == "");
    CHECK(counts.difference(t.counts_after) == "");
    CHECK(q.difference(t.q) == "");
    CHECK(scales.difference(t.scales) == "");
    args.counts = nullptr;  // nothing is counted
    check_status(dualgemm_prepare_mxfp4(&args, nullptr));
    CHECK(counts.difference(t.counts_after) == "");
  }
  Buffer q(t.q), scales(t.scales), sf(t.sf), exponents(t.exponents), counts(t.counts);
  point(args, q, scales, sf, exponents, counts);
  check_status(dualgemm_prepare_mxfp4_host(&args));
  CHECK(difference(sf, t.sf_after) == "");
  CHECK(difference(exponents, t.exponents_after) == "");
  CHECK(difference(counts, t.counts_after) == "");
}

}  // namespace

TEST_CASE("MXFP4 weights are prepared alike on the device and on the host, whatever rows, blocks and pitches",
          "[convert][mxfp4]") {
  Judged judged;
  const int32_t rows[] = {1, 31, 33, 128, 150, 300}, ks[] = {32, 96, 128, 160, 1056, 2880};
  for (size_t i = 0; i < std::size(rows); ++i)
    for (size_t j = 0; j < std::size(ks); ++j) {
      if ((i + j) % 3 != 0) continue;
      check_case({rows[i], ks[j], 1 + static_cast<int32_t>((i + 2 * j) % 3), static_cast<int64_t>(j % 2) * 3,
                  (i + j) % 2 * 5});
    }
  CHECK(judged.findings() == "");
}

// Four CTAs run on each of 148 SMs, and a block of 128 rows has 16 tiles.
TEST_CASE("MXFP4 weights: a CTA prepares several tiles, and adds up what it counts", "[convert][mxfp4]") {
  check_case({40, 160, 90});
}

TEST_CASE("MXFP4 weights: rows of gate and up in turn are two calls", "[convert][mxfp4]") {
  const int32_t rows = 70, k = 96;
  Case both{2 * rows, k};
  const Tensors t(both);
  for (const int32_t side : {0, 1}) {
    const DeviceBuffer q(t.q), scales(t.scales);
    const DeviceArray<uint8_t> sf(512);
    const DeviceArray<int16_t> exponents(static_cast<size_t>(rows));
    dualgemm_prepare_mxfp4_args_t args;
    dualgemm_prepare_mxfp4_args_init(&args);
    args.rows = rows;
    args.k = k;
    args.q = q.data() + side * k / 2;
    args.scales = scales.data() + side * k / 32;
    args.ldq = 2 * k;
    args.pitch = k / 16;
    args.sf = sf.data();
    args.row_exponent = exponents.data();
    check_status(dualgemm_prepare_mxfp4(&args, nullptr));
    const std::vector<uint8_t> factors = sf.host();
    const std::vector<int16_t> got = exponents.host();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t there = 2 * row + side;
      CHECK(got[static_cast<size_t>(row)] == t.exponents_after.get<int16_t>(there));
      for (int64_t block = 0; block < 3; ++block)
        CHECK(factors[static_cast<size_t>(row % 32 * 16 + row / 32 * 4 + block)] ==
              t.sf_after.host()[there / 128 * 512 + there % 32 * 16 + there % 128 / 32 * 4 + block]);
    }
  }
}

TEST_CASE("MXFP4 weights: with PDL nothing is read or written before what precedes it has ended",
          "[convert][mxfp4][pdl]") {
  const Case c{150, 288};
  const Tensors t(c);
  const DeviceBuffer q(t.q), scales(t.scales), sf(t.sf), exponents(t.exponents), counts(t.counts);
  dualgemm_prepare_mxfp4_args_t args = args_of(c, t);
  args.flags = DUALGEMM_FLAG_PDL;
  point(args, q, scales, sf, exponents, counts);
  args.counts = nullptr;
  Judged judged;
  const Stream stream;
  for (int i = 0; i < 2; ++i) check_status(dualgemm_prepare_mxfp4(&args, stream.get()));
  CHECK(sf.difference(t.sf_after) == "");
  CHECK(exponents.difference(t.exponents_after) == "");
  CHECK(judged.findings() == "");
}
