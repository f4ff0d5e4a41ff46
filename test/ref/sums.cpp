// sums.cpp -- see sums.h.
#include "ref/sums.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ref/formats.h"
#include "ref/sums_fp8.h"

namespace ref {
namespace {

constexpr int64_t kBlocksPerStep = 4;  // one tcgen05.mma: 64 elements
// A thread is worth its start for so many products.
constexpr int64_t kProductsPerThread = int64_t{1} << 24;

using Floats16 = float __attribute__((vector_size(64)));
using Floats8 = float __attribute__((vector_size(32)));
using Doubles8 = double __attribute__((vector_size(64)));
using Bits8 = uint64_t __attribute__((vector_size(64)));
using FloatsInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));
using DoublesInMemory = double __attribute__((vector_size(64), aligned(8), may_alias));

using Terms = Doubles8[kTileRows][2];  // one number for each of 4 x 16 outputs

// This follows the sums of 4 x 16 outputs, for one number of slices.
struct Chains {
  int slices = 1, slice = 0;
  bool any = false;      // a slice with steps is done
  Terms chain, path;     // of the slice at hand, as of the last step; of all so far
  Terms sum, additions;  // of the slices done; of |sum| after each but the first

  void start(int of_slices) {
    slices = of_slices;
    slice = 0;
    any = false;
    for (Terms* terms : {&chain, &path, &sum, &additions})
      for (auto& row : *terms) row[0] = row[1] = Doubles8{};
  }
  // Returns the block after the current slice.
  int64_t end(int64_t blocks) const {
    const int64_t k_tiles = (blocks + kBlocksPerKTile - 1) / kBlocksPerKTile;
    return std::min(blocks, k_tiles * (slice + 1) / slices * kBlocksPerKTile);
  }
};

// The clones of multiply for AVX-512 store whole registers.
struct alignas(sizeof(Doubles8)) Tile {
  Terms exact;
  size_t divisions = 0;  // of which chains are followed
  Chains chains[std::size(kSplits)];
};

