// dual_gemm.cpp -- see dual_gemm.h.
//
// Exactness. A product of two e2m1 values is a multiple of 1/4 of at most 36, so the dot product of a block
// of 16 is exact in float, and so is its product with two scale factors (12 + 4 + 4 bits). Only the sum over
// blocks is rounded, in double: 2^-53 of the running sum per block, which the slack below covers.
//
// An A of 16 bits has up to 11 bits of its own and 30 or more powers of two: its products with e2m1 values
// are added in double, too.
//
// What the kernel may differ by. Its sums come from tcgen05.mma kind::mxf4nvf4, one fused operation per 64
// elements: four block terms and the accumulator are aligned to the largest exponent E among them (for a
// term, that of its scale factors), cut to multiples of 2^(E-35), added exactly, and the sum is cut toward
// zero to float. Per step this loses
//     less than one ulp of the new accumulator:  2^-23 |c_t|
//     less than 5 * 2^(E-35):                    5 * 2^-35 max(|c_t-1|, smax)
// where smax, the largest product of two scale factors, bounds 2^E for the terms. A subnormal scale factor
// counts as 2^-6, the smallest normal one: on a B200 that is assumed, and the first test there asks it
// (kernel/subnormal_test.cpp). `path`, the sum of |c_t| over the steps, is followed here with the same cut to
// 24 bits:
//     e_chain = path * (2^-23 + 5 * 2^-35) + 5 * 2^-35 * smax * steps
//
// Where K is split, S CTAs have a chain each, and the path of one chain over all of K does not bound theirs:
// a sum that jumps to X at once, stays there until the middle and then falls back to 0 has a path of X T / 2,
// its two halves have one of X T. So every division is followed by itself. K is cut into T k-tiles of 256
// elements, of which slice s has those from T s / S to T (s + 1) / S, rounded down; some may have none. A
// chain begins with c_0 = 0, and steps of 64 do not cross k-tiles, so what stands above holds for each chain,
// and the steps of all are those of one. The sums are then added in float in the order of the slices. The
// first addition, to 0, is exact; each of the others is rounded to nearest and loses at most u = 2^-24 of its
// result:
//     e_acc = sum over the slices of e_chain + u * (sum of |sum so far| after each slice but the first)
// With S = 1 that is e_chain.
//
// On compute capability 9.0 the sums come from wgmma of fp16, or of bf16 if A is, whose operands are exact
// (kernel/sm90/expand.cuh): one fused operation per 16 elements. 16 products and the accumulator are aligned
// to the largest exponent E among them, cut to multiples of 2^(E-25), added exactly, and the sum is cut
// toward zero to float. The exponent of a product is the sum of its operands' fields, where a subnormal
// number has that of the smallest normal one. So an element of an A of 16 bits counts here as no less than
// the smallest normal number of its type, and beside fp16 a weight, which carries 2^-7, as no less than 2^-7.
// Where A is in NVFP4, a product with a subnormal operand makes E so small that nothing is cut off. Per step
// this loses less than 2^-23 |c_t| + 17 * 2^-25 * max(|c_t-1|, largest product). The elements of a k-tile of
// 256 come in another order: first those whose k has bit 5 clear, then the others, 8 steps each, in an order
// that is nobody's business here. Whatever it is, within such a half no sum is larger than the one before the
// half plus W, and no product larger than W, where W bounds the sum of the products' magnitudes by the norms
// of the row's and the column's elements (Cauchy and Schwarz). A half thus loses at most
//     8 * (2^-23 + 17 * 2^-25) * (|c| before the half + W)
// Both halves of the k-tiles may be one chain, or each a chain of its own whose sums are added in float: the
// larger of both bounds holds for either. Slices of K are those of above.
//
// The epilogue works in float, with the relative error u for each rounded operation:
//   gate g = alpha1 acc1, up v = alpha2 acc2: two roundings (host alpha times device alpha, times the sum)
//     dg = |alpha1| e_acc1 + 2u |g|,  dv likewise
//   a factor of the row is one product more:   dg += u |g|
//   a bias is added to what stood there, x:    dg += 2u |x| + u |g|, where |x| may be more than |g|
//   f(g), h(v): activation.cpp has the rounding r, relative to f(g) h(v), L, the bound of |f'| within dg of
//   g, and L', that of |h'| within dv of v; dh = L' dv
//   C = f(g) h(v):
//     error <= L dg (|h| + dh) + |f(g)| dh + r |f(g)| (|h| + dh) + floor
//   floor: below 2^-126 a float may be flushed, a factor of f as well as C: 2^-126 (1 + |g| |h|).
//   a factor w of the row of C is one product more:   error = |w| error + u |w C| + 2^-126
// Second-order products of the relative errors are below 1/64 of the first-order ones and get that as slack:
// those of u and dg, and that the kernel's c_t and sums are not those followed here, but off by less than
// e_acc.
#include "ref/dual_gemm.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>

