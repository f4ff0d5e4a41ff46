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
// Both halves of the k-tiles may be one chain, or each a chain of its own whose sums are added in float:
// the larger of both bounds holds for either. Slices of K are those of above. With stream-K the k-tiles of
// an output are divided in ways that depend on all outputs, so that its bound holds for every division of
// them (kAnyParts).
//
// An A in FP8 and weights in MXFP4 come in the order of memory, and a wgmma of e4m3 takes 32 elements of K.
// The weights are those that the public header says, numbers of e4m3, whose products with A are added
// exactly here. In the tensor core 32 products and the accumulator are aligned to the largest exponent E
// among them, in which a subnormal number has the field of the smallest normal one, 2^-6, and a zero has no
// part. They are cut to multiples of 2^(E-13), toward zero, and added exactly; and the sum keeps 13
// fractional bits, cut toward zero. So an accumulator has 13 fractional bits before and after each step.
// Where c_t is the exact sum and e_t the bound so far, that of the tensor core is at most |c_t| + e_t, so
// that E is at most the E* of this number and of the products. A product p loses its rest modulo 2^(E-13),
// which is no larger than that modulo 2^(E*-13): products have eight significant bits, and most lose
// nothing. The accumulator loses less than a place, and nothing where its exponent is E. So a step loses
// less than
//     sum of (|p| mod 2^(E*-13))
//     + 2^(P-13) unless |c_t-1| - e_t-1 >= 2^P, where P is the largest exponent of the products
//     + 2^-13 of the power of two of |c_t| + e_t
// While e is zero the accumulator is known, and what is cut of it is counted exactly. So sums of small
// integers have a bound of zero. As above, the halves of k-tiles, which are 128 neighbouring elements here,
// may have chains of their own, and slices of K are added in float. A power of two of a row of B multiplies
// a sum and its bound.
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
#include <cmath>
#include <stdexcept>
#include <string>

#include "ref/sums.h"

namespace ref {
namespace {

constexpr double u = 0x1p-24, kSmallest = 0x1p-126;
constexpr double kSecondOrder = 1 + 1.0 / 64;

// Applies the derivation at the top of the file to one output, for any number of divisions of K.
class ErrorBound {
 public:
  ErrorBound(const Activation& activation, double g, double up)
      : f(activation.f(g)),
        h(activation.h(up)),
        activation_(activation),
        g_(g),
        up_(up),
        rounding_(activation.rounding(g)) {}

  double of(double dg, double du) const {
    const double f_size = std::fabs(f), h_size = std::fabs(h);
    dg += 2 * u * std::fabs(g_);
    du += 2 * u * std::fabs(up_);
    const double dh = activation_.h_slope(up_, du) * du;
    const double bound =
        activation_.slope(g_, dg) * dg * (h_size + dh) + f_size * dh + rounding_ * f_size * (h_size + dh);
    return bound * kSecondOrder + kSmallest * (1 + std::fabs(g_) * h_size);
  }

  const double f, h;

 private:
  const Activation& activation_;
  double g_, up_, rounding_;
};

}  // namespace

size_t split_index(int split_k) {
  const int* const found = std::find(std::begin(kSplits), std::end(kSplits), split_k);
  if (found == std::end(kSplits))
    throw std::invalid_argument("no bound is derived for " + std::to_string(split_k) + " slices of K");
  return static_cast<size_t>(found - kSplits);
}

double error_bound(const Activation& activation, double g, double up, double dg, double du) {
  return ErrorBound(activation, g, up).of(dg, du);
}

Product product(const Operand& a, const Operand& b, int64_t k, TensorCore core) {
  Product out{a.rows, b.rows, std::vector<Sum>(static_cast<size_t>(a.rows * b.rows))};
  if (k == 0) return out;
  for_each_row(a, {&b, 1}, k, core, {},
               [&](int64_t row, int64_t column, int64_t width, std::span<const RowOfSums> sums) {
                 for (int64_t i = 0; i < width; ++i) out.sums[row * out.n + column + i] = sums[0].at(i);
               });
  return out;
}

namespace {

// One of gate and up: the sum times its alpha and the factor of the row, plus the bias; and what the float
// arithmetic of both may lose, beside the two roundings that ErrorBound takes from the value.
class Scaled {
 public:
  Scaled(const RowOfSums& sums, int64_t i, double alpha, const float* row_scale, const float* bias)
      : sums_(sums), i_(i), factor_(row_scale ? alpha * *row_scale : alpha), bias_(bias ? *bias : 0) {
    const double x = factor_ * sums.exact[i];
    value = x + bias_;
    more_ = (row_scale ? u * std::fabs(x) : 0) + (bias ? 2 * u * std::fabs(x) + u * std::fabs(value) : 0);
  }

  double value;
  double tensor_core() const { return factor_ * sums_.tensor_core[i_] + bias_; }
  double lost(size_t split) const { return std::fabs(factor_) * sums_.lost[split][i_] + more_; }