// These become part of every clone of multiply.
[[gnu::always_inline]] inline void add_magnitude(Doubles8& sum, const Doubles8& x, double factor = 1) {
  const Bits8 no_sign = Bits8{} + ~(uint64_t{1} << 63);
  sum += factor * reinterpret_cast<Doubles8>(reinterpret_cast<Bits8>(x) & no_sign);
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

// Returns the products of a block, added in double where their sum is not exact in float.
[[gnu::always_inline]] inline void multiply_block(const float* a, int64_t k, const float* b, bool wide,
                                                  Floats16 (&dot)[kTileRows], Terms& exact) {
  for (int64_t i = 0; i < kBlock; ++i) {
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
}

// Follows the sums of 4 x 16 outputs in the chains that `tile` has been started with. If `halves` is not
// null, it gets what each half of a k-tile adds to the outputs, [half][row][column]; it starts as zeros.
// Where the sum of a block is not exact in float, `wide` asks for double. Here a is 4 rows of `blocks` *
// 16 values, one after the other, and b is 16 rows interleaved; scale factors likewise.
__attribute__((target_clones("avx512f", "fma", "default"))) void multiply(
    const float* a, const float* a_scales, const float* b, const float* b_scales, int64_t blocks, bool wide,
    Tile& tile, double* halves) {
  const int64_t k = blocks * kBlock;
  Terms step = {}, sum = {};
  for (int64_t block = 0; block < blocks; ++block) {
    Floats16 dot[kTileRows] = {};
    Terms exact = {};
    multiply_block(a + block * kBlock, k, b + block * kBlock * kTileCols, wide, dot, exact);
    const Floats16 scales = *reinterpret_cast<const FloatsInMemory*>(b_scales + block * kTileCols);
    for (int64_t r = 0; r < kTileRows; ++r) {
      const Floats16 both = a_scales[r * blocks + block] * scales;
      Doubles8 terms[2];
      widen(wide ? both : dot[r] * both, terms);
      for (int h = 0; h < 2; ++h) {
        if (wide) terms[h] *= exact[r][h];
        step[r][h] += terms[h];
        if (halves)
          *reinterpret_cast<DoublesInMemory*>(halves + ((half_of(block) * kTileRows + r) * 2 + h) * 8) +=
              terms[h];
      }
    }
    const int64_t next = block + 1;
    if (next % kBlocksPerStep != 0 && next != blocks) continue;
    for (size_t i = 0; i < tile.divisions; ++i) add_step(tile.chains[i], step, next, blocks);
    for (int64_t r = 0; r < kTileRows; ++r)
      for (int h = 0; h < 2; ++h) {
        sum[r][h] += step[r][h];
        step[r][h] = Doubles8{};
      }
  }
  for (int64_t r = 0; r < kTileRows; ++r)
    for (int h = 0; h < 2; ++h) tile.exact[r][h] = sum[r][h];
}

// Bounds what wgmma may lose of the 16 outputs of a row, for a number of slices of K, in one chain or two.
// `added` has what each half of a k-tile adds to them, 64 numbers apart; the products of `left`, one for each
// half, and `right`, 16, are the bounds W.
__attribute__((target_clones("avx512f", "fma", "default"))) void lost_by_wgmma(
    const double* added, const double* left, const double* right, int64_t halves, int slices, double* out) {
  constexpr double kStep = 0x1p-23 + 17 * 0x1p-25;
  constexpr int kSteps = 8;
  const int64_t k_tiles = halves / 2;
  for (int h = 0; h < 2; ++h) {
    Doubles8 worst = {};
    for (const int groups : {1, 2}) {
      Doubles8 lost = {}, sum = {};
      bool any = false;
      for (int64_t slice = 0; slice < slices; ++slice) {
        Doubles8 chains[2] = {};
        const int64_t first = k_tiles * slice / slices * 2, last = k_tiles * (slice + 1) / slices * 2;
        for (int64_t i = first; i < last; ++i) {
          Doubles8& chain = chains[groups == 2 ? i % 2 : 0];
          const Doubles8 reach =
              left[i] * *reinterpret_cast<const DoublesInMemory*>(right + i * kTileCols + h * 8);
          lost += kSteps * kStep * reach;
          add_magnitude(lost, chain, kSteps * kStep);
          chain += *reinterpret_cast<const DoublesInMemory*>(added + i * kTileRows * kTileCols + h * 8);
        }
        const Doubles8 of_slice = chains[0] + chains[1];
        if (groups == 2) add_magnitude(lost, of_slice, 0x1p-24);
        sum += of_slice;
        if (any) add_magnitude(lost, sum, 0x1p-24);
        any = any || first < last;
      }
      worst = groups == 1 ? lost : worst < lost ? lost : worst;
    }
    *reinterpret_cast<DoublesInMemory*>(out + h * 8) = worst;
  }
}

// Does the same where the k-tiles are divided in any way. A chain that is under way at some half has begun
// at a k-tile before it, so that it lies between the sum so far less the largest, and less the smallest, of
// the sums at which it may have begun. Each k-tile but the first may begin a part, which takes an addition.
__attribute__((target_clones("avx512f", "fma", "default"))) void lost_in_any_parts(
    const double* added, const double* left, const double* right, int64_t halves, double* out) {
  constexpr double kStep = 0x1p-23 + 17 * 0x1p-25;
  constexpr int kSteps = 8;
  for (int h = 0; h < 2; ++h) {
    Doubles8 lost = {}, sum = {}, low = {}, high = {};
    for (int64_t i = 0; i < halves; ++i) {
      if (i % 2 == 0) {
        low = sum < low ? sum : low;
        high = sum > high ? sum : high;
        if (i > 0) add_magnitude(lost, sum, 0x1p-24);
      }
      const Doubles8 reach =
          left[i] * *reinterpret_cast<const DoublesInMemory*>(right + i * kTileCols + h * 8);
      const Doubles8 above = sum - low, below = high - sum;
      lost += kSteps * kStep * (reach + (above > below ? above : below));
      sum += *reinterpret_cast<const DoublesInMemory*>(added + i * kTileRows * kTileCols + h * 8);
    }
    add_magnitude(lost, sum, 0x1p-24);
    *reinterpret_cast<DoublesInMemory*>(out + h * 8) = lost;
  }
}

// Computes the rows of 16 outputs of one product after the other.
class Rows {
 public:
  Rows(const Operand& a, std::span<const Operand> sides, int64_t k, TensorCore core, const Wanted& wanted)
      : a_(a),
        sides_(sides),
        k_(k),
        blocks_(k / kBlock),
        wgmma_(core == TensorCore::kWgmma),
        wanted_(wanted),
        left_(unpack_a(a, k, norms())) {}

  // Calls each for all rows of the columns from `column` on.
  void of_columns(int64_t column, const EachRow& each) const {
    const int64_t width = std::min(kTileCols, sides_[0].rows - column);
    const auto of_tile = static_cast<size_t>(halves_of(blocks_) * kTileRows * kTileCols);
    std::vector<double> halves;
    std::vector<Unpacked> right;
    for (const Operand& side : sides_) right.push_back(unpack_b(side, column, k_, a_.elements, norms()));
    std::vector<RowOfSums> sums(sides_.size() * kTileRows);
    std::vector<RowOfSums> of_row(sides_.size());
    Tile tile;
    for (int64_t row = 0; row < a_.rows; row += kTileRows) {
      for (size_t s = 0; s < sides_.size(); ++s) {
        start(tile);
        if (wgmma_) halves.assign(of_tile, 0);
        multiply(&left_.values[row * k_], &left_.scales[row * blocks_], right[s].values.data(),
                 right[s].scales.data(), blocks_, a_.elements != Elements::kNvfp4, tile,
                 wgmma_ ? halves.data() : nullptr);
        for (int64_t r = 0; r < std::min(kTileRows, a_.rows - row); ++r)
          take(tile, row, r, right[s], halves, sums[r * sides_.size() + s]);
      }
      for (int64_t r = 0; r < std::min(kTileRows, a_.rows - row); ++r)
        each(row + r, column, width, {&sums[r * sides_.size()], sides_.size()});
    }
  }

 private:
  Norms norms() const { return wgmma_ ? Norms::kOfWgmma : Norms::kNone; }

  // Of wgmma chains are not followed: its bound goes by norms.
  void start(Tile& tile) const {
    tile.divisions = 0;
    if (wanted_.tensor_core) tile.chains[tile.divisions++].start(1);
    if (wgmma_) return;
    for (const int slices : wanted_.splits)
      if (slices != kAnyParts && (slices != 1 || !wanted_.tensor_core))
        tile.chains[tile.divisions++].start(slices);
  }

  void take(const Tile& tile, int64_t row, int64_t r, const Unpacked& right,
            const std::vector<double>& halves, RowOfSums& out) const {
    const auto put = [r](const Terms& from, double* to) {
      for (int64_t i = 0; i < kTileCols; ++i) to[i] = from[r][i / 8][i % 8];
    };
    put(tile.exact, out.exact);
    if (wanted_.tensor_core) put(tile.chains[0].sum, out.tensor_core);
    if (wgmma_) {
      const int64_t count = halves_of(blocks_);
      const double *const added = &halves[r * kTileCols], *const norms = &left_.norms[(row + r) * count];
      for (const int slices : wanted_.splits) {
        double* const lost = out.lost[split_index(slices)];
        if (slices == kAnyParts) lost_in_any_parts(added, norms, right.norms.data(), count, lost);
        else lost_by_wgmma(added, norms, right.norms.data(), count, slices, lost);
      }
      return;
    }
    // No kernel divides so here: a bound of nothing passes nothing, and is the largest of no set of bounds.
    std::fill_n(out.lost[split_index(kAnyParts)], kTileCols, 0.0);
    const int64_t steps = (blocks_ + kBlocksPerStep - 1) / kBlocksPerStep;
    const double aligned = 5 * 0x1p-35 * (static_cast<double>(left_.scale_max) * right.scale_max) * steps;
    for (size_t division = 0; division < tile.divisions; ++division) {
      const Chains& chains = tile.chains[division];
      double path[kTileCols], additions[kTileCols];
      put(chains.path, path);
      put(chains.additions, additions);
      double* const lost = out.lost[split_index(chains.slices)];
      for (int64_t i = 0; i < kTileCols; ++i)
        lost[i] = path[i] * (0x1p-23 + 5 * 0x1p-35) + aligned + 0x1p-24 * additions[i];
    }
  }

  const Operand& a_;
  std::span<const Operand> sides_;
  int64_t k_, blocks_;
  bool wgmma_;
  const Wanted& wanted_;
  Unpacked left_;
};

}  // namespace

// Calls each for all rows of all columns. A thread takes 16 columns at a time.
template <class AllRows>
static void for_all_columns(const AllRows& rows, int64_t n, int64_t products, const EachRow& each) {
  std::atomic<int64_t> next_column{0};
  const auto work = [&] {
    for (int64_t column; (column = next_column.fetch_add(kTileCols)) < n;) rows.of_columns(column, each);
  };
  std::vector<std::thread> helpers;
  const int64_t threads =
      std::min<int64_t>(std::thread::hardware_concurrency(), products / kProductsPerThread);
  for (int64_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

void for_each_row(const Operand& a, std::span<const Operand> sides, int64_t k, TensorCore core,
                  const Wanted& wanted, const EachRow& each) {
  if (k % kBlock != 0) throw std::invalid_argument("k is not a multiple of 16");
  const bool fp8 = a.elements == Elements::kE4m3;
  for (const Operand& side : sides)
    if ((side.elements == Elements::kMxfp4) != fp8)
      throw std::invalid_argument("FP8 and MXFP4 need each other");
  const int64_t n = sides[0].rows, products = a.rows * n * k * static_cast<int64_t>(sides.size());
  if (fp8) for_all_columns(Fp8Rows(a, sides, k, wanted), n, products, each);
  else for_all_columns(Rows(a, sides, k, core, wanted), n, products, each);
}

}  // namespace ref