#include "ref/formats.h"

namespace ref {
namespace {

constexpr int64_t kTileRows = 4, kTileCols = 16;
constexpr int64_t kBlocksPerStep = 4;    // one tcgen05.mma: 64 elements
constexpr int64_t kBlocksPerKTile = 16;  // K is split between k-tiles

// Returns which half of which k-tile a block of K belongs to, for wgmma: as its k has bit 5 clear or set.
constexpr int64_t half_of(int64_t block) { return block / kBlocksPerKTile * 2 + block / 2 % 2; }
constexpr int64_t halves_of(int64_t blocks) { return (blocks + kBlocksPerKTile - 1) / kBlocksPerKTile * 2; }

using Floats16 = float __attribute__((vector_size(64)));
using Floats8 = float __attribute__((vector_size(32)));
using Doubles8 = double __attribute__((vector_size(64)));
using Bits8 = uint64_t __attribute__((vector_size(64)));
using FloatsInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

// This is an operand as floats. Rows of `lanes` are interleaved: value (row, i) stands at [row /
// lanes][i][row % lanes].
struct Unpacked {
  std::vector<float> values, scales;
  // [row][half of a k-tile]: of its values as a tensor core aligns them, times their scale factors
  std::vector<double> norms;
  float scale_max = 0;  // at least 2^-6 where any row exists, NaN if any scale factor is
};

// Every number of either type is a float.
float sixteen_bits(Elements type, const uint8_t* bytes) {
  const auto bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  return static_cast<float>(type == Elements::kFp16 ? fp16_decode(bits) : bf16_decode(bits));
}

// Returns what an element of A, or of the weights beside it, other than zero counts as at least.
enum class Side { kA, kWeights };
double least_aligned(Elements of_a, Side side) {
  switch (of_a) {
    case Elements::kFp16: return side == Side::kA ? 0x1p-14 : 0x1p-7;
    case Elements::kBf16: return side == Side::kA ? 0x1p-126 : 0;
    default: return 0;
  }
}

Unpacked unpack(const Operand& x, int64_t first_row, int64_t rows, int64_t k, int64_t lanes, double least) {
  float value_of[16], scale_of[256];
  for (int code = 0; code < 16; ++code) value_of[code] = e2m1_decode(static_cast<uint8_t>(code));
  for (int code = 0; code < 256; ++code) scale_of[code] = ue4m3_decode(static_cast<uint8_t>(code));
  const int64_t padded = (rows + lanes - 1) / lanes * lanes, blocks = k / kBlock;
  Unpacked out{std::vector<float>(padded * k), std::vector<float>(padded * blocks),
               std::vector<double>(padded * halves_of(blocks)), 0x1p-6f};
  const bool packed = x.elements == Elements::kNvfp4;
  for (int64_t row = 0; row < std::min(rows, x.rows - first_row); ++row) {
    const uint8_t* codes = x.codes + (first_row + row) * x.pitch;
    float* values = &out.values[row / lanes * lanes * k + row % lanes];
    for (int64_t i = 0; i < k; ++i)
      values[i * lanes] = packed ? value_of[nibble(codes, i)] : sixteen_bits(x.elements, codes + 2 * i);
    for (int64_t block = 0; block < blocks; ++block) {
      const float scale = packed ? scale_of[x.scales[sf_offset(k, first_row + row, block)]] : 1;
      out.scales[(row / lanes * blocks + block) * lanes + row % lanes] = scale;
      double squares = 0;
      for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
        const double value = std::fabs(values[i * lanes]) * scale;
        const double aligned = value == 0 ? 0 : std::max(value, least);
        squares += aligned * aligned;
      }
      out.norms[row * halves_of(blocks) + half_of(block)] += squares;
      if (!(scale <= out.scale_max)) out.scale_max = scale;
    }
  }
  for (double& norm : out.norms) norm = std::sqrt(norm);
  return out;
}

// This follows the sums of 4 x 16 outputs, for one number of slices.
struct Chains {
  using Outputs = Doubles8[kTileRows][2];
  int slices = 1, slice = 0;
  bool any = false;        // a slice with steps is done
  Outputs chain, path;     // of the slice at hand, as of the last step; of all so far
  Outputs sum, additions;  // of the slices done; of |sum| after each but the first

