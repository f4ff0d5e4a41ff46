// dual_gemm.cpp -- see dual_gemm.h.
//
// Exactness. A product of two e2m1 values is a multiple of 1/4 of at most 36, so the dot product of a block
// of 16 is exact in float, and so is its product with two scale factors (12 + 4 + 4 bits). Only the sum over
// blocks is rounded, in double: 2^-53 of the running sum per block, which the slack below covers.
//
// What the kernel may differ by. Its sums come from tcgen05.mma kind::mxf4nvf4, one fused operation per 64
// elements: four block terms and the accumulator are aligned to the largest exponent E among them (for a
// term, that of its scale factors), cut to multiples of 2^(E-35), added exactly, and the sum is cut toward
// zero to float. Per step this loses
//     less than one ulp of the new accumulator:  2^-23 |c_t|
//     less than 5 * 2^(E-35):                    5 * 2^-35 max(|c_t-1|, smax)
// where smax, the largest product of two scale factors, bounds 2^E for the terms (subnormal scale factors
// count as 2^-6, their exponent). `path`, the sum of |c_t| over the steps, is followed here with the same cut
// to 24 bits:
//     e_acc = path * (2^-23 + 5 * 2^-35) + 5 * 2^-35 * smax * steps
//
// The epilogue works in float. With u = 2^-24, the relative error of one rounded operation:
//   gate g = alpha1 acc1, up h = alpha2 acc2: two roundings (host factor times device factor, times the sum)
//     dg = |alpha1| e_acc1 + 2u |g|,  dh likewise
//   f(g): activation.cpp has its rounding r, relative to f(g) h, and L, the bound of |f'| within dg of g
//   C = f(g) h:
//     error <= L dg (|h| + dh) + |f(g)| dh + r |f(g)| (|h| + dh) + floor
//   floor: below 2^-126 a float may be flushed, a factor of f as well as C: 2^-126 (1 + |g| |h|).
// Second-order products of the relative errors are below 1/64 of the first-order ones and get that as slack.
#include "ref/dual_gemm.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "ref/formats.h"

namespace ref {
namespace {

constexpr int64_t kTileRows = 4, kTileCols = 16;
constexpr int64_t kBlocksPerStep = 4;  // one tcgen05.mma: 64 elements

using Floats16 = float __attribute__((vector_size(64)));
using Floats8 = float __attribute__((vector_size(32)));
using Doubles8 = double __attribute__((vector_size(64)));
using Bits8 = uint64_t __attribute__((vector_size(64)));
using FloatsInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

// An operand as floats. Rows of `lanes` are interleaved:
// value (row, i) stands at [row / lanes][i][row % lanes].
struct Unpacked {
  std::vector<float> values, scales;
  float scale_max = 0;  // at least 2^-6 where any row exists, NaN if any scale factor is
};

Unpacked unpack(const Operand& x, int64_t first_row, int64_t rows, int64_t k, int64_t lanes) {
  float value_of[16], scale_of[256];
  for (int code = 0; code < 16; ++code) value_of[code] = e2m1_decode(static_cast<uint8_t>(code));
  for (int code = 0; code < 256; ++code) scale_of[code] = ue4m3_decode(static_cast<uint8_t>(code));
  const int64_t padded = (rows + lanes - 1) / lanes * lanes, blocks = k / kBlock;
  Unpacked out{std::vector<float>(padded * k), std::vector<float>(padded * blocks), 0x1p-6f};
  for (int64_t row = 0; row < std::min(rows, x.rows - first_row); ++row) {
    const uint8_t* codes = x.codes + (first_row + row) * x.pitch;
    float* values = &out.values[row / lanes * lanes * k + row % lanes];
    for (int64_t i = 0; i < k; ++i) values[i * lanes] = value_of[nibble(codes, i)];
    for (int64_t block = 0; block < blocks; ++block) {
      const float scale = scale_of[x.scales[sf_offset(k, first_row + row, block)]];
      out.scales[(row / lanes * blocks + block) * lanes + row % lanes] = scale;
      if (!(scale <= out.scale_max)) out.scale_max = scale;
    }
  }
  return out;
}

// 4 x 16 outputs of one GEMM.
struct Tile {
  Doubles8 exact[kTileRows][2], rounded[kTileRows][2], path[kTileRows][2];
};

// a: 4 rows of `blocks` * 16 values, one after the other; b: 16 rows interleaved; scale factors likewise.
__attribute__((target_clones("avx512f", "fma", "default"))) void multiply(
    const float* a, const float* a_scales, const float* b, const float* b_scales, int64_t blocks, Tile& out) {
  const int64_t k = blocks * kBlock;
  const Bits8 keep24 = Bits8{} + ~((uint64_t{1} << 29) - 1);  // of a double's 53 significant bits
  const Bits8 no_sign = Bits8{} + ~(uint64_t{1} << 63);
  Tile tile = {};
  for (int64_t step = 0; step < blocks; step += kBlocksPerStep) {
    for (int64_t block = step; block < std::min(step + kBlocksPerStep, blocks); ++block) {
      Floats16 dot[kTileRows] = {};
      for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
        const Floats16 column = *reinterpret_cast<const FloatsInMemory*>(b + i * kTileCols);
        for (int64_t r = 0; r < kTileRows; ++r) dot[r] += a[r * k + i] * column;
      }
      const Floats16 scales = *reinterpret_cast<const FloatsInMemory*>(b_scales + block * kTileCols);
      for (int64_t r = 0; r < kTileRows; ++r) {
        const Floats16 term = dot[r] * (a_scales[r * blocks + block] * scales);
        const Floats8 low = __builtin_shufflevector(term, term, 0, 1, 2, 3, 4, 5, 6, 7);
        const Floats8 high = __builtin_shufflevector(term, term, 8, 9, 10, 11, 12, 13, 14, 15);
        const Doubles8 halves[2] = {__builtin_convertvector(low, Doubles8),
                                    __builtin_convertvector(high, Doubles8)};
        for (int h = 0; h < 2; ++h) {
          tile.exact[r][h] += halves[h];
          tile.rounded[r][h] += halves[h];
        }
      }
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      for (int h = 0; h < 2; ++h) {
        const Bits8 cut = reinterpret_cast<Bits8>(tile.rounded[r][h]) & keep24;
        tile.rounded[r][h] = reinterpret_cast<Doubles8>(cut);
        tile.path[r][h] += reinterpret_cast<Doubles8>(cut & no_sign);
      }
    }
  }
  out = tile;
}

// The derivation at the top of the file, for one output.
float error_bound(const Activation& activation, double g, double h, double dg, double dh) {
  constexpr double u = 0x1p-24;
  const double f = std::fabs(activation.f(g));
  dg += 2 * u * std::fabs(g);
  dh += 2 * u * std::fabs(h);
  const double bound = activation.slope(g, dg) * dg * (std::fabs(h) + dh) + f * dh +
                       activation.rounding(g) * f * (std::fabs(h) + dh);
  const double smallest = 0x1p-126 * (1 + std::fabs(g * h));
  return static_cast<float>(bound * (1 + 1.0 / 64) + smallest);
}

}  // namespace

