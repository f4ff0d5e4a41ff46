// sums_fp8.cpp -- see sums_fp8.h.
#include "ref/sums_fp8.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "ref/formats.h"

namespace ref {
namespace {

constexpr int64_t kStep = kMxBlock;                       // elements of K of one wgmma
constexpr int64_t kStepsPerHalf = 4, kStepsPerKTile = 8;  // K is split between k-tiles of 256 elements
constexpr double kLeastPower = 0x1p-60;                   // stands for that of a step in which all is zero

using Floats16 = float __attribute__((vector_size(64)));
using Floats8 = float __attribute__((vector_size(32)));
using Doubles8 = double __attribute__((vector_size(64)));
using Bits8 = uint64_t __attribute__((vector_size(64)));
using FloatsInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

// What one step brings to 16 outputs.
struct alignas(64) Step {
  Floats16 products[kStep];
  Floats16 power;   // the largest by which a product is aligned
  Doubles8 sum[2];  // of the products, exact
};

// A sum so far, exact, and a bound of how far that of the tensor core is from it. Where nothing can have been
// lost, they are the same.
struct Chain {
  Doubles8 sum[2] = {}, lost[2] = {};
};

// These become part of every clone of the functions below. A vector that a function returns would be passed
// otherwise in each of them.
[[gnu::always_inline]] inline void magnitude(const Doubles8& x, Doubles8& out) {
  const Bits8 no_sign = Bits8{} + ~(uint64_t{1} << 63);
  out = reinterpret_cast<Doubles8>(reinterpret_cast<Bits8>(x) & no_sign);
}
// The last place that is kept below the largest power of two no larger than x, or no larger than `least`.
[[gnu::always_inline]] inline void last_place(const Doubles8& x, const Doubles8& least, Doubles8& out) {
  const Bits8 exponent = Bits8{} + (uint64_t{0x7FF} << 52);
  const Doubles8 power = reinterpret_cast<Doubles8>(reinterpret_cast<Bits8>(x) & exponent);
  out = 0x1p-13 * (power < least ? least : power);
}
[[gnu::always_inline]] inline void widen(const Floats16& x, Doubles8 (&out)[2]) {
  const Floats8 low = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  const Floats8 high = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  out[0] = __builtin_convertvector(low, Doubles8);
  out[1] = __builtin_convertvector(high, Doubles8);
}
[[gnu::always_inline]] inline void narrow(const Doubles8 (&x)[2], Floats16& out) {
  const Floats8 low = __builtin_convertvector(x[0], Floats8), high = __builtin_convertvector(x[1], Floats8);
  out = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// What cutting x, which is not negative, to a multiple of `place` loses.
[[gnu::always_inline]] inline void rest(const Doubles8& x, const Doubles8& place, Doubles8& out) {
  const Doubles8 units = x / place, nearest = (units + 0x1p52) - 0x1p52;
  out = (units - (nearest > units ? nearest - 1 : nearest)) * place;
}

// Here a is 32 values of a row, and b 32 values of each of 16 rows, interleaved; their powers likewise.
__attribute__((target_clones("avx512f", "fma", "default"))) void multiply(const float* a,
                                                                          const float* a_powers,
                                                                          const float* b,
                                                                          const float* b_powers, Step& step) {
  Doubles8 sum[2] = {};
  Floats16 power = {};
  for (int64_t i = 0; i < kStep; ++i) {
    const Floats16 product = a[i] * *reinterpret_cast<const FloatsInMemory*>(b + i * kTileCols);
    const Floats16 aligned = a_powers[i] * *reinterpret_cast<const FloatsInMemory*>(b_powers + i * kTileCols);
    step.products[i] = product;
    power = power < aligned ? aligned : power;
    Doubles8 wide[2];
    widen(product, wide);
    for (int h = 0; h < 2; ++h) sum[h] += wide[h];
  }
  step.power = power;
  for (int h = 0; h < 2; ++h) step.sum[h] = sum[h];
}

// Replaces what is lost of a known sum by a bound, where something has been lost of it before.
[[gnu::always_inline]] inline void if_lost(const Doubles8& lost, const Doubles8& bound, Doubles8& out) {
  out = lost == 0 ? out : bound;
}

// Adds one step to a chain.
__attribute__((target_clones("avx512f", "fma", "default"))) void follow(const Step& step, Chain& chain) {
  const Doubles8 none = {}, least = Doubles8{} + kLeastPower;
  Doubles8 powers[2], before[2], place[2];
  widen(step.power, powers);
  for (int h = 0; h < 2; ++h) {
    magnitude(chain.sum[h], before[h]);
    last_place(before[h] + chain.lost[h], powers[h] < least ? least : powers[h], place[h]);
  }
  Floats16 places, cut = {};  // of the products, in places
  narrow(place, places);
  const Floats16 per_place = 1 / places;
  for (const Floats16& product : step.products) {
    const Floats16 units = (product < 0 ? -product : product) * per_place;
    const Floats16 nearest = (units + 0x1p23f) - 0x1p23f;
    cut += units - (nearest > units ? nearest - 1 : nearest);
  }
  Doubles8 cuts[2];
  widen(cut, cuts);
  for (int h = 0; h < 2; ++h) {
    const Doubles8 before_step = chain.lost[h];
    Doubles8 after, last, of_sum, of_result;
    rest(before[h], place[h], of_sum);
    // A sum of 13 places loses some only if the products are aligned above it.
    if_lost(before_step, before[h] - before_step < powers[h] ? place[h] : none, of_sum);
    const Doubles8 lost = before_step + of_sum + cuts[h] * place[h];
    chain.sum[h] += step.sum[h];
    magnitude(chain.sum[h], after);
    last_place(after + lost, least, last);
    rest(after, last, of_result);
    if_lost(lost, last, of_result);
    chain.lost[h] = lost + of_result;
  }
}

// Adds `part` to a sum in float, which rounds if there is `any` before.
__attribute__((target_clones("avx512f", "fma", "default"))) void add_part(const Chain& part, bool any,
                                                                          Chain& total) {
  for (int h = 0; h < 2; ++h) {
    total.sum[h] += part.sum[h];
    total.lost[h] += part.lost[h];
    const Doubles8 rounded =
        __builtin_convertvector(__builtin_convertvector(total.sum[h], Floats8), Doubles8);
    Doubles8 most, rounding = {};
    magnitude(total.sum[h], most);
    const auto exact = (total.lost[h] == 0) & (rounded == total.sum[h]);
    if (any) rounding = exact ? rounding : 0x1p-24 * (most + total.lost[h]);
    total.lost[h] += rounding;
  }
}

// Returns the bounds of 16 outputs whose K is in `slices` parts of k-tiles, each in one chain, or with a
// chain for each half of its k-tiles.
void lost_of(const std::vector<Step>& steps, int64_t slices, int64_t groups, double* out) {
  const auto count = static_cast<int64_t>(steps.size());
  const int64_t k_tiles = (count + kStepsPerKTile - 1) / kStepsPerKTile;
  Chain total;
  for (int64_t slice = 0; slice < slices; ++slice) {
    Chain chains[2];
    const int64_t end = std::min(count, k_tiles * (slice + 1) / slices * kStepsPerKTile);
    for (int64_t i = k_tiles * slice / slices * kStepsPerKTile; i < end; ++i)
      follow(steps[static_cast<size_t>(i)], chains[i / kStepsPerHalf % groups]);
    for (int64_t group = 0; group < groups; ++group) add_part(chains[group], group > 0 || slice > 0, total);
  }
  for (int64_t i = 0; i < kTileCols; ++i) out[i] = total.lost[i / 8][i % 8];
}

// The power of two of an e4m3 number's exponent field, in which a subnormal number has that of the smallest
// normal one.
float aligned_power(double x) {
  if (x == 0) return 0;
  return static_cast<float>(std::isnan(x) ? 0x1p8 : std::exp2(std::max(std::ilogb(x), -6)));
}

UnpackedFp8 unpack_a(const Operand& a, int64_t k) {
  UnpackedFp8 out;
  for (int64_t row = 0; row < a.rows; ++row)
    for (int64_t i = 0; i < k; ++i) {
      const double x = e4m3_decode(a.codes[row * a.pitch + i]);
      out.values.push_back(static_cast<float>(x));
      out.powers.push_back(aligned_power(x));
    }
  return out;
}

// Rows that do not exist are zeros.
UnpackedFp8 unpack_b(const Operand& b, int64_t first_row, int64_t k) {
  struct Weights {
    float values[256][16], powers[256][16];
    Weights() {
      for (int factor = 0; factor < 256; ++factor)
        for (int code = 0; code < 16; ++code) {
          const double x = mxfp4_weight(static_cast<uint8_t>(code), static_cast<uint8_t>(factor));
          values[factor][code] = static_cast<float>(x);
          powers[factor][code] = aligned_power(x);
        }
    }
  };
  static const Weights all;
  UnpackedFp8 out;
  out.values.resize(static_cast<size_t>(k * kTileCols));
  out.powers.resize(out.values.size());
  for (int64_t row = 0; row < std::min(kTileCols, b.rows - first_row); ++row)
    for (int64_t i = 0; i < k; ++i) {
      const uint8_t code = nibble(b.codes + (first_row + row) * b.pitch, i);
      const uint8_t factor = b.scales[mx_sf_offset(k, first_row + row, i / kMxBlock)];
      out.values[i * kTileCols + row] = all.values[factor][code];
      out.powers[i * kTileCols + row] = all.powers[factor][code];
    }
  return out;
}

}  // namespace

Fp8Rows::Fp8Rows(const Operand& a, std::span<const Operand> sides, int64_t k, const Wanted& wanted)
    : a_(a), sides_(sides), k_(k), wanted_(wanted), left_(unpack_a(a, k)) {
  if (k % kMxBlock != 0) throw std::invalid_argument("k is not a multiple of 32");
}

void Fp8Rows::of_columns(int64_t column, const EachRow& each) const {
  const int64_t width = std::min(kTileCols, sides_[0].rows - column);
  std::vector<UnpackedFp8> right;
  for (const Operand& side : sides_) right.push_back(unpack_b(side, column, k_));
  std::vector<Step> steps(static_cast<size_t>(k_ / kStep));
  std::vector<RowOfSums> sums(sides_.size());
  for (int64_t row = 0; row < a_.rows; ++row) {
    for (size_t s = 0; s < sides_.size(); ++s) {
      Doubles8 sum[2] = {};
      for (int64_t i = 0; i < k_ / kStep; ++i) {
        const int64_t left = row * k_ + i * kStep, of_b = i * kStep * kTileCols;
        multiply(&left_.values[left], &left_.powers[left], &right[s].values[of_b], &right[s].powers[of_b],
                 steps[i]);
        for (int h = 0; h < 2; ++h) sum[h] += steps[i].sum[h];
      }
      const auto power = [&](int64_t i) {
        return sides_[s].exponents && i < width ? std::ldexp(1.0, sides_[s].exponents[column + i]) : 1;
      };
      for (int64_t i = 0; i < kTileCols; ++i)
        sums[s].exact[i] = sums[s].tensor_core[i] = sum[i / 8][i % 8] * power(i);
      // No kernel for FP8 divides K in any way: a bound of nothing passes nothing.
      std::fill_n(sums[s].lost[split_index(kAnyParts)], kTileCols, 0.0);
      for (const int slices : wanted_.splits) {
        if (slices == kAnyParts) continue;
        double one[kTileCols], two[kTileCols];
        lost_of(steps, slices, 1, one);
        lost_of(steps, slices, 2, two);
        for (int64_t i = 0; i < kTileCols; ++i)
          sums[s].lost[split_index(slices)][i] = (two[i] <= one[i] ? one[i] : two[i]) * power(i);
      }
    }
    each(row, column, width, sums);
  }
}

}  // namespace ref