  // Returns the block after the current slice.
  int64_t end(int64_t blocks) const {
    const int64_t k_tiles = (blocks + kBlocksPerKTile - 1) / kBlocksPerKTile;
    return std::min(blocks, k_tiles * (slice + 1) / slices * kBlocksPerKTile);
  }
};

struct Tile {
  Doubles8 exact[kTileRows][2];
  Chains chains[std::size(kSplits)];
};

using Terms = Doubles8[kTileRows][2];  // of one step

// These become part of every clone of multiply.
[[gnu::always_inline]] inline void add_magnitude(Doubles8& sum, const Doubles8& x) {
  const Bits8 no_sign = Bits8{} + ~(uint64_t{1} << 63);
  sum += reinterpret_cast<Doubles8>(reinterpret_cast<Bits8>(x) & no_sign);
}

[[gnu::always_inline]] inline void widen(const Floats16& x, Doubles8 (&out)[2]) {
  const Floats8 low = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  const Floats8 high = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  out[0] = __builtin_convertvector(low, Doubles8);
  out[1] = __builtin_convertvector(high, Doubles8);
}

// Adds a step of the tensor core, after which `block` is the first block.
[[gnu::always_inline]] inline void add_step(Chains& c, const Terms& step, int64_t block, int64_t blocks) {
  const Bits8 keep24 = Bits8{} + ~((uint64_t{1} << 29) - 1);  // of a double's 53 significant bits
  for (int64_t r = 0; r < kTileRows; ++r)
    for (int h = 0; h < 2; ++h) {
      const Doubles8 sum = c.chain[r][h] + step[r][h];
      c.chain[r][h] = reinterpret_cast<Doubles8>(reinterpret_cast<Bits8>(sum) & keep24);
      add_magnitude(c.path[r][h], c.chain[r][h]);
    }
  while (c.slice < c.slices && c.end(blocks) < block) ++c.slice;  // empty slices
  if (c.end(blocks) != block) return;
  for (int64_t r = 0; r < kTileRows; ++r)
    for (int h = 0; h < 2; ++h) {
      const Doubles8 sum = c.sum[r][h] + c.chain[r][h];
      c.sum[r][h] = __builtin_convertvector(__builtin_convertvector(sum, Floats8), Doubles8);
      if (c.any) add_magnitude(c.additions[r][h], c.sum[r][h]);
      c.chain[r][h] = Doubles8{};
    }
  c.any = true;
  ++c.slice;
}

// If `halves` is not null, it gets what each half of a k-tile adds to the outputs; it starts as zeros. Where
// the sum of a block is not exact in float, `wide` asks for double.
// Here a is 4 rows of `blocks` * 16 values, one after the other, and b is 16 rows interleaved; scale factors
// likewise.
__attribute__((target_clones("avx512f", "fma", "default"))) void multiply(
    const float* a, const float* a_scales, const float* b, const float* b_scales, int64_t blocks, bool wide,
    Tile& out, Terms* halves) {
  const int64_t k = blocks * kBlock;
  Tile tile = {};
  Terms step = {};
  for (size_t i = 0; i < std::size(kSplits); ++i) tile.chains[i].slices = kSplits[i];
  for (int64_t block = 0; block < blocks; ++block) {
    Floats16 dot[kTileRows] = {};
    Terms exact = {};
    for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
      const Floats16 column = *reinterpret_cast<const FloatsInMemory*>(b + i * kTileCols);
      if (!wide) {
        for (int64_t r = 0; r < kTileRows; ++r) dot[r] += a[r * k + i] * column;
        continue;
      }
      Doubles8 columns[2];
      widen(column, columns);
      for (int64_t r = 0; r < kTileRows; ++r)
        for (int h = 0; h < 2; ++h) exact[r][h] += double{a[r * k + i]} * columns[h];
    }
    const Floats16 scales = *reinterpret_cast<const FloatsInMemory*>(b_scales + block * kTileCols);
    for (int64_t r = 0; r < kTileRows; ++r) {
      const Floats16 both = a_scales[r * blocks + block] * scales;
      Doubles8 terms[2];
      widen(wide ? both : dot[r] * both, terms);
      if (wide)
        for (int h = 0; h < 2; ++h) terms[h] *= exact[r][h];
      for (int h = 0; h < 2; ++h) step[r][h] += terms[h];
      if (!halves) continue;
      for (int h = 0; h < 2; ++h) halves[half_of(block)][r][h] += terms[h];
    }
    const int64_t next = block + 1;
    if (next % kBlocksPerStep != 0 && next != blocks) continue;
    for (Chains& c : tile.chains) add_step(c, step, next, blocks);
    for (int64_t r = 0; r < kTileRows; ++r)
      for (int h = 0; h < 2; ++h) {
        tile.exact[r][h] += step[r][h];
        step[r][h] = Doubles8{};
      }
  }
  out = tile;
}