 private:
  const RowOfSums& sums_;
  int64_t i_;
  double factor_, bias_, more_;
};

// Returns the value of a row or a column, nullptr where there is none.
const float* at(std::span<const float> values, int64_t i) {
  return values.empty() ? nullptr : &values[static_cast<size_t>(i)];
}

// Returns a matrix of zeros with the bounds that are asked for.
Matrix zeros(int64_t m, int64_t n, const Wanted& wanted) {
  Matrix out{m, n, std::vector<double>(static_cast<size_t>(m * n)), {}};
  for (const int split : wanted.splits) out.error[split_index(split)].resize(out.c.size());
  return out;
}

DualGemm zeros_of_all(int64_t m, int64_t n, const Wanted& wanted) {
  if (wanted.gate) *wanted.gate = zeros(m, n, wanted);
  if (wanted.up) *wanted.up = zeros(m, n, wanted);
  return {zeros(m, n, wanted), std::vector<float>(wanted.tensor_core ? static_cast<size_t>(m * n) : 0)};
}

void put_before(Matrix* to, int64_t index, const Scaled& x, const Wanted& wanted) {
  if (!to) return;
  to->c[index] = x.value;
  for (const int slices : wanted.splits) {
    const size_t split = split_index(slices);
    to->error[split][index] =
        static_cast<float>((x.lost(split) + 2 * u * std::fabs(x.value)) * kSecondOrder + kSmallest);
  }
}

}  // namespace

DualGemm dual_gemm(const Operand& a, const Operand& b1, const Operand& b2, int64_t k, float alpha1,
                   float alpha2, const Activation& activation, const RowsAndColumns& terms, TensorCore core,
                   const Wanted& wanted) {
  if (b1.rows != b2.rows) throw std::invalid_argument("B1 and B2 have different numbers of rows");
  DualGemm out = zeros_of_all(a.rows, b1.rows, wanted);
  if (k == 0) return out;  // empty sums: every output is zero
  const auto put = [&](int64_t row, int64_t column, const Scaled& g, const Scaled& h) {
    const float* const weight = at(terms.c_row_scale, row);
    const double w = weight ? *weight : 1;
    const int64_t index = row * out.n + column;
    const ErrorBound bound(activation, g.value, h.value);
    out.c[index] = bound.f * bound.h * w;
    if (wanted.tensor_core)
      out.tensor_core[index] =
          static_cast<float>(activation.f(g.tensor_core()) * activation.h(h.tensor_core()) * w);
    const double more = weight ? u * std::fabs(out.c[index]) + kSmallest : 0;
    for (const int slices : wanted.splits) {
      const size_t split = split_index(slices);
      out.error[split][index] =
          static_cast<float>(std::fabs(w) * bound.of(g.lost(split), h.lost(split)) + more);
    }
    put_before(wanted.gate, index, g, wanted);
    put_before(wanted.up, index, h, wanted);
  };
  const Operand sides[] = {b1, b2};
  for_each_row(a, sides, k, core, wanted,
               [&](int64_t row, int64_t column, int64_t width, std::span<const RowOfSums> sums) {
                 const float* const factor = at(terms.row_scale, row);
                 for (int64_t i = 0; i < width; ++i)
                   put(row, column + i, Scaled(sums[0], i, alpha1, factor, at(terms.bias1, column + i)),
                       Scaled(sums[1], i, alpha2, factor, at(terms.bias2, column + i)));
               });
  return out;
}

// The bound is that of f(g) * 1. Its product by 1 costs nothing, which is a little less than ErrorBound
// allows.
DualGemm one_product(const Operand& a, const Operand& b, int64_t k, float alpha, const Activation& activation,
                     const RowsAndColumns& terms, std::span<const float> c_add, TensorCore core,
                     const Wanted& wanted) {
  DualGemm out = zeros_of_all(a.rows, b.rows, wanted);
  if (k == 0) return out;
  const auto put = [&](int64_t row, int64_t column, const Scaled& x) {
    const float* const weight = at(terms.c_row_scale, row);
    const int64_t index = row * out.n + column;
    const double w = weight ? *weight : 1, added = c_add.empty() ? 0 : c_add[static_cast<size_t>(index)];
    const ErrorBound bound(activation, x.value, 1);
    const double weighed = bound.f * w;
    out.c[index] = weighed + added;
    if (wanted.tensor_core)
      out.tensor_core[index] = static_cast<float>(activation.f(x.tensor_core()) * w + added);
    const double more = (weight ? u * std::fabs(weighed) + kSmallest : 0) +
                        (c_add.empty() ? 0 : u * std::fabs(out.c[index]) + kSmallest);
    for (const int slices : wanted.splits) {
      const size_t split = split_index(slices);
      out.error[split][index] =
          static_cast<float>((std::fabs(w) * bound.of(x.lost(split), 0) + more) * kSecondOrder);
    }
    put_before(wanted.gate, index, x, wanted);
  };
  for_each_row(a, {&b, 1}, k, core, wanted,
               [&](int64_t row, int64_t column, int64_t width, std::span<const RowOfSums> sums) {
                 const float* const factor = at(terms.row_scale, row);
                 for (int64_t i = 0; i < width; ++i)
                   put(row, column + i, Scaled(sums[0], i, alpha, factor, at(terms.bias1, column + i)));
               });
  return out;
}

}  // namespace ref