DualGemm dual_gemm(const Operand& a, const Operand& b1, const Operand& b2, int64_t k, float alpha1,
                   float alpha2, const Activation& activation) {
  if (k % kBlock != 0) throw std::invalid_argument("k is not a multiple of 16");
  if (b1.rows != b2.rows) throw std::invalid_argument("B1 and B2 have different numbers of rows");
  const int64_t m = a.rows, n = b1.rows, blocks = k / kBlock;
  const double steps = std::ceil(static_cast<double>(k) / 64);
  DualGemm result{m, n, std::vector<double>(m * n), std::vector<float>(m * n), std::vector<float>(m * n)};
  if (k == 0) return result;  // empty sums: every output is zero
  const int64_t padded_m = (m + kTileRows - 1) / kTileRows * kTileRows;
  const Unpacked left = unpack(a, 0, padded_m, k, 1);

  // A thread takes 16 columns of C at a time.
  std::atomic<int64_t> next_column{0};
  const auto work = [&] {
    Tile tiles[2];
    for (int64_t column; (column = next_column.fetch_add(kTileCols)) < n;) {
      const int64_t width = std::min(kTileCols, n - column);
      const Unpacked right[2] = {unpack(b1, column, width, k, kTileCols),
                                 unpack(b2, column, width, k, kTileCols)};
      for (int64_t row = 0; row < m; row += kTileRows) {
        for (int side = 0; side < 2; ++side) {
          multiply(&left.values[row * k], &left.scales[row * blocks], right[side].values.data(),
                   right[side].scales.data(), blocks, tiles[side]);
        }
        for (int64_t r = 0; r < std::min(kTileRows, m - row); ++r) {
          for (int64_t i = 0; i < width; ++i) {
            const auto at = [&](const Doubles8(&x)[kTileRows][2]) { return x[r][i / 8][i % 8]; };
            const auto lost = [&](int side) {
              const double scale_max = static_cast<double>(left.scale_max) * right[side].scale_max;
              return at(tiles[side].path) * (0x1p-23 + 5 * 0x1p-35) + 5 * 0x1p-35 * scale_max * steps;
            };
            const double g = alpha1 * at(tiles[0].exact), h = alpha2 * at(tiles[1].exact);
            const double g24 = alpha1 * at(tiles[0].rounded), h24 = alpha2 * at(tiles[1].rounded);
            const int64_t index = (row + r) * n + column + i;
            result.c[index] = activation.f(g) * h;
            result.tensor_core[index] = static_cast<float>(activation.f(g24) * h24);
            result.error[index] =
                error_bound(activation, g, h, std::fabs(alpha1) * lost(0), std::fabs(alpha2) * lost(1));
          }
        }
      }
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return result;
}

}  // namespace ref