Sum sum_at(const Tile& tile, int64_t row, int64_t column, int64_t blocks, double scale_max) {
  const auto at = [&](const Chains::Outputs& x) { return x[row][column / 8][column % 8]; };
  const int64_t steps = (blocks + kBlocksPerStep - 1) / kBlocksPerStep;
  Sum out{at(tile.exact), at(tile.chains[0].sum), {}};
  for (size_t i = 0; i < std::size(kSplits); ++i)
    out.lost[i] = at(tile.chains[i].path) * (0x1p-23 + 5 * 0x1p-35) + 5 * 0x1p-35 * scale_max * steps +
                  0x1p-24 * at(tile.chains[i].additions);
  return out;
}

// Bounds what wgmma may lose of one output, for a number of slices of K and for one chain or two. `added` has
// what each half of a k-tile adds to it, and `reach` the bounds W.
double lost_by_wgmma(std::span<const double> added, std::span<const double> reach, int slices, int groups) {
  constexpr double kStep = 0x1p-23 + 17 * 0x1p-25;
  constexpr int kSteps = 8;
  const auto k_tiles = static_cast<int64_t>(added.size()) / 2;
  double lost = 0, sum = 0;
  bool any = false;
  for (int64_t slice = 0; slice < slices; ++slice) {
    double chains[2] = {0, 0};
    const int64_t first = k_tiles * slice / slices * 2, last = k_tiles * (slice + 1) / slices * 2;
    for (int64_t i = first; i < last; ++i) {
      double& chain = chains[groups == 2 ? i % 2 : 0];
      lost += kSteps * kStep * (std::fabs(chain) + reach[i]);
      chain += added[i];
    }
    const double of_slice = chains[0] + chains[1];
    if (groups == 2) lost += 0x1p-24 * std::fabs(of_slice);
    sum += of_slice;
    if (any) lost += 0x1p-24 * std::fabs(sum);
    any = any || first < last;
  }
  return lost;
}

// Calls each(row, column, sums) for every output of A times each of `sides`, on several threads.
template <size_t kSides, class Each>
void for_each_output(const Operand& a, const Operand* const (&sides)[kSides], int64_t k, TensorCore core,
                     Each each) {
  if (k % kBlock != 0) throw std::invalid_argument("k is not a multiple of 16");
  const int64_t m = a.rows, n = sides[0]->rows, blocks = k / kBlock;
  const Unpacked left =
      unpack(a, 0, (m + kTileRows - 1) / kTileRows * kTileRows, k, 1, least_aligned(a.elements, Side::kA));

  // A thread takes 16 columns at a time.
  std::atomic<int64_t> next_column{0};
  const auto work = [&] {
    Tile tiles[kSides];
    const bool wgmma = core == TensorCore::kWgmma;
    const auto count = static_cast<size_t>(halves_of(blocks));
    // This stands for Terms[count] of each side: a vector of arrays cannot be filled. The clone of multiply
    // for AVX-512 stores whole registers, while by its type alone a Doubles8 would lie at any multiple of 16.
    struct alignas(sizeof(Doubles8)) Half {
      Terms terms;
    };
    std::vector<Half> halves(wgmma ? kSides * count : 0);
    std::vector<double> added(count), reach(count);
    for (int64_t column; (column = next_column.fetch_add(kTileCols)) < n;) {
      const int64_t width = std::min(kTileCols, n - column);
      std::vector<Unpacked> right;
      for (const Operand* side : sides)
        right.push_back(
            unpack(*side, column, width, k, kTileCols, least_aligned(a.elements, Side::kWeights)));
      for (int64_t row = 0; row < m; row += kTileRows) {
        std::fill(halves.begin(), halves.end(), Half{});
        for (size_t s = 0; s < kSides; ++s)
          multiply(&left.values[row * k], &left.scales[row * blocks], right[s].values.data(),
                   right[s].scales.data(), blocks, a.elements != Elements::kNvfp4, tiles[s],
                   wgmma ? &halves[s * count].terms : nullptr);
        for (int64_t r = 0; r < std::min(kTileRows, m - row); ++r)
          for (int64_t i = 0; i < width; ++i) {
            Sum sums[kSides];
            for (size_t s = 0; s < kSides; ++s) {
              sums[s] =
                  sum_at(tiles[s], r, i, blocks, static_cast<double>(left.scale_max) * right[s].scale_max);
              if (!wgmma) continue;
              for (size_t half = 0; half < count; ++half) {
                added[half] = halves[s * count + half].terms[r][i / 8][i % 8];
                reach[half] = left.norms[(row + r) * count + half] * right[s].norms[i * count + half];
              }
              for (size_t split = 0; split < std::size(kSplits); ++split)
                sums[s].lost[split] = std::max(lost_by_wgmma(added, reach, kSplits[split], 1),
                                               lost_by_wgmma(added, reach, kSplits[split], 2));
            }
            each(row + r, column + i, sums);
          }
      }
    }
  };
  std::vector<std::thread> helpers;
  const int64_t threads =
      std::min<int64_t>(std::thread::hardware_concurrency(), (n + kTileCols - 1) / kTileCols);
  for (int64_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

size_t split_index(int split_k) {
  const int* const found = std::find(std::begin(kSplits), std::end(kSplits), split_k);
  if (found == std::end(kSplits))
    throw std::invalid_argument("no bound is derived for " + std::to_string(split_k) + " slices of K");
  return static_cast<size_t>(found - kSplits);
}

namespace {

constexpr double u = 0x1p-24, kSmallest = 0x1p-126;
constexpr double kSecondOrder = 1 + 1.0 / 64;

}  // namespace

// Applies the derivation at the top of the file to one output.
double error_bound(const Activation& activation, double g, double up, double dg, double du) {
  const double f = std::fabs(activation.f(g)), h = std::fabs(activation.h(up));
  dg += 2 * u * std::fabs(g);
  du += 2 * u * std::fabs(up);
  const double dh = activation.h_slope(up, du) * du;
  const double bound =
      activation.slope(g, dg) * dg * (h + dh) + f * dh + activation.rounding(g) * f * (h + dh);
  return bound * kSecondOrder + kSmallest * (1 + std::fabs(g) * h);
}

Product product(const Operand& a, const Operand& b, int64_t k, TensorCore core) {
  Product out{a.rows, b.rows, std::vector<Sum>(a.rows * b.rows)};
  if (k == 0) return out;
  for_each_output<1>(a, {&b}, k, core, [&](int64_t row, int64_t column, const Sum(&sums)[1]) {
    out.sums[row * out.n + column] = sums[0];
  });
  return out;
}

namespace {

// One of gate and up: the sum times its alpha and the factor of the row, plus the bias; and what the float
// arithmetic of both may lose, beside the two roundings that error_bound takes from the value.
struct Scaled {
  double value, tensor_core;
  double lost[std::size(kSplits)];
};
Scaled scaled(const Sum& sum, double alpha, const float* row_scale, const float* bias) {
  const double factor = row_scale ? alpha * *row_scale : alpha, b = bias ? *bias : 0;
  const double x = factor * sum.exact;
  Scaled out{x + b, factor * sum.tensor_core + b, {}};
  const double more =
      (row_scale ? u * std::fabs(x) : 0) + (bias ? 2 * u * std::fabs(x) + u * std::fabs(out.value) : 0);
  for (size_t i = 0; i < std::size(kSplits); ++i) out.lost[i] = std::fabs(factor) * sum.lost[i] + more;
  return out;
}

// Returns the value of a row or a column, nullptr where there is none.
const float* at(std::span<const float> values, int64_t i) {
  return values.empty() ? nullptr : &values[static_cast<size_t>(i)];
}

Matrix zeros(int64_t m, int64_t n) {
  Matrix out{m, n, std::vector<double>(static_cast<size_t>(m * n)), {}};
  for (std::vector<float>& error : out.error) error.resize(out.c.size());
  return out;
}

}  // namespace

Matrix before_activation(const Operand& a, const Operand& b, int64_t k, float alpha,
                         std::span<const float> row_scale, std::span<const float> bias, TensorCore core) {
  Matrix out = zeros(a.rows, b.rows);
  if (k == 0) return out;
  for_each_output<1>(a, {&b}, k, core, [&](int64_t row, int64_t column, const Sum(&sums)[1]) {
    const Scaled x = scaled(sums[0], alpha, at(row_scale, row), at(bias, column));
    const int64_t index = row * out.n + column;
    out.c[index] = x.value;
    for (size_t i = 0; i < std::size(kSplits); ++i)
      out.error[i][index] =
          static_cast<float>((x.lost[i] + 2 * u * std::fabs(x.value)) * kSecondOrder + kSmallest);
  });
  return out;
}

DualGemm dual_gemm(const Operand& a, const Operand& b1, const Operand& b2, int64_t k, float alpha1,
                   float alpha2, const Activation& activation, const RowsAndColumns& terms, TensorCore core) {
  if (b1.rows != b2.rows) throw std::invalid_argument("B1 and B2 have different numbers of rows");
  DualGemm out{zeros(a.rows, b1.rows), std::vector<float>(static_cast<size_t>(a.rows * b1.rows))};
  if (k == 0) return out;  // empty sums: every output is zero
  for_each_output<2>(a, {&b1, &b2}, k, core, [&](int64_t row, int64_t column, const Sum(&sums)[2]) {
    const float* const factor = at(terms.row_scale, row);
    const Scaled g = scaled(sums[0], alpha1, factor, at(terms.bias1, column));
    const Scaled h = scaled(sums[1], alpha2, factor, at(terms.bias2, column));
    const float* const weight = at(terms.c_row_scale, row);
    const double w = weight ? *weight : 1;
    const int64_t index = row * out.n + column;
    out.c[index] = activation.f(g.value) * activation.h(h.value) * w;
    out.tensor_core[index] =
        static_cast<float>(activation.f(g.tensor_core) * activation.h(h.tensor_core) * w);
    const double more = weight ? u * std::fabs(out.c[index]) + kSmallest : 0;
    for (size_t i = 0; i < std::size(kSplits); ++i)
      out.error[i][index] = static_cast<float>(
          std::fabs(w) * error_bound(activation, g.value, h.value, g.lost[i], h.lost[i]) + more);
  });
  return out;
}

// The bound is that of f(g) * 1. Its product by 1 costs nothing, which is a little less than error_bound
// allows.
DualGemm one_product(const Operand& a, const Operand& b, int64_t k, float alpha, const Activation& activation,
                     const RowsAndColumns& terms, std::span<const float> c_add, TensorCore core) {
  DualGemm out{zeros(a.rows, b.rows), std::vector<float>(static_cast<size_t>(a.rows * b.rows))};
  if (k == 0) return out;
  for_each_output<1>(a, {&b}, k, core, [&](int64_t row, int64_t column, const Sum(&sums)[1]) {
    const Scaled x = scaled(sums[0], alpha, at(terms.row_scale, row), at(terms.bias1, column));
    const float* const weight = at(terms.c_row_scale, row);
    const int64_t index = row * out.n + column;
    const double w = weight ? *weight : 1, added = c_add.empty() ? 0 : c_add[static_cast<size_t>(index)];
    const double weighed = activation.f(x.value) * w;
    out.c[index] = weighed + added;
    out.tensor_core[index] = static_cast<float>(activation.f(x.tensor_core) * w + added);
    const double more = (weight ? u * std::fabs(weighed) + kSmallest : 0) +
                        (c_add.empty() ? 0 : u * std::fabs(out.c[index]) + kSmallest);
    for (size_t i = 0; i < std::size(kSplits); ++i)
      out.error[i][index] = static_cast<float>(
          (std::fabs(w) * error_bound(activation, x.value, 1, x.lost[i], 0) + more) * kSecondOrder);
  });
  return out;
}

}  // namespace ref
